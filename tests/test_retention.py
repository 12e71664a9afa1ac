"""What has an end: kept results, decisions, changes, questions and jobs; and what nobody may notice of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Table, func, select

from heedful import Heedful
from heedful.clock import to_stored
from heedful.jobs import retention
from heedful.settings import Retention
from heedful.storage.schema import changes, queries, receipts, requests
from heedful.testing import ManualClock


def count(store: Heedful, table: Table) -> int:
    with store._workspace.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def maintain(store: Heedful, clock: ManualClock, **days: int) -> list[str]:
    return retention.maintain(store._workspace.database, to_stored(clock()), Retention(**days))


def test_results_that_wait_for_a_retry_have_an_end(store: Heedful, clock: ManualClock) -> None:
    fact = store.remember("x").fact_ids[0]

    def judge(key: str) -> list[str]:
        values = {"fact_id": fact, "signal_type": "helpful", "query": "x"}
        return store.signal([values], idempotency_key=key).event_ids

    for number in range(3):
        judge(f"key {number}")
    clock.advance(days=6)
    first = judge("later")
    clock.advance(days=2)
    assert "removed 3 results kept for retries" in maintain(store, clock)
    assert count(store, requests) == 1
    assert judge("later") == first


@pytest.mark.slow
def test_a_short_feed_leaves_every_index_as_it_was(
    open_store: Callable[..., Heedful], store: Heedful, clock: ManualClock
) -> None:
    store.remember([f"number {number} is a fact" for number in range(40)])
    behind = open_store()
    assert len(behind.recall("number 7 is a fact", top_k=40)) == 40
    for number in range(10):
        store.forget(fact_ids=[store.facts(limit=100).items[0].fact_id])
        store.remember(f"later {number} is a fact")
    assert any("changes" in line for line in maintain(store, clock, change_lines=5))
    assert count(store, changes) == 5
    expected = {fact.text for fact in store.facts(limit=100).items}
    for each in (behind, open_store(), store):
        assert {hit.text for hit in each.recall("is a fact", top_k=100)} == expected
        assert {hit.text for hit in each.recall("is a fact", mode="graph", top_k=100)} == expected
    store.remember("one more is a fact")
    assert len(behind.recall("is a fact", top_k=100)) == len(expected) + 1
    assert all(check.ok for check in behind.doctor(repair=False))


def test_questions_go_with_their_last_receipt_unless_somebody_gave_an_opinion(
    store: Heedful, clock: ManualClock
) -> None:
    fact = store.remember("Ada founded Acme").fact_ids[0]
    for words in ("asked once", "asked twice", "asked and judged"):
        result = store.recall(words)
    store.signal_recall(result.recall_id, helpful=[fact])
    clock.advance(days=300)
    later = store.recall("asked twice")
    clock.advance(days=100)
    done = maintain(store, clock)
    assert {"removed 3 receipts", "removed 1 questions that nothing refers to"} <= set(done)
    assert count(store, receipts) == 1
    assert count(store, queries) == 2
    assert store.signal_recall(later.recall_id, used=[fact]).processed == 1
    assert store.recall("asked and judged", boost_by_usefulness=True)[0].usefulness > 0.5
    assert store.recall("asked once")[0].fact_id == fact
    assert all(check.ok for check in store.doctor(repair=False))


def test_nothing_is_removed_from_a_store_that_keeps_all(store: Heedful, clock: ManualClock) -> None:
    fact = store.remember("x").fact_ids[0]
    store.signal([{"fact_id": fact, "signal_type": "used", "query": "x"}], idempotency_key="k")
    store.recall("x")
    clock.advance(days=4000)
    for_ever = dict.fromkeys((name for name in Retention.model_fields if name.endswith("_days")), 0)
    assert [line for line in maintain(store, clock, **for_ever) if "removed" in line or "dropped" in line] == []
    assert (count(store, receipts), count(store, requests)) == (1, 1)
