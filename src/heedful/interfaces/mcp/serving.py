"""The MCP server, and its conversation over standard input and output. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, cast

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool

from heedful.aio import AsyncHeedful
from heedful.errors import HeedfulError, quoted
from heedful.interfaces.mcp.tools import INSTRUCTIONS, TOOLS, Tool
from heedful.interfaces.mcp.wording import describe, describe_error
from heedful.model import Model

Run = Callable[[Any, Tool, Mapping[str, Any]], Awaitable[Model]]
"""Makes the call of a tool, given the HTTP request that it came with, if there is one, and its arguments."""


async def serve(store: AsyncHeedful, version: str) -> None:
    """Answers one client until standard input ends, the client goes away, or a signal says to stop.

    Calls that are under way are finished first; closing the store is left to the caller.
    """
    server = server_of(store, version)
    lines = _Lines(asyncio.get_running_loop())
    lines.start()
    try:
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", lines)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* ConnectionError:
        # Nobody reads the answers any more, which is another way to leave.
        pass


def server_of(store: AsyncHeedful, version: str) -> Server[Any]:
    """The server of a store, on no transport yet."""
    return make_server(version, lambda _: TOOLS.values(), lambda _, tool, arguments: tool.run(store, arguments))


def make_server(version: str, tools: Callable[[Any], Collection[Tool]], run: Run) -> Server[Any]:
    """A server that lists these tools, and makes their calls by `run`; both are given the HTTP request, or None."""
    definitions = {tool.name: _tool_definition(tool) for tool in TOOLS.values()}

    async def list_tools(context: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[definitions[tool.name] for tool in tools(context.request)])

    async def call_tool(context: ServerRequestContext[Any], request: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(request.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"no tool {quoted(request.name)}. Use one of {', '.join(TOOLS)}")
        # A call that has begun can't be stopped halfway, so it is waited for.
        with anyio.CancelScope(shield=True):
            try:
                result = await run(context.request, tool, request.arguments or {})
            except HeedfulError as error:
                return _refusal(error)
        return CallToolResult(
            content=[TextContent(text=describe(result))], structured_content=result.model_dump(mode="json")
        )

    return Server(
        "heedful", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _tool_definition(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters.schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def _refusal(error: HeedfulError) -> CallToolResult:
    body = {"code": error.code, "message": error.message, "field": error.field, "remedy": error.remedy}
    return CallToolResult(
        content=[TextContent(text=describe_error(error))], structured_content={"error": body}, is_error=True
    )


class _Lines:
    """Standard input, line by line. A signal ends it, though a read still waits for a line that may never come."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()

    def start(self) -> None:
        """Begins to read, and to listen for signals where the platform lets us."""
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
