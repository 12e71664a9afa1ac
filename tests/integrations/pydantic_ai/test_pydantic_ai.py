"""The capability for Pydantic AI, with its own function model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop import ANSWER, AT_SIX, QUESTION, SESSION, Asked, Memory, check_loop, check_warned, opened, run_page, shown
from pydantic_ai import Agent, models
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import heedful
from heedful.integrations.pydantic_ai import HeedfulCapability
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
