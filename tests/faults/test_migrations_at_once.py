"""Several processes open a store of an earlier version, or none yet, at once; one is killed in the middle."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import URL, Connection, MetaData, make_url
from worlds import World

from heedful.model import DEFAULT_DATASET
from heedful.storage.backend import Backend
from heedful.storage.database import Database, _version
from heedful.storage.migrations import HEAD
from heedful.storage.migrations.run import config
from heedful.storage.postgresql.backend import PostgreSql
from heedful.storage.schema import event_keys
from heedful.storage.sqlite import Sqlite
from heedful.storage.vectors import pack
from heedful.testing import WordEmbedder

OPENERS = Path(__file__).with_name("openers.py")
COUNT = 4
OLD = {"sqlite": "0005", "postgresql": "0006"}
"""Revisions that there were stores of."""
TEXT = "the fact of an earlier version"


def backend(world: World) -> Backend:
    if world.kind == "sqlite":
        return Sqlite(URL.create("sqlite", database=world.url))
    return PostgreSql(make_url(world.url))


def make_old(world: World) -> None:
    """A store as an earlier version made it, with a fact and signals about it."""
    if world.kind == "sqlite":
        Path(world.url).touch(0o600)
    made = backend(world)
    with closing(made):
        made.prepare()
        with made.begin(None, write=True, durable=True, alone=True) as connection:
            command.upgrade(config(connection), OLD[world.kind])
            fill(connection)


def fill(connection: Connection) -> None:
    # Rows get their numbers from the database, and the first is 1.
    tables = MetaData()
    embedder = WordEmbedder()
    vector = pack(embedder.embed([TEXT])[0])
    signal = {"kind": "signal", "target_type": "fact", "target_id": "f", "source": "signal", "value": "used"}
    rows: dict[str, list[dict[str, object]]] = {
        "projects": [{"name": "old", "created_at": 1}],
        "datasets": [{"project_id": 1, "name": DEFAULT_DATASET, "created_at": 1}],
        "models": [{"name": embedder.name, "dimensions": embedder.dimensions, "active": 1}],
        "facts": [{"id": "f", "dataset_id": 1, "digest": b"0" * 16, "text": TEXT, "metadata": {}}],
        "vectors": [{"fact_seq": 1, "model_id": 1, "vector": vector}],
        "changes": [{"dataset_id": 1, "fact_seq": 1, "kind": 1}],
        "queries": [{"dataset_id": 1, "digest": b"0" * 16, "text": "a question"}],
        "events": [
            {"id": f"e{seq}", "project_id": 1, "dataset_id": 1, "idempotency_key": f"signal/{seq}"}
            | {"at": seq, "recorded_at": seq, "query_id": 1, "confidence": 1.0, **signal}
            for seq in (1, 2, 3)
        ],
    }
    if connection.dialect.name == "postgresql":
        del rows["vectors"]
    rows["facts"][0] |= {"ordinal": 0, "start": 0, "stop": 0, "superseded": 0, "linked": 0, "created_at": 1}
    tables.reflect(connection, only=list(rows))
    for name, each in rows.items():
        connection.execute(tables.tables[name].insert(), each)
    if connection.dialect.name == "postgresql":
        values = (str(embedder.embed([TEXT])[0].tolist()),)
        connection.exec_driver_sql(
            "INSERT INTO vectors (fact_seq, model_id, dataset_id, vector) VALUES (1, 1, 1, %s)", values
        )


def opened_at_once(world: World, first: str) -> None:
    done = subprocess.run(
        [sys.executable, str(OPENERS), world.url, str(COUNT), first], capture_output=True, text=True, timeout=200
    )
    assert (done.returncode, done.stdout.strip()) == (0, str([0] * COUNT)), done.stderr


@pytest.mark.parametrize("first", ["lives", "killed"])
@pytest.mark.parametrize("age", ["new", "old"])
def test_a_store_is_migrated_once_and_whole(world: World, age: str, first: str) -> None:
    if age == "old":
        make_old(world)
    opened_at_once(world, first)
    with closing(Database(world.url)) as database, database.read() as connection:
        assert _version(connection) == HEAD
        keys = sorted(connection.execute(event_keys.select()).mappings(), key=lambda row: row["event_id"])
    if age == "old":
        assert [(row["idempotency_key"], row["event_id"]) for row in keys] == [
            (f"signal/{seq}", f"e{seq}") for seq in (1, 2, 3)
        ]
        with world.open("old") as store:
            assert store.fact("f").text == TEXT
            assert [hit.fact_id for hit in store.recall(TEXT)] == ["f"]
            store.doctor()
            assert [check for check in store.doctor(repair=False) if not check.ok] == []
            assert store.fact_stats("f").signal_count == 3
    for place in range(COUNT):
        with world.open(f"p{place}") as store:
            assert [fact.text for fact in store.facts().items] == [f"by number {place}"]
            assert [check for check in store.doctor(repair=False) if not check.ok] == []
