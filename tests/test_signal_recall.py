from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from heedful import Conflict, Heedful, Invalid, NotFound, Recall
from heedful.clock import new_id
from heedful.testing import ManualClock

TEXTS = ["apples are red", "apples are green", "apples are sweet", "apples are sour"]


@pytest.fixture
def recall(store: Heedful) -> Recall:
    store.remember(TEXTS)
    return store.recall("apples")


def kinds(store: Heedful, fact: str) -> dict[str, int]:
    return {kind: count for kind, count in store.fact_stats(fact).signal_breakdown.items() if count}


def test_what_was_shown_and_not_named_is_ignored(store: Heedful, recall: Recall) -> None:
    a, b, c, d = (hit.fact_id for hit in recall)
    result = store.signal_recall(recall.recall_id, used=[a], helpful=[b], not_helpful=[c])
    assert (result.processed, result.errors) == (4, [])
    assert set(result.updated_facts) == {a, b, c, d}
    assert [kinds(store, fact) for fact in (a, b, c, d)] == [
        {"used": 1},
        {"helpful": 1},
        {"not_helpful": 1},
        {"ignored": 1},
    ]


def test_it_is_about_the_query_that_was_asked(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    store.signal_recall(recall.recall_id, used=[fact])
    assert [context.query for context in store.fact_stats(fact).contexts] == ["apples"]


def test_naming_nothing_ignores_all(store: Heedful, recall: Recall) -> None:
    store.signal_recall(recall.recall_id)
    assert all(kinds(store, hit.fact_id) == {"ignored": 1} for hit in recall)


def test_a_fact_may_be_used_and_helpful(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    store.signal_recall(recall.recall_id, used=[fact], helpful=[fact])
    assert kinds(store, fact) == {"used": 1, "helpful": 1}


def test_saying_the_same_again_counts_once(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    first = store.signal_recall(recall.recall_id, used=[fact, fact])
    again = store.signal_recall(recall.recall_id, used=[fact])
    assert (first.processed, again.processed) == (4, 0)
    assert set(again.event_ids) == set(first.event_ids)
    assert kinds(store, fact) == {"used": 1}


def test_what_was_named_before_is_not_ignored_later(store: Heedful, recall: Recall) -> None:
    a, b = recall[0].fact_id, recall[1].fact_id
    store.signal_recall(recall.recall_id, used=[a])
    store.signal_recall(recall.recall_id, helpful=[b])
    assert kinds(store, a) == {"used": 1}


def test_what_is_named_later_is_no_longer_ignored(store: Heedful, recall: Recall) -> None:
    a, b = recall[0].fact_id, recall[1].fact_id
    store.signal_recall(recall.recall_id, used=[a])
    store.signal_recall(recall.recall_id, used=[b])
    assert kinds(store, b) == {"used": 1}


def test_two_authors_have_their_own_opinions(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    store.signal_recall(recall.recall_id, used=[fact], author="ann")
    store.signal_recall(recall.recall_id, not_helpful=[fact], author="bob")
    assert kinds(store, fact) == {"used": 1, "not_helpful": 1}


def test_it_may_come_days_later_and_from_another_process(
    store: Heedful, recall: Recall, open_store: Callable[..., Heedful], clock: ManualClock
) -> None:
    store.close()
    clock.advance(days=9)
    later = open_store()
    later.signal_recall(recall.recall_id, helpful=[recall[0].fact_id])
    stats = later.fact_stats(recall[0].fact_id)
    assert (stats.overall_usefulness, stats.last_signal_at) == (0.65, clock())


def test_a_fact_that_was_not_shown_is_refused_by_name(store: Heedful, recall: Recall) -> None:
    other = store.remember("pears are soft").fact_ids[0]
    result = store.signal_recall(recall.recall_id, used=[other, recall[0].fact_id])
    assert [(error.code, error.fact_id) for error in result.errors] == [("not_found", other)]
    assert kinds(store, recall[0].fact_id) == {"used": 1}
    assert kinds(store, other) == {}


def test_a_fact_forgotten_meanwhile_is_refused_if_named_and_skipped_if_not(store: Heedful, recall: Recall) -> None:
    named, silent = recall[0].fact_id, recall[1].fact_id
    store.forget([named, silent])
    result = store.signal_recall(recall.recall_id, used=[named])
    assert [(error.code, error.fact_id) for error in result.errors] == [("not_found", named)]
    assert result.processed == 2


def test_one_fact_needs_no_list(store: Heedful, recall: Recall) -> None:
    result = store.signal_recall(recall.recall_id, used=recall[0].fact_id, not_helpful=recall[1])
    assert result.errors == []
    assert kinds(store, recall[0].fact_id) == {"used": 1}
    assert kinds(store, recall[1].fact_id) == {"not_helpful": 1}


def test_facts_may_be_named_by_rank_and_the_recall_by_itself(either: Heedful) -> None:
    either.remember(TEXTS)
    recall = either.recall("apples")
    first, second, third, last = (hit.fact_id for hit in recall)
    result = either.signal_recall(recall, used=1, helpful=[1, second], not_helpful=[4])
    given = {(signal.fact_id, signal.signal_type) for signal in result.signals}
    assert given == {
        *((first, "used"), (first, "helpful"), (second, "helpful")),
        *((third, "ignored"), (last, "not_helpful")),
    }


@pytest.mark.parametrize(("given", "problem"), [([5], "no rank 5"), ([0], "no rank 0"), ([True], "got [True]")])
def test_a_rank_that_was_not_shown_is_refused(store: Heedful, recall: Recall, given: list[int], problem: str) -> None:
    with pytest.raises(Invalid, match=re.escape(problem)) as refused:
        store.signal_recall(recall, helpful=given)
    assert refused.value.field == "helpful"
    with pytest.raises(Invalid, match="as helpful and as not_helpful"):
        store.signal_recall(recall, helpful=[1], not_helpful=recall[0])
    assert kinds(store, recall[0].fact_id) == {}


def test_a_fact_may_be_named_by_its_hit(store: Heedful, recall: Recall) -> None:
    store.signal_recall(recall.recall_id, used=[recall[0]], helpful=recall.hits[1:3])
    assert [kinds(store, hit.fact_id) for hit in recall.hits[:3]] == [{"used": 1}, {"helpful": 1}, {"helpful": 1}]


def test_an_answer_says_which_of_the_unnamed_facts_it_used(store: Heedful, recall: Recall) -> None:
    facts = {hit.text: hit.fact_id for hit in recall}
    result = store.signal_recall(recall, helpful=[facts["apples are red"]], answer="Apples are green.")
    given = {(signal.fact_id, signal.signal_type) for signal in result.signals}
    assert given == {
        *((facts["apples are red"], "helpful"), (facts["apples are green"], "used")),
        *((facts[text], "ignored") for text in TEXTS[2:]),
    }


def test_the_signals_of_an_empty_recall_are_none(store: Heedful) -> None:
    empty = store.recall("anything").recall_id
    result = store.signal_recall(empty, answer="Nobody knows.")
    assert (result.processed, result.errors) == (0, [])
    with pytest.raises(NotFound, match="not shown"):
        store.signal_recall(empty, used=[new_id()])
    assert store.sessions.add_entry("s", "anything", "Nobody knows.", recall_id=empty).recall_id == empty
    with pytest.raises(NotFound):
        store.signal_recall(new_id())


def test_a_retracted_signal_may_be_given_again(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    first = store.signal_recall(recall.recall_id, used=[fact])
    store.retract(first.event_ids[0])
    store.signal_recall(recall.recall_id, used=[fact])
    assert kinds(store, fact) == {"used": 1}


def test_helpful_and_not_helpful_contradict_each_other(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    with pytest.raises(Invalid, match=fact):
        store.signal_recall(recall.recall_id, helpful=[fact], not_helpful=[fact])
    assert kinds(store, fact) == {}


def test_used_and_not_helpful_do_not(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    store.signal_recall(recall.recall_id, used=[fact], not_helpful=[fact])
    assert kinds(store, fact) == {"used": 1, "not_helpful": 1}


def test_a_recall_that_never_was_is_not_found(store: Heedful) -> None:
    with pytest.raises(NotFound, match="no recall 'nope'") as caught:
        store.signal_recall("nope")
    assert caught.value.field == "recall_id"


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan"), "1", True])
def test_a_confidence_outside_is_refused(store: Heedful, recall: Recall, confidence: float) -> None:
    with pytest.raises(Invalid, match="confidence"):
        store.signal_recall(recall.recall_id, confidence=confidence)
    assert kinds(store, recall[0].fact_id) == {}


def test_confidence_scales_all_of_them(store: Heedful, recall: Recall) -> None:
    store.signal_recall(recall.recall_id, used=[recall[0].fact_id], confidence=0.5)
    assert store.fact_stats(recall[0].fact_id).overall_usefulness == 0.55
    assert store.fact_stats(recall[1].fact_id).overall_usefulness == 0.475


def test_a_retry_returns_the_first_result_though_the_dataset_is_gone(store: Heedful, recall: Recall) -> None:
    first = store.signal_recall(recall.recall_id, used=[recall[0].fact_id], idempotency_key="k")
    store.forget(dataset="main_dataset")
    assert store.signal_recall(recall.recall_id, used=[recall[0].fact_id], idempotency_key="k") == first


def test_a_retry_returns_the_first_result(store: Heedful, recall: Recall) -> None:
    fact = recall[0].fact_id
    first = store.signal_recall(recall.recall_id, used=[fact], idempotency_key="k")
    assert store.signal_recall(recall.recall_id, used=[fact], idempotency_key="k") == first
    with pytest.raises(Conflict):
        store.signal_recall(recall.recall_id, helpful=[fact], idempotency_key="k")
    assert kinds(store, fact) == {"used": 1}


def test_whoever_names_a_fact_that_was_not_shown_says_nothing_of_the_others(store: Heedful) -> None:
    facts = store.remember(["Anna leads the company", "Bob cooks"]).fact_ids
    recall = store.recall("company")
    with pytest.raises(NotFound, match=r"'typo' was not shown.*nor any of the 1 other"):
        store.signal_recall(recall.recall_id, helpful=["typo", "other"], idempotency_key="k")
    result = store.signal_recall(recall.recall_id, used=["typo"], helpful=[facts[1], "other"], author="ann")
    assert (result.processed, [(each.index, each.fact_id) for each in result.errors]) == (
        1,
        [(0, "typo"), (2, "other")],
    )
    store.retract(result.event_ids[0])
    assert [store.fact_stats(fact).signal_count for fact in facts] == [0, 0]
    assert store.signal_recall(recall.recall_id, helpful=[facts[0]]).processed == 2


def test_a_remark_against_a_fact_says_nothing_of_the_others(store: Heedful, recall: Recall) -> None:
    first, second, *others = (hit.fact_id for hit in recall)
    store.signal_recall(recall, helpful=[1], author="ann")
    before = [kinds(store, fact) for fact in others]
    store.signal_recall(recall, not_helpful=[2], author="bo")
    assert kinds(store, first) == {"helpful": 1}
    assert kinds(store, second) == {"ignored": 1, "not_helpful": 1}
    assert [kinds(store, fact) for fact in others] == before
