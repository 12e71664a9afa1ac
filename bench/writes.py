"""How fast signals are taken in, beside the bare inserts of SQLite."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Spent, timed
from heedful.engine import Heedful
from heedful.model import SIGNAL_TYPES, Signal
from heedful.storage import open_store

BATCH = 100
ROWS = 3
"""Rows of one signal: one in the ledger, one score for the query, one for all queries."""

_TABLES = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, project_id INTEGER, dataset_id INTEGER,
    idempotency_key TEXT, kind TEXT, target_type TEXT, target_id TEXT, source TEXT, at INTEGER, recorded_at INTEGER,
    query_id INTEGER, value TEXT, confidence REAL
);
CREATE TABLE scores (
    fact_seq INTEGER, query_id INTEGER, project_id INTEGER, dataset_id INTEGER, score REAL, last_at INTEGER,
    used INTEGER, ignored INTEGER, helpful INTEGER, not_helpful INTEGER, PRIMARY KEY (fact_seq, query_id, project_id)
) WITHOUT ROWID;
"""
_EVENT = (
    "INSERT INTO events (id, project_id, dataset_id, idempotency_key, kind, target_type, target_id, source, at,"
    " recorded_at, query_id, value, confidence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SCORE = (
    "INSERT INTO scores"
    " (fact_seq, query_id, project_id, dataset_id, score, last_at, used, ignored, helpful, not_helpful)"
    " VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (fact_seq, query_id, project_id) DO UPDATE SET"
    " score = excluded.score, last_at = excluded.last_at, used = excluded.used"
)


@dataclass(slots=True)
class Writes:
    """What every batch took: SQLite alone in plain tables and in Heedful's, signals for known and for new queries."""

    raw: list[Spent]
    indexed: list[Spent]
    known: list[Spent]
    new: list[Spent]


def rows_a_second(batches: Sequence[Spent]) -> float:
    """Rows written a second, by the median batch."""
    return BATCH * ROWS / statistics.median(batch.wall for batch in batches)


def measure(store: Heedful, folder: Path, fact_ids: Sequence[str], queries: Sequence[str], batches: int) -> Writes:
    """Batches of all kinds, in turns. Every batch is on disk before the next begins."""
    writes = Writes([], [], [], [])
    known = _signals(fact_ids, queries[:BATCH])
    new = _signals(fact_ids, [f"{queries[place % len(queries)]} ({place})" for place in range((batches + 2) * BATCH)])
    open_store(folder / "indexed.db").close()
    with closing(_connected(folder / "raw.db")) as raw, closing(_connected(folder / "indexed.db")) as indexed:
        raw.executescript(_TABLES)
        for place in range(batches + 1):
            spent = (
                _raw(raw, place),
                _raw(indexed, place),
                _heedful(store, [next(known) for _ in range(BATCH)]),
                _heedful(store, [next(new) for _ in range(BATCH)]),
            )
            if place:  # The first is for warming up.
                for kept, each in zip((writes.raw, writes.indexed, writes.known, writes.new), spent, strict=True):
                    kept.append(each)
    return writes


def _connected(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _signals(fact_ids: Sequence[str], queries: Sequence[str]) -> Iterator[Signal]:
    """Signals without end, over all facts and queries in turn."""
    place = 0
    while True:
        yield Signal(
            fact_id=fact_ids[place * 7919 % len(fact_ids)],
            signal_type=SIGNAL_TYPES[place % len(SIGNAL_TYPES)],
            query=queries[place % len(queries)],
        )
        place += 1


def _heedful(store: Heedful, signals: Sequence[Signal]) -> Spent:
    spent, result = timed(lambda: store.signal(signals))
    assert result.processed == BATCH, result.errors
    return spent


def _raw(connection: sqlite3.Connection, batch: int) -> Spent:
    """The same number of rows of the same shape, in one transaction, by the standard library alone."""
    numbers = range(batch * BATCH, (batch + 1) * BATCH)
    now = time.time_ns() // 1000
    identifiers = [f"{number:08x}-0000-7000-8000-{number:012x}" for number in numbers]
    events = [
        (identifier, 1, 1, identifier, "signal", "fact", identifier, "signal", now, now, number % 1000, "used", 1.0)
        for number, identifier in zip(numbers, identifiers, strict=True)
    ]
    scores = [
        (number * 7919 % 100_000, query, 1, 0.6, now, 1, 0, 0, 0) for number in numbers for query in (number % 1000, 0)
    ]

    def write() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_EVENT, events)
        connection.executemany(_SCORE, scores)
        connection.execute("COMMIT")

    return timed(write)[0]
