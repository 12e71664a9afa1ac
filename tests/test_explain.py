from __future__ import annotations

import re

import pytest

from heedful import Heedful, Signal
from heedful.model import MODES, Explanation, Mode
from heedful.testing import ManualClock

TEXTS = ["red apples grow on trees", "green pears grow on trees", "blue boats float on water"]


@pytest.fixture
def facts(store: Heedful) -> list[str]:
    return store.remember(TEXTS, source="book").fact_ids


def explained(store: Heedful, query: str, fact: str, **options: object) -> Explanation:
    for hit in store.recall(query, explain=True, **options):  # type: ignore[arg-type]
        if hit.fact_id == fact:
            assert hit.explanation is not None
            return hit.explanation
    raise AssertionError("not found")


def test_reasons_are_given_only_when_asked_for(store: Heedful, facts: list[str]) -> None:
    assert all(hit.explanation is None for hit in store.recall("apples"))
    assert all(hit.explanation is not None for hit in store.recall("apples", explain=True))


def test_explaining_changes_no_rank(store: Heedful, facts: list[str]) -> None:
    plain = [(hit.fact_id, hit.score) for hit in store.recall("apples")]
    assert [(hit.fact_id, hit.score) for hit in store.recall("apples", explain=True)] == plain


def test_the_parts_of_relevance_add_up(store: Heedful, facts: list[str]) -> None:
    for hit in store.recall("red trees", explain=True):
        why = hit.explanation
        assert why is not None
        assert why.vector is not None
        assert why.words is not None
        assert why.neighbours is not None
        assert hit.relevance == pytest.approx(0.5 * why.vector + 0.5 * why.words + why.neighbours, abs=3e-6)


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_shows_its_parts(store: Heedful, facts: list[str], mode: Mode) -> None:
    why = explained(store, "apples", facts[0], mode=mode)
    assert (why.vector is None) == (mode == "lexical")
    assert (why.words is None) == (mode == "semantic")
    assert (why.neighbours is None) == (mode not in ("hybrid", "graph"))


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_arithmetic_ends_in_the_score(store: Heedful, facts: list[str], weight: float) -> None:
    store.signal([Signal(fact_id=facts[0], signal_type="helpful", query="apples")])
    for hit in store.recall("apples", explain=True, boost_by_usefulness=True, usefulness_weight=weight):
        assert hit.explanation is not None
        relevance, usefulness, score = hit.explanation.arithmetic
        assert relevance.endswith(f"= {hit.relevance:.4f}")
        assert f"{hit.usefulness:.4f}" in usefulness
        assert f"= {hit.score:.4f}" in score
        numbers = re.findall(r"\d+\.?\d*", score)
        if weight:
            a, b, c, d, total = map(float, numbers)
            assert a * b + c * d == pytest.approx(total, abs=1e-4)


def test_nothing_said_has_no_events(store: Heedful, facts: list[str]) -> None:
    why = explained(store, "apples", facts[0])
    assert (why.events, why.matched_context, why.context_similarity) == ([], None, None)
    assert "neutral" in why.arithmetic[1]


def test_the_context_and_its_events_are_named(store: Heedful, facts: list[str], clock: ManualClock) -> None:
    first = Signal(fact_id=facts[0], signal_type="helpful", query="apples", confidence=0.5, author="ann")
    elsewhere = Signal(fact_id=facts[0], signal_type="ignored", query="boats")
    event, _ = store.signal([first, elsewhere]).event_ids
    why = explained(store, "Apples?", facts[0])
    assert (why.matched_context, why.context_similarity) == ("apples", 1.0)
    (found,) = why.events
    assert (found.event_id, found.signal_type, found.query) == (event, "helpful", "apples")
    assert (found.confidence, found.at, found.author) == (0.5, clock(), "ann")


def test_a_global_score_lists_all_events_of_the_fact(store: Heedful, facts: list[str]) -> None:
    events = store.signal(
        [Signal(fact_id=facts[0], signal_type="used", query=query) for query in ("apples", "boats")]
    ).event_ids
    why = explained(store, "something unrelated", facts[0], boost_by_usefulness=True)
    assert [event.event_id for event in why.events] == events
    assert "none in this context" in why.arithmetic[1]


def test_retracted_events_are_not_listed(store: Heedful, facts: list[str]) -> None:
    events = store.signal([Signal(fact_id=facts[0], signal_type="used", query="apples")] * 2).event_ids
    store.retract(events[0])
    assert [event.event_id for event in explained(store, "apples", facts[0]).events] == [events[1]]


def test_the_events_make_the_usefulness(store: Heedful, facts: list[str], clock: ManualClock) -> None:
    for _ in range(3):
        store.signal([Signal(fact_id=facts[0], signal_type="ignored", query="apples")])
    hit = store.recall("apples", boost_by_usefulness=True, explain=True)[0]
    assert hit.explanation is not None
    assert hit.usefulness == pytest.approx(0.5 - 0.05 * len(hit.explanation.events))
