"""A call with many signals takes as long as its signals: whoever writes waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from postgresql import CITUS
from sqlalchemy import text
from sqlite_steps import sqlite_steps
from statements import watched

from heedful import Heedful
from heedful.ledger import events
from heedful.storage.facts import locate as located

FACTS = 40


def opinions(facts: list[str], count: int, name: str, kind: str = "helpful") -> list[dict[str, str]]:
    """Opinions of as many authors, for as many queries."""
    return [
        {"fact_id": facts[place % len(facts)], "signal_type": kind, "query": f"{name} {place}", "author": f"p{place}"}
        for place in range(count)
    ]


def test_twice_the_signals_of_different_authors_are_twice_the_work(
    open_store: Callable[..., Heedful], tmp_path: Path
) -> None:
    """Each query was looked up with each author: four times the work, and a minute for ten thousand."""
    taken = []
    for count in (400, 800):
        store = open_store(tmp_path / f"{count}.db")
        facts = [fact.fact_id for fact in store.remember([f"Room {place} is blue." for place in range(FACTS)]).facts]
        with sqlite_steps(store) as steps:
            store.signal(opinions(facts, count, "asked"))
        taken.append(steps())
    assert 0 < taken[1] < 2.5 * taken[0]


def test_a_late_signal_and_a_retraction_recompute_one_question(
    open_store: Callable[..., Heedful], tmp_path: Path
) -> None:
    """All scores of the fact were written again, while every other project waited."""
    written = []
    for queries in (20, 400):
        store = open_store(tmp_path / f"{queries}.db")
        fact = store.remember("Room 7 is blue.").fact_ids[0]
        store.signal(opinions([fact], queries, "asked"))
        with rows_written() as rows:
            late = {**opinions([fact], 1, "asked")[0], "author": "late", "at": datetime(2020, 1, 1, tzinfo=UTC)}
            store.retract(store.signal([late]).event_ids[0])
        written.append(rows())
    assert written[0] == written[1] > 0
    (checked,) = [check for check in store.doctor(repair=False) if check.name.startswith("scores of")]
    assert checked.ok, checked.detail


@contextmanager
def rows_written() -> Iterator[Callable[[], int]]:
    """Counts the rows of scores that are written or removed."""
    count = 0

    def executed(statement: str, rows: int) -> None:
        nonlocal count
        if " scores " in statement and not statement.lstrip().startswith("SELECT"):
            count += rows

    with watched(executed):
        yield lambda: count


@pytest.mark.slow
def test_many_votes_that_change_are_the_fold_of_the_ledger(any_store: str, open_store: Callable[..., Heedful]) -> None:
    store = open_store(any_store)
    facts = [fact.fact_id for fact in store.remember([f"Room {place} is blue." for place in range(FACTS)]).facts]
    store.signal(opinions(facts, 200, "asked"))
    # Some change their mind, some say the same again, and some are new; one author speaks of many facts.
    changed = opinions(facts, 60, "asked", "not_helpful") + opinions(facts, 120, "asked")[60:]
    new = [{**each, "author": "p'\"\\ ü"} for each in opinions(facts, 80, "other")]
    result = store.signal(changed + new + new[:5])
    assert result.processed == 205
    assert not result.errors
    contexts = {each.query: each.score for each in store.fact_stats(facts[0]).contexts}
    assert contexts["asked 0"] == contexts["asked 40"] < 0.5 < contexts["asked 80"] == contexts["asked 160"]
    (checked,) = [check for check in store.doctor(repair=False) if check.name.startswith("scores of")]
    assert (checked.ok, checked.detail) == (True, "equal to the fold of the ledger")


@pytest.mark.slow
def test_on_postgresql_the_votes_of_one_author_for_one_question_are_looked_up_one_by_one(
    empty_database: str, open_store: Callable[..., Heedful]
) -> None:
    """It joined all facts of the author with all facts of the question: 20 s for a thousand."""
    if CITUS:
        pytest.skip("the coordinator of a cluster does not tell what its nodes read")
    store = open_store(empty_database)
    read = []
    for count in (200, 400):
        facts = store.remember([f"Room {place} of {count} is blue." for place in range(count)]).fact_ids
        store.signal([{"fact_id": fact, "signal_type": "ignored", "query": "q", "author": "ann"} for fact in facts])
        # As the server does by itself within a minute.
        with store._workspace.database.write() as connection:
            connection.exec_driver_sql("ANALYZE")
        statement = text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {events._OF_VOTERS_ON['postgresql'].text}")
        with store._workspace.read() as connection:
            places = located(connection, facts)
            (query,) = events.of_voters(connection, [(places[facts[0]][0], 1, "ann")])
            voters = [(places[fact][0], query.query, "ann") for fact in facts]
            (plan,) = connection.execute(statement, {"voters": orjson.dumps(voters).decode()}).scalar_one()
        assert plan["Plan"]["Actual Rows"] == count
        read.append(plan["Plan"]["Shared Hit Blocks"])
    assert 0 < read[1] < 3 * read[0]
