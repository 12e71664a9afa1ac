"""The hooks for the OpenAI Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, Runner, ToolCallOutputItem, function_tool, set_trace_processors, set_tracing_disabled, trace
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from edge_cases import EdgeCases
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
    warnings,
)
from pydantic import BaseModel

import heedful
from heedful.integrations.openai_agents import HeedfulRun, heedful_tools
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
        run_id = str(uuid4())
        hooks = HeedfulRun(memory, SESSION, external_id=run_id)
        said = asyncio.run(run(hooks))
        prompt = str(model.calls[-1].system_instructions)
        assert prompt.startswith("Be brief.")
        assert hooks.qa_id == run_id
        return Asked(prompt, run_id, said)

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


class Hours(BaseModel):
    """When it opens."""

    hour: str


@dataclass
class User:
    """What a run is given as its context."""

    name: str


class TestEdgeCases(EdgeCases):
    """Of the hooks."""

    def run(self, memory: Any, agent: Agent[Any], given: Any = QUESTION, **more: Any) -> tuple[str, Any]:
        """The id of the answer, and the result."""
        hooks = HeedfulRun(memory, more.pop("session_id", SESSION), **more.pop("options", {}))
        result = Runner.run_sync(agent, given, hooks=hooks, run_config=hooks.config(), **more)
        return str(hooks.qa_id), result

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        agent, model = scripted()
        session_id = options.pop("session_id", session)
        run_id, result = self.run(memory, agent, question, context=User(user), session_id=session_id, options=options)
        return Asked(str(model.calls[-1].system_instructions), run_id, result.final_output)

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        model = ScriptedModel([[function_call(tool, arguments, call_id="1")], [assistant_message(ANSWER)]])
        agent = Agent(name="clerk", model=model, tools=heedful_tools(memory, **options))
        result = Runner.run_sync(agent, QUESTION, context=User(user))
        return str([each.output for each in result.new_items if isinstance(each, ToolCallOutputItem)])

    def user_of(self, context: Any) -> str:
        return str(context.name)

    def ask_with_image_alone(self, memory: Any) -> str:
        image = {"type": "input_image", "image_url": "http://example.com/gym.png"}
        return str(self.run(memory, scripted()[0], [{"role": "user", "content": [image]}])[1].final_output)

    def ask_for_hours(self, memory: Any) -> None:
        model = ScriptedModel([[assistant_message('{"hour": "six"}')]])
        agent = Agent(name="clerk", model=model, output_type=Hours)
        assert self.run(memory, agent)[1].final_output == Hours(hour="six")

    def stream(self, memory: Any) -> Asked:
        agent, model = scripted()
        hooks = HeedfulRun(memory, SESSION)

        async def run() -> None:
            streamed = Runner.run_streamed(agent, QUESTION, hooks=hooks, run_config=hooks.config())
            async for _ in streamed.stream_events():
                pass

        asyncio.run(run())
        return Asked(str(model.calls[-1].system_instructions), str(hooks.qa_id), ANSWER)

    def cancel(self, memory: Any) -> None:
        hooks = HeedfulRun(memory, SESSION)

        async def run() -> None:
            streamed = Runner.run_streamed(scripted()[0], QUESTION, hooks=hooks, run_config=hooks.config())
            async for _ in streamed.stream_events():
                streamed.cancel()

        asyncio.run(run())

    def retry(self, memory: Any) -> Asked:
        model = ScriptedModel([RuntimeError("the model is down"), [assistant_message(ANSWER)]])
        agent = Agent(name="clerk", model=model)
        hooks = HeedfulRun(memory, SESSION)
        with pytest.raises(RuntimeError):
            Runner.run_sync(agent, QUESTION, hooks=hooks, run_config=hooks.config())
        Runner.run_sync(agent, QUESTION, hooks=hooks, run_config=hooks.config())
        return Asked(str(model.calls[-1].system_instructions), str(hooks.qa_id), ANSWER)

    def approve(self, memory: Any) -> Asked:
        model = ScriptedModel([[function_call("clock", {}, call_id="1")], [assistant_message(ANSWER)]])
        agent = Agent(name="clerk", model=model, tools=[function_tool(clock, needs_approval=True)])
        waits = self.run(memory, agent)[1]
        assert self.entries(memory) == []
        state = waits.to_state()
        state.approve(waits.interruptions[0])
        run_id, result = self.run(memory, agent, state)
        return Asked(str(model.calls[-1].system_instructions), run_id, result.final_output)

    def delegate(self, memory: Any) -> Asked:
        inner = Agent(name="other", model=ScriptedModel([[assistant_message("The other says six.")]]))
        model = ScriptedModel([[function_call("other", {"input": "When?"}, call_id="1")], [assistant_message(ANSWER)]])
        agent = Agent(name="clerk", model=model, tools=[inner.as_tool("other", "Knows.")])
        run_id, result = self.run(memory, agent)
        return Asked(str(model.calls[-1].system_instructions), run_id, result.final_output)

    def test_one_serves_many_runs(self, memory: Memory) -> None:
        agent, model = scripted(8)
        hooks = HeedfulRun(memory, lambda context: context.name)

        async def ask(number: int) -> None:
            given = {"hooks": hooks, "run_config": hooks.config(), "context": User(f"user-{number}")}
            await Runner.run(agent, f"{QUESTION} {number}", **given)

        async def run() -> None:
            for number in range(4):
                await ask(number)
            await asyncio.gather(*(ask(number) for number in range(4, 8)))

        asyncio.run(run())
        finish(memory)
        for number in range(8):
            (entry,) = memory.sessions.entries(f"user-{number}").items
            assert entry.question == memory.receipt(str(entry.recall_id)).query == f"{QUESTION} {number}"
        assert len(model.calls) == 8

    def test_what_was_forgotten_is_said(self, memory: Memory, log: pytest.LogCaptureFixture) -> None:
        agent, _ = scripted()
        hooks = HeedfulRun(memory, SESSION)
        Runner.run_sync(agent, QUESTION, run_config=hooks.config())
        assert "Pass hooks=run to Runner.run" in warnings(log)[0]
        Runner.run_sync(agent, QUESTION, hooks=HeedfulRun(memory, SESSION))
        assert "Pass run_config=run.config() to Runner.run" in warnings(log)[1]
        assert [each.answer for each in self.entries(memory)] == [ANSWER]

    @pytest.mark.parametrize("awaited", [False, True])
    def test_a_filter_of_the_caller_comes_first(self, memory: Memory, awaited: bool) -> None:
        def brief(data: CallModelData[Any]) -> ModelInputData:
            return ModelInputData(input=data.model_data.input, instructions="Be very brief.")

        async def later(data: CallModelData[Any]) -> ModelInputData:
            return brief(data)

        agent, model = scripted()
        hooks = HeedfulRun(memory, SESSION)
        config = hooks.config(call_model_input_filter=later if awaited else brief)
        Runner.run_sync(agent, QUESTION, hooks=hooks, run_config=config)
        prompt = str(model.calls[-1].system_instructions)
        assert prompt.startswith("Be very brief.")
        assert shown(prompt) == [AT_SIX, AT_SEVEN]


def clock() -> str:
    """The time."""
    return "noon"
