"""Behind a pooler, a connection of the server is used by everybody in turn: nothing may be left on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest
from pgbouncer_process import Pooler
from postgresql import create_store
from postgresql_process import Server

import heedful
from heedful.search.database_index import build_due
from heedful.storage.opening import open_store
from heedful.testing import WordEmbedder

KEPT_BY_POOLER = {"application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"}
"""Settings that a pooler sets for each client."""

_CHANGED = "SELECT name FROM pg_settings WHERE source = 'session' AND setting IS DISTINCT FROM reset_val"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("fsync=off")
    try:
        create_store(server.url, "store")
        yield server
    finally:
        server.close()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """The address of a store behind a pooler that has no connection to the server yet."""
    pooler = Pooler(server.port)
    try:
        yield pooler.url.replace("DATABASE", "store").replace("postgres@", "keeper@")
    finally:
        pooler.close()


def test_nothing_is_left_on_connections_after_all_kinds_of_work(server: Server, url: str) -> None:
    with heedful.open(url, embedding=WordEmbedder(), worker=False) as store:
        store.remember([f"fact number {number}" for number in range(20)])
        store.recall("fact")
        store.improve()
        assert store.doctor(repair=False)
    with closing(open_store(url)) as database:
        assert build_due(database, lambda step: None, limit=5) == 1
    with psycopg.connect(server.url.replace("DATABASE", "store"), autocommit=True) as connection:
        backends = {
            pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity WHERE usename = 'keeper'").fetchall()
        }
        locked = connection.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'").fetchall()
    assert backends, "the pooler has closed its connections: nothing is tested"
    assert locked == [], "a lock outlasts its transaction"
    with ExitStack() as opened:
        seen, changed = {}, set()
        # At once, so that each has another connection of the server.
        for _ in backends:
            connection = opened.enter_context(psycopg.connect(url))
            (row,) = connection.execute("SELECT pg_backend_pid(), (SELECT count(*) FROM heedful.facts)").fetchall()
            seen[row[0]] = row[1]
            changed |= {name for (name,) in connection.execute(_CHANGED).fetchall()}
    assert seen == dict.fromkeys(backends, 0), "one who names no project sees facts"
    assert changed <= KEPT_BY_POOLER, "a setting outlasts its transaction"
