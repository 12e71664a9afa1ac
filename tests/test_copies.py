"""recall shows each text once, however many facts say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from server import running

from heedful import Heedful
from heedful.ledger import events
from heedful.model import Document, Mode
from heedful.search.vector_index import VectorIndex

QUERY = "When does the gym open?"
COPY = "The gym opens at six."
OTHERS = [f"The gym has {number} opening rules." for number in range(12)]


@pytest.fixture
def crowded(store: Heedful) -> Heedful:
    """300 copies of one text, which differ in spaces and case, and twelve other facts."""
    store.remember([Document(source=f"page {n}", texts=[[COPY, "the  gym opens at SIX."][n % 2]]) for n in range(300)])
    store.remember(OTHERS)
    return store


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical", "graph"])
@pytest.mark.nightly
def test_each_text_is_shown_once_with_its_sources(crowded: Heedful, mode: Mode) -> None:
    hits = crowded.recall(QUERY, mode=mode).hits
    assert len({hit.text.casefold() for hit in hits}) == len(hits) == 10
    (copy,) = [hit for hit in hits if hit.copies]
    assert (copy.text, copy.source, copy.copies) == (COPY, "page 0", 299)
    assert copy.sources == [f"page {number}" for number in range(10)]
    assert [hit.sources for hit in hits if not hit.copies] == [[]] * 9


def test_pages_show_each_text_once(crowded: Heedful) -> None:
    texts: list[str] = []
    cursor = None
    for _ in range(5):
        page = crowded.recall(QUERY, top_k=3, cursor=cursor)
        texts += [hit.text for hit in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(texts) == sorted([COPY, *OTHERS])


def test_filters_decide_before_copies_are_merged(store: Heedful) -> None:
    for user in ("ada", "bo", "cy"):
        store.remember(COPY, source=user, metadata={"user": user})
    (hit,) = store.recall(QUERY, where={"user": ["bo", "cy"]}).hits
    assert (hit.metadata["user"], hit.copies, hit.sources) == ("bo", 1, ["bo", "cy"])


def test_only_copies_ask_which_facts_were_judged(store: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    facts_after = events.facts_after

    def counted(connection: Any, dataset: int, seq: int) -> list[int]:
        asked.append(seq)
        return facts_after(connection, dataset, seq)

    monkeypatch.setattr(events, "facts_after", counted)
    store.remember(OTHERS)
    first, second = (store.remember(COPY, source=page).fact_ids[0] for page in ("page 1", "page 2"))
    store.signal([{"fact_id": second, "signal_type": "helpful", "query": "At six?"}])
    assert second not in {hit.fact_id for hit in store.recall("rules", mode="lexical").hits}
    assert asked == []
    assert store.recall(COPY, top_k=1).hits[0].fact_id == second
    assert asked == [0]
    store.signal([{"fact_id": first, "signal_type": "helpful", "query": "Is it open at six?"}])
    store.recall(COPY)
    assert len(asked) == 2
    assert asked[1] > 0


@pytest.mark.parametrize("kind", ["helpful", "not_helpful"])
def test_what_was_judged_is_what_is_shown(crowded: Heedful, kind: str) -> None:
    fact_id = crowded.facts(source="page 7").items[0].fact_id
    crowded.signal([{"fact_id": fact_id, "signal_type": kind, "query": QUERY, "author": "ann"}])
    (hit,) = [hit for hit in crowded.recall(QUERY, boost_by_usefulness=True, top_k=13).hits if hit.copies]
    assert (hit.fact_id, hit.copies) == (fact_id, 299)
    assert (hit.usefulness > 0.5) == (kind == "helpful")


@pytest.mark.slow
def test_feedback_on_a_hit_stays_with_its_text(crowded: Heedful) -> None:
    for author in ("ann", "bob", "cy"):
        shown = crowded.recall(QUERY, boost_by_usefulness=True, explain=True, top_k=13)
        (copy,) = [hit for hit in shown.hits if hit.copies]
        crowded.signal_recall(shown.recall_id, not_helpful=[copy.fact_id], author=author)
    again = crowded.recall(QUERY, boost_by_usefulness=True, explain=True, top_k=13)
    (last,) = [hit for hit in again.hits if hit.copies]
    assert (last.fact_id, again.hits[-1].fact_id) == (copy.fact_id, copy.fact_id)
    assert last.explanation is not None
    assert len(last.explanation.events) == 3


@pytest.mark.slow
def test_forgetting_the_shown_copy_shows_the_next(crowded: Heedful) -> None:
    (first,) = [hit for hit in crowded.recall(QUERY).hits if hit.copies]
    crowded.forget(first.fact_id)
    (second,) = [hit for hit in crowded.recall(QUERY).hits if hit.copies]
    assert (second.fact_id != first.fact_id, second.copies, second.source) == (True, 298, "page 1")


@pytest.mark.slow
def test_copies_survive_reopening(open_store: Callable[..., Heedful]) -> None:
    with open_store() as store:
        store.remember([Document(source=f"page {number}", texts=[COPY]) for number in range(2500)])
        store.remember(OTHERS)
        before = store.recall(QUERY).hits
    with open_store() as store:
        assert store.recall(QUERY).hits == before


def test_an_answer_is_not_built_of_copies(crowded: Heedful) -> None:
    answer = crowded.recall("The gym opens at six?", answer=True).answer
    assert answer is not None
    assert answer.casefold().count("the gym opens at six") == 1


@pytest.mark.usefixtures("path")
@pytest.mark.nightly
def test_twenty_thousand_copies_take_two_searches(store: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    store.remember([Document(source=f"page {number}", texts=[COPY]) for number in range(20_000)])
    store.remember(OTHERS)
    store.recall(QUERY)
    searches: list[int] = []
    candidates = VectorIndex.candidates

    def counted(self: VectorIndex, vector: Any, count: int, permitted: Any) -> Any:
        searches.append(int(np.count_nonzero(permitted)))
        return candidates(self, vector, count, permitted)

    monkeypatch.setattr(VectorIndex, "candidates", counted)
    assert len({hit.text for hit in store.recall(QUERY).hits}) == 10
    assert searches == [20_012, 13]


@pytest.mark.nightly
def test_a_client_sees_copies(any_store: str) -> None:
    with running(any_store) as server, server.connect() as memory:
        for number in range(30):
            memory.remember(COPY, source=f"page {number}")
        memory.remember("The gym is on the second floor.")
        first, second = memory.recall(QUERY).hits
        assert (first.copies, len(first.sources), second.copies) == (29, 10, 0)
