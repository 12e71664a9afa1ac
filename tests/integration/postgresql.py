"""A real PostgreSQL server for tests: one for all workers, a new database for each test.

Stores are there, too, or else on a Citus cluster; a pooler may be in front of either.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from cluster import Cluster, join
from pgbouncer_process import Pooler
from postgresql_process import Server
from sharing import State, make_once, run_folder, shared_server

import heedful
from heedful.storage import open_store
from heedful.storage.postgresql.distribution import distribute
from heedful.storage.postgresql.tables import lock_project
from heedful.testing import WordEmbedder

QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "checkpoint_timeout=1h", "max_wal_size=4GB")
"""Settings of a server whose files nobody needs after a crash."""

CITUS = os.environ.get("HEEDFUL_CITUS") or None
"""A PostgreSQL with Citus, if stores are on a cluster in the tests."""

POOLER = os.environ.get("HEEDFUL_TEST_POOLER") == "pgbouncer"
"""Whether stores are reached through a pooler in the tests."""

_STARTED: dict[int, Server | Pooler] = {}
"""Servers that this process started for others, too; they may outlast its use of them."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Where new stores are: on a server, or on the nodes of a cluster."""

    nodes: tuple[str, ...]
    """Addresses, with DATABASE in the place of a name. The first one knows the others."""
    front: str
    """The address by which stores are opened."""


def _start() -> State:
    return _known([Server(*QUICK)])


def _start_cluster() -> State:
    assert CITUS is not None
    # Each test copies all shards.
    return _known(Cluster(Path(CITUS), *QUICK, "citus.shard_count=4").nodes)


def _start_pooler(port: int) -> State:
    return _known([Pooler(port)])


def _known(servers: Sequence[Server | Pooler]) -> State:
    known = []
    for server in servers:
        assert server.process is not None
        _STARTED[server.process.pid] = server
        known.append({"pid": server.process.pid, "url": server.url, "folder": str(server.folder)})
    return {"servers": known}


def _stop(known: State) -> None:
    for server in known["servers"]:
        pid = server["pid"]
        if pid in _STARTED:
            _STARTED.pop(pid).close()
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        # As a child of another process it stays in the list of processes, but its file goes.
        for _ in range(600):
            if not (Path(server["folder"]) / "data" / "postmaster.pid").exists():
                break
            time.sleep(0.05)
        shutil.rmtree(server["folder"], ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with shared_server(run_folder(tmp_path_factory, "postgresql"), _start, _stop) as known:
        yield known["servers"][0]["url"]


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Where the tests' own stores are."""
    with ExitStack() as started:

        def start(name: str, starting: Callable[[], State]) -> list[str]:
            known = started.enter_context(shared_server(run_folder(tmp_path_factory, name), starting, _stop))
            return [server["url"] for server in known["servers"]]

        nodes = [request.getfixturevalue("postgresql_server")] if CITUS is None else start("citus", _start_cluster)
        port = urlsplit(nodes[0]).port
        assert port is not None
        (front,) = start("pgbouncer", partial(_start_pooler, port)) if POOLER else nodes[:1]
        yield Stores(tuple(nodes), front)


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """A new database; its superuser is `postgres`, and a role `reader` may read all."""
    with new_database(postgresql_server) as url:
        yield url


@pytest.fixture(scope="session")
def bare_template(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database in which a store can be made by one who has no right beyond it, to be copied."""

    def make(name: str) -> None:
        _create(stores.nodes, name, "")
        for node in stores.nodes:
            _run(node.replace("DATABASE", name), "CREATE EXTENSION vector")
        if CITUS is not None:
            join(stores.nodes, name)

    return make_template(tmp_path_factory, stores, "bare", make)


@pytest.fixture(scope="session")
def postgresql_template(stores: Stores, bare_template: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the tables of a new store, to be copied; its owner has no right beyond it."""

    def make(name: str) -> None:
        url = create(stores, name, bare_template)
        if CITUS is not None:
            make_distributed(url)
        heedful.open(url, embedding=WordEmbedder()).close()

    return make_template(tmp_path_factory, stores, "empty_store", make)


@pytest.fixture
def bare_database(stores: Stores, bare_template: str) -> Iterator[str]:
    """The address of a new database in which a store can be made by one who has no right beyond it."""
    with copied(stores, bare_template) as url:
        yield url


@pytest.fixture
def empty_database(stores: Stores, postgresql_template: str) -> Iterator[str]:
    """The address of a new store."""
    with copied(stores, postgresql_template) as url:
        yield url


@contextlib.contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of a new database, as its superuser."""
    with _database([server], "test", "STRATEGY file_copy") as name:
        yield server.replace("DATABASE", name)


@contextlib.contextmanager
def copied(stores: Stores, template: str) -> Iterator[str]:
    """The address of a new database like another one, to which nobody is connected."""
    with _database(stores.nodes, "store", _like(template)) as name:
        yield _as_keeper(stores.front.replace("DATABASE", name))


@contextlib.contextmanager
def new_store(server: str, options: str = "STRATEGY file_copy") -> Iterator[str]:
    """The address of a new database that can become a store; its owner has no right beyond it."""
    with _database([server], "store", options) as name:
        _run(server.replace("DATABASE", name), "CREATE EXTENSION vector")
        yield _as_keeper(server.replace("DATABASE", name))


def create_store(server: str, name: str) -> None:
    """Creates a database that can become a store, on a server that goes with it."""
    _create([server], name, "")
    _run(server.replace("DATABASE", name), "CREATE EXTENSION vector")


def make_template(factory: pytest.TempPathFactory, stores: Stores, name: str, make: Callable[[str], object]) -> str:
    """The name of a database that is made once for all processes, and stays as long as its servers."""

    def make_on_all(folder: Path) -> None:
        make(name)
        for node in stores.nodes:
            # Citus stays connected to a database that was used.
            _run(node.replace("DATABASE", "postgres"), f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            _run(node.replace("DATABASE", "postgres"), _DISCONNECT.format(name))

    make_once(factory, f"{name}_{urlsplit(stores.nodes[0]).port}", make_on_all)
    return name


_DISCONNECT = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{}'"


def make_distributed(url: str) -> None:
    """Makes a new store in a cluster's database, and spreads its tables over the nodes."""
    with closing(open_store(url)) as database, database.write() as connection:
        distribute(connection)


def create(stores: Stores, name: str, template: str) -> str:
    """Creates a database like another one; returns its address, past any pooler."""
    _create(stores.nodes, name, _like(template))
    return _as_keeper(stores.nodes[0].replace("DATABASE", name))


def _like(template: str) -> str:
    return f"TEMPLATE {template} STRATEGY file_copy"


@contextlib.contextmanager
def _database(nodes: Sequence[str], prefix: str, options: str) -> Iterator[str]:
    name = f"{prefix}_{uuid4().hex}"
    _create(nodes, name, options)
    try:
        yield name
    finally:
        # By a new connection: some tests kill the server.
        for node in nodes:
            _drop(node.replace("DATABASE", "postgres"), name)


def _drop(url: str, name: str) -> None:
    # A server's own process, of Citus for instance, may need more than the five seconds that it gets to go.
    with contextlib.suppress(psycopg.errors.ObjectInUse):
        _run(url, f"DROP DATABASE {name} WITH (FORCE)")
    _run(url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _create(nodes: Sequence[str], name: str, options: str) -> None:
    _on_all(nodes, f"CREATE DATABASE {name} OWNER keeper {options}")


def _on_all(nodes: Sequence[str], statement: str) -> None:
    for node in nodes:
        _run(node.replace("DATABASE", "postgres"), statement)


def _run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def _as_keeper(url: str) -> str:
    return url.replace("postgres@", "keeper@")


@contextlib.contextmanager
def project_held(url: str, project: str) -> Iterator[psycopg.Connection[Any]]:
    """Holds a transaction open in a project, as a writer does; yields its connection."""
    with psycopg.connect(url, options="-c heedful.everything=on -c search_path=heedful,public") as connection:
        named = connection.execute("SELECT id FROM projects WHERE name = %s", (project,)).fetchone()
        assert named is not None, f"there is no project {project}"
        connection.execute(lock_project(named[0]).encode())
        yield connection
