"""Pages of a recall: nothing comes twice, nothing is left out, and each page has its receipt."""

from __future__ import annotations

from typing import Any

import pytest

import heedful
from heedful import Heedful, Invalid
from heedful.model import Recall
from heedful.testing import WordEmbedder

QUERY = "Which office has a printer?"


def fill(store: Heedful, count: int = 23) -> None:
    store.remember([f"Office {n} has a printer and {n} desks." for n in range(count)], metadata={"kind": "office"})


def pages(store: Heedful, **options: Any) -> list[Recall]:
    found = [store.recall(QUERY, top_k=5, **options)]
    while found[-1].next_cursor is not None:
        found.append(store.recall(QUERY, top_k=5, cursor=found[-1].next_cursor, **options))
    return found


def ids(found: list[Recall]) -> list[str]:
    return [hit.fact_id for page in found for hit in page]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical", "graph"])
@pytest.mark.slow
def test_pages_show_every_fact_once_in_the_order_of_one_recall(any_store: str, mode: str) -> None:
    with heedful.open(any_store, embedding=WordEmbedder()) as store:
        fill(store)
        found = pages(store, mode=mode)
        assert [len(page) for page in found] == [5, 5, 5, 5, 3]
        whole = store.recall(QUERY, top_k=100, mode=mode)  # type: ignore[arg-type]
        assert whole.next_cursor is None
        assert len(set(ids(found))) == 23
        if mode != "graph":
            assert ids(found) == [hit.fact_id for hit in whole]


def test_each_page_has_its_own_receipt(store: Heedful) -> None:
    fill(store)
    first, second, *_ = pages(store)
    assert first.recall_id != second.recall_id
    receipt = store.receipt(second.recall_id)
    assert [(line.fact_id, line.rank) for line in receipt.shown] == [(hit.fact_id, hit.rank) for hit in second]
    result = store.signal_recall(second.recall_id, helpful=second[0])
    assert {signal.fact_id for signal in result.signals} == {hit.fact_id for hit in second}


def test_what_is_said_and_stored_between_pages_repeats_nothing(store: Heedful) -> None:
    fill(store)
    first = store.recall(QUERY, top_k=5)
    worst = store.recall(QUERY, top_k=23)[-1].fact_id
    for author in ("ann", "bo", "eva"):
        store.signal([{"fact_id": worst, "signal_type": "helpful", "query": QUERY, "author": author}])
    store.remember("Which office has a printer? The office of Ada has a printer.")
    store.forget(first[0].fact_id)
    second = store.recall(QUERY, top_k=5, cursor=first.next_cursor)
    assert not {hit.fact_id for hit in first} & {hit.fact_id for hit in second}
    # What is better now comes next.
    assert worst in {hit.fact_id for hit in second}
    assert any("Ada" in hit.text for hit in second)


def test_filters_and_the_boost_hold_on_every_page(store: Heedful) -> None:
    fill(store, 8)
    store.remember("The printer of the office is broken.", metadata={"kind": "note"})
    found = pages(store, where={"kind": "office"}, boost_by_usefulness=True)
    assert [len(page) for page in found] == [5, 3]
    assert {hit.metadata["kind"] for page in found for hit in page} == {"office"}


def test_a_full_last_page_is_followed_by_an_empty_one(store: Heedful) -> None:
    fill(store, 10)
    assert [len(page) for page in pages(store)] == [5, 5, 0]


@pytest.mark.slow
def test_a_thousand_facts_are_shown_at_most(store: Heedful) -> None:
    store.remember([f"Office {n} has a printer." for n in range(1_010)])
    first = store.recall(QUERY, top_k=900, mode="lexical")
    assert first.next_cursor is not None
    second = store.recall(QUERY, top_k=100, mode="lexical", cursor=first.next_cursor)
    assert (len(second), second.next_cursor) == (100, None)
    assert store.recall(QUERY, top_k=1_000, mode="lexical").next_cursor is None


@pytest.mark.parametrize("cursor", ["", "x", "5", "AAAA", "ä", "=" * 20, "A" * 40, 5])
def test_what_is_no_cursor_is_refused(store: Heedful, cursor: Any) -> None:
    fill(store, 3)
    with pytest.raises(Invalid) as refused:
        store.recall(QUERY, cursor=cursor)
    assert refused.value.field == "cursor"


def test_a_cursor_belongs_to_its_question(store: Heedful) -> None:
    fill(store, 8)
    store.remember("another", dataset="second")
    cursor = store.recall(QUERY, top_k=5).next_cursor
    for options in ({"where": {"kind": "office"}}, {"mode": "lexical"}, {"dataset": "second"}):
        with pytest.raises(Invalid, match="cursor"):
            store.recall(QUERY, cursor=cursor, **options)
    with pytest.raises(Invalid, match="cursor"):
        store.recall("Which office has desks?", cursor=cursor)
    with pytest.raises(Invalid, match="external_id"):
        store.recall(QUERY, cursor=cursor, external_id="run-1")
    assert len(store.recall(QUERY, top_k=2, cursor=cursor)) == 2


def test_a_recall_that_is_sent_again_has_its_cursor(store: Heedful) -> None:
    fill(store, 8)
    first = store.recall(QUERY, top_k=5, external_id="run-1")
    assert store.recall(QUERY, top_k=5, external_id="run-1").next_cursor == first.next_cursor
    assert len(store.recall(QUERY, top_k=5, cursor=first.next_cursor)) == 3
