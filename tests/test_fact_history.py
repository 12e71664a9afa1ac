"""How a fact came to its score."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Connection

from heedful import Heedful
from heedful.errors import NotFound
from heedful.ledger import events
from heedful.memory import fact_stats
from heedful.model import Signal
from heedful.testing import ManualClock


@pytest.mark.slow
def test_the_history_has_the_score_after_each_signal_and_fades_to_now(store: Heedful, clock: ManualClock) -> None:
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    store.signal(Signal(fact_id=fact, signal_type="helpful", query="refund?", author="ada"))
    clock.advance(days=7)
    store.signal(Signal(fact_id=fact, signal_type="not_helpful", query="other?", author="bob"))
    clock.advance(days=7)
    found = store.fact_history(fact)
    assert [point.overall_usefulness for point in found.points] == pytest.approx([0.65, 0.5 + 0.15 * 0.95 - 0.1])
    assert [(point.signal_type, point.query, point.author) for point in found.points] == [
        ("helpful", "refund?", "ada"),
        ("not_helpful", "other?", "bob"),
    ]
    assert found.overall_usefulness == pytest.approx(store.fact_stats(fact).overall_usefulness)


def test_late_signals_stand_where_they_were_given(store: Heedful, clock: ManualClock) -> None:
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    early = clock.now
    clock.advance(days=7)
    store.signal(Signal(fact_id=fact, signal_type="used", query="second"))
    store.signal(Signal(fact_id=fact, signal_type="used", query="first", at=early))
    assert [point.query for point in store.fact_history(fact).points] == ["first", "second"]


def test_what_was_retracted_is_not_part_of_it(store: Heedful) -> None:
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    result = store.signal(Signal(fact_id=fact, signal_type="helpful", query="refund?"))
    store.retract(result.event_ids[0])
    found = store.fact_history(fact)
    assert found.points == []
    assert found.overall_usefulness == 0.5


def test_a_correction_is_told_from_both_sides_until_it_is_undone(store: Heedful) -> None:
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    done = store.supersede(fact, "Refunds take 30 days.", author="ada")
    old, new = store.fact_history(fact), store.fact_history(done.superseded_by)
    assert old.superseded_by is not None
    assert old.superseded_by == new.supersedes
    assert old.superseded_by.author == "ada"
    assert (old.supersedes, new.superseded_by) == (None, None)
    store.retract(done.event_id)
    assert store.fact_history(fact).superseded_by is None


def test_a_fact_that_is_not_there_has_no_history(store: Heedful) -> None:
    with pytest.raises(NotFound):
        store.fact_history("none")


def test_the_history_of_a_fact_with_many_signals_lists_the_newest(
    store: Heedful, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = store.remember("Refunds take 14 days.").fact_ids[0]
    for number in range(7):
        clock.advance(days=1)
        store.signal(Signal(fact_id=fact, signal_type="helpful", query=f"query {number}", confidence=0.3))
    whole = store.fact_history(fact)
    assert (whole.event_count, len(whole.points)) == (7, 7)
    monkeypatch.setattr(fact_stats, "MAX_POINTS", 3)
    read: list[int] = []
    texts = events.query_texts

    def counting(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
        read.append(len(ids))
        return texts(connection, ids)

    monkeypatch.setattr(events, "query_texts", counting)
    part = store.fact_history(fact)
    assert part.points == whole.points[-3:]
    assert (part.event_count, part.overall_usefulness) == (7, whole.overall_usefulness)
    assert read == [3], "only the texts that it lists are read"
