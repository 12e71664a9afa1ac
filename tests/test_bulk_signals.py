"""Many signals for new queries at once: recalls don't wait for the model to read them all."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from heedful import Heedful
from heedful.model import Recall
from heedful.providers.embedding.contract import Vectors
from heedful.search.evidence import BATCH_SIZE, MAX_EMBEDDED
from heedful.testing import WordEmbedder

MANY = 300


class Slow(WordEmbedder):
    """Notes how much is asked of it at once; in the background it waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()
        self.asked: dict[bool, list[int]] = {True: [], False: []}
        """How many texts each call had, by whether it was in the background."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        background = threading.current_thread().name == "heedful-queries"
        self.asked[background].append(len(texts))
        if background:
            assert self.may_go_on.wait(60)
        return super().embed(texts)


@pytest.fixture
def model() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.may_go_on.set()


def used(fact: str, query: str) -> dict[str, str]:
    return {"fact_id": fact, "signal_type": "used", "query": query}


def judged(store: Heedful, query: str) -> dict[str, tuple[float, str]]:
    result: Recall = store.recall(query, boost_by_usefulness=True)
    return {hit.text: (hit.usefulness, hit.usefulness_source) for hit in result}


def drained(store: Heedful, model: Slow) -> None:
    """Lets the background finish, and waits for it."""
    model.may_go_on.set()
    thread = store._workspace._backlog._thread
    if thread is not None:
        thread.join(60)
    (index,) = store._workspace._contexts.values()
    assert not index.waits


def bulk(store: Heedful) -> list[str]:
    """Signals for so many queries that nobody waits for their vectors; the first ones wait longest."""
    facts = store.remember(["alpha thing", "beta thing", "gamma thing"]).fact_ids
    store.signal([used(facts[place % 3], f"w{place} ordered{place} query{place}") for place in range(MANY)])
    return list(facts)


def test_a_recall_asks_little_of_the_model_and_the_words_of_a_query_match_at_once(
    open_store: Callable[..., Heedful], model: Slow
) -> None:
    store = open_store(embedding=model)
    facts = bulk(store)
    model.asked[False].clear()
    said = judged(store, "W0 ordered0 query0?")
    assert said["alpha thing"] == (0.6, "context")
    assert max(model.asked[False]) <= MAX_EMBEDDED
    assert judged(store, "query0 w0 ordered0")["alpha thing"][1] == "global", "other words wait for the model"
    assert judged(store, f"query{MANY - 1} w{MANY - 1} ordered{MANY - 1}")["gamma thing"][1] == "context"
    store.signal([used(facts[1], "something quite new")])
    assert judged(store, "quite new something")["beta thing"] == (0.6, "context"), "one new signal counts at once"
    drained(store, model)
    assert max(model.asked[True]) <= BATCH_SIZE
    assert judged(store, "query0 w0 ordered0")["alpha thing"] == (0.6, "context")


def test_once_embedded_all_is_as_in_a_store_that_was_just_opened(
    open_store: Callable[..., Heedful], model: Slow
) -> None:
    store = open_store(embedding=model)
    bulk(store)
    judged(store, "w3 ordered3 query3")
    drained(store, model)
    calls = Slow()
    fresh = open_store(embedding=calls)
    for place in (0, 7, MANY - 1):
        query = f"query{place} ordered{place} w{place}"
        assert judged(store, query) == judged(fresh, query)
        assert [hit.score for hit in store.recall(query)] == [hit.score for hit in fresh.recall(query)]
    assert sum(calls.asked[False]) == 3, "every vector of a query was kept; only what is asked is embedded, and once"
    assert not calls.asked[True]


def test_whoever_needs_all_queries_gets_them(open_store: Callable[..., Heedful], model: Slow) -> None:
    store = open_store(embedding=model)
    (fact,) = store.remember("alpha thing").fact_ids
    store.signal([used(fact, f"w{place} ordered{place} query{place}") for place in range(MANY)])
    stats = store.fact_stats(fact)
    assert len(stats.contexts) == MANY
    assert max(model.asked[False]) <= BATCH_SIZE
    store.replay()


def test_recalls_from_many_threads_agree_while_queries_are_embedded(
    open_store: Callable[..., Heedful], model: Slow
) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        store = open_store(embedding=model)
        bulk(store)
        model.may_go_on.set()

        def ask(place: int) -> None:
            expected = ["alpha thing", "beta thing", "gamma thing"][place % 3]
            assert judged(store, f"w{place} ordered{place} query{place}")[expected] == (0.6, "context")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(0, MANY, 5)))
    finally:
        sys.setswitchinterval(before)
    drained(store, model)


def test_closing_does_not_wait_for_what_is_left(open_store: Callable[..., Heedful]) -> None:
    model = Slow()
    store = open_store(embedding=model, worker=False)
    bulk(store)
    store.recall("anything")
    model.may_go_on.set()
    store.close()
    done = sum(model.asked[True])
    again = Slow()
    again.may_go_on.set()
    with open_store(embedding=again, worker=False) as store:
        assert judged(store, "w0 ordered0 query0")["alpha thing"] == (0.6, "context")
        drained(store, again)
    assert done + sum(again.asked[True]) + sum(again.asked[False]) <= MANY + 1
