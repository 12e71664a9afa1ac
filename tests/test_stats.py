from __future__ import annotations

from datetime import timedelta

import pytest

import heedful
from heedful import Heedful, NotFound, Signal
from heedful.model import SignalType
from heedful.testing import ManualClock, WordEmbedder


def give(store: Heedful, fact: str, kind: SignalType, query: str = "q", times: int = 1) -> None:
    store.signal([Signal(fact_id=fact, signal_type=kind, query=query)] * times)


class TestOfAFact:
    def test_a_fact_nobody_has_spoken_of(self, store: Heedful) -> None:
        fact = store.remember("quiet").fact_ids[0]
        stats = store.fact_stats(fact)
        assert (stats.fact_id, stats.text, stats.dataset) == (fact, "quiet", "main_dataset")
        assert (stats.overall_usefulness, stats.signal_count, stats.last_signal_at, stats.contexts) == (
            0.5,
            0,
            None,
            [],
        )
        assert stats.signal_breakdown == {"used": 0, "ignored": 0, "helpful": 0, "not_helpful": 0}

    def test_a_question_without_a_word_is_a_context(self, store: Heedful) -> None:
        # The quick model has no direction for it, so that it is not even like itself.
        fact = store.remember("loud").fact_ids[0]
        give(store, fact, "used", "🙂?!")
        assert [(each.query, each.signal_count) for each in store.fact_stats(fact).contexts] == [("🙂?!", 1)]

    def test_all_four_types_are_counted(self, store: Heedful, clock: ManualClock) -> None:
        fact = store.remember("loud").fact_ids[0]
        kinds: list[SignalType] = ["used", "used", "ignored", "helpful", "not_helpful"]
        for kind in kinds:
            give(store, fact, kind)
        stats = store.fact_stats(fact)
        assert stats.signal_breakdown == {"used": 2, "ignored": 1, "helpful": 1, "not_helpful": 1}
        assert stats.signal_count == 5
        assert stats.overall_usefulness == pytest.approx(0.7, abs=1e-12)
        assert stats.last_signal_at == clock()

    def test_the_score_is_decayed_to_now(self, store: Heedful, clock: ManualClock) -> None:
        fact = store.remember("fading").fact_ids[0]
        give(store, fact, "used")
        clock.advance(days=7)
        stats = store.fact_stats(fact)
        assert stats.overall_usefulness == 0.595
        assert stats.contexts[0].score == 0.595
        assert stats.last_signal_at == clock() - timedelta(days=7)

    def test_each_context_has_its_own_score(self, store: Heedful, clock: ManualClock) -> None:
        fact = store.remember("Use connection pooling").fact_ids[0]
        give(store, fact, "helpful", "database performance")
        give(store, fact, "helpful", "Database performance?")
        clock.advance(days=1)
        give(store, fact, "not_helpful", "authentication methods")
        first, second = store.fact_stats(fact).contexts
        assert (first.query, first.queries) == (
            "database performance",
            ["database performance", "Database performance?"],
        )
        assert first.score == pytest.approx(0.5 + 0.3 * 0.95 ** (1 / 7))
        assert (first.signal_count, first.signal_breakdown["helpful"]) == (2, 2)
        assert (second.query, second.score, second.last_signal_at) == ("authentication methods", 0.4, clock())

    def test_a_fact_that_is_not_there(self, store: Heedful) -> None:
        with pytest.raises(NotFound, match="no fact 'nope'") as caught:
            store.fact_stats("nope")
        assert caught.value.field == "fact_id"


class TestOfADataset:
    def test_an_empty_one(self, store: Heedful) -> None:
        stats = store.usefulness_stats()
        assert (stats.dataset, stats.total_facts, stats.facts_with_signals, stats.total_signals) == (
            "main_dataset",
            0,
            0,
            0,
        )
        assert (stats.average_overall_usefulness, stats.queries, stats.most_useful, stats.least_useful) == (
            0.5,
            0,
            [],
            [],
        )
        assert sum(stats.distribution.values()) == 0
        assert store.datasets() == []

    def test_totals_and_the_average_of_those_with_signals(self, store: Heedful) -> None:
        one, two, _ = store.remember(["one", "two", "three"]).fact_ids
        give(store, one, "helpful", times=2)
        give(store, two, "not_helpful")
        stats = store.usefulness_stats()
        assert (stats.total_facts, stats.facts_with_signals, stats.total_signals) == (3, 2, 3)
        assert stats.signal_breakdown == {"used": 0, "ignored": 0, "helpful": 2, "not_helpful": 1}
        assert stats.average_overall_usefulness == pytest.approx((0.8 + 0.4) / 2)

    def test_the_distribution_has_ten_bins(self, store: Heedful) -> None:
        facts = store.remember([f"fact {number}" for number in range(4)]).fact_ids
        give(store, facts[0], "helpful", times=9)
        give(store, facts[1], "not_helpful", times=9)
        give(store, facts[2], "used")
        give(store, facts[3], "used", times=3)
        distribution = store.usefulness_stats().distribution
        assert list(distribution) == [f"{low / 10:.1f}-{(low + 1) / 10:.1f}" for low in range(10)]
        assert {name: count for name, count in distribution.items() if count} == {
            "0.0-0.1": 1,
            "0.6-0.7": 1,
            "0.8-0.9": 1,
            "0.9-1.0": 1,
        }

    def test_the_ten_most_and_least_useful(self, store: Heedful) -> None:
        facts = store.remember([f"fact {number}" for number in range(25)]).fact_ids
        for place, fact in enumerate(facts):
            store.signal([Signal(fact_id=fact, signal_type="helpful", query="q", confidence=place / 25)])
        stats = store.usefulness_stats()
        assert [fact.fact_id for fact in stats.most_useful] == facts[:-11:-1]
        assert [fact.fact_id for fact in stats.least_useful] == facts[:10]
        best = stats.most_useful[0]
        assert (best.text, best.signal_count) == ("fact 24", 1)
        assert best.overall_usefulness == pytest.approx(0.5 + 0.15 * 24 / 25)

    def test_scores_are_decayed_to_now(self, store: Heedful, clock: ManualClock) -> None:
        fact = store.remember("x").fact_ids[0]
        give(store, fact, "used")
        clock.advance(weeks=1)
        assert store.usefulness_stats().average_overall_usefulness == 0.595

    def test_different_queries_with_signals_are_counted(self, store: Heedful) -> None:
        fact = store.remember("x").fact_ids[0]
        for query in ("who leads the company", "who  leads the company", "where is the office"):
            give(store, fact, "used", query)
        store.recall("a query without signals")
        assert store.usefulness_stats().queries == 2

    def test_a_dataset_that_is_not_there(self, store: Heedful) -> None:
        with pytest.raises(NotFound, match="'nope'"):
            store.usefulness_stats("nope")

    def test_other_datasets_do_not_count(self, store: Heedful) -> None:
        fact = store.remember("x", dataset="second").fact_ids[0]
        store.remember("y")
        give(store, fact, "used")
        assert store.usefulness_stats().total_signals == 0
        assert store.usefulness_stats("second").total_signals == 1

    def test_a_project_with_other_datasets_says_which(self, store: Heedful) -> None:
        assert store.usefulness_stats().total_facts == 0
        store.remember("a fact", dataset="help")
        with pytest.raises(NotFound, match=r"no dataset 'main_dataset'\. It has: help"):
            store.usefulness_stats()

    def test_facts_that_help_here_and_hurt_there(self, store: Heedful) -> None:
        divided, plain = store.remember(["Open from 9 to 5.", "Closed on Sundays."]).fact_ids
        for _ in range(3):
            store.signal(Signal(fact_id=divided, signal_type="helpful", query="opening hours of the shop"))
            store.signal(Signal(fact_id=divided, signal_type="not_helpful", query="telephone support at night"))
            store.signal(Signal(fact_id=plain, signal_type="helpful", query="opening hours of the shop"))
        (found,) = store.usefulness_stats().mixed
        assert found.fact_id == divided
        assert found.helps.query == "opening hours of the shop"
        assert found.hurts.query == "telephone support at night"
        assert found.hurts.score < 0.5 < found.helps.score

    def test_a_fact_that_was_disliked_once_for_a_question_hurts_there(self, store: Heedful) -> None:
        divided = store.remember("Open from 9 to 5.").fact_ids[0]
        give(store, divided, "helpful", "opening hours of the shop")
        give(store, divided, "not_helpful", "telephone support at night")
        (found,) = store.usefulness_stats().mixed
        assert found.hurts.score == 0.4

    @pytest.mark.slow
    def test_only_active_facts_count(self, any_store: str, clock: ManualClock) -> None:
        with heedful.open(any_store, clock=clock, embedding=WordEmbedder()) as store:
            kept, corrected, forgotten, _ = store.remember(
                ["open at 8", "closed at 5", "closed at 6", "quiet"]
            ).fact_ids
            (expired,) = store.remember("open today", expires_at=clock() + timedelta(hours=1)).fact_ids
            for fact in (kept, corrected, forgotten, expired):
                give(store, fact, "helpful", "open?", times=3)
                give(store, fact, "not_helpful", "closed?", times=3)
            give(store, corrected, "not_helpful", "why?")
            correction = store.supersede(corrected, "closed at 7")
            store.forget([forgotten])
            clock.advance(hours=1)
            stats = store.usefulness_stats()
            assert (stats.total_facts, stats.facts_with_signals, stats.total_signals) == (3, 1, 6)
            assert sum(stats.distribution.values()) == 1
            assert [each.fact_id for each in stats.most_useful] == [kept]
            assert [each.fact_id for each in stats.least_useful] == [kept]
            assert [each.fact_id for each in stats.mixed] == [kept]
            assert stats.queries == 2

            store.retract(correction.event_id)
            stats = store.usefulness_stats()
            assert (stats.facts_with_signals, stats.total_signals, stats.queries) == (2, 13, 3)
