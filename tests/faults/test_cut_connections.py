"""Connections are cut in the midst of what is sent over them: to the database, and to a server."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from crews import Crew
from judging import Judge
from proxies import Fate, Proxy, at_random
from server import running
from worlds import World, through

from heedful import NotFound
from heedful.storage import scopes
from heedful.storage.opening import open_store

ROUNDS = 8
CUTS: tuple[Fate, ...] = ("before", "half", "after")
ENOUGH = 10
"""Cuts of each kind, so that every kind of deed meets them."""


def test_the_database_ends_connections_in_the_midst_of_transactions(
    on_postgresql: World, judge: Judge, tmp_path: Path
) -> None:
    with Crew(on_postgresql, tmp_path) as crew:
        crew.work(3)
        for _ in range(ROUNDS):
            assert terminated(on_postgresql) > 0
            crew.work(3)
        crew.stop()
        judge(on_postgresql, crew)
    assert {code for code, _ in crew.errors} <= {"store_unreachable"}


def terminated(world: World) -> int:
    """Ends all connections to the database of a store; returns how many there were."""
    assert world.server is not None
    with psycopg.connect(world.server.url.replace("DATABASE", "postgres"), autocommit=True) as connection:
        return connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (world.url.rpartition("/")[2],)
        ).rowcount


def test_the_network_to_the_database_is_cut_before_and_after_a_commit(
    on_postgresql: World, judge: Judge, tmp_path: Path
) -> None:
    assert on_postgresql.server is not None
    with (
        Proxy(on_postgresql.server.port, at_random(3, marked=b"COMMIT", chance=0.04)) as proxy,
        Crew(on_postgresql, tmp_path, where=through(proxy, on_postgresql)) as crew,
    ):
        while min(proxy.fates[cut] for cut in CUTS) < ENOUGH:
            crew.work(5)
        crew.stop()
    judge(on_postgresql, crew)
    assert {code for code, _ in crew.errors} == {"store_unreachable"}
    unknown = [said for _, said in crew.errors if "may or may not be stored" in said]
    assert unknown, "nobody was told that a commit may have been done or not"


def test_the_network_to_a_server_is_cut_before_and_after_its_answer(world: World, judge: Judge, tmp_path: Path) -> None:
    with running(world.url) as server:
        port = urlsplit(server.url).port
        assert port is not None
        with Proxy(port, at_random(5, chance=0.2)) as proxy:
            where = f"http://127.0.0.1:{proxy.port}"
            with Crew(world, tmp_path, where=where, key=server.key) as crew:
                while min(proxy.fates[cut] for cut in CUTS) < ENOUGH:
                    crew.work(5)
                crew.stop()
    judge(world, crew)
    # The client sends again what was cut, and seldom has to give up.
    assert {code for code, _ in crew.errors} <= {"server_unreachable"}


def test_what_a_transaction_says_is_not_hidden_by_its_lost_connection(on_postgresql: World) -> None:
    with closing(open_store(on_postgresql.url)) as database:

        def fail() -> None:
            with database.write("red"):
                terminated(on_postgresql)
                raise NotFound("not here")

        with pytest.raises(NotFound, match="not here"):
            fail()
        with database.read("red") as connection:
            assert scopes.project_id(connection, "red") is None


def test_a_notice_that_is_lost_does_not_make_a_write_fail(on_postgresql: World) -> None:
    assert on_postgresql.server is not None
    with Proxy(
        on_postgresql.server.port, lambda sent: "before" if b"pg_notify('heedful'" in sent else "passes"
    ) as proxy:
        behind = replace(on_postgresql, url=through(proxy, on_postgresql))
        with behind.open("red") as store:
            assert store.remember("it is stored").added == 1
            assert store.remember("it is stored").added == 0
        assert proxy.fates["before"] == 1
