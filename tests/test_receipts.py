"""Receipts where not all are kept: a share of them, and for some time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from heedful import Heedful, Invalid, NotFound
from heedful.clock import to_stored
from heedful.jobs.retention import maintain
from heedful.settings import Retention
from heedful.storage.schema import receipts
from heedful.testing import ManualClock


@pytest.fixture
def settled(open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Heedful]:
    """Opens a store with settings."""

    def opening(**settings: str) -> Heedful:
        for name, value in settings.items():
            monkeypatch.setenv(f"HEEDFUL_{name.upper()}", value)
        return open_store()

    return opening


def test_all_are_kept_unless_told_otherwise(store: Heedful) -> None:
    fact = store.remember("x").fact_ids[0]
    result = store.recall("x")
    assert result.receipt
    assert store.signal_recall(result.recall_id, used=[fact]).processed == 1


def test_a_share_of_them_is_kept_and_a_recall_says_whether_its_is(settled: Callable[..., Heedful]) -> None:
    store = settled(receipt_share="0.25")
    fact = store.remember("x").fact_ids[0]
    result = [store.recall("x") for _ in range(200)]
    remaining = [each for each in result if each.receipt]
    assert 20 < len(remaining) < 85
    for each in remaining[:5]:
        assert store.signal_recall(each.recall_id, used=[fact]).processed == 1
    lost = next(each for each in result if not each.receipt)
    with pytest.raises(NotFound, match="receipt_share") as caught:
        store.signal_recall(lost.recall_id, used=[fact])
    assert caught.value.field == "recall_id"


def test_the_share_may_be_none_of_them_but_that_of_an_answer_in_a_session_is_always_kept(
    settled: Callable[..., Heedful],
) -> None:
    store = settled(receipt_share="0")
    store.remember("Ada is the CEO of Acme.")
    assert not any(store.recall("Who is the CEO?").receipt for _ in range(20))
    answered = store.recall("Who is the CEO of Acme?", session_id="s")
    assert answered.receipt
    assert answered.qa_id is not None
    assert store.sessions.add_feedback("s", answered.qa_id, feedback_score=5)
    assert store.improve().signals_added >= 1


def test_opinions_teach_without_receipts(settled: Callable[..., Heedful]) -> None:
    store = settled(receipt_share="0")
    fact = store.remember("x").fact_ids[0]
    store.signal([{"fact_id": fact, "signal_type": "helpful", "query": "x"}])
    assert store.recall("x", boost_by_usefulness=True)[0].usefulness == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("name", "value"),
    [("receipt_share", "1.5"), ("receipt_share", "-1"), ("receipt_share", "half"), ("receipt_days", "-1")],
)
def test_a_setting_that_makes_no_sense_is_refused(settled: Callable[..., Heedful], name: str, value: str) -> None:
    with pytest.raises(Invalid, match=name):
        settled(**{name: value})


def test_old_ones_are_dropped_and_what_was_said_stays(store: Heedful, clock: ManualClock) -> None:
    database = store._workspace.database
    fact = store.remember("x").fact_ids[0]
    clock.advance(days=-100)
    old = store.recall("x")
    store.signal_recall(old.recall_id, helpful=[fact])
    clock.advance(days=100)
    new = store.recall("x")
    before = store.fact_stats(fact)
    maintain(database, to_stored(clock()), Retention(receipt_days=0))
    assert store.signal_recall(old.recall_id, used=[fact], author="later").processed == 1
    maintain(database, to_stored(clock()), Retention(receipt_days=90))
    with pytest.raises(NotFound, match="receipt_days"):
        store.signal_recall(old.recall_id, used=[fact], author="too late")
    assert store.signal_recall(new.recall_id, used=[fact]).processed == 1
    assert store.fact_stats(fact).signal_breakdown["helpful"] == before.signal_breakdown["helpful"] == 1
    assert all(check.ok for check in store.doctor())


def test_many_old_ones_are_dropped_a_few_at_a_time(store: Heedful, clock: ManualClock) -> None:
    store.remember("x")
    for _ in range(30):
        store.recall("x")
    clock.advance(days=40)
    result = store.recall("x")
    maintain(store._workspace.database, to_stored(clock()), Retention(receipt_days=30))
    assert store.signal_recall(result.recall_id, used=[result[0].fact_id]).processed == 1
    with store._workspace.read() as connection:
        assert len(connection.execute(select(receipts.c.id)).all()) == 1
