"""A replica of a PostgreSQL store: read there, written elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from postgresql_process import Server
from server import running
from sqlalchemy import text

import heedful
from heedful import Heedful, Unavailable
from heedful.storage import scopes
from heedful.storage.vectors import read_rows
from heedful.testing import WordEmbedder

SOON = 30


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[str, str]]:
    """The addresses of a store on a primary server, and of the same on its replica."""
    primary = Server("fsync=off", "wal_level=replica")
    try:
        with psycopg.connect(primary.url.replace("DATABASE", "postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE store OWNER keeper")
        address = primary.url.replace("DATABASE", "store")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        address = address.replace("postgres@", "keeper@")
        heedful.open(address, embedding=WordEmbedder()).close()
        replica = Server("fsync=off", replica_of=primary)
        try:
            yield address, replica.url.replace("DATABASE", "store").replace("postgres@", "keeper@")
        finally:
            replica.close()
    finally:
        primary.close()


@pytest.fixture
def primary(both: tuple[str, str]) -> Iterator[Heedful]:
    with heedful.open(both[0], embedding=WordEmbedder()) as store:
        yield store


@pytest.fixture
def replica(both: tuple[str, str]) -> Iterator[Heedful]:
    with heedful.open(both[1], embedding=WordEmbedder()) as store:
        yield store


def until(condition: Callable[[], bool]) -> None:
    late = time.monotonic() + SOON
    while not condition() and time.monotonic() < late:
        time.sleep(0.05)
    assert condition()


@pytest.mark.slow
def test_what_the_primary_is_told_is_recalled_from_the_replica(primary: Heedful, replica: Heedful) -> None:
    fact = primary.remember("the gym opens at six").fact_ids[0]
    primary.remember("the gym closes at nine")
    primary.signal([{"fact_id": fact, "signal_type": "helpful", "query": "when does the gym open"}])
    until(lambda: replica.usefulness_stats().total_signals == 1)
    recalled = replica.recall("when does the gym open", boost_by_usefulness=True)
    assert {hit.text for hit in recalled} == {"the gym closes at nine", "the gym opens at six"}
    assert recalled[0].fact_id == fact
    assert recalled[0].usefulness == pytest.approx(0.65)


@pytest.mark.slow
def test_a_recall_from_a_replica_has_no_receipt(primary: Heedful, replica: Heedful) -> None:
    primary.remember("the gym has a pool")
    assert not replica.recall("gym").receipt
    assert primary.recall("gym").receipt


def test_a_replica_refuses_what_must_be_written(replica: Heedful) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: replica.remember("x"),
        lambda: replica.recall("gym", session_id="s"),
        lambda: replica.sessions.create("s"),
    )
    for call in calls:
        with pytest.raises(Unavailable, match="replica") as caught:
            call()
        assert caught.value.code == "store_read_only"


def _saved(store: Heedful, dataset: int) -> bool:
    """Whether a store has a saved index of a dataset."""
    count = text("SELECT count(*) FROM saved_indexes WHERE dataset_id = :dataset")
    with store._workspace.read() as connection:
        return bool(connection.execute(count, {"dataset": dataset}).scalar())


@pytest.mark.slow
def test_a_replica_reads_the_vectors_that_it_needs(
    primary: Heedful, replica: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("search.vector_index.EXACT_BELOW", "search.vector_index.RESCORE_COUNT", "search.relevance.POOL"):
        monkeypatch.setattr(f"heedful.{name}", 10)
    read: list[int] = []

    def noted(connection: Any, model: Any, seqs: Any) -> Any:
        read.extend(seqs.tolist())
        return read_rows(connection, model, seqs)

    monkeypatch.setattr("heedful.search.dataset.read_rows", noted)
    primary.remember([f"room{number} is on floor{number % 9}" for number in range(200)], dataset="rooms")
    expected = primary.recall("room77 floor5", dataset="rooms", top_k=3)
    with primary._workspace.read() as connection:
        number = scopes.dataset_id(connection, "rooms")
    assert number is not None
    primary._workspace.save_index(number)
    until(lambda: _saved(replica, number))
    recalled = replica.recall("room77 floor5", dataset="rooms", top_k=3)
    assert [(hit.fact_id, hit.score) for hit in recalled] == [(hit.fact_id, hit.score) for hit in expected]
    assert 0 < len(read) < 200


@pytest.mark.slow
def test_a_server_serves_a_replica(both: tuple[str, str], primary: Heedful) -> None:
    primary.remember("the sauna opens at seven")
    with running(both[1], worker=False) as server, server.connect() as client:
        until(lambda: len(client.recall("sauna", mode="lexical")) == 1)
