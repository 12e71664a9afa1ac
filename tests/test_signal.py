from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from statements import watched

from heedful import Conflict, Heedful, Invalid, NotFound, Signal
from heedful.clock import to_stored
from heedful.ledger import events, scores
from heedful.ledger.usefulness import Tally
from heedful.model import SignalType
from heedful.storage import facts, scopes
from heedful.testing import ManualClock


@pytest.fixture
def fact(store: Heedful) -> str:
    return store.remember("Use connection pooling.").fact_ids[0]


def used(fact: str, query: str = "q", **more: Any) -> Signal:
    return Signal(fact_id=fact, signal_type="used", query=query, **more)


@pytest.mark.parametrize(("kind", "score"), [("used", 0.6), ("ignored", 0.45), ("helpful", 0.65), ("not_helpful", 0.4)])
def test_a_signal_moves_the_score_as_documented(store: Heedful, fact: str, kind: SignalType, score: float) -> None:
    result = store.signal([Signal(fact_id=fact, signal_type=kind, query="q")])
    assert (result.processed, result.updated_facts, result.errors) == (1, [fact], [])
    assert len(result.event_ids) == 1
    assert store.fact_stats(fact).overall_usefulness == score


def test_confidence_scales_the_step(store: Heedful, fact: str) -> None:
    store.signal([used(fact, confidence=0.5)])
    assert store.fact_stats(fact).overall_usefulness == 0.55


def test_signals_may_be_mappings(store: Heedful, fact: str) -> None:
    result = store.signal([{"fact_id": fact, "signal_type": "used", "query": "q"}])
    assert result.processed == 1


def test_one_signal_needs_no_list(store: Heedful, fact: str) -> None:
    assert store.signal(used(fact)).processed == 1


def test_signals_may_come_from_a_generator(store: Heedful, fact: str) -> None:
    assert store.signal(used(fact) for _ in range(3)).processed == 3


def test_no_signals_do_nothing(store: Heedful) -> None:
    result = store.signal([])
    assert (result.processed, result.updated_facts, result.errors, result.event_ids) == (0, [], [], [])


def test_a_batch_counts_each_signal(store: Heedful) -> None:
    facts = store.remember(["one", "two"]).fact_ids
    result = store.signal([used(facts[0]), used(facts[1]), used(facts[0], "another question")])
    assert result.processed == 3
    assert result.updated_facts == facts
    assert len(set(result.event_ids)) == 3
    assert [store.fact_stats(fact).signal_count for fact in facts] == [2, 1]


def test_unknown_facts_are_refused_by_name_and_the_others_are_applied(store: Heedful, fact: str) -> None:
    result = store.signal([used("nobody"), used(fact), used("nothing")])
    assert result.processed == 1
    assert [(error.index, error.code, error.fact_id) for error in result.errors] == [
        (0, "not_found", "nobody"),
        (2, "not_found", "nothing"),
    ]
    assert "nobody" in result.errors[0].message
    assert store.fact_stats(fact).overall_usefulness == 0.6


def test_a_forgotten_fact_is_not_found(store: Heedful, fact: str) -> None:
    store.forget(fact)
    with pytest.raises(NotFound, match="nor any of the 1 other facts"):
        store.signal([used(fact), used("nobody")], idempotency_key="k")
    store.remember("x")
    other = store.facts().items[-1].fact_id
    assert store.signal([used(other)], idempotency_key="k").processed == 1


def test_a_signal_needs_no_model(open_store: Callable[..., Heedful], store: Heedful, fact: str) -> None:
    result = open_store(embedding=Silent()).signal([used(fact)])
    assert result.processed == 1


class Silent:
    """A model that must not be asked."""

    name = "words-for-tests"
    dimensions = 64
    calibration = (0.0, 0.85)

    def embed(self, texts: object) -> Any:
        raise AssertionError("asked")


def test_signals_fold_in_the_order_of_their_own_time(store: Heedful, fact: str, clock: ManualClock) -> None:
    start = clock()
    clock.advance(days=14)
    store.signal([used(fact, at=start + timedelta(days=7))])
    store.signal([Signal(fact_id=fact, signal_type="not_helpful", query="q", at=start)])
    expected = 0.5 + ((0.4 - 0.5) * 0.95 + 0.1) * 0.95
    stats = store.fact_stats(fact)
    assert stats.overall_usefulness == pytest.approx(expected, abs=1e-12)
    assert stats.last_signal_at == start + timedelta(days=7)


def test_a_time_of_another_zone_is_the_same_moment(store: Heedful, fact: str) -> None:
    moment = datetime(2025, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    store.signal([used(fact, at=moment)])
    assert store.fact_stats(fact).last_signal_at == datetime(2025, 6, 1, 10, tzinfo=UTC)


def test_a_time_in_the_future_is_refused(store: Heedful, fact: str, clock: ManualClock) -> None:
    ahead = datetime(2099, 1, 1, tzinfo=UTC)
    with pytest.raises(Invalid, match=r"signals\[1\].at is 2099.* in the future") as refused:
        store.signal([used(fact), used(fact, at=ahead)])
    assert refused.value.field == "signals[1].at"
    assert store.fact_stats(fact).signal_count == 0
    store.signal([used(fact, at=clock() + timedelta(minutes=4))])
    assert store.fact_stats(fact).last_signal_at == clock(), "a clock that is a little ahead is believed up to now"


def test_an_event_that_is_dated_ahead_fades_and_delays_nobody(store: Heedful, fact: str, clock: ManualClock) -> None:
    """Such events are in ledgers that were written or imported before they were refused."""
    workspace = store._workspace
    with workspace.write() as connection:
        seq, dataset = facts.locate(connection, [fact])[fact]
        (query,) = events.ensure_queries(workspace.database, connection, dataset, ["q"]).values()
        event = events.Event(
            project_id=scopes.owner(connection, dataset),
            kind=events.SIGNAL,
            target_type="fact",
            target_id=fact,
            source="signal",
            at=to_stored(datetime(2099, 1, 1, tzinfo=UTC)),
            recorded_at=workspace.now(),
            dataset_id=dataset,
            query_id=query,
            value="used",
            confidence=1.0,
        )
        events.append(connection, [event])
        scores.refold(workspace.database, connection, {seq: dataset}, [seq])
    given = clock()
    clock.advance(days=7)
    assert store.fact_stats(fact).overall_usefulness == pytest.approx(0.5 + 0.1 * 0.95, abs=1e-12)
    assert store.fact_stats(fact).last_signal_at == given
    with counted() as statements:
        store.signal([used(fact)])
    assert not [each for each in statements if each.startswith("DELETE FROM scores")], "nothing is folded again"
    assert store.fact_stats(fact).overall_usefulness == pytest.approx(0.5 + 0.1 * 0.95 + 0.1, abs=1e-12)
    assert store.fact_history(fact).points[0].at == given


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that run meanwhile."""
    seen: list[str] = []

    with watched(lambda statement, _: seen.append(statement)):
        yield seen


def test_signals_read_no_scores_but_those_that_they_change(
    store: Heedful, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.signal([used(fact, f"asked {place}") for place in range(300)])
    made, read = Tally, Counter[str]()

    def noted(*columns: Any) -> Tally:
        read["scores"] += 1
        return made(*columns)

    monkeypatch.setattr("heedful.ledger.scores.Tally", noted)
    store.signal([used(fact, f"asked {place}") for place in range(20)])
    assert read["scores"] == 21
    monkeypatch.undo()
    # 320 steps up by a tenth reach the bound; each of the twenty queries had two.
    assert store.fact_stats(fact).overall_usefulness == 1.0
    assert {each.query: each.score for each in store.fact_stats(fact).contexts}["asked 3"] == pytest.approx(0.7)


def test_a_signal_keeps_its_context_note_and_author(store: Heedful, fact: str) -> None:
    event = store.signal([used(fact, author="ann", context="in the onboarding chat")]).event_ids[0]
    explained = store.recall("q", explain=True)[0].explanation
    assert explained is not None
    assert [(each.event_id, each.author) for each in explained.events] == [(event, "ann")]


class TestRetries:
    def test_a_retry_counts_once_and_returns_the_first_result(self, store: Heedful, fact: str) -> None:
        signals = [used(fact), used("nobody")]
        first = store.signal(signals, idempotency_key="k1")
        again = store.signal(signals, idempotency_key="k1")
        assert again == first
        assert store.fact_stats(fact).overall_usefulness == 0.6

    def test_a_retry_after_reopening_counts_once(self, open_store: Callable[..., Heedful], path: Path) -> None:
        store = open_store()
        fact = store.remember("x").fact_ids[0]
        first = store.signal([used(fact)], idempotency_key="k1")
        store.close()
        assert open_store().signal([used(fact)], idempotency_key="k1") == first

    def test_a_retry_returns_the_first_result_though_the_fact_is_gone(self, store: Heedful, fact: str) -> None:
        first = store.signal([used(fact)], idempotency_key="k1")
        store.forget(fact)
        assert store.signal([used(fact)], idempotency_key="k1") == first

    def test_another_call_with_the_same_key_is_a_conflict(self, store: Heedful, fact: str) -> None:
        store.signal([used(fact)], idempotency_key="k1")
        with pytest.raises(Conflict, match="'k1'") as caught:
            store.signal([used(fact, "another")], idempotency_key="k1")
        assert caught.value.code == "idempotency_key_reused"
        assert caught.value.remedy
        assert store.fact_stats(fact).signal_count == 1

    def test_another_verb_with_the_same_key_is_a_conflict(self, store: Heedful, fact: str) -> None:
        store.signal([used(fact)], idempotency_key="k1")
        recall = store.recall("pooling")
        with pytest.raises(Conflict):
            store.signal_recall(recall.recall_id, used=[fact], idempotency_key="k1")
        assert store.fact_stats(fact).signal_count == 1

    def test_without_a_key_the_same_signal_counts_again(self, store: Heedful, fact: str) -> None:
        store.signal([used(fact)])
        store.signal([used(fact)])
        assert store.fact_stats(fact).signal_count == 2

    def test_a_key_of_one_signal_counts_once(self, store: Heedful, fact: str) -> None:
        first = store.signal([used(fact, idempotency_key="i1"), used(fact, idempotency_key="i2")])
        again = store.signal([used(fact, idempotency_key="i2"), used(fact, idempotency_key="i3")])
        assert first.processed == 2
        assert again.processed == 1
        assert again.event_ids[0] == first.event_ids[1]
        assert store.fact_stats(fact).signal_count == 3

    def test_a_key_twice_in_one_batch_counts_once(self, store: Heedful, fact: str) -> None:
        result = store.signal([used(fact, idempotency_key="i1")] * 2)
        assert result.processed == 1
        assert result.event_ids[0] == result.event_ids[1]

    @pytest.mark.parametrize("change", [{"signal_type": "not_helpful"}, {"query": "else"}, {"confidence": 0.5}])
    def test_a_key_of_one_signal_for_another_signal_is_refused(
        self, store: Heedful, fact: str, change: dict[str, Any]
    ) -> None:
        store.signal([used(fact, idempotency_key="i1")])
        other = {"fact_id": fact, "signal_type": "used", "query": "q", "idempotency_key": "i1", **change}
        result = store.signal([other, used(fact, idempotency_key="i2")])
        assert [(error.index, error.code) for error in result.errors] == [(0, "idempotency_key_reused")]
        assert result.processed == 1
        assert store.fact_stats(fact).signal_breakdown == {"used": 2, "ignored": 0, "helpful": 0, "not_helpful": 0}

    @pytest.mark.parametrize("key", ["", " ", "x" * 201])
    def test_a_key_that_is_none_is_refused(self, store: Heedful, fact: str, key: str) -> None:
        with pytest.raises(Invalid, match="idempotency_key"):
            store.signal([used(fact)], idempotency_key=key)
        with pytest.raises(Invalid, match="idempotency_key"):
            store.signal([used(fact, idempotency_key=key)])
        assert store.fact_stats(fact).signal_count == 0

    def test_a_key_may_look_like_anything(self, store: Heedful, fact: str) -> None:
        event = store.signal([used(fact)]).event_ids[0]
        store.signal([used(fact, idempotency_key=f"retract/{event}"), used(fact, idempotency_key=event)])
        assert store.retract(event).updated_facts == [fact]
        assert store.fact_stats(fact).signal_count == 2


def test_a_fact_of_another_dataset_is_refused_if_one_is_named(store: Heedful) -> None:
    (here,) = store.remember("Berlin is in Germany.", dataset="a").facts
    (there,) = store.remember("Oslo is in Norway.", dataset="b").facts
    items = [{"fact_id": each.fact_id, "signal_type": "used", "query": "q"} for each in (here, there)]
    result = store.signal(items, dataset="b", idempotency_key="once")
    assert (result.updated_facts, [each.index for each in result.errors]) == ([there.fact_id], [0])
    assert "dataset 'b'" in result.errors[0].message
    assert store.signal(items, dataset="b", idempotency_key="once") == result
    with pytest.raises(Conflict):
        store.signal(items, idempotency_key="once")
    with pytest.raises(NotFound, match="dataset 'c'"):
        store.signal(items, dataset="c")
    assert store.fact_stats(here.fact_id).signal_count == 0
