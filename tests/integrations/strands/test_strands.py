"""The plugin and the memory store for Strands, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from edge_cases import PRIVATE, EdgeCases
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
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.memory import MemoryManager
from strands_model import Scripted

import heedful
from heedful import Invalid, Unavailable
from heedful.integrations.strands import HeedfulMemoryManager, HeedfulMemoryStore, HeedfulPlugin, heedful_tools
from heedful.integrations.turns import afinish, finish
from heedful.testing import WordEmbedder


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


@tool
def clock() -> str:
    """The time."""
    return "noon"


@pytest.mark.parametrize("way", ["call", "tool", "invoke_async", "stream_async"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    scripted = Scripted("clock" if way == "tool" else None)
    plugin = HeedfulPlugin(memory, session_id=SESSION)
    agent = Agent(scripted, tools=[clock], plugins=[plugin], callback_handler=None)

    async def streamed(state: dict[str, Any]) -> str:
        said = ""
        async for event in agent.stream_async(QUESTION, invocation_state=state):
            said += event.get("data", "")
        return said

    def ask() -> Asked:
        state = {"external_id": str(uuid4())}
        if way == "stream_async":
            said = asyncio.run(streamed(state))
        elif way == "invoke_async":
            said = str(asyncio.run(agent.invoke_async(QUESTION, invocation_state=state))).strip()
        else:
            said = str(agent(QUESTION, invocation_state=state)).strip()
        assert state["heedful_qa_id"] == state["external_id"]
        return Asked(scripted.seen[-1], state["external_id"], said)

    check_loop(memory, ask)
    # What is shown for a call of the model is no part of the conversation.
    assert AT_SIX not in str([each for each in agent.messages if each["role"] == "user"])
    assert len(memory.sessions.entries(SESSION).items) == 3


def test_agents_at_the_same_time_do_not_mix(memory: Memory) -> None:
    plugin = HeedfulPlugin(memory)
    agents = [Agent(Scripted(), plugins=[plugin], callback_handler=None) for _ in range(4)]

    def ask(number: int) -> None:
        agents[number](f"Number {number}?", invocation_state={"external_id": f"run-{number}"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    finish(memory)
    for number, agent in enumerate(agents):
        assert memory.sessions.entry(agent.session_id, f"run-{number}").question == f"Number {number}?"


def test_a_memory_that_is_awaited_works_too(tmp_path: Path) -> None:
    scripted = Scripted()

    async def run() -> None:
        async with await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
            await memory.remember(AT_SIX)
            agent = Agent(scripted, plugins=[HeedfulPlugin(memory, session_id=SESSION)], callback_handler=None)
            await agent.invoke_async(QUESTION)
            assert shown(scripted.seen[0]) == [AT_SIX]
            await afinish(memory)
            assert [each.answer for each in (await memory.sessions.entries(SESSION)).items] == [ANSWER]

    asyncio.run(run())


def test_an_agent_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    store = HeedfulMemoryStore(failing)
    agents = [
        Agent(Scripted(), plugins=[HeedfulPlugin(failing)], callback_handler=None),
        Agent(Scripted(), memory_manager=MemoryManager(stores=[store]), callback_handler=None),
    ]
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            for agent in agents:
                assert str(agent(QUESTION)).strip() == ANSWER
    check_warned(caplog)


def test_what_an_agent_adds_is_not_lost_in_silence(failing: Any) -> None:
    with pytest.raises(Unavailable):
        asyncio.run(HeedfulMemoryStore(failing).add("Ada likes the sauna."))


def test_the_memory_store_shows_what_was_rated(memory: Memory) -> None:
    scripted = Scripted()
    store = HeedfulMemoryStore(memory)
    agent = Agent(scripted, memory_manager=MemoryManager(stores=[store]), callback_handler=None)

    def ask() -> list[str]:
        agent(QUESTION)
        return shown(scripted.seen[-1])

    assert ask() == [AT_SIX, AT_SEVEN]
    six, seven = asyncio.run(store.search(QUESTION))
    about = six.metadata or {}
    other = seven.metadata or {}
    given = [
        memory.signal_recall(about["recall_id"], helpful=other["fact_id"], not_helpful=about["fact_id"], author=each)
        for each in ("ada", "bo", "cy")
    ]
    assert ask() == [AT_SEVEN, AT_SIX]
    for event in [event for each in given for event in each.event_ids]:
        memory.retract(event)
    assert ask() == [AT_SIX, AT_SEVEN]


def test_what_an_agent_adds_is_recalled(memory: Memory) -> None:
    store = HeedfulMemoryStore(memory, where={"user": "ada"}, max_search_results=1)
    manager = MemoryManager(stores=[store], add_tool_config=True)
    Agent(Scripted(), memory_manager=manager, callback_handler=None)

    async def run() -> list[str]:
        for _ in range(2):
            await manager.add("Ada likes the sauna.", {"metadata": {"kind": "taste"}})
        return [each.content for each in await manager.search("What does Ada like?")]

    assert asyncio.run(run()) == ["Ada likes the sauna."]
    fact = memory.facts(newest_first=True, limit=1).items[0]
    assert (fact.metadata, len(memory.facts().items)) == ({"user": "ada", "kind": "taste"}, 3)


def test_users_at_once_search_and_add_what_is_theirs(memory: Memory) -> None:
    def where(state: dict[str, Any]) -> Any:
        return {"user": {"only": [state["user"]]}}

    store = HeedfulMemoryStore(memory, where=where)

    def agent(tool: str | None = None, arguments: str = "{}") -> tuple[Agent, Scripted]:
        scripted = Scripted(tool, arguments)
        manager = HeedfulMemoryManager(stores=[store], add_tool_config=True)
        return Agent(scripted, memory_manager=manager, callback_handler=None), scripted

    adding, _ = agent("add_memory", json.dumps({"entries": [PRIVATE]}))
    adding("Remember it.", invocation_state={"user": "ada"})
    assert memory.facts(newest_first=True, limit=1).items[0].metadata == {"user": "ada"}

    def ask(user: str) -> tuple[str, str]:
        made, scripted = agent("search_memory", json.dumps({"query": QUESTION}))
        made(QUESTION, invocation_state={"user": user})
        return scripted.seen[0], str(made.messages)

    with ThreadPoolExecutor(4) as pool:
        users = ["ada", "bo"] * 4
        for user, (prompt, conversation) in zip(users, pool.map(ask, users), strict=True):
            for text in (prompt, conversation):
                assert AT_SIX in text
                assert (PRIVATE in text) == (user == "ada")


def test_a_function_needs_a_manager_that_knows_the_call(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    store = HeedfulMemoryStore(memory, where=lambda state: {"user": state["user"]})
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        assert asyncio.run(store.search(QUESTION)) == []
    check_warned(caplog)
    with pytest.raises(Invalid, match="the function for where failed"):
        asyncio.run(store.add(PRIVATE))


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("strands", model=Scripted())


class Hours(BaseModel):
    """When it opens."""

    hour: str


class TestEdgeCases(EdgeCases):
    """Of the plugin."""

    def made(self, memory: Any, model: Scripted, tools: Any = (), **options: Any) -> Agent:
        plugin = HeedfulPlugin(memory, **{"session_id": SESSION, **options})
        return Agent(model, tools=list(tools), plugins=[plugin], callback_handler=None)

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        model, state = Scripted(), {"user": user, "external_id": str(uuid4())}
        agent = self.made(memory, model, **{"session_id": session, **options})
        said = str(agent(question, invocation_state=state))
        return Asked(model.seen[-1], str(state.get("heedful_qa_id")), said)

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        model = Scripted(tool, json.dumps(arguments))
        Agent(model, tools=heedful_tools(memory, **options), callback_handler=None)(
            QUESTION, invocation_state={"user": user}
        )
        return str(model.conversations[-1][2]["content"][0]["toolResult"]["content"][0]["text"])

    def user_of(self, context: Any) -> str:
        return str(context["user"])

    def ask_with_image_alone(self, memory: Any) -> str:
        agent = self.made(memory, Scripted())
        return str(agent([{"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}]))

    def ask_for_hours(self, memory: Any) -> None:
        agent = self.made(memory, Scripted("Hours", '{"hour": "six"}'))
        assert agent(QUESTION, structured_output_model=Hours).structured_output == Hours(hour="six")

    def stream(self, memory: Any) -> Asked:
        model = Scripted()

        async def run() -> str:
            events = self.made(memory, model).stream_async(QUESTION, invocation_state={"external_id": "run-1"})
            return "".join([event.get("data", "") async for event in events])

        said = asyncio.run(run())
        return Asked(model.seen[-1], "run-1", said)

    def cancel(self, memory: Any) -> None:
        async def run() -> None:
            events = self.made(memory, Scripted()).stream_async(QUESTION)
            async for event in events:
                if "data" in event:
                    break
            await events.aclose()

        asyncio.run(run())

    def retry(self, memory: Any) -> Asked:
        model = Scripted(fails=1)
        agent = self.made(memory, model)
        with pytest.raises(RuntimeError):
            agent(QUESTION, invocation_state={"external_id": "run-1"})
        agent(QUESTION, invocation_state={"external_id": "run-1"})
        return Asked(model.seen[-1], "run-1", ANSWER)

    def approve(self, memory: Any) -> Asked:
        @tool(context=True)
        def ask_first(tool_context: ToolContext) -> str:
            """Asks."""
            return str(tool_context.interrupt("approve", reason="Sure?"))

        model = Scripted("ask_first")
        agent = self.made(memory, model, [ask_first])
        waits = agent(QUESTION, invocation_state={"external_id": "run-0"})
        assert self.entries(memory) == []
        given = [{"interruptResponse": {"interruptId": each.id, "response": "yes"}} for each in waits.interrupts]
        agent(given, invocation_state={"external_id": "run-1"})
        return Asked(model.seen[-1], "run-1", ANSWER)

    def delegate(self, memory: Any) -> Asked:
        inner = self.made(memory, Scripted(answer="The other says six."))

        @tool
        def other() -> str:
            """Knows."""
            return str(inner("When?"))

        model = Scripted("other")
        self.made(memory, model, [other])(QUESTION, invocation_state={"external_id": "run-1"})
        return Asked(model.seen[-1], "run-1", ANSWER)
