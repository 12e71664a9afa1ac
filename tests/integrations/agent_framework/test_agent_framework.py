"""The context provider for Microsoft's Agent Framework, with a chat client that says what it is told to."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from edge_cases import EdgeCases
from loop import ANSWER, AT_SIX, QUESTION, SESSION, Asked, Memory, check_loop, check_warned, opened, run_page, shown
from pydantic import BaseModel

import heedful
from heedful.integrations.agent_framework import QA_ID, HeedfulProvider, heedful_tools
from heedful.integrations.turns import afinish, finish
from heedful.testing import WordEmbedder


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Gives these answers, then always the same one, and remembers what it was instructed with."""

    def __init__(self, *answers: Any, has_ids: bool = True) -> None:
        super().__init__()
        self.answers = list(answers)
        self.has_ids = has_ids
        self.seen: list[str] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        self.seen.append(str(options.get("instructions")))
        said = self.answers.pop(0) if self.answers else ANSWER
        contents = said if isinstance(said, list) else [Content.from_text(said) if isinstance(said, str) else said]
        response_id = str(uuid4()) if self.has_ids else None

        async def respond() -> ChatResponse[Any]:
            if isinstance(said, Exception):
                raise said
            message = Message("assistant", contents)
            return ChatResponse(
                messages=[message], response_id=response_id, response_format=options.get("response_format")
            )

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for word in said.split(" ", 1):
                part = Content.from_text(word if word == said.split(" ", 1)[0] else f" {word}")
                yield ChatResponseUpdate(contents=[part], role="assistant", response_id=response_id)

        return self._build_response_stream(updates()) if stream else respond()


def call(name: str, **arguments: Any) -> Content:
    return Content.from_function_call("1", name, arguments=json.dumps(arguments))


def agent_of(memory: Any, model: Scripted, **options: Any) -> Agent[Any]:
    more = {name: options.pop(name) for name in ("tools", "name") if name in options}
    return Agent(model, instructions="Be brief.", context_providers=[HeedfulProvider(memory, **options)], **more)


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


async def streamed(agent: Agent[Any], session: AgentSession | None = None) -> Any:
    stream = agent.run(QUESTION, stream=True, session=session)
    async for _ in stream:
        pass
    return await stream.get_final_response()


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    model = Scripted()
    agent = agent_of(memory, model)

    def ask() -> Asked:
        session = AgentSession(session_id=SESSION)
        response = asyncio.run(
            streamed(agent, session) if way == "stream" else agent.run(QUESTION, session=session)  # type: ignore[arg-type]
        )
        assert model.seen[-1].startswith("Be brief.")
        assert response.additional_properties[QA_ID] == response.response_id
        return Asked(model.seen[-1], response.response_id, response.text)

    check_loop(memory, ask)


def test_an_answer_without_an_id_is_given_one(memory: Memory) -> None:
    response = asyncio.run(agent_of(memory, Scripted(has_ids=False)).run(QUESTION))
    finish(memory)
    assert response.response_id is None
    assert memory.sessions.rate(response.additional_properties[QA_ID], "up", author="ada")


def test_runs_at_the_same_time_do_not_mix(memory: Memory) -> None:
    agent = agent_of(memory, Scripted())

    async def run() -> list[Any]:
        sessions = [AgentSession(session_id=f"s-{number}") for number in range(6)]
        runs = (agent.run(f"Number {number}?", session=session) for number, session in enumerate(sessions))
        return list(await asyncio.gather(*runs))

    responses = asyncio.run(run())
    finish(memory)
    for number, response in enumerate(responses):
        assert memory.sessions.entry(f"s-{number}", response.response_id).question == f"Number {number}?"


def test_a_memory_that_is_awaited_works_too(tmp_path: Path) -> None:
    model = Scripted()

    async def run() -> None:
        async with await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
            await memory.remember(AT_SIX)
            response = await agent_of(memory, model).run(QUESTION, session=AgentSession(session_id=SESSION))
            assert shown(model.seen[0]) == [AT_SIX]
            await afinish(memory)
            assert (await memory.sessions.entry(SESSION, str(response.response_id))).answer == ANSWER

    asyncio.run(run())


def test_an_agent_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    agent = agent_of(failing, Scripted())
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            assert asyncio.run(agent.run(QUESTION)).text == ANSWER
    check_warned(caplog)


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("agent-framework", client=Scripted())


class Hours(BaseModel):
    """When it opens."""

    hour: str


class TestEdgeCases(EdgeCases):
    """Of the provider."""

    def run(self, agent: Agent[Any], model: Scripted, given: Any = QUESTION, **more: Any) -> Asked:
        response = asyncio.run(agent.run(given, **more))
        return Asked(model.seen[-1], str(response.response_id), response.messages[-1].text)

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        model, asking = Scripted(), AgentSession(session_id=session)
        asking.state["user"] = user
        return self.run(agent_of(memory, model, **options), model, question, session=asking)

    def user_of(self, context: Any) -> str:
        return str(context.state["user"])

    def ask_with_image_alone(self, memory: Any) -> str:
        image = Content.from_uri("http://example.com/gym.png", media_type="image/png")
        model = Scripted()
        return self.run(agent_of(memory, model), model, Message("user", [image])).answer

    def ask_for_hours(self, memory: Any) -> None:
        agent = agent_of(memory, Scripted('{"hour": "six"}'))
        response = asyncio.run(agent.run(QUESTION, options={"response_format": Hours}))
        assert response.value == Hours(hour="six")

    def stream(self, memory: Any) -> Asked:
        model = Scripted()
        response = asyncio.run(streamed(agent_of(memory, model)))
        return Asked(model.seen[-1], response.response_id, response.text)

    def cancel(self, memory: Any) -> None:
        async def run() -> None:
            async for _ in agent_of(memory, Scripted()).run(QUESTION, stream=True):
                break

        asyncio.run(run())

    def retry(self, memory: Any) -> Asked:
        model = Scripted(RuntimeError("the model is down"))
        agent = agent_of(memory, model)
        with pytest.raises(RuntimeError):
            asyncio.run(agent.run(QUESTION))
        return self.run(agent, model)

    def approve(self, memory: Any) -> Asked:
        model, session = Scripted(call("clock")), AgentSession(session_id=SESSION)
        agent = agent_of(memory, model, tools=[clock])
        waits = asyncio.run(agent.run(QUESTION, session=session))
        assert self.entries(memory) == []
        # The next request may be handled by another process.
        session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
        approved = [each.to_function_approval_response(True) for each in waits.user_input_requests]
        return self.run(agent, model, Message("user", approved), session=session)

    def delegate(self, memory: Any) -> Asked:
        other = agent_of(memory, Scripted("The other says six."), name="other")
        model = Scripted(call("other", task="When?"))
        return self.run(agent_of(memory, model, tools=[other.as_tool()]), model)

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        session = AgentSession()
        session.state["user"] = user
        agent = Agent(Scripted(call(tool, **arguments)), tools=heedful_tools(memory, **options))
        response = asyncio.run(agent.run(QUESTION, session=session))
        contents = [content for message in response.messages for content in message.contents]
        return next(str(content.result) for content in contents if content.type == "function_result")

    def test_the_answer_is_what_follows_the_tools(self, memory: Memory) -> None:
        model = Scripted([Content.from_text("Let me see."), call("weekday")])
        asked = self.run(agent_of(memory, model, tools=[weekday]), model)
        self.check_stored(memory, asked)

    def test_an_answer_that_is_not_as_asked_for_is_stored_as_it_is(self, memory: Memory) -> None:
        agent = agent_of(memory, Scripted("At six."))
        asyncio.run(agent.run(QUESTION, options={"response_format": Hours}))
        assert [each.answer for each in self.entries(memory)] == ["At six."]

    def test_another_question_instead_of_approval(self, memory: Memory) -> None:
        model, session = Scripted(call("clock")), AgentSession(session_id=SESSION)
        agent = agent_of(memory, model, tools=[clock])
        asyncio.run(agent.run("What time is it?", session=session))
        asyncio.run(agent_of(memory, model).run(QUESTION, session=session))
        assert [each.question for each in self.entries(memory)] == [QUESTION]
        assert session.state["heedful"] == {}


@tool(approval_mode="always_require")
def clock() -> str:
    """The time."""
    return "noon"


@tool(approval_mode="never_require")
def weekday() -> str:
    """The day of the week."""
    return "Monday"
