"""The block for CrewAI, with a language model of its own that says what it is told to."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

# CrewAI reads them when it is imported.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}

from crewai import Agent, BaseLLM, Crew, Process, Task
from crewai.hooks import ToolCallHookContext, before_tool_call, unregister_before_tool_call_hook
from crewai.hooks.dispatch import InterceptionPoint, register_scoped, scoped_hooks
from crewai.tools import tool
from edge_cases import PRIVATE, EdgeCases, meaningless
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
from pydantic import BaseModel, PrivateAttr

from heedful.errors import Invalid
from heedful.integrations.crewai import HeedfulRun, heedful_tools
from heedful.integrations.turns import finish


class Scripted(BaseLLM):
    """Gives these answers, then always the same one, and remembers what it was shown."""

    _answers: list[Any] = PrivateAttr(default_factory=list)
    _seen: list[str] = PrivateAttr(default_factory=list)
    _told: list[str] = PrivateAttr(default_factory=list)
    """The results of tools."""

    @classmethod
    def of(cls, *answers: Any) -> Scripted:
        model = cls(model="scripted")
        model._answers = list(answers)
        return model

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self._seen.append(str(messages[-1]["content"] if len(messages) < 3 else messages[1]["content"]))
        self._told += [str(each["content"]) for each in messages if each.get("role") == "tool"]
        answer = self._answers.pop(0) if self._answers else ANSWER
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def acall(self, messages: Any, *args: Any, **options: Any) -> Any:
        return self.call(messages)

    def supports_function_calling(self) -> bool:
        return True


def tool_call(name: str, **arguments: Any) -> list[Any]:
    return [{"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]


def clerk(model: Scripted, **options: Any) -> Agent:
    return Agent(role="clerk", goal="Answers", backstory="Knows the town.", llm=model, **options)


def crew_of(model: Scripted, question: str = QUESTION, *, tools: list[Any] | None = None, **options: Any) -> Crew:
    agent = clerk(model, tools=tools or [])
    stream = options.pop("stream", False)
    task = Task(description=question, expected_output="A sentence", agent=agent, **options)
    return Crew(agents=[agent], tasks=[task], stream=stream)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


@pytest.mark.parametrize("way", ["kickoff", "akickoff", "kickoff_async", "stream", "task"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    model = Scripted.of()

    def answer() -> str:
        crew = crew_of(model, stream=way == "stream")
        if way == "task":
            return crew.tasks[0].execute_sync().raw
        if way == "stream":
            streamed = crew.kickoff()
            for _ in streamed:
                pass
            return streamed.result.raw
        return crew.kickoff().raw if way == "kickoff" else asyncio.run(getattr(crew, way)()).raw

    def ask() -> Asked:
        with HeedfulRun(memory, session_id=SESSION) as run:
            said = answer()
            assert run.qa_id is None
        return Asked(model._seen[-1], str(run.qa_id), said)

    check_loop(memory, ask)


def test_each_task_of_a_crew_is_a_question(memory: Memory) -> None:
    model = Scripted.of("The gym is old.", ANSWER)
    agent = clerk(model)
    history = Task(description="How old is the gym?", expected_output="A sentence", agent=agent)
    hours = Task(description=QUESTION, expected_output="A sentence", agent=agent)
    with HeedfulRun(memory, session_id=SESSION, external_id="run-1") as run:
        Crew(agents=[agent], tasks=[history, hours]).kickoff()
    finish(memory)
    first, last = run.qa_ids
    assert run.qa_id == last == "run-1"
    entries = [memory.sessions.entry(SESSION, each) for each in (first, last)]
    assert [(each.question, each.answer) for each in entries] == [
        ("How old is the gym?", "The gym is old."),
        (QUESTION, ANSWER),
    ]
    assert shown(model._seen[1]) == [AT_SIX, AT_SEVEN]
    assert "The gym is old." in model._seen[1]


def test_a_manager_is_given_the_memories(memory: Memory) -> None:
    model = Scripted.of()
    agent = clerk(model)
    task = Task(description=QUESTION, expected_output="A sentence")
    crew = Crew(agents=[agent], tasks=[task], process=Process.hierarchical, manager_llm=model)
    with HeedfulRun(memory, session_id=SESSION) as run:
        crew.kickoff()
    finish(memory)
    assert shown(model._seen[-1]) == [AT_SIX, AT_SEVEN]
    assert memory.sessions.entry(SESSION, str(run.qa_id)).answer == ANSWER


def test_functions_take_the_inputs_of_the_crew_that_asks(memory: Memory) -> None:
    crew = crew_of(Scripted.of(), "When does the {place} open?")
    names = ["gym", "pool", "park"]
    inputs = [{"place": name, "user": f"user-{name}"} for name in names]
    with HeedfulRun(memory, session_id=lambda inputs: inputs["user"]):
        crew.kickoff_for_each(inputs=inputs[:1])
        asyncio.run(crew.kickoff_for_each_async(inputs=inputs[1:]))
    finish(memory)
    for name in names:
        (entry,) = memory.sessions.entries(f"user-{name}").items
        assert entry.question == f"When does the {name} open?"


@pytest.mark.parametrize("fails", [False, True])
def test_a_task_after_a_crew_is_not_given_its_inputs(memory: Memory, fails: bool) -> None:
    model = Scripted.of(*[RuntimeError("the model is down")] * 9 * fails)
    with HeedfulRun(memory, session_id=lambda inputs: inputs.get("user", "nobody")) as run:
        with suppress(RuntimeError):
            crew_of(model).kickoff(inputs={"user": "ada"})
        crew_of(Scripted.of(), "Who asks?").tasks[0].execute_sync()
    finish(memory)
    assert memory.sessions.entry("nobody", str(run.qa_id)).question == "Who asks?"
    assert len(run.qa_ids) == 2 - fails


def test_hooks_of_others_still_run(memory: Memory) -> None:
    asked: list[str] = []
    with scoped_hooks():
        register_scoped(InterceptionPoint.PRE_STEP, lambda context: asked.append(context.task.description))
        with HeedfulRun(memory, session_id=SESSION):
            crew_of(Scripted.of()).kickoff()
    assert asked == [QUESTION]


def test_braces_in_a_fact_are_shown_as_they_are(memory: Memory) -> None:
    memory.remember("The code of the gym is {input}.")
    model = Scripted.of()
    with HeedfulRun(memory):
        crew_of(model, "What is the code of the gym?").kickoff()
    assert "{input}" in model._seen[-1]


def test_nothing_is_recalled_outside_of_the_block(memory: Memory) -> None:
    model = Scripted.of()
    with HeedfulRun(memory, session_id=SESSION):
        pass
    crew_of(model).kickoff()
    assert shown(model._seen[-1]) == []


def test_a_memory_that_is_awaited_is_refused() -> None:
    class Awaited:
        async def recall(self) -> None:
            pass

    with pytest.raises(Invalid, match="not awaited"):
        HeedfulRun(Awaited())  # type: ignore[arg-type]


def test_a_crew_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            with HeedfulRun(failing):
                assert crew_of(Scripted.of()).kickoff().raw == ANSWER
    check_warned(caplog)


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("crewai", model=Scripted.of())


class Hours(BaseModel):
    """When it opens."""

    hour: str


class TestEdgeCases(EdgeCases):
    """Of the block."""

    def kickoff(self, memory: Any, crew: Crew, model: Scripted) -> Asked:
        with HeedfulRun(memory, session_id=SESSION) as run:
            said = crew.kickoff().raw
        return Asked(model._seen[0], str(run.qa_id), said)

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        model = Scripted.of()
        with HeedfulRun(memory, **{"session_id": session, **options}) as run:
            result = crew_of(model, question).kickoff(inputs={"user": user})
        return Asked(model._seen[-1], str(run.qa_id), result.raw)

    def user_of(self, context: Any) -> str:
        return str(context["user"])

    def ask_with_image_alone(self, memory: Any) -> str:
        meaningless("a task has a description")

    def ask_for_hours(self, memory: Any) -> None:
        crew = crew_of(Scripted.of('{"hour": "six"}'), output_pydantic=Hours)
        with HeedfulRun(memory, session_id=SESSION):
            assert crew.kickoff().pydantic == Hours(hour="six")

    def stream(self, memory: Any) -> Asked:
        model = Scripted.of()
        with HeedfulRun(memory, session_id=SESSION) as run:
            for _ in crew_of(model, stream=True).kickoff():
                pass
        return Asked(model._seen[-1], str(run.qa_id), ANSWER)

    def cancel(self, memory: Any) -> None:
        class Stopped(BaseException):
            pass

        @tool
        def stop() -> str:
            """Stops."""
            raise Stopped

        with pytest.raises(Stopped), HeedfulRun(memory, session_id=SESSION):
            crew_of(Scripted.of(tool_call("stop")), tools=[stop]).kickoff()

    def retry(self, memory: Any) -> Asked:
        model = Scripted.of(RuntimeError("the model is down"))
        return self.kickoff(memory, crew_of(model), model)

    def approve(self, memory: Any) -> Asked:
        @before_tool_call
        def wait(context: ToolCallHookContext) -> bool:
            assert self.entries(memory) == []
            waited.append(context.tool_name)
            return True

        waited: list[str] = []
        model = Scripted.of(tool_call("clock"))
        try:
            asked = self.kickoff(memory, crew_of(model, tools=[clock]), model)
        finally:
            unregister_before_tool_call_hook(wait)
        assert waited == ["clock"]
        return asked

    def delegate(self, memory: Any) -> Asked:
        @tool
        def other() -> str:
            """Knows."""
            with HeedfulRun(memory, session_id="other"):
                return str(crew_of(Scripted.of("The other says six."), "When?").kickoff().raw)

        model = Scripted.of(tool_call("other"))
        asked = self.kickoff(memory, crew_of(model, tools=[other]), model)
        finish(memory)
        # The block in the tool has its task to itself.
        assert [each.question for each in memory.sessions.entries(SESSION).items] == [QUESTION]
        return asked

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        model = Scripted.of(tool_call(tool, **arguments))
        with HeedfulRun(memory, session_id=SESSION):
            crew_of(model, tools=heedful_tools(memory, **options)).kickoff(inputs={"user": user})
        return model._told[0]

    def test_a_tool_is_asked_again_by_the_next_user_of_a_crew(self, memory: Memory) -> None:
        memory.remember(PRIVATE, metadata={"user": "ada"})
        calls = [tool_call("recall", query=QUESTION), ANSWER]
        model = Scripted.of(*calls, *calls)
        crew = crew_of(model, tools=heedful_tools(memory, where=self.where))
        with HeedfulRun(memory):
            for user in ("ada", "bo"):
                model._told.clear()
                crew.kickoff(inputs={"user": user})
                assert (PRIVATE in model._told[-1]) == (user == "ada")

    def test_a_crew_in_a_tool_has_its_own_inputs(self, memory: Memory) -> None:
        @tool
        def other() -> str:
            """Knows."""
            return str(crew_of(Scripted.of(), "When does it open?").kickoff(inputs={"user": "bo"}).raw)

        model = Scripted.of(tool_call("other"))
        with HeedfulRun(memory, session_id=lambda inputs: inputs["user"], external_id="run-1"):
            crew_of(model, tools=[other]).kickoff(inputs={"user": "ada"})
        finish(memory)
        assert memory.sessions.entry("ada", "run-1").question == QUESTION
        assert [each.question for each in memory.sessions.entries("bo").items] == ["When does it open?"]


@tool
def clock() -> str:
    """The time."""
    return "noon"
