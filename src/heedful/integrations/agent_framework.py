"""Microsoft's Agent Framework: a context provider."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Unpack

from agent_framework import (
    AgentResponse,
    AgentSession,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    SessionContext,
    SupportsAgentRun,
    tool,
)

from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import AnyMemory, BlockingMemory, Memories, Options, Turns

QA_ID = "heedful_qa_id"
"""The id of an answer for feedback, among the `additional_properties` of a response."""


class HeedfulProvider(ContextProvider):
    """Recalls before an agent runs, and stores its answer. Agents may share it. Functions in the options take the
    session of the run, whose `state` says what the application put there, such as the user.

    The session is the session. The id of the response is the answer's external id, where the model gives one, and in
    any case `memory.sessions.rate(response.additional_properties["heedful_qa_id"], "up")` rates it. A run that waits
    for approval has no answer yet: that of the run that goes on is stored, under the question of the first.
    """

    def __init__(self, memory: AnyMemory, *, source_id: str = "heedful", **options: Unpack[Options]) -> None:
        super().__init__(source_id)
        self._turns = Turns(memory, **options)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        question, waiting = _question(context.input_messages), state.pop("question", "")
        memories = await self._turns.arecall(waiting if question is None else question, session)
        # This context is that of one run; the state is kept with the session.
        context.metadata[self.source_id] = memories
        if memories.prompt:
            context.extend_instructions(self.source_id, memories.prompt)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        memories: Memories | None = context.metadata.get(self.source_id)
        response = context.response
        if memories is None or response is None:
            return
        if response.user_input_requests:
            state["question"] = memories.question
            return
        session_id = context.session_id or session.session_id
        qa_id = self._turns.store(session_id, memories, _answer(response), response.response_id, session)
        response.additional_properties[QA_ID] = qa_id


def _question(messages: list[Message]) -> str | None:
    """The last words of the user; None if they only approved of a call, or a tool's result is all there is."""
    for message in reversed(messages):
        if message.role == "user" and all(content.type != "function_approval_response" for content in message.contents):
            return message.text
    return None


def _answer(response: AgentResponse[Any]) -> Any:
    # It fails where the text isn't what was asked for.
    with suppress(ValueError):
        if response.value is not None:
            return response.value
    texts = [message.text for message in response.messages if message.role == "assistant"]
    return next((text for text in reversed(texts) if text), "")


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[FunctionTool]:
    """The tools `recall`, `remember` and `correct`. Functions in the options take the session of the run."""
    tools = MemoryTools(memory, **options)
    return [tool(each) for each in tools.functions(lambda call: call.session, "call", FunctionInvocationContext)]
