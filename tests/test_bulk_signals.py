"""Many signals for new queries at once: recalls don't wait for the model to read them all."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from patience import until

from heedful import Heedful, Unavailable
from heedful.ledger import replay
from heedful.ledger.contexts import MAX_CHARACTERS, MAX_COMPARED, MAX_QUERIES
from heedful.ledger.fold_cache import folds_of
from heedful.model import Recall
from heedful.providers.embedding import Vectors
from heedful.testing import WordEmbedder
from heedful.text.same_question import Calibration, similarity

MANY = 300
FEW = 20


class Slow(WordEmbedder):
    """Notes how much is asked of it at once; in the background it waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()
        self.asked: dict[bool, list[list[str]]] = {True: [], False: []}
        """The texts of each call, by whether it was in the background."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        background = threading.current_thread().name == "heedful-background"
        self.asked[background].append(list(texts))
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
    thread = store._workspace._background._thread
    if thread is not None:
        thread.join(60)
    (index,) = folds_of(store._workspace)._contexts.values()
    assert not index.waits


def is_small(texts: list[str]) -> bool:
    """Whether a call of the model takes no longer than one question may."""
    return len(texts) == 1 or (len(texts) <= MAX_QUERIES and sum(map(len, texts)) <= MAX_CHARACTERS)


def asked_in_all(model: Slow, *, background: bool) -> int:
    return sum(map(len, model.asked[background]))


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
    assert len(model.asked[False]) == 2, "the question, and once what is new"
    assert all(map(is_small, model.asked[False]))
    assert judged(store, "query0 w0 ordered0")["alpha thing"][1] == "global", "other words wait for the model"
    assert judged(store, f"query{MANY - 1} w{MANY - 1} ordered{MANY - 1}")["gamma thing"][1] == "context"
    store.signal([used(facts[1], "something quite new")])
    assert judged(store, "quite new something")["beta thing"] == (0.6, "context"), "one new signal counts at once"
    drained(store, model)
    assert all(map(is_small, model.asked[True]))
    assert judged(store, "query0 w0 ordered0")["alpha thing"] == (0.6, "context")


@pytest.mark.slow
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
    assert asked_in_all(calls, background=False) == 3, "every vector was kept; what is asked is embedded once"
    assert not calls.asked[True]


@pytest.mark.slow
def test_a_recall_does_not_wait_for_long_questions(open_store: Callable[..., Heedful], model: Slow) -> None:
    store = open_store(embedding=model)
    (fact,) = store.remember("alpha thing").fact_ids
    model.asked[False].clear()
    long = [f"about{place} question{place} " * 100 for place in range(FEW)]
    store.signal([used(fact, query) for query in long])
    assert judged(store, long[7].upper())["alpha thing"] == (0.6, "context"), "by its words"
    assert judged(store, f"question7 {long[7]}")["alpha thing"][1] == "global"
    assert [len(texts) for texts in model.asked[False]] == [1, 1], "only what was asked"
    drained(store, model)
    assert all(map(is_small, model.asked[True]))
    assert asked_in_all(model, background=True) == FEW
    assert judged(store, f"question7 {long[7]}")["alpha thing"] == (0.6, "context")


def test_nobody_waits_for_what_somebody_else_embeds(open_store: Callable[..., Heedful]) -> None:
    class Stuck(WordEmbedder):
        """Embeds new questions for nobody else but the first who needs them, until it may go on."""

        def __init__(self) -> None:
            super().__init__()
            self.begun, self.may_go_on = threading.Event(), threading.Event()

        def embed(self, texts: Sequence[str]) -> Vectors:
            if "quite new" in texts[0] and not self.begun.is_set():
                self.begun.set()
                assert self.may_go_on.wait(60)
            return super().embed(texts)

    stuck = Stuck()
    store = open_store(embedding=stuck)
    (fact,) = store.remember("alpha thing").fact_ids
    store.signal([used(fact, "something quite new")])
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(judged, store, "alpha")
        assert stuck.begun.wait(60)
        try:
            assert judged(store, "new something quite?")["alpha thing"] == (0.6, "context")
            assert not first.done()
        finally:
            stuck.may_go_on.set()
        assert "alpha thing" in first.result()


def test_the_stats_of_a_fact_take_bounded_work(open_store: Callable[..., Heedful], model: Slow) -> None:
    store = open_store(embedding=model)
    (fact,) = store.remember("alpha thing").fact_ids
    store.signal([used(fact, f"w{place} ordered{place} query{place}") for place in range(MANY)])
    store.signal([used(fact, "w3 ordered3 query3"), used(fact, "W5 ordered5 query5?")])
    model.asked[False].clear()
    stats = store.fact_stats(fact)
    assert all(map(is_small, model.asked[False]))
    assert len(model.asked[False]) == 1
    assert (stats.signal_count, stats.query_count) == (MANY + 2, MANY + 1)
    assert sum(len(context.queries) for context in stats.contexts) == 100
    assert (stats.contexts[0].query, stats.contexts[0].signal_count) == ("w3 ordered3 query3", 2), "the strongest first"
    assert "W5 ordered5 query5?" in [query for context in stats.contexts for query in context.queries], "newer ones"


@pytest.mark.slow
def test_the_stats_of_a_fact_show_few_long_questions(open_store: Callable[..., Heedful], model: Slow) -> None:
    store = open_store(embedding=model)
    (fact,) = store.remember("alpha thing").fact_ids
    store.signal([used(fact, f"question{place} " + "word " * 1_500) for place in range(10)])
    stats = store.fact_stats(fact)
    assert (stats.query_count, sum(len(context.queries) for context in stats.contexts)) == (10, 2)
    drained(store, model)
    assert [len(context.queries) for context in store.fact_stats(fact).contexts] == [1, 1], "their numbers differ"


def test_an_explanation_lists_the_newest_signals_and_counts_all(
    open_store: Callable[..., Heedful], model: Slow
) -> None:
    store = open_store(embedding=model)
    (fact,) = store.remember("alpha thing").fact_ids
    store.signal([used(fact, f"w{place} ordered{place} query{place}") for place in range(MANY)])
    explanation = store.recall("alpha", boost_by_usefulness=True, explain=True)[0].explanation
    assert explanation is not None
    assert (explanation.event_count, len(explanation.events)) == (MANY, 100)
    assert explanation.events[-1].query == f"w{MANY - 1} ordered{MANY - 1} query{MANY - 1}"
    assert f"{MANY} signals" in explanation.arithmetic[1]


@pytest.mark.slow
def test_long_questions_are_compared_only_with_the_nearest(
    open_store: Callable[..., Heedful], model: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []

    def counting(asked: str, other: str, cosine: float, *, calibration: Calibration) -> float:
        compared.append(len(other))
        return similarity(asked, other, cosine, calibration=calibration)

    monkeypatch.setattr("heedful.ledger.contexts.similarity", counting)
    store = open_store(embedding=model)
    (fact,) = store.remember("alpha thing").fact_ids
    long = [f"number{place} " + "word " * 1_500 for place in range(FEW)]
    store.signal([used(fact, query) for query in long])
    store.recall("alpha")
    drained(store, model)
    compared.clear()
    assert judged(store, long[7])["alpha thing"] == (0.6, "context")
    assert sum(compared) <= MAX_COMPARED + len(long[7])


@pytest.mark.slow
def test_a_replay_gets_all_queries(open_store: Callable[..., Heedful], model: Slow) -> None:
    store = open_store(embedding=model)
    bulk(store)
    # Where no recall was rated, nothing is needed.
    assert store.replay().replayed == 0
    assert not model.asked[False][1:]
    rate(store)
    store.replay()
    assert all(map(is_small, model.asked[False][1:]))


@pytest.mark.slow
def test_a_replay_waits_for_much_that_is_not_embedded(
    open_store: Callable[..., Heedful], model: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It embedded everything by itself, for minutes, also when its caller had gone."""
    monkeypatch.setattr(replay, "MAX_STEPS", 1)
    store = open_store(embedding=model)
    bulk(store)
    rate(store)
    with pytest.raises(Unavailable, match="not embedded yet") as refused:
        store.replay()
    assert refused.value.code == "not_ready"
    model.may_go_on.set()
    until(lambda: not _fails(store))


def _fails(store: Heedful) -> bool:
    try:
        store.replay()
    except Unavailable:
        return True
    return False


def rate(store: Heedful) -> None:
    found = store.recall("alpha thing")
    store.signal_recall(found.recall_id, helpful=[found.hits[0]])


@pytest.mark.slow
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
    done = asked_in_all(model, background=True)
    again = Slow()
    again.may_go_on.set()
    with open_store(embedding=again, worker=False) as store:
        assert judged(store, "w0 ordered0 query0")["alpha thing"] == (0.6, "context")
        drained(store, again)
    later = asked_in_all(again, background=True) + asked_in_all(again, background=False)
    assert done + later <= MANY + 1
