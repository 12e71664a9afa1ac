"""The primary database server is killed in the midst of writes, and its replica takes its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from crews import Crew
from judging import Judge
from postgresql import create_store
from postgresql_process import Server
from worlds import World

SOON = 60


@pytest.fixture
def primary() -> Iterator[Server]:
    server = Server()
    try:
        create_store(server.url, "store")
        yield server
    finally:
        server.close()


@pytest.fixture
def replica(primary: Server) -> Iterator[Server]:
    """A replica, which has all that the primary acknowledges from now on."""
    server = Server(replica_of=primary)
    try:
        _run(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        _run(primary, "SELECT pg_reload_conf()")
        _until(lambda: _run(primary, "SELECT sync_state FROM pg_stat_replication") == "sync")
        yield server
    finally:
        server.close()


def test_writers_go_on_with_a_replica_that_was_promoted(
    primary: Server, replica: Server, judge: Judge, tmp_path: Path
) -> None:
    hosts = "&".join(f"host=127.0.0.1:{server.port}" for server in (primary, replica))
    either = World(f"postgresql://keeper@/store?{hosts}&target_session_attrs=read-write", primary)
    with Crew(either, tmp_path) as crew:
        crew.work(15)
        primary.kill()
        crew.fail("store_unreachable", len(crew))
        assert _run(replica, "SELECT pg_promote()") is True
        crew.work(15)
        crew.stop()
    judge(World(replica.url.replace("DATABASE", "store").replace("postgres@", "keeper@"), replica), crew)
    assert {code for code, _ in crew.errors} == {"store_unreachable"}


def _run(server: Server, statement: str) -> object:
    """Runs a statement as superuser; its first value, if it has one."""
    with psycopg.connect(server.url.replace("DATABASE", "postgres"), autocommit=True) as connection:
        found = connection.execute(statement.encode())
        row = found.fetchone() if found.description else None
        return None if row is None else row[0]


def _until(condition: Callable[[], bool]) -> None:
    late = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < late, "the replica does not follow"
        time.sleep(0.05)
