"""The hooks for the OpenAI Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, Runner, set_trace_processors, set_tracing_disabled, trace
from agents.testing import ScriptedModel, assistant_message
from loop import ANSWER, AT_SIX, QUESTION, SESSION, Asked, Memory, check_loop, check_warned, opened, run_page, shown

import heedful
from heedful.integrations.openai_agents import HeedfulRun
from heedful.integrations.turns import afinish, finish
from heedful.testing import WordEmbedder


@pytest.fixture(autouse=True)
def no_tracing() -> None:
    set_tracing_disabled(True)


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


def scripted(turns: int = 3) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel([[assistant_message(ANSWER)] for _ in range(turns)])
    return Agent(name="clerk", instructions="Be brief.", model=model), model


@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    agent, model = scripted()

    async def run(hooks: HeedfulRun) -> str:
        if way == "run":
            result = await Runner.run(agent, QUESTION, hooks=hooks, run_config=hooks.config())
            return str(result.final_output)
        streamed = Runner.run_streamed(agent, QUESTION, hooks=hooks, run_config=hooks.config())
        async for _ in streamed.stream_events():
            pass
        return str(streamed.final_output)

    def ask() -> Asked:
        hooks = HeedfulRun(memory, SESSION, external_id=str(uuid4()))
        said = asyncio.run(run(hooks))
        prompt = str(model.calls[-1].system_instructions)
        assert prompt.startswith("Be brief.")
        assert hooks.qa_id == hooks.external_id
        return Asked(prompt, str(hooks.external_id), said)

    check_loop(memory, ask)


def test_the_trace_is_the_id_of_the_answer(memory: Memory) -> None:
    set_trace_processors([])
    set_tracing_disabled(False)
    agent, _ = scripted()
    hooks = HeedfulRun(memory, SESSION)
    with trace("asking") as current:
        asyncio.run(Runner.run(agent, QUESTION, hooks=hooks, run_config=hooks.config()))
    finish(memory)
    assert memory.sessions.rate(current.trace_id, "up", author="ada")


def test_runs_at_the_same_time_do_not_mix(memory: Memory) -> None:
    agent, _ = scripted(6)

    async def run() -> list[HeedfulRun]:
        runs = [HeedfulRun(memory, f"s-{number}", external_id=f"run-{number}") for number in range(6)]
        await asyncio.gather(
            *(
                Runner.run(agent, f"Number {number}?", hooks=each, run_config=each.config())
                for number, each in enumerate(runs)
            )
        )
        return runs

    runs = asyncio.run(run())
    finish(memory)
    for number, each in enumerate(runs):
        entry = memory.sessions.entry(f"s-{number}", f"run-{number}")
        assert (entry.question, entry.external_id) == (f"Number {number}?", each.qa_id)


def test_a_memory_that_is_awaited_works_too(tmp_path: Path) -> None:
    agent, model = scripted()

    async def run() -> None:
        async with await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
            await memory.remember(AT_SIX)
            hooks = HeedfulRun(memory, SESSION, external_id="run-1")
            await Runner.run(agent, QUESTION, hooks=hooks, run_config=hooks.config())
            assert shown(str(model.calls[0].system_instructions)) == [AT_SIX]
            await afinish(memory)
            assert (await memory.sessions.entry(SESSION, "run-1")).answer == ANSWER

    asyncio.run(run())


def test_an_agent_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    agent, _ = scripted()
    hooks = HeedfulRun(failing, SESSION)
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        result = Runner.run_sync(agent, QUESTION, hooks=hooks, run_config=hooks.config())
    assert result.final_output == ANSWER
    check_warned(caplog)


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("openai-agents", agent=scripted()[0])
