from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

import heedful
from heedful import AsyncHeedful, Heedful, Invalid, NotFound, Signal
from heedful.aio import (
    AsyncChat,
    AsyncChatSessions,
    AsyncConnectors,
    AsyncExecutions,
    AsyncFeedbackService,
    AsyncGoldenExamples,
    AsyncInsight,
    AsyncJobs,
    AsyncKeys,
    AsyncReview,
    AsyncSessions,
)
from heedful.api import (
    Chat,
    ChatSessions,
    Connectors,
    Executions,
    FeedbackService,
    GoldenExamples,
    Insight,
    Jobs,
    Keys,
    Review,
    Sessions,
)
from heedful.testing import ManualClock, WordEmbedder

PAIRS: dict[type, type] = {
    Heedful: AsyncHeedful,
    Sessions: AsyncSessions,
    Insight: AsyncInsight,
    Connectors: AsyncConnectors,
    Executions: AsyncExecutions,
    FeedbackService: AsyncFeedbackService,
    Chat: AsyncChat,
    ChatSessions: AsyncChatSessions,
    GoldenExamples: AsyncGoldenExamples,
    Review: AsyncReview,
    Keys: AsyncKeys,
    Jobs: AsyncJobs,
}
"""What blocks, and what is awaited."""


def public(owner: type) -> list[str]:
    return [name for name in dir(owner) if callable(getattr(owner, name)) and not name.startswith("_")]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[AsyncHeedful]:
    async with await heedful.aopen(path, clock=ManualClock(), embedding=WordEmbedder()) as store:
        yield store


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner in PAIRS for name in public(owner)])
def test_every_method_is_there_with_the_same_parameters(owner: type, name: str) -> None:
    method = getattr(PAIRS[owner], name)
    assert inspect.iscoroutinefunction(method)
    one, other = inspect.signature(getattr(owner, name)), inspect.signature(method)
    assert one.parameters == other.parameters
    assert one.return_annotation == other.return_annotation
    assert inspect.getdoc(method)


@pytest.mark.parametrize("owner", PAIRS)
def test_nothing_else_is_there(owner: type) -> None:
    assert sorted(public(PAIRS[owner])) == sorted(public(owner))


def test_what_a_store_has_is_there_awaited(path: Path) -> None:
    async def look() -> dict[str, type]:
        async with opened(path) as store:
            return {name: type(value) for name, value in vars(store).items() if not name.startswith("_")}

    with heedful.open(":memory:", embedding=WordEmbedder()) as store:
        attributes = {name: getattr(store, name) for name in dir(store) if name[0] != "_"}
        blocking = {name: type(value) for name, value in attributes.items() if not callable(value)}
    assert asyncio.run(look()) == {name: PAIRS[owner] for name, owner in blocking.items()}
    assert len(blocking) == len(PAIRS) - 1


def test_it_opens_with_the_same_parameters() -> None:
    assert inspect.signature(heedful.open).parameters == inspect.signature(heedful.aopen).parameters


def test_the_loop_works(path: Path) -> None:
    async def loop() -> None:
        async with opened(path) as store:
            fact, other = (await store.remember(["Anna leads the company", "Bob cooks"])).fact_ids
            recall = await store.recall("company", explain=True)
            assert recall[0].fact_id == fact
            result = await store.signal_recall(recall.recall_id, helpful=[fact])
            assert result.processed == 2
            assert (await store.fact_stats(fact)).overall_usefulness == 0.65
            assert (await store.receipt(recall.recall_id)).query == "company"
            given = await store.signal([Signal(fact_id=other, signal_type="used", query="food")])
            await store.retract(given.event_ids[0])
            assert (await store.usefulness_stats()).total_signals == 2
            assert (await store.forget(other)).facts == 1
            assert await store.datasets() == ["main_dataset"]
            assert all(check.ok for check in await store.doctor())

    asyncio.run(loop())


def test_sessions_work(path: Path) -> None:
    async def talk() -> None:
        async with opened(path) as store:
            (fact,) = (await store.remember(["Anna leads the company"])).fact_ids
            parts: list[str] = []
            result = await store.recall("Who leads the company", session_id="chat", on_token=parts.append)
            assert result.qa_id is not None
            assert "".join(parts) == result.answer == "Anna leads the company [1]"
            await store.sessions.update_metadata("chat", {"variant": "B"})
            assert await store.sessions.add_feedback("chat", result.qa_id, feedback_score=5)
            assert (await store.improve()).signals_added == 1
            assert (await store.fact_stats(fact)).overall_usefulness == 0.65
            thumb = await store.sessions.add_session_feedback("chat", {"rating": "up"})
            assert thumb is not None
            (variant,) = (await store.insight.satisfaction("variant")).variants
            assert (variant.value, variant.up) == ("B", 2)
            await store.sessions.delete("chat")
            assert (await store.fact_stats(fact)).overall_usefulness == 0.5

    asyncio.run(talk())


@pytest.mark.slow
def test_executions_work(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")

    async def ask() -> None:
        async with opened(path) as store:
            await store.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.sqlite'}")
            question = "How many orders are there?"
            done = await store.executions.execute_query("SELECT COUNT(*) FROM orders", question=question)
            feedback = await store.feedback.create_positive(execution_id=done.execution_id)
            await store.golden_examples.promote(done.execution_id)
            session = await store.chat_sessions.create()
            answers = await asyncio.gather(*(store.chat.chat_to_answer(session.id, question) for _ in range(8)))
            assert [(each.origin, each.execution_result.result.rows) for each in answers if each.execution_result] == [
                ("served", [[0]])
            ] * 8
            assert len(await store.chat_sessions.get_questions(session.id)) == 8
            await store.retract(feedback.id)
            assert not await store.feedback.list()

    asyncio.run(ask())


@pytest.mark.slow
def test_what_runs_in_the_background_is_done_when_it_is_closed(path: Path) -> None:
    async def improve() -> None:
        async with opened(path) as store:
            await store.remember("Anna leads the company")
            result = await store.recall("Who leads the company", session_id="chat")
            assert result.qa_id is not None
            await store.sessions.add_feedback("chat", result.qa_id, feedback_score=5)
            await store.remember("Bob cooks", self_improvement=True)

    asyncio.run(improve())
    with heedful.open(path, clock=ManualClock(), embedding=WordEmbedder()) as store:
        assert store.usefulness_stats().total_signals == 1


@pytest.mark.slow
def test_many_calls_at_once_all_count(path: Path) -> None:
    async def many() -> None:
        async with opened(path) as store:
            fact = (await store.remember("one fact")).fact_ids[0]
            signals = [
                store.signal([Signal(fact_id=fact, signal_type="used", query=f"q{number}", confidence=0.01)])
                for number in range(40)
            ]
            recalls = [store.recall("fact", boost_by_usefulness=True) for _ in range(40)]
            writes = [store.remember(f"fact number {number}") for number in range(20)]
            await asyncio.gather(*signals, *recalls, *writes)
            stats = await store.fact_stats(fact)
            assert stats.signal_count == 40
            assert stats.overall_usefulness == pytest.approx(0.54)
            assert (await store.usefulness_stats()).total_facts == 21

    asyncio.run(many())


def test_errors_are_the_same(path: Path) -> None:
    async def wrong() -> None:
        async with opened(path) as store:
            with pytest.raises(NotFound):
                await store.fact_stats("nope")
            with pytest.raises(Invalid):
                await store.recall(" ")

    asyncio.run(wrong())


def test_a_store_that_can_not_be_opened_leaves_no_threads(path: Path) -> None:
    async def failing() -> None:
        with pytest.raises(Invalid):
            await heedful.aopen(path, project="", embedding=WordEmbedder())

    asyncio.run(failing())


def test_closing_waits_for_what_is_under_way(path: Path) -> None:
    async def closing() -> None:
        store = await heedful.aopen(path, embedding=WordEmbedder())
        under_way = [asyncio.ensure_future(store.remember(f"fact {number}")) for number in range(10)]
        await asyncio.sleep(0)
        await store.close()
        results = await asyncio.gather(*under_way)
        assert sum(result.added for result in results) == 10

    asyncio.run(closing())
    with heedful.open(path, embedding=WordEmbedder()) as store:
        assert store.usefulness_stats().total_facts == 10


def test_it_says_what_it_is(path: Path) -> None:
    async def shown() -> str:
        async with opened(path) as store:
            return repr(store)

    assert asyncio.run(shown()) == f"<AsyncHeedful {path} project='default'>"
