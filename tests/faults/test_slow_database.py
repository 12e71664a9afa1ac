"""A database that is slow, or does not answer: calls take longer, time-outs say so, nothing is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from crews import Crew
from judging import Judge
from postgresql import project_held
from proxies import Proxy
from server import running
from worlds import World, through

from heedful import Unavailable
from heedful.storage import sqlite
from heedful.storage.postgresql import backend


def port(world: World) -> int:
    assert world.server is not None
    return world.server.port


def test_calls_wait_for_a_slow_network_and_do_not_fail(on_postgresql: World, judge: Judge, tmp_path: Path) -> None:
    with (
        Proxy(port(on_postgresql), delay=0.003) as proxy,
        Crew(on_postgresql, tmp_path, where=through(proxy, on_postgresql)) as crew,
    ):
        crew.work(10)
        crew.stop()
    assert crew.errors == []
    judge(on_postgresql, crew)


def test_a_client_is_told_that_time_is_up_and_what_it_sends_again_counts_once(on_postgresql: World) -> None:
    fact = on_postgresql.prepare("default", []).judged
    feedback = {"fact_id": fact, "signal_type": "used", "query": "q", "idempotency_key": "once"}
    with (
        Proxy(port(on_postgresql)) as proxy,
        running(through(proxy, on_postgresql)) as server,
        server.connect(timeout=0.5) as hurried,
        server.connect() as patient,
    ):
        patient.fact(fact)
        proxy.hold()
        with pytest.raises(Unavailable) as caught:
            hurried.signal([feedback])
        assert caught.value.code == "server_timeout"
        assert "idempotency_key" in (caught.value.remedy or "")
        proxy.release()
        event = patient.signal([feedback]).event_ids
        assert patient.signal([feedback]).event_ids == event
        assert patient.fact_stats(fact).signal_count == 1


@contextmanager
def locked(world: World) -> Iterator[None]:
    """Somebody holds a transaction open in the project."""
    if world.kind == "sqlite":
        with closing(sqlite3.connect(world.url, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
    else:
        with project_held(world.url, "red"):
            yield


def test_writers_wait_for_a_lock_while_others_read(world: World, judge: Judge, tmp_path: Path) -> None:
    with Crew(world, tmp_path, projects=["red"], each=2) as crew:
        crew.work(3)
        with world.open("red") as store, locked(world):
            for _ in range(10):
                assert store.fact_stats(crew.facts["red"].judged).text == "the one fact of red"
            # In a file there is one writer at a time, and a recall writes its receipt.
            if world.kind == "postgresql":
                result = store.recall("the one fact", boost_by_usefulness=True)
                assert result[0].fact_id == crew.facts["red"].judged
        crew.work(3)
        crew.stop()
    assert crew.errors == []
    judge(world, crew)


def test_a_lock_that_is_never_let_go_is_an_error_that_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, "PRAGMA busy_timeout = 200"))
    monkeypatch.setattr(backend, "_WRITE", (*backend._WRITE, "SET LOCAL lock_timeout = 200"))
    fact = world.prepare("red", []).judged
    feedback = {"fact_id": fact, "signal_type": "used", "query": "q", "idempotency_key": "once"}
    with world.open("red") as store:
        with locked(world), pytest.raises(Unavailable) as caught:
            store.signal([feedback])
        assert caught.value.code == "store_busy"
        assert "nothing was changed" in str(caught.value)
        assert store.fact_stats(fact).signal_count == 0
        store.signal([feedback])
        assert store.fact_stats(fact).signal_count == 1
