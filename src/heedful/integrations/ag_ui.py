"""AG-UI: messages that tell a front end by which id their answer is rated."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    MessagesSnapshotEvent,
    TextMessageChunkEvent,
    TextMessageStartEvent,
)

from heedful.errors import Invalid

QA_ID = "heedful_qa_id"
"""The id of the answer, in the metadata of events and of messages."""


async def with_answer_id(events: AsyncIterable[BaseEvent], qa_id: str) -> AsyncIterator[BaseEvent]:
    """The events of a run, of which those that begin a message of the agent have the answer's id in their metadata.

    Front ends keep an event's metadata with the message: `answer_id(message)` of one that somebody gave a thumb has the
    id again. Give the adapter of your framework the same id for the answer.
    """
    begun: set[str] = set()
    named = {QA_ID: qa_id}
    async for event in events:
        if isinstance(event, TextMessageStartEvent | TextMessageChunkEvent) and event.role in (None, "assistant"):
            begun.add(event.message_id or "")
            yield event.model_copy(update={"metadata": {**(event.metadata or {}), **named}})
        elif isinstance(event, MessagesSnapshotEvent):
            # It takes the place of the messages, and may be without their metadata.
            messages = [
                each.model_copy(update={"metadata": {**(each.metadata or {}), **named}}) if each.id in begun else each
                for each in event.messages
            ]
            yield event.model_copy(update={"messages": messages})
        else:
            yield event


def answer_id(message: AssistantMessage) -> str:
    """The id of the answer that a message is part of: `memory.sessions.rate(answer_id(message), "up")` rates it."""
    found = (message.metadata or {}).get(QA_ID)
    if not isinstance(found, str):
        remedy = "Pass the events of its run through with_answer_id, and the whole message from the front end"
        raise Invalid("the message doesn't say which answer it is part of", field="message", remedy=remedy)
    return found
