"""The document's own example, with the model that `open` uses by default."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heedful import Heedful, Hit, Signal
from heedful.providers.embedding import Embedder
from heedful.testing import ManualClock

CEO, PARAPHRASE, CFO = "Who is the CEO?", "Who is the chief executive?", "Who is the CFO?"


@pytest.fixture
def store(open_store: Callable[..., Heedful], bundled: Embedder) -> Heedful:
    return open_store(embedding=bundled)


@pytest.fixture
def anna(store: Heedful) -> str:
    ids = store.remember(["Anna Berg leads the company.", "Tom Lind looks after the money.", "Lunch is at noon."])
    return ids.fact_ids[0]


def hit(store: Heedful, query: str, fact: str) -> Hit:
    result = store.recall(query, boost_by_usefulness=True, explain=True)
    return next(each for each in result if each.fact_id == fact)


def test_a_paraphrase_shares_the_score_and_another_question_does_not(store: Heedful, anna: str) -> None:
    store.signal([Signal(fact_id=anna, signal_type="helpful", query=CEO)])
    same, other = hit(store, PARAPHRASE, anna), hit(store, CFO, anna)
    assert (same.usefulness, same.usefulness_source) == (0.65, "context")
    assert same.explanation is not None
    assert same.explanation.matched_context == CEO
    assert same.explanation.context_similarity is not None
    assert same.explanation.context_similarity >= 0.85
    assert other.usefulness_source == "global"
    assert other.explanation is not None
    assert other.explanation.matched_context is None


def test_it_does_not_matter_which_of_them_came_first(store: Heedful, anna: str) -> None:
    store.signal([Signal(fact_id=anna, signal_type="helpful", query=PARAPHRASE)])
    assert hit(store, CEO, anna).usefulness_source == "context"
    assert hit(store, CFO, anna).usefulness_source == "global"


def test_signals_of_one_context_fold_together(store: Heedful, anna: str) -> None:
    store.signal(
        [
            Signal(fact_id=anna, signal_type="helpful", query=CEO),
            Signal(fact_id=anna, signal_type="used", query=PARAPHRASE),
            Signal(fact_id=anna, signal_type="not_helpful", query=CFO),
        ]
    )
    assert hit(store, CEO, anna).usefulness == pytest.approx(0.75)
    assert hit(store, PARAPHRASE, anna).usefulness == pytest.approx(0.75)
    assert hit(store, CFO, anna).usefulness == pytest.approx(0.4)
    stats = store.fact_stats(anna)
    assert stats.overall_usefulness == pytest.approx(0.65)
    assert [(context.queries, context.signal_count) for context in stats.contexts] == [
        ([CEO, PARAPHRASE], 2),
        ([CFO], 1),
    ]


def test_the_fact_s_own_score_is_the_fallback_and_then_one_half(store: Heedful, anna: str) -> None:
    assert (hit(store, CEO, anna).usefulness, hit(store, CEO, anna).usefulness_source) == (0.5, "neutral")
    store.signal([Signal(fact_id=anna, signal_type="used", query="When is lunch?")])
    assert (hit(store, CEO, anna).usefulness, hit(store, CEO, anna).usefulness_source) == (0.6, "global")


def test_a_context_s_score_fades_with_the_clock(store: Heedful, anna: str, clock: ManualClock) -> None:
    store.signal([Signal(fact_id=anna, signal_type="used", query=CEO)])
    clock.advance(days=7)
    assert hit(store, PARAPHRASE, anna).usefulness == 0.595
    clock.advance(days=7)
    assert hit(store, PARAPHRASE, anna).usefulness == pytest.approx(0.5 + 0.1 * 0.95**2)


def test_the_next_recall_of_a_similar_question_ranks_better(store: Heedful) -> None:
    store.remember(
        [
            "The chief executive is chosen by the board.",
            "Anna Berg has led the company since 2019.",
            "The chief executive's office is on floor nine.",
        ]
    )
    first = store.recall(CEO)
    proven = next(each.fact_id for each in first if "Anna" in each.text)
    assert first[0].fact_id != proven
    for _ in range(4):
        store.signal_recall(store.recall(CEO).recall_id, helpful=[proven])
    before = next(each.rank for each in store.recall(PARAPHRASE) if each.fact_id == proven)
    after = next(
        each.rank
        for each in store.recall(PARAPHRASE, boost_by_usefulness=True, usefulness_weight=0.6)
        if each.fact_id == proven
    )
    assert after < before
    assert after == 1


def test_the_arithmetic_says_how_far_a_vote_for_other_words_counts(store: Heedful, anna: str) -> None:
    def line(query: str) -> str:
        explanation = next(hit.explanation for hit in store.recall(query, explain=True) if hit.fact_id == anna)
        assert explanation is not None
        return explanation.arithmetic[1]

    store.signal([Signal(fact_id=anna, signal_type="not_helpful", query=CEO)])
    assert line(CEO).endswith("(in this context, 1 signal, decayed to now)")
    assert line("Who is our CEO?").endswith("1 signal, for another wording, counting 12%, decayed to now)")
    store.signal([Signal(fact_id=anna, signal_type="not_helpful", query="Who is our CEO?")])
    assert "2 signals, 1 of them for another wording, counting 12%" in line(CEO)


def test_a_vote_does_not_reach_what_excludes_its_question(store: Heedful) -> None:
    pools = ["The indoor pool is open from 9 to 9.", "The outdoor pool is open from 10 to 7.", "Dogs are welcome."]
    indoor, outdoor, _ = store.remember(pools).fact_ids
    store.signal([Signal(fact_id=indoor, signal_type="helpful", query="When is the indoor pool open?")] * 3)
    assert store.recall("When does the indoor pool open?")[0].usefulness_source == "context"
    asked = store.recall("When is the outdoor pool open?")
    assert [each.fact_id for each in asked][:2] == [outdoor, indoor]
    assert {each.usefulness_source for each in asked} == {"neutral"}
