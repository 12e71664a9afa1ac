"""Thumbs in front ends that speak AG-UI, with an agent of Pydantic AI behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    UserMessage,
)
from loop import ANSWER, QUESTION, SESSION, Asked, Memory, check_loop, opened, run_examples
from pydantic_ai import Agent, models
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

from heedful.errors import Invalid
from heedful.integrations.ag_ui import QA_ID, answer_id, with_answer_id
from heedful.integrations.pydantic_ai import HeedfulCapability
from heedful.integrations.turns import finish

models.ALLOW_MODEL_REQUESTS = False


class Scripted:
    """Says the same always, and remembers what it was instructed with."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.model = FunctionModel(stream_function=self._stream)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        self.seen.append(str(info.instructions))
        yield ANSWER


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


def asked_in(thread_id: str, question: str = QUESTION) -> RunAgentInput:
    messages = [UserMessage(id="m-1", content=question)]
    return RunAgentInput(
        thread_id=thread_id, run_id="r", messages=messages, state={}, tools=[], context=[], forwarded_props={}
    )


async def in_front_end(events: AsyncIterable[BaseEvent]) -> AssistantMessage:
    """The message of a run, as a front end has it after the events went over the wire and into its state."""
    message = AssistantMessage(id="")
    async for event in events:
        wired = type(event).model_validate_json(event.model_dump_json(by_alias=True, exclude_none=True))
        if isinstance(wired, TextMessageStartEvent):
            message = AssistantMessage(id=wired.message_id, content="", metadata=wired.metadata)
        elif isinstance(wired, TextMessageContentEvent):
            message.content = f"{message.content}{wired.delta}"
    return AssistantMessage.model_validate_json(message.model_dump_json(by_alias=True, exclude_none=True))


def test_a_thumb_changes_the_next_prompt_and_its_retraction_changes_it_back(memory: Memory) -> None:
    scripted = Scripted()
    agent = Agent(scripted.model, capabilities=[HeedfulCapability(memory)])

    def ask() -> Asked:
        qa_id = str(uuid4())
        events = AGUIAdapter(agent, asked_in(SESSION)).run_stream(run_id=qa_id)
        message = asyncio.run(in_front_end(with_answer_id(events, qa_id)))
        assert message.id != qa_id
        return Asked(scripted.seen[-1], answer_id(message), str(message.content))

    check_loop(memory, ask)


async def named(*events: BaseEvent) -> list[BaseEvent]:
    async def given() -> AsyncIterator[BaseEvent]:
        for event in events:
            yield event

    return [event async for event in with_answer_id(given(), "qa-1")]


def test_only_what_the_agent_says_is_named() -> None:
    events: list[Any] = [
        RunStartedEvent(thread_id="t", run_id="r"),
        TextMessageStartEvent(message_id="m-2", role="user"),
        TextMessageChunkEvent(message_id="m-3", role="assistant", delta=ANSWER),
        RunFinishedEvent(thread_id="t", run_id="r"),
    ]
    started, by_user, by_agent, finished = asyncio.run(named(*events))
    assert [started, by_user, finished] == [events[0], events[1], events[3]]
    assert by_agent.metadata == {QA_ID: "qa-1"}
    assert events[2].metadata is None


def test_other_metadata_stay() -> None:
    (event,) = asyncio.run(named(TextMessageStartEvent(message_id="m-2", role="assistant", metadata={"cost": 1})))
    assert event.metadata == {"cost": 1, QA_ID: "qa-1"}


def test_a_snapshot_names_the_messages_of_the_run_alone() -> None:
    before = AssistantMessage(id="m-2", content="It is old.", metadata={QA_ID: "qa-0"})
    snapshot = MessagesSnapshotEvent(
        messages=[UserMessage(id="m-1", content=QUESTION), before, AssistantMessage(id="m-3", content=ANSWER)]
    )
    start = TextMessageStartEvent(message_id="m-3", role="assistant")
    _, event = asyncio.run(named(start, snapshot))
    assert isinstance(event, MessagesSnapshotEvent)
    assert [(each.metadata or {}).get(QA_ID) for each in event.messages] == [None, "qa-0", "qa-1"]


@pytest.mark.parametrize("metadata", [None, {}, {QA_ID: 7}])
def test_a_message_without_the_id_is_refused(metadata: Any) -> None:
    with pytest.raises(Invalid, match="which answer"):
        answer_id(AssistantMessage(id="m-3", content=ANSWER, metadata=metadata))


def test_the_page_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page: dict[str, Any] = {"model": Scripted().model}
    run_examples("ag-ui", page)
    message = asyncio.run(in_front_end(page["run"](asked_in("chat-1"))))
    page["thumb"](message, "up", "ada")
    with page["memory"] as memory:
        finish(memory)
        assert [each.feedback_score for each in memory.sessions.entries("chat-1").items] == [5]
