from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

import heedful
from heedful import Heedful, Invalid, NotFound, Signal
from heedful.model import MODES, Mode
from heedful.providers.embedding import Embedder, Vectors
from heedful.testing import ManualClock, WordEmbedder
from heedful.text.same_question import Calibration

TEXTS = ["red apples grow on trees", "green pears grow on trees", "blue boats float on water", "the red boat leaks"]


@pytest.fixture
def filled(store: Heedful) -> Heedful:
    store.remember(TEXTS)
    return store


def helpful(store: Heedful, fact: str, query: str, times: int = 1) -> None:
    store.signal([Signal(fact_id=fact, signal_type="helpful", query=query)] * times)


def test_the_best_comes_first_and_ranks_count_from_one(filled: Heedful) -> None:
    recall = filled.recall("red apples")
    assert recall[0].text == "red apples grow on trees"
    assert [hit.rank for hit in recall] == [1, 2, 3, 4]
    assert [hit.score for hit in recall] == sorted((hit.score for hit in recall), reverse=True)
    assert (recall.query, recall.dataset, recall.mode, len(recall)) == ("red apples", "main_dataset", "hybrid", 4)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_words_that_were_asked_for(filled: Heedful, mode: Mode) -> None:
    recall = filled.recall("blue boats", mode=mode)
    assert recall.mode == mode
    assert recall[0].text == "blue boats float on water"
    assert all(0 <= hit.relevance <= 1 for hit in recall)


def test_words_alone_leave_out_what_has_none_of_them(filled: Heedful) -> None:
    assert {hit.text for hit in filled.recall("pears", mode="lexical")} == {"green pears grow on trees"}


def test_top_k_is_the_most_that_is_returned(filled: Heedful) -> None:
    assert len(filled.recall("trees", top_k=2)) == 2
    assert len(filled.recall("trees", top_k=1000)) == 4


def test_without_a_boost_the_score_is_the_relevance(filled: Heedful) -> None:
    helpful(filled, filled.recall("red")[0].fact_id, "red", 3)
    for hit in filled.recall("red", boost_by_usefulness=False):
        assert hit.score == hit.relevance


class TestWhatDecides:
    """`boost_by_usefulness` left out, true, false, and as a weight."""

    def test_left_out_one_rating_changes_the_ranking_and_undoing_it_changes_it_back(self, store: Heedful) -> None:
        facts = store.remember(["the red boat leaks", "the red boat sails", "the red boat floats"]).fact_ids
        before = store.recall("red boat")
        last = before[-1].fact_id
        given = store.signal([Signal(fact_id=last, signal_type="helpful", query="red boat", author="ann")])
        after = store.recall("red boat")
        assert (after.policy, after[0].fact_id) == ("adaptive", last)
        store.retract(given.event_ids[0])
        assert [(hit.fact_id, hit.score) for hit in store.recall("red boat")] == [
            (hit.fact_id, hit.score) for hit in before
        ]
        assert len(facts) == 3

    def test_left_out_feedback_elsewhere_changes_nothing(self, filled: Heedful) -> None:
        before = [(hit.fact_id, hit.score) for hit in filled.recall("trees")]
        for number in range(5):
            helpful(filled, filled.recall("red")[0].fact_id, f"something else {number}", 3)
        assert [(hit.fact_id, hit.score) for hit in filled.recall("trees")] == before

    def test_true_is_the_blend_and_a_weight_is_its_weight(self, filled: Heedful) -> None:
        helpful(filled, filled.recall("red")[0].fact_id, "red", 3)
        for boost, weight in ((True, 0.3), (0.5, 0.5), (1, 1.0), (0, 0.0)):
            found = filled.recall("red", boost_by_usefulness=boost)
            assert found.policy == "documented"
            for hit in found:
                assert hit.score == pytest.approx((1 - weight) * hit.relevance + weight * hit.usefulness)

    def test_the_policy_that_was_set_decides_where_one_was(self, filled: Heedful) -> None:
        filled.set_policy("adaptive")
        assert filled.recall("red", boost_by_usefulness=True).policy == "adaptive"
        filled.set_policy("documented")
        assert filled.recall("red").policy == "documented"

    def test_an_influence_of_nothing_turns_it_off(self, filled: Heedful) -> None:
        helpful(filled, filled.recall("red")[0].fact_id, "red", 3)
        for hit in filled.recall("red", feedback_influence=0.0):
            assert hit.score == hit.relevance

    def test_anything_else_is_refused(self, filled: Heedful) -> None:
        for wrong in (1.5, -0.1, "yes"):
            with pytest.raises(Invalid, match="boost_by_usefulness must be true, false or a weight"):
                filled.recall("red", boost_by_usefulness=wrong)  # type: ignore[arg-type]


def test_words_alone_need_no_model(open_store: Callable[..., Heedful]) -> None:
    class Counting(WordEmbedder):
        calls = 0

        def embed(self, texts: Sequence[str]) -> Vectors:
            self.calls += 1
            return super().embed(texts)

    model = Counting()
    store = open_store(embedding=model)
    store.remember(TEXTS)
    model.calls = 0
    assert len(store.recall("pears", mode="lexical")) == 1
    assert model.calls == 0


def test_questions_that_are_as_alike_as_one_has_to_be_are_one(open_store: Callable[..., Heedful]) -> None:
    class Halves:
        """Each question has a cosine of exactly a half to the others."""

        name, dimensions, calibration = "halves", 4, Calibration(floor=0.25, same=0.5)

        def embed(self, texts: Sequence[str]) -> Vectors:
            return np.array([[1, 0, 0, 0] if "shut" in text else [0.5] * 4 for text in texts], np.float32)

    store = open_store(embedding=Halves())
    helpful(store, store.remember("The gate closes at ten.").fact_ids[0], "when does the gate shut")
    assert store.recall("when is the gate locked", policy="documented")[0].usefulness_source == "context"


def test_an_empty_store_has_no_hits(store: Heedful) -> None:
    assert list(store.recall("anything")) == []


def test_a_dataset_that_is_not_there_is_named_with_those_that_are(store: Heedful) -> None:
    store.remember("x", dataset="one")
    with pytest.raises(NotFound, match="'two'") as caught:
        store.recall("x", dataset="two")
    assert caught.value.remedy == "It has: one"
    assert store.datasets() == ["one"]


def test_datasets_do_not_mix(store: Heedful) -> None:
    store.remember("alpha in one", dataset="one")
    store.remember("alpha in two", dataset="two")
    assert [hit.text for hit in store.recall("alpha", dataset="one")] == ["alpha in one"]


def test_the_same_question_has_the_same_answer(filled: Heedful, open_store: Callable[..., Heedful]) -> None:
    first = [(hit.fact_id, hit.score) for hit in filled.recall("red boat")]
    assert [(hit.fact_id, hit.score) for hit in filled.recall("red boat")] == first
    assert [(hit.fact_id, hit.score) for hit in open_store().recall("red boat")] == first


def test_equal_facts_rank_in_the_order_they_were_given(store: Heedful) -> None:
    ids = store.remember(["same words", "words same", "same, words"]).fact_ids
    assert [hit.fact_id for hit in store.recall("same words")] == ids


class TestReceipt:
    def test_every_recall_has_its_own(self, filled: Heedful) -> None:
        assert filled.recall("red").recall_id != filled.recall("red").recall_id

    def test_it_keeps_what_was_shown(self, filled: Heedful, clock: ManualClock) -> None:
        recall = filled.recall("red boat", top_k=3, boost_by_usefulness=True)
        receipt = filled.receipt(recall.recall_id)
        assert (receipt.recall_id, receipt.query, receipt.dataset) == (recall.recall_id, "red boat", "main_dataset")
        assert (receipt.mode, receipt.at) == ("hybrid", clock())
        fields = {"fact_id", "rank", "score", "relevance", "usefulness", "usefulness_source"}
        shown = [line.model_dump(include=fields) for line in receipt.shown]
        assert shown == [hit.model_dump(include=fields) for hit in recall]

    def test_it_is_there_after_reopening(self, filled: Heedful, open_store: Callable[..., Heedful]) -> None:
        recall_id = filled.recall("red").recall_id
        filled.close()
        assert len(open_store().receipt(recall_id).shown) == 4

    def test_an_empty_recall_has_one_too(self, store: Heedful) -> None:
        store.create_dataset("main_dataset")
        assert store.receipt(store.recall("anything").recall_id).shown == []

    def test_a_recall_that_never_was_is_not_found(self, store: Heedful) -> None:
        with pytest.raises(NotFound, match="no recall 'nope'"):
            store.receipt("nope")


class TestBoost:
    def test_the_score_is_the_documented_blend(self, filled: Heedful) -> None:
        helpful(filled, filled.recall("trees")[1].fact_id, "trees", 2)
        for weight in (0.0, 0.3, 1.0):
            for hit in filled.recall("trees", boost_by_usefulness=True, usefulness_weight=weight):
                assert hit.score == pytest.approx((1 - weight) * hit.relevance + weight * hit.usefulness, abs=1e-9)

    def test_the_default_weight_is_three_tenths(self, filled: Heedful) -> None:
        hit = filled.recall("trees", boost_by_usefulness=True)[0]
        assert hit.score == pytest.approx(0.7 * hit.relevance + 0.3 * hit.usefulness, abs=1e-9)

    def test_a_proven_fact_overtakes_a_more_relevant_one(self, filled: Heedful) -> None:
        before = filled.recall("red apples trees")
        second = before[1].fact_id
        helpful(filled, second, "red apples trees", 4)
        after = filled.recall("red apples trees", boost_by_usefulness=True, usefulness_weight=0.6)
        assert after[0].fact_id == second
        assert filled.recall("red apples trees")[0].fact_id == before[0].fact_id

    def test_where_a_score_comes_from_is_said(self, filled: Heedful) -> None:
        fact = filled.recall("red apples")[0].fact_id
        helpful(filled, fact, "red apples")
        in_context = {hit.fact_id: hit for hit in filled.recall("Red apples?", boost_by_usefulness=True)}
        elsewhere = {hit.fact_id: hit for hit in filled.recall("blue water", boost_by_usefulness=True)}
        assert (in_context[fact].usefulness, in_context[fact].usefulness_source) == (0.65, "context")
        assert (elsewhere[fact].usefulness, elsewhere[fact].usefulness_source) == (0.65, "global")
        others = [hit for hit in elsewhere.values() if hit.fact_id != fact]
        assert {(hit.usefulness, hit.usefulness_source) for hit in others} == {(0.5, "neutral")}

    def test_contexts_keep_their_own_scores(self, filled: Heedful) -> None:
        fact = filled.recall("trees")[0].fact_id
        helpful(filled, fact, "database performance")
        filled.signal([Signal(fact_id=fact, signal_type="ignored", query="authentication methods")])
        result = {
            query: {hit.fact_id: hit.usefulness for hit in filled.recall(query, boost_by_usefulness=True)}[fact]
            for query in ("database performance", "authentication methods", "api limits")
        }
        assert result == pytest.approx(
            {"database performance": 0.65, "authentication methods": 0.45, "api limits": 0.6}, abs=1e-12
        )

    def test_facts_below_the_least_usefulness_are_left_out(self, filled: Heedful) -> None:
        good, bad = filled.recall("trees")[0].fact_id, filled.recall("trees")[1].fact_id
        helpful(filled, good, "trees", 2)
        filled.signal([Signal(fact_id=bad, signal_type="not_helpful", query="trees")])
        result = {hit.fact_id for hit in filled.recall("trees", boost_by_usefulness=True, min_usefulness=0.5)}
        assert bad not in result
        assert len(result) == 3
        strict = filled.recall("trees", boost_by_usefulness=True, min_usefulness=0.8, usefulness_weight=0.0)
        assert [hit.fact_id for hit in strict] == [good]

    def test_a_score_that_is_just_enough_is_enough(self, filled: Heedful) -> None:
        fact = filled.recall("trees")[0].fact_id
        filled.signal([Signal(fact_id=fact, signal_type="used", query="trees")] * 3)
        result = filled.recall("trees", boost_by_usefulness=True, min_usefulness=0.8)
        assert [hit.fact_id for hit in result] == [fact]

    def test_without_a_boost_none_is_left_out(self, filled: Heedful) -> None:
        assert len(filled.recall("trees", boost_by_usefulness=False, min_usefulness=1.0)) == 4

    def test_a_proven_fact_is_found_though_its_words_are_others(self, store: Heedful) -> None:
        store.remember([f"holiday plan number {number}" for number in range(300)])
        fact = store.remember("completely unlike anything").fact_ids[0]
        helpful(store, fact, "holiday plan", 4)
        result = store.recall("holiday plan", boost_by_usefulness=True, usefulness_weight=0.9)
        assert result[0].fact_id == fact

    def test_enough_useful_facts_are_found_behind_many_useless_ones(self, store: Heedful) -> None:
        bad = store.remember(["holiday"] * 150, metadata=[{"n": n} for n in range(150)]).fact_ids
        store.remember([f"holiday plan {number}" for number in range(20)])
        store.signal([Signal(fact_id=fact, signal_type="not_helpful", query="holiday") for fact in bad])
        assert len(store.recall("holiday", boost_by_usefulness=True, min_usefulness=0.5)) == 10

    def test_scores_fade_with_the_clock(self, filled: Heedful, clock: ManualClock) -> None:
        fact = filled.recall("trees")[0].fact_id
        filled.signal([Signal(fact_id=fact, signal_type="used", query="trees")])
        clock.advance(days=7)
        result = {hit.fact_id: hit.usefulness for hit in filled.recall("trees", boost_by_usefulness=True)}
        assert result[fact] == 0.595


def test_a_signal_from_another_process_is_seen_by_the_next_recall(
    filled: Heedful, open_store: Callable[..., Heedful]
) -> None:
    fact = filled.recall("trees", boost_by_usefulness=True)[0].fact_id
    helpful(open_store(), fact, "trees")
    assert filled.recall("trees", boost_by_usefulness=True)[0].usefulness == 0.65


def test_a_fact_from_another_process_is_seen_by_the_next_recall(
    filled: Heedful, open_store: Callable[..., Heedful]
) -> None:
    filled.recall("zebra")
    other = open_store()
    fact = other.remember("a zebra").fact_ids[0]
    assert filled.recall("zebra")[0].fact_id == fact
    other.forget(fact)
    assert fact not in {hit.fact_id for hit in filled.recall("zebra")}


def test_a_dataset_that_is_forgotten_meanwhile_breaks_no_recall(open_store: Callable[..., Heedful]) -> None:
    other = open_store()

    class Forgetting(ManualClock):
        armed = False

        def __call__(self) -> object:  # type: ignore[override]
            if self.armed:
                self.armed = False
                other.forget(dataset="main_dataset")
            return self.now

    clock = Forgetting()
    store = open_store(clock=clock)
    store.remember("here today")
    clock.armed = True
    assert [hit.text for hit in store.recall("today")] == ["here today"]
    assert len(store.recall("today")) == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_does_not_lose_what_others_outrank(store: Heedful, mode: Mode) -> None:
    store.remember([f"alpha alpha number{number}" for number in range(150)], metadata={"lang": "en"})
    fact = store.remember("alpha among a great many other longer words", metadata={"lang": "de"}).fact_ids[0]
    result = store.recall("alpha", mode=mode, where={"lang": "de"})
    assert [hit.fact_id for hit in result] == [fact]


def test_meaning_is_found_by_the_bundled_model(open_store: Callable[..., Heedful], bundled: Embedder) -> None:
    store = open_store(embedding=bundled)
    store.remember(["The cat sleeps on the sofa.", "Quarterly revenue grew by ten percent.", "It rains in Bergen."])
    assert store.recall("How did sales develop?", mode="semantic")[0].text == "Quarterly revenue grew by ten percent."
    assert store.recall("Where is the kitten?", mode="hybrid")[0].text == "The cat sleeps on the sofa."


words = st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("remember"), st.lists(words, min_size=1, max_size=4).map(" ".join), st.sampled_from("ab")),
        st.tuples(st.just("forget"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("recall"), words, st.just("")),
    ),
    max_size=12,
)


@some(1 / 4)
@given(steps)
@pytest.mark.slow
def test_an_index_that_followed_answers_like_one_rebuilt(
    empty_store: bytes, taken: list[tuple[str, str | int, str]]
) -> None:
    with ExitStack() as opened:
        path = Path(opened.enter_context(TemporaryDirectory())) / "store.db"
        path.write_bytes(empty_store)
        store, rebuilt = (opened.enter_context(heedful.open(path, embedding=WordEmbedder())) for _ in range(2))
        ids: list[str] = []
        for verb, what, source in taken:
            if verb == "remember":
                ids += store.remember(str(what), source=source).fact_ids
            elif verb == "forget" and isinstance(what, int) and ids:
                store.forget(fact := ids[what % len(ids)])
                ids = [one for one in ids if one != fact]
            else:
                store.recall(str(what))
        followed = [(hit.fact_id, hit.relevance) for hit in store.recall("alpha gamma")]
        fresh = [(hit.fact_id, hit.relevance) for hit in rebuilt.recall("alpha gamma")]
        assert dict(followed) == pytest.approx(dict(fresh), abs=2e-6)


def test_usefulness_is_the_same_whether_or_not_it_ranks(store: Heedful) -> None:
    (fact,) = store.remember("The CEO is Ada.").fact_ids
    store.signal([{"fact_id": fact, "signal_type": "used", "query": "Who is the CEO?", "author": "ann"}])
    ranked, unranked = (store.recall("Who is the CEO?", boost_by_usefulness=boost) for boost in (None, False))
    assert unranked[0].usefulness == ranked[0].usefulness > 0.5
    assert unranked[0].score == unranked[0].relevance
