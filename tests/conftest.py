"""What the tests share: stores that close themselves, a clock that stands still, and the models."""

from __future__ import annotations

import gc
import inspect
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grids
import httpx
import pytest
from compiled import compiled_once
from help_desk import help_desk
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from job_queues import database, queue
from lived import lived, lived_database, lived_folder, lived_template, place
from memory_files import keep_files_in_memory
from mongodb import mongodb_server, mongodb_url, standalone_mongodb_server, standalone_mongodb_url
from mysql import mysql_server, mysql_url
from postgresql import (
    CITUS,
    POOLER,
    bare_database,
    bare_template,
    empty_database,
    postgresql_server,
    postgresql_template,
    postgresql_url,
    stores,
)
from private_files import write_private
from searching import search_inside_from_the_first_fact
from sharing import make_once
from single_shard import single_shard
from sqlalchemy import Connection
from warm_processes import cold_processes, warm_interpreter, warm_processes

import heedful
from heedful import Heedful
from heedful import store as store_module
from heedful.clock import new_id
from heedful.model import SignalType
from heedful.providers.configured import configured_embedder, embedder_from
from heedful.providers.embedding import Embedder
from heedful.review import follow
from heedful.sql.sandbox.pool import IDLE_PROCESSES
from heedful.storage.migrations import run as migrations
from heedful.testing import ManualClock, WordEmbedder

__all__ = [
    "bare_database",
    "bare_template",
    "cold_processes",
    "database",
    "empty_database",
    "help_desk",
    "lived",
    "lived_database",
    "lived_folder",
    "lived_template",
    "mongodb_server",
    "mongodb_url",
    "mysql_server",
    "mysql_url",
    "place",
    "postgresql_server",
    "postgresql_template",
    "postgresql_url",
    "queue",
    "standalone_mongodb_server",
    "standalone_mongodb_url",
    "stores",
    "warm_interpreter",
    "warm_processes",
]

_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("suite", max_examples=10 if grids.GRIDS == "few" else 30, derandomize=True, **_ALWAYS)
settings.register_profile("thorough", max_examples=600, **_ALWAYS)
settings.load_profile(os.environ.get("HEEDFUL_TEST_EXAMPLES", "suite"))

# It keeps what it knows of Unicode there, which takes seconds to find out; by itself it would look in a test's folder.
set_hypothesis_home_dir(Path(__file__).parents[1] / ".hypothesis")

keep_files_in_memory()

STORE = os.environ.get("HEEDFUL_TEST_STORE", "sqlite")
"""What the tests of the engine run on: sqlite or postgresql."""

SEARCH = os.environ.get("HEEDFUL_TEST_SEARCH", "memory")
"""What searches on PostgreSQL: memory or database."""

# Machines stand still for seconds now and then; then a server that answers late is not at fault.
_patience = inspect.signature(httpx.get).parameters["timeout"].default
_patience.connect = _patience.read = _patience.write = _patience.pool = 60.0

LONGEST = ("test_schemathesis.py", "test_parity_results.py", "test_serve.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = items if STORE == "sqlite" else list(filter(_needs_a_server, items))
    if not grids.WHOLE:
        chosen = grids.thin(chosen, STORE)
    left = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    # What takes longest begins first, so that no worker is alone with it at the end.
    items[:] = sorted(chosen, key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish() -> None:
    """What was collected stays; the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries look at the end for what was left."""
    gc.unfreeze()


def _needs_a_server(item: pytest.Item) -> bool:
    """What opens a store, is not about its file, and has its sessions there: those in MongoDB are the same on either
    store."""
    used: list[str] = item.fixturenames  # type: ignore[attr-defined]
    elsewhere = {"mongodb", "mongodb_url", "standalone_mongodb_url"}
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return (
        not {"open_store", "open_either"}.isdisjoint(used)
        and "path" not in used
        and elsewhere.isdisjoint([*used, *map(str, chosen)])
    )


WEIGHTS = {"used": 1.0, "ignored": -0.5, "helpful": 1.5, "not_helpful": -1.0}


@pytest.fixture(autouse=True)
def time_to_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A review queue reads all that is new, however slow the machine is."""
    monkeypatch.setattr(follow, "CATCH_UP_SECONDS", 60.0)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the environment nor a file in the current folder changes what a test opens."""
    for name in [name for name in os.environ if name.startswith("HEEDFUL_")]:
        monkeypatch.delenv(name)
    # Most tests call `improve`, and count what it changes; those of the loop turn this on.
    monkeypatch.setenv("HEEDFUL_AUTO_IMPROVE", "false")
    monkeypatch.chdir(tmp_path)
    if SEARCH == "database":
        search_inside_from_the_first_fact(monkeypatch)


@pytest.fixture(scope="session", autouse=True)
def warm_query_processes() -> None:
    """Keeps the processes for queries between tests, each of which would start its own."""
    IDLE_PROCESSES.open(2)


@pytest.fixture(scope="session", autouse=True)
def warm_models() -> Iterator[None]:
    """Loads a model once for all stores that are opened by its name."""
    choose = sys.modules[embedder_from.__module__]
    with pytest.MonkeyPatch.context() as patched:
        for name in ("bundled", "FastEmbedder"):
            patched.setattr(choose, name, cache(getattr(choose, name)))
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_certificates() -> Iterator[None]:
    """Reads the certificates of authorities once for all clients: that takes longer than most calls."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("httpx._transports.default.create_ssl_context", cache(httpx.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_statements() -> Iterator[None]:
    """Compiles each statement once for all stores."""
    with compiled_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def shards_of_one_project(request: pytest.FixtureRequest) -> Iterator[None]:
    """On a cluster, a statement that concerns one project fails if it needs more than one shard. Behind a pooler,
    connections have no settings of their own."""
    if CITUS is None or POOLER or STORE != "postgresql":
        yield
        return
    port = urlsplit(request.getfixturevalue("stores").nodes[0]).port
    assert port is not None
    with single_shard(port):
        yield


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:

    def make(folder: Path) -> None:
        heedful.open(folder / "store.db", embedding=WordEmbedder()).close()

    return make_once(tmp_path_factory, "empty_store", make) / "store.db"


@pytest.fixture(scope="session")
def empty_store(empty_file: Path) -> bytes:
    """The file of a new store, for tests that are not about making one."""
    return empty_file.read_bytes()


@pytest.fixture(scope="session")
def migrate() -> Callable[[Connection], None]:
    """What makes the tables of a store."""
    return migrations.upgrade


@pytest.fixture(scope="session", autouse=True)
def quick_new_stores(migrate: Callable[[Connection], None], empty_file: Path) -> Iterator[None]:
    """A new store in a file gets the tables of one that was migrated before."""
    with closing(sqlite3.connect(f"file:{empty_file}?immutable=1", uri=True)) as made:
        wanted = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        tables = [sql for (sql,) in made.execute(wanted)]
        (version,) = made.execute("SELECT version_num FROM alembic_version").fetchone()

    def create(connection: Connection) -> None:
        if connection.dialect.name != "sqlite":
            migrate(connection)
            return
        for sql in tables:
            connection.exec_driver_sql(sql)
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (version,))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrations, "upgrade", create)
        yield


@pytest.fixture
def one_author_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests about what is learnt, not about who may teach it."""
    monkeypatch.setenv("HEEDFUL_AUTHORS_TO_TEACH", "1")


@pytest.fixture
def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock, empty_store: bytes
) -> Iterator[Callable[..., Heedful]]:
    """Opens the test's store (or another, by name) with the quick model; all are closed at the end.

    With HEEDFUL_TEST_STORE=postgresql in the environment of the tests, it is a database on a server.
    """
    path = tmp_path / "store.db"
    on_server: str | None = request.getfixturevalue("empty_database") if STORE == "postgresql" else None
    with ExitStack() as opened:

        def opening(where: str | Path | None = None, **options: Any) -> Heedful:
            if where is None and on_server is None and not path.exists():
                write_private(path, empty_store)
            chosen: dict[str, Any] = {"clock": clock, "embedding": WordEmbedder(), **options}
            return opened.enter_context(heedful.open((on_server or path) if where is None else where, **chosen))

        yield opening


@pytest.fixture
def new_store(tmp_path: Path, empty_store: bytes) -> Callable[..., Heedful]:
    """Opens another empty store each time, on SQLite; for properties, which need one for each example."""

    def opening(clock: ManualClock) -> Heedful:
        path = tmp_path / f"{new_id()}.db"
        write_private(path, empty_store)
        return heedful.open(path, clock=clock, embedding=WordEmbedder(), worker=False)

    return opening


@pytest.fixture
def store(open_store: Callable[..., Heedful]) -> Heedful:
    return open_store()


@pytest.fixture(params=["sqlite", "postgresql"])
def any_store(request: pytest.FixtureRequest, path: Path, empty_store: bytes) -> str:
    """The address of a new store, of each kind."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("empty_database")
        return url
    write_private(path, empty_store)
    return str(path)


@pytest.fixture(params=["sqlite", "mongodb"])
def open_either(request: pytest.FixtureRequest) -> Callable[..., Heedful]:
    """Opens the test's store with its sessions in the same file, and then with them in a MongoDB."""
    if request.param == "sqlite":
        opening: Callable[..., Heedful] = request.getfixturevalue("open_store")
        return opening
    url: str = request.getfixturevalue("mongodb_url")
    opening = request.getfixturevalue("open_store")
    return lambda where=None, **options: opening(where, **{"sessions": url, **options})


@pytest.fixture
def either(open_either: Callable[..., Heedful]) -> Heedful:
    return open_either()


@pytest.fixture(scope="session")
def bundled() -> Embedder:
    """The model that `open` uses by default."""
    return embedder_from("bundled")


Event = tuple[SignalType, float, datetime]


@pytest.fixture(scope="session")
def documented_score() -> Callable[[Iterable[Event], datetime], float]:
    """The document's rule written a second time: what signals in folding order make of a score at a moment."""

    def score(events: Iterable[Event], now: datetime) -> float:
        value, last = 0.5, None
        for kind, confidence, at in events:
            if last is not None:
                value = faded(value, at - last)
            value = min(1.0, max(0.0, value + WEIGHTS[kind] * confidence * 0.1))
            last = at
        return value if last is None else faded(value, now - last)

    def faded(value: float, elapsed: timedelta) -> float:
        days = max(0.0, elapsed.total_seconds() / 86400)
        return float(0.5 + (value - 0.5) * 0.95 ** (days / 7))

    return score


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models that are loaded from now on."""
    result: list[object] = []

    def counted(*given: Any) -> Any:
        result.append(given)
        return configured_embedder(*given)

    monkeypatch.setattr(store_module, "configured_embedder", counted)
    return result
