"""What use does to the cache: hits of one question, and ratings of sessions beside it."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import insert

import heedful
from bench.measure import say, timed
from heedful.clock import new_id
from heedful.storage.schema import feedbacks
from heedful.testing import ScriptedModel, WordEmbedder

HITS = 60
RATINGS = 300_000
LOOKUPS = 9
QUESTION = "How many orders are in France?"
SQL = "SELECT count(*) AS n FROM orders WHERE country = 'France'"


@dataclass(frozen=True, slots=True)
class Rows:
    """The figures, with nothing of it and with all of it."""

    candidates: tuple[int, int]
    """Executions that a lookup looks at, before and after the hits."""
    leads: bool
    """Whether the proven question still is the first example in the model's prompt."""
    bytes_per_hit: int
    milliseconds: tuple[float, float]
    """The median of a lookup, without and with the ratings."""


def measured(folder: Path) -> Rows:
    """Both rows, in a store of their own."""
    _orders(folder / "orders.db")
    model = ScriptedModel(lambda messages: "SELECT count(*) AS n FROM orders")
    with heedful.open(folder / "store.db", embedding=WordEmbedder(), language_model=model, worker=False) as memory:
        memory.connectors.create("shop", f"sqlite:///{folder / 'orders.db'}")
        done = memory.executions.execute_query(SQL, question=QUESTION)
        memory.feedback.create_positive(execution_id=done.execution_id)
        first = memory.chat.execution_cache_lookup(QUESTION).candidates_checked
        size = _size(folder / "store.db")
        for _ in range(HITS):
            memory.chat.execution_cache_lookup(QUESTION)
        grown = (_size(folder / "store.db") - size) // HITS
        last = memory.chat.execution_cache_lookup(QUESTION).candidates_checked
        memory.chat.chat_to_sql(memory.chat_sessions.create().id, "How many orders in France were paid late?")
        prompt = "\n".join(message.content for message in model.prompts[-1])
        alone = _median(memory)
        say(f"storing {RATINGS} ratings of sessions")
        _rate(memory)
        return Rows((first, last), SQL in prompt, grown, (alone, _median(memory)))


def _median(memory: heedful.Heedful) -> float:
    times = [timed(lambda: memory.chat.execution_cache_lookup(QUESTION))[0].wall for _ in range(LOOKUPS)]
    return round(sorted(times)[LOOKUPS // 2] * 1000, 1)


def _rate(memory: heedful.Heedful) -> None:
    workspace = memory._workspace
    at = workspace.now()
    row = {
        "at": at,
        "updated_at": at,
        "project_id": 1,
        "target_type": "session",
        "target_id": "s",
        "rating": "up",
        "active": 1,
    }
    for _ in range(RATINGS // 10_000):
        with workspace.write(durable=False) as connection:
            rows = [{**row, "id": (name := new_id()), "event_id": name} for _ in range(10_000)]
            connection.execute(insert(feedbacks), rows)
    # Else the lookups that follow would wait for the disk to take all of it.
    os.sync()


def _size(store: Path) -> int:
    """The bytes that rows take, whether they are in the file yet or not."""
    with sqlite3.connect(store) as connection:
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages * size)


def _orders(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, country text)")
        connection.execute("INSERT INTO orders VALUES (1, 'France'), (2, 'Norway'), (3, 'France')")
