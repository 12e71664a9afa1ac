"""The MCP server, its words for results, and its conversation over standard input and output. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, singledispatch
from threading import Thread
from typing import Any, cast

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from heedful import model
from heedful.aio import AsyncHeedful
from heedful.clock import new_id
from heedful.errors import HeedfulError, quoted
from heedful.interfaces.mcp.agent_tools import choose
from heedful.interfaces.mcp.tools import INSTRUCTIONS, EntryRating, StoredAnswer, Tool

Run = Callable[[Any, Tool, Mapping[str, Any]], Awaitable[model.Model]]
"""Makes the call of a tool, given the HTTP request that it came with, if there is one, and its arguments."""


async def serve(store: AsyncHeedful, version: str, profile: str = "agent") -> None:
    """Answers one client until standard input ends, the client goes away, or a signal says to stop.

    Calls that are under way are finished first; closing the store is left to the caller.
    """
    server = server_of(store, version, profile)
    try:
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", _Lines())) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* ConnectionError:
        # Nobody reads the answers any more, which is another way to leave.
        pass


def server_of(store: AsyncHeedful, version: str, profile: str = "agent") -> Server[Any]:
    """The server of a store, on no transport yet."""
    tools = choose(profile)
    # What one client is answered is one conversation, unless it says otherwise.
    session = {"session_id": f"mcp-{new_id()[-12:]}"}

    async def run(_: Any, tool: Tool, arguments: Mapping[str, Any]) -> model.Model:
        return await tool.run(store, {**session, **arguments} if tool.name == "answered" else arguments)

    return make_server(version, lambda _: tools, run)


def make_server(
    version: str, tools: Callable[[Any], Mapping[str, Tool]], run: Run, may: Callable[[Any, Tool], bool] | None = None
) -> Server[Any]:
    """A server that has these tools, lists those that its caller may use, and makes their calls by `run`; each function
    is given the HTTP request, or None."""

    async def list_tools(
        context: ServerRequestContext[Any], _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = [tool for tool in tools(context.request).values() if may is None or may(context.request, tool)]
        return types.ListToolsResult(tools=list(map(_tool_definition, listed)))

    async def call_tool(
        context: ServerRequestContext[Any], request: types.CallToolRequestParams
    ) -> types.CallToolResult:
        named = tools(context.request)
        tool = named.get(request.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool {quoted(request.name)}. Use one of {', '.join(named)}")
        # A call that has begun can't be stopped halfway, so it is waited for.
        with anyio.CancelScope(shield=True):
            try:
                result = await run(context.request, tool, request.arguments or {})
            except HeedfulError as error:
                return _refusal(error)
        return types.CallToolResult(
            content=[types.TextContent(text=describe(result))],
            structured_content=None if tool.is_brief else result.model_dump(mode="json"),
        )

    return Server(
        "heedful", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


@cache
def _tool_definition(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters.schema,
        output_schema=None if tool.is_brief else tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=False,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def _refusal(error: HeedfulError) -> types.CallToolResult:
    text = f"error ({error.code}): {error.message}" + (f"\n{error.remedy}" if error.remedy else "")
    body = {"code": error.code, "message": error.message, "field": error.field, "remedy": error.remedy}
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"error": body}, is_error=True
    )


class _Lines:
    """Standard input, line by line. A signal ends it, though a read still waits for a line that may never come."""

    def __init__(self) -> None:
        """Begins to read, and to listen for signals where the platform lets us."""
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        Thread(target=self._read, name="heedful-mcp-input", daemon=True).start()
        with suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                self._loop.add_signal_handler(number, self._queue.put_nowait, None)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._queue.get()) is not None:
            yield line

    def _read(self) -> None:
        # A descriptor of its own: the interpreter closes sys.stdin when it exits, which would wait for this read.
        with open(os.dup(0), encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._put(line)
        self._put(None)

    def _put(self, line: str | None) -> None:
        # The loop is closed if a signal came first.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)


MAX_LISTED = 10
"""Facts that `remember` lists one by one."""


@singledispatch
def describe(result: model.Model) -> str:
    """The result of a call in a few lines, for a model to read."""
    raise NotImplementedError(type(result).__name__)


@describe.register
def _(result: model.Recall) -> str:
    return _lines(
        [f"recall_id {result.recall_id}: {_count(len(result.hits), 'hit')}"],
        (f"{hit.rank}. {_one_line(hit.text)} (fact_id {hit.fact_id}, score {hit.score:.4f})" for hit in result.hits),
        [] if result.answer is None else [f"answer: {result.answer}"],
        [] if result.qa_id is None else [f"session_id {result.session_id}, qa_id {result.qa_id}"],
    )


@describe.register
def _(result: model.RememberResult) -> str:
    rest = len(result.facts) - MAX_LISTED
    return _lines(
        [f"{result.added} new, {result.known} known in {result.dataset}"],
        (f"{fact.fact_id} {_one_line(fact.text)[:80]}" for fact in result.facts[:MAX_LISTED]),
        [f"and {rest} more"] if rest > 0 else [],
        (
            f"conflict: fact {fact.conflicts_with} says {fact.other_value}, not {fact.value}: {_one_line(fact.text)}"
            for fact in result.conflicts[:MAX_LISTED]
        ),
    )


@describe.register
def _(result: model.SignalResult) -> str:
    return _lines(
        [f"{_count(result.processed, 'signal')} taken, {_count(len(result.updated_facts), 'fact')} updated"],
        (f"{signal.signal_type} for fact {signal.fact_id} (event_id {signal.event_id})" for signal in result.signals),
        (f"not taken: {error.message}" for error in result.errors),
    )


@describe.register
def _(result: StoredAnswer) -> str:
    return f"stored. When a person rates this answer, pass this to feedback: answer_id {result.answer_id}"


@describe.register
def _(result: model.Supersession) -> str:
    return f"corrected: fact {result.superseded_by} is recalled from now on, not {result.fact_id}"


@describe.register
def _(result: model.Entry | EntryRating) -> str:
    name = (result.external_id if isinstance(result, model.Entry) else None) or result.qa_id
    score = "no score" if result.feedback_score is None else f"the score {result.feedback_score} of 5"
    return f"stored: the answer {name} has {score}"


@describe.register
def _(result: model.Feedback) -> str:
    rating = result.rating or "no rating"
    return f"feedback {result.feedback_id}: {rating} for the session {result.session_id}; to undo it, retract it"


@describe.register
def _(result: model.ExecutionFeedback) -> str:
    rating = "right" if result.is_positive else "wrong"
    subject = result.execution_id or f"of message {result.chat_message_id}"
    return f"feedback {result.id}: execution {subject} was {rating}; to undo it, retract it"


@describe.register
def _(result: model.Improvement) -> str:
    refused = [f"not learnt from {kept.learnt_from} {kept.feedback_id}: {kept.detail}" for kept in result.not_learnt]
    if not result.changed:
        return _lines([f"nothing new in {result.dataset}"], refused)
    return _lines(
        [
            f"{_count(result.signals_added, 'signal')} added and {result.signals_retracted} retracted, "
            f"{_count(len(result.updated_facts), 'fact')} updated, {len(result.learnt)} learnt, "
            f"{len(result.forgotten)} forgotten in {result.dataset}"
        ],
        [*(f"learnt: {_one_line(fact.text)} (fact_id {fact.fact_id})" for fact in result.learnt), *refused],
    )


@describe.register
def _(result: model.Retraction) -> str:
    return f"{result.retracted} is retracted, {_count(len(result.updated_facts), 'fact')} updated"


@describe.register
def _(result: model.ForgetResult) -> str:
    message = f"{_count(result.facts, 'fact')} forgotten"
    if result.erased is None:
        message += f" in {result.dataset}"
    elif result.erased.author is None:
        message = f"nothing has this name, {message}"
    else:
        message = f"erased; now {result.erased.author}, {message}"
    return _lines(
        [message], (f"recalled again, since its correction is forgotten: {fact_id}" for fact_id in result.restored)
    )


def _lines(*parts: Iterable[str]) -> str:
    return "\n".join(line for part in parts for line in part)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _one_line(text: str) -> str:
    return " ".join(text.split())
