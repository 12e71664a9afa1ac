"""Looking through what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import heedful
from heedful import Heedful, Invalid, NotFound
from heedful.model import Fact
from heedful.testing import ManualClock, WordEmbedder


def every(store: Heedful, dataset: str = "main_dataset", **options: Any) -> list[str]:
    """All texts of a dataset, read two at a time."""
    result: list[Fact] = []
    cursor = None
    while True:
        page = store.facts(dataset=dataset, cursor=cursor, limit=2, **options)
        result += page.items
        cursor = page.next_cursor
        if cursor is None:
            return [fact.text for fact in result]


def test_a_fact_is_shown_as_it_was_stored(store: Heedful, clock: ManualClock) -> None:
    fact_id = store.remember("Ada is the CEO.", dataset="people", metadata={"lang": "en"}, source="wiki").fact_ids[0]
    fact = store.fact(fact_id)
    assert (fact.fact_id, fact.text, fact.dataset) == (fact_id, "Ada is the CEO.", "people")
    assert (fact.metadata, fact.source, fact.created_at) == ({"lang": "en"}, "wiki", clock())


def test_an_unknown_fact_and_one_of_another_project_are_not_found(open_store: Callable[..., Heedful]) -> None:
    ours, theirs = open_store(), open_store(project="theirs")
    fact_id = theirs.remember("a secret").fact_ids[0]
    for unknown in (fact_id, "nobody"):
        with pytest.raises(NotFound, match=unknown):
            ours.fact(unknown)


def test_facts_are_listed_page_by_page_in_either_order(store: Heedful) -> None:
    texts = ["one", "two", "three", "four", "five"]
    store.remember(texts)
    store.remember("elsewhere", dataset="second")
    assert every(store) == texts
    assert every(store, newest_first=True) == texts[::-1]
    assert every(store, "second") == ["elsewhere"]


def test_facts_of_one_source_are_listed(store: Heedful) -> None:
    store.remember(["a", "b", "c"], source="letters")
    store.remember("1", source="digits")
    assert every(store, source="letters") == ["a", "b", "c"]
    assert every(store, source="nothing") == []


def test_superseded_facts_are_not_listed_and_can_be_looked_up(store: Heedful) -> None:
    old = store.remember("It is four.").fact_ids[0]
    store.supersede(old, "It is six.")
    assert every(store) == ["It is six."]
    assert store.fact(old).text == "It is four."


def test_a_list_of_an_unknown_dataset_is_not_found_but_the_default_one_is_empty(store: Heedful) -> None:
    assert every(store) == []
    with pytest.raises(NotFound, match="'nowhere'"):
        store.facts(dataset="nowhere")
    assert store.datasets() == []


@pytest.mark.parametrize("limit", [0, 1_001, True, "3"])
def test_a_limit_that_is_none_is_refused(store: Heedful, limit: int) -> None:
    with pytest.raises(Invalid, match="limit"):
        store.facts(limit=limit)


def test_a_dataset_can_be_made_before_it_has_facts(store: Heedful, clock: ManualClock) -> None:
    made = store.create_dataset("empty", metadata={"for": "tests"})
    assert (made.name, made.metadata, made.facts, made.created_at) == ("empty", {"for": "tests"}, 0, clock())
    assert store.datasets() == ["empty"]
    assert store.get_dataset("empty") == made
    assert store.facts(dataset="empty").items == []
    assert list(store.recall("anything", dataset="empty")) == []


def test_making_a_dataset_again_merges_metadata_and_keeps_its_facts(store: Heedful, clock: ManualClock) -> None:
    store.remember("x", dataset="mine")
    assert store.get_dataset("mine").metadata == {}
    store.create_dataset("mine", metadata={"a": 1, "b": 1})
    clock.advance(days=1)
    again = store.create_dataset("mine", metadata={"b": 2})
    assert (again.metadata, again.facts) == ({"a": 1, "b": 2}, 1)
    assert store.get_dataset("mine") == again
    assert store.create_dataset("mine") == again


def test_forgetting_a_dataset_forgets_its_metadata(store: Heedful) -> None:
    store.create_dataset("gone", metadata={"a": 1})
    assert store.forget(dataset="gone").facts == 0
    assert store.datasets() == []
    with pytest.raises(NotFound, match="'gone'"):
        store.get_dataset("gone")
    assert store.create_dataset("gone").metadata == {}


def test_reading_makes_no_dataset(store: Heedful) -> None:
    store.recall("anything")
    assert store.datasets() == []
    with pytest.raises(NotFound):
        store.get_dataset("main_dataset")


def test_datasets_of_other_projects_are_not_seen(open_store: Callable[..., Heedful]) -> None:
    open_store(project="theirs").create_dataset("private")
    ours = open_store()
    assert ours.datasets() == []
    with pytest.raises(NotFound):
        ours.get_dataset("private")


@pytest.mark.parametrize("metadata", [{"a": float("nan")}, {1: 2}, "x", {"a": "x" * 70_000}])
def test_metadata_of_a_dataset_that_cant_be_kept_are_refused(store: Heedful, metadata: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="metadata"):
        store.create_dataset("mine", metadata=metadata)
    assert store.datasets() == []


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, ["a", "b", "c", "d"]),
        ({"lang": "en"}, ["a", "c"]),
        ({"lang": {"!=": "en"}}, ["b", "d"]),
        ({"year": {">=": 2020, "<": 2022}, "by.name": "Ann"}, ["a"]),
        ({"lang": ["en", "de"]}, ["a", "b", "c"]),
        ({"lang": {"exists": False}}, ["d"]),
    ],
)
@pytest.mark.slow
def test_facts_are_listed_by_metadata(any_store: str, where: dict[str, Any], expected: list[str]) -> None:
    with heedful.open(any_store, embedding=WordEmbedder()) as store:
        about: list[dict[str, Any]] = [
            {"lang": "en", "year": 2020, "by": {"name": "Ann"}},
            {"lang": "de", "year": 2021},
            {"lang": "en", "year": 2022, "by": {"name": "Ann"}},
            {},
        ]
        store.remember(["a", "b", "c", "d"], metadata=about, source="letters")
        store.remember("elsewhere", metadata=about[0], dataset="second")
        store.supersede(store.remember("e", metadata=about[0]).fact_ids[0], by=store.facts().items[0].fact_id)
        assert every(store, where=where) == expected
        assert every(store, where=where, newest_first=True) == expected[::-1]
        assert every(store, where=where, source="letters") == expected
        assert every(store, where=where, source="digits") == []


@pytest.mark.parametrize("where", [{"a": {"~": 1}}, {"a": {}}, "a", {"": 1}])
def test_a_filter_that_is_none_is_refused(store: Heedful, where: Any) -> None:
    with pytest.raises(Invalid, match="where"):
        store.facts(where=where)
