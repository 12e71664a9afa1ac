"""A server that accepts a connection and never answers: every call ends, and says which server it waited for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import psycopg
import pytest
from kinds import TABLES
from postgresql import project_held
from proxies import Proxy
from sqlalchemy import make_url

import heedful
from heedful import Heedful, Unavailable
from heedful.sql.sandbox import pool
from heedful.storage.postgresql import backend
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """A port where connections are accepted, and that is all."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening.getsockname()[1]


def refusal(call: Callable[[], object]) -> tuple[Unavailable, float]:
    began = monotonic()
    with pytest.raises(Unavailable) as caught:
        call()
    return caught.value, monotonic() - began


def test_a_server_that_never_answers_is_given_up_and_named(
    open_store: Callable[..., Heedful], tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    store = open_store()
    place, short = f"127.0.0.1:{silent}/db", "connect_timeout=2"
    on_mongo = f"mongodb://me:hunter2@{place}?serverSelectionTimeoutMS=500&connectTimeoutMS=500"
    calls: dict[str, Callable[[], object]] = {
        "postgresql connector": lambda: store.connectors.create("a", f"postgresql://me:${{SECRET}}@{place}?{short}"),
        "mysql connector": lambda: store.connectors.create("b", f"mysql+pymysql://me:${{SECRET}}@{place}?{short}"),
        "postgresql store": lambda: heedful.open(f"postgresql://me:hunter2@{place}?{short}"),
        "mongodb sessions": lambda: elsewhere.sessions.create("tuesday"),
    }
    with (
        heedful.open(tmp_path / "other.db", sessions=on_mongo, embedding=WordEmbedder()) as elsewhere,
        ThreadPoolExecutor(len(calls)) as threads,
    ):
        found = dict(zip(calls, threads.map(refusal, calls.values()), strict=True))
    for name, (error, seconds) in found.items():
        assert error.code in ("database_unreachable", "store_unreachable"), name
        assert f"127.0.0.1:{silent}/db" in error.message, name
        assert "hunter2" not in str(error), name
        assert error.remedy, name
        assert seconds < 25, name


@pytest.mark.nightly
def test_a_store_whose_server_falls_silent_ends_the_call_and_works_again_later(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "SILENT_SECONDS", 0.2)
    address = make_url(empty_database)
    assert address.port is not None
    with Proxy(address.port) as proxy:
        through = address.set(port=proxy.port).update_query_dict({"connect_timeout": "2"})
        with heedful.open(through.render_as_string(hide_password=False), embedding=WordEmbedder()) as store:
            store.remember("Rome is in Italy.")
            proxy.hold()
            error, seconds = refusal(lambda: store.recall("Where is Rome?"))
            assert error.code == "store_unreachable"
            assert f"127.0.0.1:{proxy.port}" in error.message
            assert seconds < 15
            proxy.release()
            assert store.recall("Where is Rome?")[0].text == "Rome is in Italy."


def test_a_store_that_is_at_work_is_waited_for(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "SILENT_SECONDS", 0.05)
    with heedful.open(empty_database, embedding=WordEmbedder()) as store:
        store.remember("Rome is in Italy.")
        with project_held(empty_database, "default") as holder:
            threading.Timer(0.5, holder.commit).start()
            assert store.remember("Oslo is in Norway.").fact_ids


def test_a_connector_that_falls_silent_before_its_query_runs_is_named(
    open_store: Callable[..., Heedful], postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgresql_url) as connection:
        connection.execute(TABLES.encode())
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    address = make_url(postgresql_url)
    assert address.port is not None
    store = open_store()
    with Proxy(address.port) as proxy:
        made = store.connectors.create(
            "towns", f"postgresql://guest@127.0.0.1:{proxy.port}/{address.database}?connect_timeout=60"
        )
        monkeypatch.setattr(pool, "_CONNECT", {"start": 1.0})
        proxy.hold()
        error, seconds = refusal(
            lambda: store.executions.execute_query("SELECT name FROM city", connector_id=made.connector_id)
        )
        assert error.code == "database_unreachable"
        assert f"postgresql://127.0.0.1:{proxy.port}/{address.database}" in error.message
        assert "no answer within 1 seconds" in error.message
        assert seconds < 15
