"""LangGraph's store on Heedful, beside the store that LangGraph has itself."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from loop import AT_SEVEN, AT_SIX, QUESTION, SESSION, Memory, check_warned, opened
from patience import until
from typing_extensions import TypedDict

import heedful
from heedful import Invalid, Unavailable
from heedful.integrations.langgraph import HeedfulItem, HeedfulStore

USER = ("memories", "ada")


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


@pytest.fixture
def store(memory: Memory) -> HeedfulStore:
    return HeedfulStore(memory)


def seen(result: Any) -> Any:
    """What two stores have to agree on: all but times and scores, and the order where it is none of the contract's."""
    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    if isinstance(result, list):
        return sorted((seen(each) for each in result), key=str)
    return result


def test_it_answers_as_the_store_of_langgraph_does(tmp_path: Path) -> None:
    """A random walk over both: what one has, the other has."""
    chance = random.Random(7)
    names = ("users", "ada", "bo", "notes")
    sizes: list[Any] = [2, {"$eq": 2}, {"$gte": 3}, {"$ne": 1}, {"$lt": 3, "$eq": 2}]
    places = [{"city": "Oslo"}, {"city": {"$eq": "Oslo"}, "street": None}, {"$eq": {"city": "Oslo"}}]
    tags: list[Any] = [["users", "ada"], {"$ne": "ada"}, "ada"]
    filters: list[Any] = [None, {"a.b": 1}, {"no": None}]
    filters += (
        [{"size": each} for each in sizes] + [{"at": each} for each in places] + [{"tags": each} for each in tags]
    )
    reference = InMemoryStore()

    def namespace() -> tuple[str, ...]:
        return tuple(chance.choices(names, k=chance.randint(1, 3)))

    def op() -> Any:
        kind = chance.random()
        key = chance.choice("abc")
        if kind < 0.5:
            value = {"size": chance.randint(1, 4), "tags": chance.sample(names, 2), "at": {"city": "Oslo"}}
            return PutOp(namespace(), key, None if kind < 0.1 else value, chance.choice([None, False, ["at.city"]]))
        if kind < 0.7:
            return GetOp(namespace(), key)
        if kind < 0.85:
            return SearchOp(namespace()[: chance.randint(0, 2)], chance.choice(filters), limit=100)
        paths = [("users",), ("*", "ada"), ("notes", "*")]
        one, other = (MatchCondition(chance.choice(["prefix", "suffix"]), path) for path in chance.choices(paths, k=2))
        return ListNamespacesOp(chance.choice([None, (one,), (one, other)]), chance.choice([None, 1, 2]))

    with heedful.open(tmp_path / "store.db", embedding=heedful.testing.WordEmbedder(), worker=False) as memory:
        store = HeedfulStore(memory)
        for _ in range(120):
            ops = [op() for _ in range(chance.randint(1, 4))]
            # LangGraph's own one lists namespaces that have become empty.
            ops = [each for each in ops if not isinstance(each, ListNamespacesOp) or not emptied(reference)]
            assert seen_all(store.batch(ops)) == seen_all(reference.batch(ops)), ops
        assert asyncio.run(store.abatch([SearchOp((), limit=100)]))[0]


def emptied(reference: InMemoryStore) -> bool:
    return not all(reference._data.values())


def seen_all(results: list[Any]) -> list[Any]:
    return [seen(each) for each in results]


def test_an_item_is_put_read_changed_and_deleted(store: HeedfulStore) -> None:
    store.put(USER, "food", {"text": "Ada likes pizza.", "size": 2})
    first = store.get(USER, "food")
    assert first is not None
    assert (first.value, first.namespace, first.key) == ({"text": "Ada likes pizza.", "size": 2}, USER, "food")
    store.put(USER, "food", {"text": "Ada likes soup."})
    changed = store.get(USER, "food")
    assert changed is not None
    assert (changed.value, changed.created_at) == ({"text": "Ada likes soup."}, first.created_at)
    assert changed.updated_at > first.updated_at
    store.delete(USER, "food")
    store.delete(USER, "food")
    assert store.get(USER, "food") is None
    assert store.list_namespaces() == []


def test_it_is_awaited_too(store: HeedfulStore) -> None:
    async def run() -> None:
        await store.aput(USER, "food", {"text": "Ada likes pizza."})
        assert [item.key for item in await store.asearch(USER, query="What does Ada like?")] == ["food"]
        assert await store.alist_namespaces(prefix=("memories",)) == [USER]
        await store.adelete(USER, "food")
        assert await store.aget(USER, "food") is None

    asyncio.run(run())


def test_a_search_stays_in_its_namespace_and_finds_what_is_indexed(store: HeedfulStore) -> None:
    store.put(USER, "a", {"text": "Ada likes pizza.", "kind": "food"})
    store.put(USER, "b", {"text": "Ada likes pizza with olives.", "kind": "drink"}, index=["kind"])
    store.put(USER, "c", {"text": "Ada likes pizza, too."}, index=False)
    store.put(("memories", "bo"), "d", {"text": "Bo likes pizza."})
    assert [item.key for item in store.search(USER, query="likes pizza")] == ["a", "b"]
    assert {item.key for item in store.search(("memories",), query="likes pizza")} == {"a", "b", "d"}
    assert [item.key for item in store.search(USER, query="likes pizza", filter={"kind": "drink"})] == ["b"]
    assert [item.key for item in store.search(USER, query="likes pizza", limit=1, offset=1)] == ["b"]
    assert [item.key for item in store.search(USER)] == ["c", "b", "a"]
    with pytest.raises(ValueError, match="unsupported operator"):
        store.search(USER, filter={"size": {"$near": 2}})


def test_many_items_pass_a_filter_that_only_the_adapter_knows(store: HeedfulStore) -> None:
    store.batch([PutOp(USER, str(n), {"text": f"Ada read page {n} of the book.", "page": n}) for n in range(50)])
    found = store.search(USER, query="Which page of the book did Ada read?", filter={"page": {"$gte": 45}}, limit=5)
    assert {item.value["page"] for item in found} == {45, 46, 47, 48, 49}


def test_a_time_to_live_is_refused(store: HeedfulStore) -> None:
    with pytest.raises(NotImplementedError, match="TTL"):
        store.put(USER, "food", {"text": "Ada likes pizza."}, ttl=5)
    with pytest.raises(NotImplementedError, match="time to live"):
        store.batch([PutOp(USER, "food", {"text": "Ada likes pizza."}, ttl=5)])
    assert store.get(USER, "food") is None
    store.put(USER, "food", {"text": "Ada likes pizza."}, ttl=None)
    assert store.get(USER, "food", refresh_ttl=True) is not None


class State(TypedDict):
    """Of the graph."""

    question: str
    found: list[HeedfulItem]


def graph(store: BaseStore) -> Any:
    def recall(state: State, *, store: BaseStore) -> Any:
        return {"found": store.search(USER, query=state["question"])}

    made = StateGraph(State)
    made.add_node("recall", recall)
    made.add_edge(START, "recall")
    made.add_edge("recall", END)
    return made.compile(store=store)


def test_a_rating_changes_what_the_next_node_finds_and_its_retraction_changes_it_back(
    memory: Memory, store: HeedfulStore
) -> None:
    store.put(USER, "six", {"text": AT_SIX})
    store.put(USER, "seven", {"text": AT_SEVEN})
    agent = graph(store)

    def ask() -> list[HeedfulItem]:
        return list(agent.invoke({"question": QUESTION, "found": []})["found"])

    first = ask()
    assert [item.key for item in first] == ["six", "seven"]
    entry = memory.sessions.add_entry(
        SESSION, QUESTION, "The gym opens at six. [1]", recall_id=first[0].recall_id, external_id="run-1"
    )
    for author in ("ada", "bo", "cy"):
        memory.sessions.rate("run-1", "down", author=author)
    until(lambda: [item.key for item in ask()] == ["seven", "six"])
    # Put again as it is, it keeps what was said of it.
    store.put(USER, "six", {"text": AT_SIX})
    assert [item.key for item in ask()] == ["seven", "six"]
    for author in ("ada", "bo", "cy"):
        memory.sessions.delete_feedback(SESSION, entry.qa_id, author=author)
    assert [item.key for item in ask()] == ["six", "seven"]
    given = [
        memory.signal_recall(first[0].recall_id, not_helpful=first[0].fact_id, helpful=first[1].fact_id, author=each)
        for each in ("ada", "bo", "cy")
    ]
    assert [item.key for item in ask()] == ["seven", "six"]
    for event in [event for each in given for event in each.event_ids]:
        memory.retract(event)
    assert [item.key for item in ask()] == ["six", "seven"]


def test_agents_at_the_same_time_do_not_mix(store: HeedfulStore) -> None:
    def work(number: int) -> list[str]:
        own = ("memories", f"user-{number}")
        for key in "abc":
            store.put(own, key, {"text": f"User {number} likes {key}."})
        return sorted(str(item.value["text"]) for item in store.search(own, query="What does the user like?"))

    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(work, range(6))):
            assert found == [f"User {number} likes {key}." for key in "abc"]


def test_users_at_the_same_time_have_datasets_of_their_own(memory: Memory) -> None:
    store = HeedfulStore(memory, dataset=lambda context: f"of-{context['user']}")

    def work(state: State, runtime: Runtime[Any]) -> Any:
        user = runtime.context["user"]
        if user == "ada":
            store.put(USER, "gym", {"text": "The gym of Ada opens at five."})
        found = store.search(USER, query=QUESTION)
        assert len(found) == (store.get(USER, "gym") is not None)
        return {"found": found}

    made = StateGraph(State)
    made.add_node("work", work)
    made.add_edge(START, "work")
    agent = made.compile()

    def ask(user: str) -> list[str]:
        return [each.key for each in agent.invoke({"question": QUESTION, "found": []}, context={"user": user})["found"]]

    assert ask("ada") == ["gym"]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, ["ada", "bo"] * 4)) == [["gym"], []] * 4
    with pytest.raises(Invalid, match="the function for dataset failed"):
        store.put(USER, "gym", {"text": "Outside of a graph, nobody is known."})


def test_a_search_finds_nothing_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    store = HeedfulStore(failing)
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            assert graph(store).invoke({"question": QUESTION, "found": []})["found"] == []
    check_warned(caplog)


def test_an_item_that_is_too_big_is_refused(store: HeedfulStore) -> None:
    store.put(USER, "food", {"text": "Ada likes pizza."})
    for key in ("food", "new"):
        with pytest.raises(Invalid, match=f"{key}.*is not stored.*the limit is 65536"):
            store.put(USER, key, {"text": "x" * 70_000})
    found = store.get(USER, "food")
    assert found is not None
    assert found.value == {"text": "Ada likes pizza."}


def test_all_but_a_search_says_that_it_failed(failing: Any) -> None:
    store = HeedfulStore(failing)
    with pytest.raises(Unavailable):
        store.put(USER, "food", {"text": "Ada likes pizza."})
    with pytest.raises(Unavailable):
        asyncio.run(store.aget(USER, "food"))
    with pytest.raises(Unavailable):
        store.list_namespaces()
