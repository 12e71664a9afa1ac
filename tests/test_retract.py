from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy.pool import Pool

from heedful import Conflict, Heedful, NotFound, Signal
from heedful.model import SignalType
from heedful.testing import ManualClock


@pytest.fixture
def fact(store: Heedful) -> str:
    return store.remember("Use connection pooling.").fact_ids[0]


def give(store: Heedful, fact: str, kind: SignalType = "used", query: str = "q") -> str:
    return store.signal([Signal(fact_id=fact, signal_type=kind, query=query)]).event_ids[0]


def test_a_retracted_signal_was_never_given(store: Heedful, fact: str) -> None:
    before = store.fact_stats(fact)
    event = give(store, fact)
    undone = store.retract(event)
    assert (undone.retracted, undone.updated_facts) == (event, [fact])
    assert undone.event_id != event
    assert store.fact_stats(fact) == before
    assert store.recall("q", boost_by_usefulness=True)[0].usefulness_source == "neutral"


def test_retracting_one_of_many_leaves_what_the_others_make(store: Heedful, fact: str, clock: ManualClock) -> None:
    twin = store.remember("The other fact.").fact_ids[0]
    kinds: list[SignalType] = ["helpful", "helpful", "helpful", "helpful", "helpful", "not_helpful", "used"]
    events = []
    for place, kind in enumerate(kinds):
        events.append(give(store, fact, kind, f"question {place % 2}"))
        if place != 4:
            give(store, twin, kind, f"question {place % 2}")
        clock.advance(days=3)
    store.retract(events[4])
    one, other = store.fact_stats(fact), store.fact_stats(twin)
    assert one.model_dump(exclude={"fact_id", "text"}) == other.model_dump(exclude={"fact_id", "text"})


def test_a_clamped_step_is_undone_exactly(store: Heedful, fact: str) -> None:
    events = [give(store, fact, "helpful") for _ in range(6)]
    give(store, fact, "not_helpful")
    assert store.fact_stats(fact).overall_usefulness == pytest.approx(0.9)
    for event in events[:3]:
        store.retract(event)
    assert store.fact_stats(fact).overall_usefulness == pytest.approx(0.5 + 0.45 - 0.1)


def test_retracting_twice_is_retracting_once(store: Heedful, fact: str) -> None:
    event = give(store, fact)
    give(store, fact)
    first, second = store.retract(event), store.retract(event)
    assert second.event_id == first.event_id
    assert second.updated_facts == []
    assert store.fact_stats(fact).signal_count == 1


def test_the_last_signal_before_counts_for_the_decay_again(store: Heedful, fact: str, clock: ManualClock) -> None:
    start = clock()
    give(store, fact)
    clock.advance(days=7)
    store.retract(give(store, fact))
    stats = store.fact_stats(fact)
    assert (stats.overall_usefulness, stats.last_signal_at) == (0.595, start)


def test_a_late_signal_can_be_retracted(store: Heedful, fact: str, clock: ManualClock) -> None:
    give(store, fact)
    before = store.fact_stats(fact)
    late = Signal(fact_id=fact, signal_type="helpful", query="q", at=clock() - timedelta(days=30))
    store.retract(store.signal([late]).event_ids[0])
    assert store.fact_stats(fact) == before


def test_a_retraction_holds_after_reopening(store: Heedful, fact: str, open_store: Callable[..., Heedful]) -> None:
    store.retract(give(store, fact))
    store.close()
    again = open_store()
    assert again.fact_stats(fact).signal_count == 0
    assert all(check.ok and not check.repaired for check in again.doctor())


def test_a_retracted_context_is_no_longer_matched(store: Heedful, fact: str) -> None:
    store.retract(give(store, fact, query="who is it"))
    explained = store.recall("who is it", explain=True)[0].explanation
    assert explained is not None
    assert (explained.matched_context, explained.context_similarity) == (None, None)


def test_the_same_signal_may_be_given_again(store: Heedful, fact: str) -> None:
    store.retract(give(store, fact))
    give(store, fact)
    assert store.fact_stats(fact).overall_usefulness == 0.6


def test_a_retry_of_a_retracted_call_does_not_bring_it_back(store: Heedful, fact: str) -> None:
    signals = [Signal(fact_id=fact, signal_type="used", query="q")]
    first = store.signal(signals, idempotency_key="k")
    store.retract(first.event_ids[0])
    assert store.signal(signals, idempotency_key="k") == first
    assert store.fact_stats(fact).signal_count == 0


def test_a_retraction_can_not_be_retracted(store: Heedful, fact: str) -> None:
    undone = store.retract(give(store, fact))
    with pytest.raises(Conflict, match="can't be retracted") as caught:
        store.retract(undone.event_id)
    assert caught.value.remedy


def test_an_event_that_never_was_is_not_found(store: Heedful) -> None:
    with pytest.raises(NotFound, match="no event 'nope'") as caught:
        store.retract("nope")
    assert caught.value.field == "event_id"


def test_a_signal_about_a_forgotten_fact_can_be_retracted(store: Heedful, fact: str) -> None:
    event = give(store, fact)
    store.forget(fact)
    assert store.retract(event).updated_facts == []


def test_a_retraction_has_an_author(store: Heedful, fact: str) -> None:
    assert store.retract(give(store, fact), author="ann").event_id


@pytest.fixture
def begun(path: Path) -> Iterator[Callable[[], list[str]]]:
    """The transactions that stores on SQLite began since it was last called."""
    statements: list[str] = []

    def trace(driver: sqlite3.Connection, record: object) -> None:
        driver.set_trace_callback(statements.append)

    def since() -> list[str]:
        result = [each for each in statements if each.startswith("BEGIN")]
        statements.clear()
        return result

    sqlalchemy_event.listen(Pool, "connect", trace)
    yield since
    sqlalchemy_event.remove(Pool, "connect", trace)


@pytest.mark.slow
def test_the_kind_of_an_event_says_what_to_undo(
    begun: Callable[[], list[str]], open_store: Callable[..., Heedful], tmp_path: Path
) -> None:
    store = open_store(worker=False)
    fact = store.remember("Use connection pooling.").fact_ids[0]
    with sqlite3.connect(tmp_path / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE orders (id integer)")
    store.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.sqlite'}")
    run = store.executions.execute_query("SELECT count(*) FROM orders", question="How many orders?")
    store.sessions.create("s")
    feedback = store.sessions.add_session_feedback("s", {"rating": "down", "comment": "No"})
    assert feedback is not None
    answer = store.recall("pooling", session_id="s").qa_id
    assert answer is not None
    store.sessions.add_feedback("s", answer, "Not so", 1)
    store.improve(session_ids=["s"])
    rated = next(row for row in store.insight.rows("feedback").items if row["target_type"] == "entry")
    item = store.review.list(target_type="session").items[0]
    store.review.resolve(item.item_id, author="rev")
    events = [
        give(store, fact),
        store.supersede(fact, "Use a connection pool.").event_id,
        store.feedback.create(is_positive=False, execution_id=run.execution_id, author="ann").id,
        feedback.feedback_id,
        rated["feedback_id"],
        store.review.get(item.item_id).history[-1].event_id,
    ]
    for each in events:
        begun()
        store.retract(each)
        assert begun() == ["BEGIN IMMEDIATE"]
    with pytest.raises(NotFound, match="no event 'nope'"):
        store.retract("nope")
    assert len(begun()) == 1
