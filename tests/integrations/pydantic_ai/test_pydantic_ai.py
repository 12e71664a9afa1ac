"""The capability for Pydantic AI, with its own function model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from edge_cases import EdgeCases
from loop import ANSWER, AT_SIX, QUESTION, SESSION, Asked, Memory, check_loop, check_warned, opened, run_page, shown
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ImageUrl, models
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import heedful
from heedful.integrations.pydantic_ai import HeedfulCapability, heedful_tools
from heedful.integrations.turns import afinish, finish
from heedful.testing import WordEmbedder

models.ALLOW_MODEL_REQUESTS = False


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


class Scripted:
    """Says the same always, and remembers what it was instructed with."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.model = FunctionModel(self._answer, stream_function=self._stream)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(str(info.instructions))
        return ModelResponse(parts=[TextPart(ANSWER)])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        self.seen.append(str(info.instructions))
        yield ANSWER


@pytest.mark.parametrize("way", ["run_sync", "run", "run_stream"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    scripted = Scripted()
    agent = Agent(scripted.model, instructions="Be brief.", capabilities=[HeedfulCapability(memory)])

    async def streamed() -> tuple[str, str]:
        async with agent.run_stream(QUESTION, conversation_id=SESSION) as result:
            return str(await result.get_output()), str(result.run_id)

    def ask() -> Asked:
        if way == "run_stream":
            said, run_id = asyncio.run(streamed())
        elif way == "run":
            result = asyncio.run(agent.run(QUESTION, conversation_id=SESSION))
            said, run_id = result.output, result.run_id
        else:
            result = agent.run_sync(QUESTION, conversation_id=SESSION)
            said, run_id = result.output, result.run_id
        assert "Be brief." in scripted.seen[-1]
        return Asked(scripted.seen[-1], run_id, said)

    check_loop(memory, ask)


def test_runs_at_the_same_time_do_not_mix(memory: Memory) -> None:
    agent = Agent(Scripted().model, capabilities=[HeedfulCapability(memory)])

    async def run() -> list[Any]:
        runs = (agent.run(f"Number {number}?", conversation_id=f"s-{number}") for number in range(6))
        return list(await asyncio.gather(*runs))

    results = asyncio.run(run())
    finish(memory)
    for number, result in enumerate(results):
        assert memory.sessions.entry(f"s-{number}", result.run_id).question == f"Number {number}?"


def test_a_memory_that_is_awaited_works_too(tmp_path: Path) -> None:
    scripted = Scripted()

    async def run() -> None:
        async with await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
            await memory.remember(AT_SIX)
            agent = Agent(scripted.model, capabilities=[HeedfulCapability(memory)])
            result = await agent.run(QUESTION, conversation_id=SESSION)
            assert shown(scripted.seen[0]) == [AT_SIX]
            await afinish(memory)
            assert (await memory.sessions.entry(SESSION, result.run_id)).answer == ANSWER

    asyncio.run(run())


def test_an_agent_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(Scripted().model, capabilities=[HeedfulCapability(failing)])
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            assert agent.run_sync(QUESTION).output == ANSWER
    check_warned(caplog)


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("pydantic-ai", model=Scripted().model)


class Hours(BaseModel):
    """When it opens."""

    hour: str


class TestEdgeCases(EdgeCases):
    """Of the capability."""

    def made(self, memory: Any, answers: list[Any] | None = None, **options: Any) -> tuple[Agent[Any, Any], list[str]]:
        """An agent whose model gives these answers, and what it was instructed with."""
        seen: list[str] = []

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            seen.append(str(info.instructions))
            said = answers.pop(0) if answers else ANSWER
            if isinstance(said, Exception):
                raise said
            return ModelResponse(parts=[TextPart(said) if isinstance(said, str) else said])

        output = options.pop("output_type", str)
        model = FunctionModel(answer, stream_function=Scripted()._stream)
        return Agent(model, output_type=output, capabilities=[HeedfulCapability(memory, **options)]), seen

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        agent, seen = self.made(memory, **options)
        result = agent.run_sync(question, conversation_id=session, deps=user)
        return Asked(seen[-1], result.run_id, result.output)

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        agent, _ = self.made(memory, [ToolCallPart(tool, arguments)])
        result = agent.run_sync(QUESTION, deps=user, toolsets=[heedful_tools(memory, **options)])
        return str(result.all_messages()[-2].parts[0].content)  # type: ignore[union-attr]

    def user_of(self, context: Any) -> str:
        return str(context)

    def ask_with_image_alone(self, memory: Any) -> str:
        return str(self.made(memory)[0].run_sync([ImageUrl("http://example.com/gym.png")]).output)

    def ask_for_hours(self, memory: Any) -> None:
        agent, _ = self.made(memory, [ToolCallPart("final_result", {"hour": "six"})], output_type=Hours)
        assert agent.run_sync(QUESTION).output == Hours(hour="six")

    def stream(self, memory: Any) -> Asked:
        scripted = Scripted()
        agent = Agent(scripted.model, capabilities=[HeedfulCapability(memory)])

        async def run() -> str:
            async with agent.run_stream(QUESTION) as result:
                async for _ in result.stream_text(delta=True):
                    pass
                return str(result.run_id)

        run_id = asyncio.run(run())
        return Asked(scripted.seen[-1], run_id, ANSWER)

    def cancel(self, memory: Any) -> None:
        agent, _ = self.made(memory)

        async def run() -> None:
            async with agent.run_stream(QUESTION) as result:
                async for _ in result.stream_text():
                    break

        asyncio.run(run())

    def retry(self, memory: Any) -> Asked:
        agent, seen = self.made(memory, [RuntimeError("the model is down")])
        with pytest.raises(RuntimeError):
            agent.run_sync(QUESTION)
        return Asked(seen[-1], agent.run_sync(QUESTION).run_id, ANSWER)

    def approve(self, memory: Any) -> Asked:
        agent, seen = self.made(memory, [ToolCallPart("clock", {})], output_type=[str, DeferredToolRequests])
        agent.tool_plain(clock, requires_approval=True)
        waits = agent.run_sync(QUESTION, conversation_id=SESSION)
        assert self.entries(memory) == []
        given = DeferredToolResults(approvals={each.tool_call_id: True for each in waits.output.approvals})
        result = agent.run_sync(message_history=waits.all_messages(), deferred_tool_results=given)
        return Asked(seen[-1], result.run_id, result.output)

    def delegate(self, memory: Any) -> Asked:
        inner, _ = self.made(memory, ["The other says six."])
        agent, seen = self.made(memory, [ToolCallPart("other", {})])

        @agent.tool_plain
        async def other() -> str:
            return str((await inner.run("When?")).output)

        result = agent.run_sync(QUESTION)
        return Asked(seen[-1], result.run_id, result.output)


def clock() -> str:
    """The time."""
    return "noon"
