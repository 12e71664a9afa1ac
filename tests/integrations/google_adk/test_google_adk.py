"""The plugin and the memory service for Google's ADK, with a model of its own kind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from edge_cases import STRUCTURED, EdgeCases
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, preload_memory
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
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

import heedful
from heedful import Invalid, NotFound
from heedful.integrations.google_adk import HeedfulMemoryService, HeedfulPlugin, heedful_tools, session_name
from heedful.integrations.turns import afinish, finish
from heedful.testing import WordEmbedder

APP = "gym"


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


class Scripted(BaseLlm):
    """Says the same always, and remembers what it was given."""

    model: str = "scripted"
    seen: list[str] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = [part.text for each in llm_request.contents for part in each.parts or () if part.text]
        self.seen.append("\n".join([str(llm_request.config.system_instruction), *said]))
        if stream:
            for part in ANSWER.partition(" at "):
                yield LlmResponse(content=content(part, "model"), partial=True)
        yield LlmResponse(content=content(ANSWER, "model"))


def content(text: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def runner(memory: Any, model: Scripted, app: str = APP) -> InMemoryRunner:
    agent = LlmAgent(name="assistant", model=model, instruction="Be brief.")
    return InMemoryRunner(app=App(name=app, root_agent=agent, plugins=[HeedfulPlugin(memory)]))


async def said(
    run: Runner, question: str, session_id: str, config: RunConfig | None = None, user: str = "ada"
) -> tuple[str, str]:
    """The answer, and the id of the invocation."""
    await made(run, session_id, user)
    events = [
        event
        async for event in run.run_async(
            user_id=user, session_id=session_id, new_message=content(question), run_config=config or RunConfig()
        )
    ]
    parts = events[-1].content.parts if events[-1].content else None
    return str(parts[0].text if parts else ""), events[-1].invocation_id


@pytest.mark.parametrize("way", ["run", "run_async", "stream"])
def test_a_rating_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory, way: str) -> None:
    model = Scripted(seen=[])
    run = runner(memory, model)
    config = RunConfig(streaming_mode=StreamingMode.SSE) if way == "stream" else None

    def ask() -> Asked:
        if way == "run":
            asyncio.run(made(run, SESSION))
            events = list(run.run(user_id="ada", session_id=SESSION, new_message=content(QUESTION)))
            parts = events[-1].content.parts if events[-1].content else None
            answer, invocation = str(parts[0].text if parts else ""), events[-1].invocation_id
        else:
            answer, invocation = asyncio.run(said(run, QUESTION, SESSION, config))
        assert "Be brief." in model.seen[-1]
        return Asked(model.seen[-1], invocation, answer)

    check_loop(memory, ask, session_name(APP, "ada", SESSION))


async def made(run: Runner, session_id: str, user: str = "ada") -> None:
    known = {"app_name": run.app_name, "user_id": user, "session_id": session_id}
    if await run.session_service.get_session(**known) is None:
        await run.session_service.create_session(**known)


def test_users_at_the_same_time_are_shown_their_own_memories_and_those_of_everybody(memory: Memory) -> None:
    service = HeedfulMemoryService(memory)
    codes = {"ada": "The locker code of Ada is 4711.", "bob": "The locker code of Bob is 1234."}
    asked = "What is the locker code, and when does the gym open?"
    models = {user: Scripted(seen=[]) for user in codes}

    async def ask(user: str, app: str = APP) -> None:
        await said(runner(memory, models[user], app), f"{asked} {user}", "chat-1", user=user)

    async def run() -> None:
        for user, code in codes.items():
            entry = MemoryEntry(content=content(code))
            await service.add_memory(app_name=APP, user_id=user, memories=[entry])
        await asyncio.gather(*(ask(user) for user in [*codes] * 3))
        for user, other in (("ada", "bob"), ("bob", "ada")):
            assert len(models[user].seen) == 3
            for prompt in models[user].seen:
                assert codes[user] in prompt
                assert codes[other] not in prompt
                assert shown(prompt) == [AT_SIX, AT_SEVEN]
        # Ada's memories in this app are not those in another.
        await ask("ada", "pool")
        assert not [code for code in codes.values() if code in models["ada"].seen[-1]]
        assert shown(models["ada"].seen[-1]) == [AT_SIX, AT_SEVEN]

    asyncio.run(run())
    finish(memory)
    for user in codes:
        entries = memory.sessions.entries(session_name(APP, user, "chat-1")).items
        assert [each.question for each in entries] == [f"{asked} {user}"] * 3
    assert not memory.sessions.exists("chat-1")


def test_what_a_user_said_is_not_shown_to_another(memory: Memory) -> None:
    service = HeedfulMemoryService(memory)
    model = Scripted(seen=[])
    run = runner(memory, model)

    async def loop() -> None:
        await said(run, "My locker code is 4711. Will you remember it?", "chat-1", user="ada")
        session = await run.session_service.get_session(app_name=APP, user_id="ada", session_id="chat-1")
        assert session is not None
        await service.add_session_to_memory(session)
        for user, expected in (("bob", False), ("ada", True)):
            await said(run, "What is the locker code?", "chat-2", user=user)
            assert ("4711" in model.seen[-1]) == expected

    asyncio.run(loop())


def test_conditions_of_the_caller_come_first(memory: Memory) -> None:
    memory.remember("The locker code of the team is 9999.", metadata={"user_id": "team", "kind": "code"})
    model = Scripted(seen=[])
    agent = LlmAgent(name="assistant", model=model)
    for where, expected in (({"kind": "code"}, False), ({"user_id": ["ada", "team"]}, True)):
        plugin = HeedfulPlugin(memory, where=where)
        run = InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=[plugin]))
        asyncio.run(said(run, "What is the locker code?", "chat-1"))
        assert ("9999" in model.seen[-1]) == expected
        assert shown(model.seen[-1]) == []


def test_no_two_sessions_have_the_same_name() -> None:
    apart = [("a/b", "c", "d"), ("a", "b/c", "d"), ("a", "b", "c/d"), ("a%2Fb", "c", "d"), ("a", "b", "x" * 300)]
    apart += [("a", "b", "x" * 301), ("a", "c", "x" * 300)]
    names = [session_name(*each) for each in apart]
    assert len(set(names)) == len(apart)
    assert max(map(len, names)) <= 200
    assert session_name(APP, "ada@example.com", "chat-1") == "gym/ada@example.com/chat-1"


def test_invocations_at_the_same_time_do_not_mix(memory: Memory) -> None:
    run = runner(memory, Scripted(seen=[]))

    async def all_of_them() -> list[tuple[str, str]]:
        return list(await asyncio.gather(*(said(run, f"Number {n}?", f"s-{n}") for n in range(6))))

    runs = asyncio.run(all_of_them())
    finish(memory)
    for number, (_, invocation) in enumerate(runs):
        assert (
            memory.sessions.entry(session_name(APP, "ada", f"s-{number}"), invocation).question == f"Number {number}?"
        )


def test_a_memory_that_is_awaited_works_too(tmp_path: Path) -> None:
    model = Scripted(seen=[])

    async def run() -> None:
        async with await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as memory:
            await memory.remember(AT_SIX)
            _, invocation = await said(runner(memory, model), QUESTION, SESSION)
            assert shown(model.seen[0]) == [AT_SIX]
            await afinish(memory)
            assert (await memory.sessions.entry(session_name(APP, "ada", SESSION), invocation)).answer == ANSWER

    asyncio.run(run())


def test_an_agent_answers_when_heedful_fails(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    run = runner(failing, Scripted(seen=[]))
    service = HeedfulMemoryService(failing)
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            assert asyncio.run(said(run, QUESTION, SESSION))[0] == ANSWER
            found = asyncio.run(service.search_memory(app_name=APP, user_id="ada", query=QUESTION))
            assert found.memories == []
    check_warned(caplog)


def texts(found: Any) -> list[str]:
    return [each.content.parts[0].text for each in found.memories]


def test_a_memory_service_shows_what_was_rated(memory: Memory) -> None:
    service = HeedfulMemoryService(memory)
    model = Scripted(seen=[])
    agent = LlmAgent(name="assistant", model=model, tools=[preload_memory])
    run = Runner(app=App(name=APP, root_agent=agent), session_service=InMemorySessionService(), memory_service=service)

    async def search(user: str = "ada") -> Any:
        return await service.search_memory(app_name=APP, user_id=user, query=QUESTION)

    async def loop() -> None:
        for text in (AT_SIX, AT_SEVEN):
            await service.add_memory(app_name=APP, user_id="ada", memories=[MemoryEntry(content=content(text))])
        await said(run, QUESTION, "chat-1")
        assert shown(model.seen[-1]) == [AT_SIX, AT_SEVEN]
        six, seven = (await search()).memories
        about = six.custom_metadata["recall_id"]
        given = [
            memory.signal_recall(about, helpful=seven.id, not_helpful=six.id, author=each)
            for each in ("ada", "bo", "cy")
        ]
        await said(run, QUESTION, "chat-2")
        assert shown(model.seen[-1]) == [AT_SEVEN, AT_SIX]
        for event in [event for each in given for event in each.event_ids]:
            memory.retract(event)
        await said(run, QUESTION, "chat-3")
        assert shown(model.seen[-1]) == [AT_SIX, AT_SEVEN]
        assert texts(await search("bo")) == []

    asyncio.run(loop())


def test_a_session_is_remembered_once_and_deleted_by_its_user_alone(memory: Memory) -> None:
    service = HeedfulMemoryService(memory)
    sessions = InMemorySessionService()

    async def run() -> None:
        session = await sessions.create_session(app_name=APP, user_id="ada", session_id=SESSION)
        for author, text in (("user", "I like the sauna."), ("assistant", "It opens at noon.")):
            await sessions.append_event(session, Event(author=author, content=content(text)))
        for _ in range(2):
            await service.add_session_to_memory(session)
        found = await service.search_memory(app_name=APP, user_id="ada", query="When does the sauna open?")
        assert sorted(texts(found)) == ["I like the sauna.", "It opens at noon."]
        liked = next(each for each in found.memories if each.author == "user")
        assert (liked.custom_metadata["session_id"], liked.timestamp is not None) == (SESSION, True)
        with pytest.raises(NotFound):
            await service.delete_memory(app_name=APP, user_id="bo", memory_id=liked.id)
        await service.delete_memory(app_name=APP, user_id="ada", memory_id=liked.id)
        again = await service.search_memory(app_name=APP, user_id="ada", query="When does the sauna open?")
        assert texts(again) == ["It opens at noon."]

    asyncio.run(run())


def test_what_is_remembered_is_not_lost_in_silence(failing: Any) -> None:
    service = HeedfulMemoryService(failing)
    event = Event(author="user", content=content("I like the sauna."), id="1")
    with pytest.raises(heedful.Unavailable):
        asyncio.run(service.add_events_to_memory(app_name=APP, user_id="ada", events=[event]))
    with pytest.raises(heedful.Unavailable):
        asyncio.run(service.delete_memory(app_name=APP, user_id="ada", memory_id="1"))


def test_a_memory_that_is_too_big_is_refused(memory: Memory) -> None:
    service = HeedfulMemoryService(memory)
    event = Event(author="user", content=content("I like the sauna."), id="1")
    with pytest.raises(Invalid, match=r"is not stored.*the limit is 65536"):
        asyncio.run(
            service.add_events_to_memory(
                app_name=APP, user_id="ada", events=[event], custom_metadata={"page": "x" * 70_000}
            )
        )


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("google-adk", session="gym/ada/chat-1", model=Scripted(seen=[]))


class Hours(BaseModel):
    """When it opens."""

    hour: str


class Saying(Scripted):
    """Says one thing after another, or calls a tool, or fails."""

    script: list[Any] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if not self.script:
            async for each in super().generate_content_async(llm_request, stream):
                yield each
            return
        next_ = self.script.pop(0)
        if isinstance(next_, Exception):
            raise next_
        part = types.Part(text=next_) if isinstance(next_, str) else types.Part(function_call=next_)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def calling(tool: str, **arguments: Any) -> types.FunctionCall:
    return types.FunctionCall(name=tool, args=arguments)


def clock() -> str:
    """The time."""
    return "noon"


class TestEdgeCases(EdgeCases):
    """Of the plugin."""

    def made(self, memory: Any, *script: Any, options: Any = None, **more: Any) -> tuple[InMemoryRunner, Saying]:
        model = Saying(seen=[], script=list(script))
        agent = LlmAgent(name="assistant", model=model, **more)
        plugin = HeedfulPlugin(memory, **(options or {}))
        return InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=[plugin])), model

    def ask(
        self, memory: Any, question: str = QUESTION, *, session: str = SESSION, user: str = "ada", **options: Any
    ) -> Asked:
        run, model = self.made(memory, options=options)
        answer, invocation = asyncio.run(said(run, question, session, user=user))
        return Asked(model.seen[-1], invocation, answer)

    def use(self, memory: Any, tool: str, arguments: dict[str, Any], *, user: str = "ada", **options: Any) -> str:
        run, _ = self.made(memory, calling(tool, **arguments), tools=heedful_tools(memory, **options))

        async def results() -> list[Any]:
            await made(run, SESSION, user)
            events = run.run_async(user_id=user, session_id=SESSION, new_message=content(QUESTION))
            return [each.response async for event in events for each in event.get_function_responses()]

        return str(asyncio.run(results()))

    def user_of(self, context: Any) -> str:
        return str(context)

    async def tell(self, run: InMemoryRunner, message: types.Content, **more: Any) -> list[Event]:
        await made(run, SESSION)
        events = run.run_async(user_id="ada", session_id=SESSION, new_message=message, **more)
        return [event async for event in events]

    def ask_with_image_alone(self, memory: Any) -> str:
        image = types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png"))
        run, _ = self.made(memory)
        events = asyncio.run(self.tell(run, types.Content(role="user", parts=[image])))
        return str(events[-1].content.parts[0].text)  # type: ignore[union-attr,index]

    def ask_for_hours(self, memory: Any) -> None:
        run, _ = self.made(memory, STRUCTURED, output_schema=Hours)
        asyncio.run(said(run, QUESTION, SESSION))

    def stream(self, memory: Any) -> Asked:
        run, model = self.made(memory)
        answer, invocation = asyncio.run(said(run, QUESTION, SESSION, RunConfig(streaming_mode=StreamingMode.SSE)))
        return Asked(model.seen[-1], invocation, answer)

    def cancel(self, memory: Any) -> None:
        run, _ = self.made(memory)

        async def begin() -> None:
            await made(run, SESSION)
            config = RunConfig(streaming_mode=StreamingMode.SSE)
            asked = {"user_id": "ada", "session_id": SESSION, "new_message": content(QUESTION)}
            events = run.run_async(**asked, run_config=config)  # type: ignore[arg-type]
            async for _ in events:
                break
            await events.aclose()

        asyncio.run(begin())

    def retry(self, memory: Any) -> Asked:
        run, model = self.made(memory, RuntimeError("the model is down"))
        with pytest.raises(RuntimeError):
            asyncio.run(said(run, QUESTION, SESSION))
        answer, invocation = asyncio.run(said(run, QUESTION, SESSION))
        return Asked(model.seen[-1], invocation, answer)

    def approve(self, memory: Any) -> Asked:
        tool = FunctionTool(clock, require_confirmation=True)
        run, model = self.made(memory, calling("clock"), tools=[tool])

        async def both() -> list[Event]:
            waits = await self.tell(run, content(QUESTION))
            assert self.entries(memory) == []
            (call,) = [call for event in waits for call in event.get_function_calls() if call.name != "clock"]
            given = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True})
            return await self.tell(run, types.Content(role="user", parts=[types.Part(function_response=given)]))

        events = asyncio.run(both())
        return Asked(model.seen[-1], events[-1].invocation_id, ANSWER)

    def delegate(self, memory: Any) -> Asked:
        inner = LlmAgent(name="other", description="Knows.", model=Saying(seen=[], script=["The other says six."]))
        run, model = self.made(memory, calling("other", request="When?"), tools=[AgentTool(inner)])
        answer, invocation = asyncio.run(said(run, QUESTION, SESSION))
        return Asked(model.seen[-1], invocation, answer)
