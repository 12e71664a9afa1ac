"""Two projects in one store: no verb of one sees or changes anything of the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heedful import Heedful, NotFound, Recall, Signal
from heedful.model import FactStats

SECRET = "the launch code is swordfish"


@pytest.fixture
def other_project(open_store: Callable[..., Heedful]) -> Heedful:
    return open_store(project="theirs")


@pytest.fixture
def own_project(open_store: Callable[..., Heedful]) -> Heedful:
    return open_store(project="ours")


@pytest.fixture
def fact(other_project: Heedful) -> str:
    fact_id = other_project.remember(SECRET, source="vault", metadata={"k": 1}).fact_ids[0]
    other_project.remember("in another dataset", dataset="private")
    return fact_id


@pytest.fixture
def shown(other_project: Heedful, fact: str) -> Recall:
    return other_project.recall("launch code")


@pytest.fixture
def event(other_project: Heedful, fact: str) -> str:
    return other_project.signal([Signal(fact_id=fact, signal_type="helpful", query="launch code")]).event_ids[0]


@pytest.fixture
def before(other_project: Heedful, fact: str, event: str) -> FactStats:
    return other_project.fact_stats(fact)


def test_recall_finds_nothing_of_the_other(own_project: Heedful, fact: str) -> None:
    assert len(own_project.recall("launch code")) == 0
    own_project.remember("our own launch")
    for options in ({}, {"where": {"k": 1}}, {"boost_by_usefulness": True}):
        assert SECRET not in {hit.text for hit in own_project.recall("launch code swordfish", **options)}


def test_the_datasets_of_the_other_are_not_named(own_project: Heedful, fact: str) -> None:
    own_project.remember("x", dataset="mine")
    assert own_project.datasets() == ["mine"]
    with pytest.raises(NotFound) as caught:
        own_project.recall("x", dataset="private")
    assert caught.value.remedy == "It has: mine"
    with pytest.raises(NotFound):
        own_project.usefulness_stats("private")


def test_a_signal_on_the_other_s_fact_is_not_found(
    own_project: Heedful, other_project: Heedful, fact: str, before: FactStats
) -> None:
    mine = own_project.remember("mine").fact_ids[0]
    result = own_project.signal(
        [Signal(fact_id=each, signal_type="not_helpful", query="launch code") for each in (fact, mine)]
    )
    assert [(error.index, error.code, error.fact_id) for error in result.errors] == [(0, "not_found", fact)]
    assert result.processed == 1
    assert other_project.fact_stats(fact) == before


def test_it_is_answered_like_a_fact_that_never_was(own_project: Heedful, fact: str) -> None:
    own_project.remember("mine")
    answers = []
    for each in (fact, "nobody"):
        with pytest.raises(NotFound) as caught:
            own_project.signal([Signal(fact_id=each, signal_type="used", query="q")])
        answers.append(str(caught.value).replace(each, "…"))
    assert answers[0] == answers[1]


def test_the_receipt_of_the_other_is_not_found(
    own_project: Heedful, other_project: Heedful, fact: str, shown: Recall
) -> None:
    with pytest.raises(NotFound):
        own_project.receipt(shown.recall_id)
    with pytest.raises(NotFound):
        own_project.signal_recall(shown.recall_id, used=[fact])
    assert other_project.fact_stats(fact).signal_count == 0


def test_the_event_of_the_other_can_not_be_retracted(
    own_project: Heedful, other_project: Heedful, fact: str, event: str, before: FactStats
) -> None:
    with pytest.raises(NotFound):
        own_project.retract(event)
    assert other_project.fact_stats(fact) == before


def test_the_other_s_facts_can_not_be_forgotten(own_project: Heedful, other_project: Heedful, fact: str) -> None:
    mine = own_project.remember("mine").fact_ids[0]
    for options in (
        {"fact_ids": fact},
        {"fact_ids": [mine, fact]},
        {"source": "vault"},
        {"dataset": "private"},
    ):
        with pytest.raises(NotFound):
            own_project.forget(**options)
    own_project.forget(dataset="main_dataset")
    assert other_project.usefulness_stats().total_facts == 1
    assert other_project.datasets() == ["main_dataset", "private"]


def test_the_statistics_of_the_other_are_not_seen(own_project: Heedful, fact: str, before: FactStats) -> None:
    with pytest.raises(NotFound):
        own_project.fact_stats(fact)
    stats = own_project.usefulness_stats()
    assert (stats.total_facts, stats.total_signals, stats.queries) == (0, 0, 0)


def test_the_same_text_is_a_fact_of_each(
    own_project: Heedful, other_project: Heedful, fact: str, before: FactStats
) -> None:
    result = own_project.remember(SECRET, source="vault", metadata={"k": 1})
    assert (result.added, result.known) == (1, 0)
    assert result.fact_ids[0] != fact
    assert own_project.fact_stats(result.fact_ids[0]).overall_usefulness == 0.5
    assert own_project.recall("launch code", boost_by_usefulness=True)[0].usefulness_source == "neutral"


def test_keys_are_each_project_s_own(own_project: Heedful, other_project: Heedful, fact: str) -> None:
    mine = own_project.remember("mine").fact_ids[0]
    one = other_project.signal(
        [Signal(fact_id=fact, signal_type="used", query="q", idempotency_key="item")], idempotency_key="call"
    )
    other = own_project.signal(
        [Signal(fact_id=mine, signal_type="used", query="q", idempotency_key="item")], idempotency_key="call"
    )
    assert (one.processed, other.processed) == (1, 1)
    assert one.event_ids != other.event_ids


def test_the_doctor_looks_at_one_project(own_project: Heedful, fact: str) -> None:
    own_project.remember("x", dataset="mine")
    named = " ".join(f"{check.name} {check.detail}" for check in own_project.doctor())
    assert "mine" in named
    assert "private" not in named
    assert "main_dataset" not in named


class TestDatasets:
    def test_contexts_are_each_dataset_s_own(self, store: Heedful) -> None:
        one = store.remember("alpha", dataset="one").fact_ids[0]
        two = store.remember("alpha", dataset="two").fact_ids[0]
        store.signal([Signal(fact_id=one, signal_type="helpful", query="alpha")])
        assert store.recall("alpha", dataset="one", boost_by_usefulness=True)[0].usefulness == 0.65
        hit = store.recall("alpha", dataset="two", boost_by_usefulness=True, explain=True)[0]
        assert (hit.fact_id, hit.usefulness, hit.usefulness_source) == (two, 0.5, "neutral")
        assert hit.explanation is not None
        assert hit.explanation.matched_context is None

    def test_forgetting_one_leaves_the_other(self, store: Heedful) -> None:
        store.remember("alpha", dataset="one")
        fact = store.remember("alpha", dataset="two").fact_ids[0]
        store.signal([Signal(fact_id=fact, signal_type="helpful", query="alpha")])
        store.forget(dataset="one")
        assert store.recall("alpha", dataset="two", boost_by_usefulness=True)[0].usefulness_source == "context"
