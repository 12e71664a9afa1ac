"""The memory and the retriever for LlamaIndex, with its own mock models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from edge_cases import PRIVATE, EdgeCases, meaningless
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from llama_index_instrumentation.dispatcher import instrument_tags
from loop import (
    ANSWER,
    AT_SEVEN,
    AT_SIX,
    QUESTION,
    SESSION,
    Asked,
    Memory,
    check_loop,
    check_warned,
    opened,
    run_page,
    shown,
)

import heedful
from heedful.integrations.llama_index import HeedfulMemory, HeedfulMemoryBlock, HeedfulRetriever, heedful_tools
from heedful.integrations.turns import afinish, finish
from heedful.testing import WordEmbedder


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


class Scripted:
    """Says the same always, after a call of a tool if there is one, and remembers what it was given."""

    def __init__(
        self, tool: str | None = None, arguments: dict[str, Any] | None = None, *, answer: str = ANSWER, fails: int = 0
    ) -> None:
        self._arguments = arguments or {}
        self.seen: list[str] = []
        self._tool = tool
        self._said = answer
        self._fails = fails
        self.model = MockFunctionCallingLLM(response_generator=self._answer)

    def _answer(self, messages: Sequence[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        self.seen.append("\n".join(each.content or "" for each in messages if each.role != MessageRole.ASSISTANT))
        if self._fails:
            self._fails -= 1
            raise RuntimeError("the model is down")
        if self._tool and messages[-1].role == MessageRole.USER:
            call = ToolCallBlock(tool_call_id="1", tool_name=self._tool, tool_kwargs=self._arguments)
            return ChatMessage(role="assistant", blocks=[TextBlock(text="Let me look."), call])
        return ChatMessage(role="assistant", content=self._said)


def chat(memory: Any, session_id: str = SESSION) -> HeedfulMemory:
    made = HeedfulMemory.from_defaults(session_id=session_id, memory_blocks=[HeedfulMemoryBlock(memory=memory)])
    assert isinstance(made, HeedfulMemory)
    return made


@pytest.mark.parametrize("way", ["run", "tool", "chat", "stream_chat", "astream_chat"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    def clock() -> str:
        """The time."""
        return "noon"

    scripted = Scripted("clock" if way == "tool" else None)
    conversation = chat(memory)
    agent = FunctionAgent(llm=scripted.model, tools=[clock] if way == "tool" else [], system_prompt="Be brief.")
    engine = SimpleChatEngine.from_defaults(llm=scripted.model, memory=conversation)

    async def run() -> str:
        return str(await agent.run(QUESTION, memory=conversation))

    async def astream() -> str:
        response = await engine.astream_chat(QUESTION)
        return "".join([token async for token in response.async_response_gen()])

    def ask() -> Asked:
        run_id = str(uuid4())
        with instrument_tags({"external_id": run_id}):
            if way in ("run", "tool"):
                said = asyncio.run(run())
            elif way == "chat":
                said = str(engine.chat(QUESTION))
            elif way == "stream_chat":
                said = "".join(engine.stream_chat(QUESTION).response_gen)
            else:
                said = asyncio.run(astream())
        return Asked(scripted.seen[-1], run_id, said)

    check_loop(memory, ask)
    assert len(memory.sessions.entries(SESSION).items) == 3


def test_the_memory_has_the_id_of_the_last_answer(memory: Memory) -> None:
    conversation = chat(memory)
    engine = SimpleChatEngine.from_defaults(llm=Scripted().model, memory=conversation)
    ids = []
    for question in (QUESTION, "And on Sunday?"):
        engine.chat(question)
        ids.append(conversation.qa_id)
    finish(memory)
    entries = memory.sessions.entries(SESSION).items
    assert [(each.external_id, each.question) for each in entries] == [(ids[0], QUESTION), (ids[1], "And on Sunday?")]


def test_agents_at_the_same_time_do_not_mix(memory: Memory) -> None:
    agent = FunctionAgent(llm=Scripted().model, tools=[])

    async def one(number: int) -> None:
        with instrument_tags({"external_id": f"run-{number}"}):
            await agent.run(f"Number {number}?", memory=chat(memory, f"s-{number}"))

    async def run() -> None:
        await asyncio.gather(*(one(number) for number in range(6)))

    asyncio.run(run())
    finish(memory)
    for number in range(6):
        assert memory.sessions.entry(f"s-{number}", f"run-{number}").question == f"Number {number}?"


def test_a_memory_that_is_awaited_works_too(tmp_path: Path) -> None:
    scripted = Scripted()

    async def run() -> None:
        async with await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
            await memory.remember(AT_SIX)
            await FunctionAgent(llm=scripted.model, tools=[]).run(QUESTION, memory=chat(memory))
            assert shown(scripted.seen[0]) == [AT_SIX]
            await afinish(memory)
            assert [each.answer for each in (await memory.sessions.entries(SESSION)).items] == [ANSWER]

    asyncio.run(run())


def test_an_agent_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    conversation = chat(failing)
    retriever = HeedfulRetriever(failing)
    engine = SimpleChatEngine.from_defaults(llm=Scripted().model, memory=conversation)
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            assert str(engine.chat(QUESTION)) == ANSWER
        assert retriever.retrieve(QUESTION) == asyncio.run(retriever.aretrieve(QUESTION)) == []
    check_warned(caplog)


def test_a_retriever_shows_what_was_rated(memory: Memory) -> None:
    retriever = HeedfulRetriever(memory, top_k=2)
    found = retriever.retrieve(QUESTION)
    assert [each.text for each in found] == [AT_SIX, AT_SEVEN]
    recall_id = found[0].metadata["recall_id"]
    given = [
        memory.signal_recall(recall_id, helpful=found[1].node_id, not_helpful=found[0].node_id, author=each)
        for each in ("ada", "bo", "cy")
    ]
    assert [each.text for each in asyncio.run(retriever.aretrieve(QUESTION))] == [AT_SEVEN, AT_SIX]
    engine = RetrieverQueryEngine.from_args(retriever, llm=Scripted().model)
    assert [each.text for each in engine.query(QUESTION).source_nodes] == [AT_SEVEN, AT_SIX]
    for event in [event for each in given for event in each.event_ids]:
        memory.retract(event)
    assert [each.text for each in retriever.retrieve(QUESTION)] == [AT_SIX, AT_SEVEN]


def test_a_retriever_serves_users_at_once(memory: Memory) -> None:
    memory.remember(PRIVATE, metadata={"user": "ada"})
    retriever = HeedfulRetriever(memory, where=lambda tags: {"user": {"only": [tags["user"]]}})

    def ask(user: str) -> bool:
        with instrument_tags({"user": user}):
            return PRIVATE in [each.text for each in retriever.retrieve(QUESTION)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, ["ada", "bo"] * 4)) == [True, False] * 4


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("llama-index", model=Scripted().model)


class TestEdgeCases(EdgeCases):
    """Of the memory."""

    def made(self, memory: Any, session: str = SESSION, **options: Any) -> HeedfulMemory:
        block = HeedfulMemoryBlock(memory=memory, **options)
        made = HeedfulMemory.from_defaults(session_id=session, memory_blocks=[block])
        assert isinstance(made, HeedfulMemory)
        return made

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        scripted, run_id = Scripted(), str(uuid4())
        engine = SimpleChatEngine.from_defaults(llm=scripted.model, memory=self.made(memory, session, **options))
        with instrument_tags({"external_id": run_id, "user": user}):
            said = str(engine.chat(question))
        return Asked(scripted.seen[-1], run_id, said)

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        tools = heedful_tools(memory, **options)
        scripted = Scripted(tool, arguments)

        async def run() -> None:
            await FunctionAgent(llm=scripted.model, tools=tools).run(QUESTION)

        with instrument_tags({"user": user}):
            asyncio.run(run())
            # Without asyncio, they do the same.
            assert str(tools[0].call(query=QUESTION))
        return scripted.seen[-1]

    def user_of(self, context: Any) -> str:
        return str(context["user"])

    def ask_with_image_alone(self, memory: Any) -> str:
        image = ChatMessage(role="user", blocks=[ImageBlock(url="http://example.com/gym.png")])
        agent = FunctionAgent(llm=Scripted().model, tools=[])

        async def run() -> str:
            return str(await agent.run(image, memory=self.made(memory)))

        return asyncio.run(run())

    def test_structured(self, memory: Memory) -> None:
        meaningless("LlamaIndex makes structured output from the answer, which the memory has then")

    def stream(self, memory: Any) -> Asked:
        scripted = Scripted()
        engine = SimpleChatEngine.from_defaults(llm=scripted.model, memory=self.made(memory))
        with instrument_tags({"external_id": "run-1"}):
            said = "".join(engine.stream_chat(QUESTION).response_gen)
        return Asked(scripted.seen[-1], "run-1", said)

    def cancel(self, memory: Any) -> None:
        async def wait() -> str:
            """Waits."""
            waiting.set()
            await asyncio.Event().wait()
            return ""

        async def run() -> None:
            agent = FunctionAgent(llm=Scripted("wait").model, tools=[wait])
            handler = agent.run(QUESTION, memory=self.made(memory))
            await waiting.wait()
            await handler.cancel_run()
            with suppress(Exception):
                await handler

        waiting = asyncio.Event()
        asyncio.run(run())

    def retry(self, memory: Any) -> Asked:
        scripted, conversation = Scripted(fails=1), self.made(memory)

        async def run() -> None:
            await FunctionAgent(llm=scripted.model, tools=[]).run(QUESTION, memory=conversation)

        with instrument_tags({"external_id": "run-1"}):
            with pytest.raises(RuntimeError):
                asyncio.run(run())
            asyncio.run(run())
        return Asked(scripted.seen[-1], "run-1", ANSWER)

    def approve(self, memory: Any) -> Asked:
        scripted = Scripted("clock")

        async def clock(ctx: Context) -> str:
            """The time."""
            await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent())
            return "noon"

        async def run() -> None:
            agent = FunctionAgent(llm=scripted.model, tools=[clock])
            handler = agent.run(QUESTION, memory=self.made(memory))
            async for event in handler.stream_events():
                if isinstance(event, InputRequiredEvent):
                    assert self.entries(memory) == []
                    handler.ctx.send_event(HumanResponseEvent())
            await handler

        with instrument_tags({"external_id": "run-1"}):
            asyncio.run(run())
        return Asked(scripted.seen[-1], "run-1", ANSWER)

    def delegate(self, memory: Any) -> Asked:
        scripted = Scripted("other")
        inner = FunctionAgent(llm=Scripted(answer="The other says six.").model, tools=[])

        async def other() -> str:
            """Knows."""
            with instrument_tags({"external_id": "run-2"}):
                return str(await inner.run("When?", memory=self.made(memory, "of the other")))

        async def run() -> None:
            await FunctionAgent(llm=scripted.model, tools=[other]).run(QUESTION, memory=self.made(memory))

        with instrument_tags({"external_id": "run-1"}):
            asyncio.run(run())
        return Asked(scripted.seen[-1], "run-1", ANSWER)


@pytest.mark.parametrize("system_prompt", [None, "Be brief."])
def test_an_agent_that_reasons_is_shown_the_memories_and_its_answer_is_stored(
    memory: Memory, system_prompt: str | None
) -> None:
    scripted = Scripted(answer=f"Thought: I can answer.\nAnswer: {ANSWER}")
    agent = ReActAgent(llm=scripted.model, tools=[], system_prompt=system_prompt)

    async def run() -> str:
        return str(await agent.run(QUESTION, memory=chat(memory)))

    assert asyncio.run(run()) == ANSWER
    assert shown(scripted.seen[0]) == [AT_SIX, AT_SEVEN]
    finish(memory)
    assert [each.answer for each in memory.sessions.entries(SESSION).items] == [ANSWER]


def test_the_id_of_a_recall_is_in_no_prompt(memory: Memory) -> None:
    memory.remember("The pool opens at nine.", metadata={"place": "pool"})
    (found,) = HeedfulRetriever(memory, top_k=1).retrieve("When does the pool open?")
    assert found.node.metadata["recall_id"]
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert found.node.get_content(mode) == "place: pool\n\nThe pool opens at nine."
