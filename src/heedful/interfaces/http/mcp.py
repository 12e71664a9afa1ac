"""MCP over HTTP: the tools of an agent, for callers with a key. Needs the extra `mcp`.

The protocol and the tools are loaded with the first call: that takes a third of a server's start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from heedful.aio import AsyncHeedful
from heedful.api.calls import Arguments, Call
from heedful.errors import Forbidden, Invalid
from heedful.interfaces.http.calls import READING, json_of, runner
from heedful.interfaces.http.middleware import document
from heedful.interfaces.http.state import AllowedCalls, BodyLimit, Caller, ServerState, path_of
from heedful.model import Model
from heedful.version import __version__

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from heedful.interfaces.mcp.tools import Tool

ACCESS = "heedful.mcp"
"""The key of a request's scope under which its `Access` is."""

MAX_MESSAGE = 6_500_000
"""Bytes of a message: a fact at its limit fits in."""

MAX_ENVELOPE = 16_384
"""Bytes of a message without the arguments of a tool. The protocol's library reads it on the event loop, and says of
what it refuses all that is in it."""


class Agents:
    """Passes requests on to the endpoint of MCP."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._ended = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._endpoint: asyncio.Future[McpEndpoint] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A block in which requests are answered."""
        try:
            yield
        finally:
            self._ended.set()
            if self._serving is not None:
                await self._serving

    async def answer(self, request: Request) -> Response:
        """Checks who calls, before anything is loaded for them, and has the endpoint answer."""
        origin = request.headers.get("origin")
        # Pages in a browser need to be allowed, so that none reaches a server of its visitor's by another name.
        if origin is not None and not {origin, "*"}.intersection(self._state.config.cors_origins):
            message = "pages of this origin may not call by MCP"
            remedy = "Start the server with --cors-origin and this origin"
            raise Forbidden(message, code="origin_not_allowed", field="Origin", value=origin, remedy=remedy)
        caller = await self._state.caller(request, None)
        if caller.claims is not None:
            # A token is for the feedback of one visitor, who sends it to other routes.
            caller.check("admin")
        if self._endpoint is None:
            self._endpoint = asyncio.get_running_loop().create_future()
            # In a task of its own, because what begins there has to end there.
            self._serving = asyncio.create_task(self._serve(self._endpoint))
        return await (await asyncio.shield(self._endpoint)).answer(request, caller)

    async def _serve(self, endpoint: asyncio.Future[McpEndpoint]) -> None:
        try:
            loaded = await asyncio.to_thread(self._load)
            async with loaded.sessions.run():
                endpoint.set_result(loaded)
                await self._ended.wait()
        except Exception as error:
            if endpoint.done():
                raise
            # The next call tries again.
            self._endpoint = None
            endpoint.set_exception(error)

    def _load(self) -> McpEndpoint:
        return McpEndpoint(self._state)


@dataclass(frozen=True, slots=True)
class Access:
    """The caller, the project that the tools work on, and the message."""

    caller: Caller
    project: str
    tools: Mapping[str, Tool]
    body: bytes
    arguments: Mapping[str, Any]
    """Those of the tool, which the protocol's library doesn't see."""


class McpEndpoint:
    """Answers requests of MCP. No session is kept, so that any worker can answer the next request of a client."""

    def __init__(self, state: ServerState) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from heedful.interfaces.mcp.agent_tools import choose
        from heedful.interfaces.mcp.serving import make_server

        self._state = state
        self._choose = choose
        self._limit = BodyLimit(min(MAX_MESSAGE, state.config.max_body))
        self.sessions = StreamableHTTPSessionManager(
            make_server(__version__, lambda request: _access(request).tools, self._run, _may),
            json_response=True,
            stateless=True,
            max_request_body_size=self._limit.size,
        )

    async def answer(self, request: Request, caller: Caller) -> Response:
        """Hands a caller's message to the protocol."""
        named = path_of(request.path_params).get("project")
        project = caller.choose(named or caller.project or self._state.store.default_project)
        request.scope["heedful.project"] = project
        tools = self._choose(request.query_params.get("tools", "agent"))
        limit = READING if caller.scopes == {"read"} else self._limit
        async with self._state.body(request, project, caller, limit) as body:
            envelope, arguments = await self._state.parse(body, project, caller, lambda: _split(body, limit.values))
        request.scope[ACCESS] = Access(caller, project, tools, body, arguments)
        return _Conversation(self.sessions, envelope)

    async def _run(self, request: Request, tool: Tool, _: Mapping[str, Any]) -> Model:
        request.scope["heedful.operation"] = tool.name
        access = _access(request)
        try:
            access.caller.check(tool.scope)
            read = partial(tool.parameters.read, access.arguments)
            values = await self._state.parse(access.body, access.project, access.caller, read)
            return await tool.call(_memory(self._state, request, access), **values)
        except Exception as error:
            # Noted, and told without what is inside, as those of other routes are.
            request.scope["heedful.error"] = error
            raise document(error, request.scope["heedful.request_id"])[2] from error


def _split(body: bytes, most: int) -> tuple[bytes, dict[str, Any]]:
    """A message without the arguments of its tool, and these."""
    # Also refuses what is nested too deep for the parser of the protocol.
    json_of(body, most)
    # Not by orjson, which makes a fraction of a whole number of more than 64 bits.
    message = from_json(body) if body.strip() else None
    arguments: dict[str, Any] = {}
    params = message.get("params") if isinstance(message, dict) else None
    if isinstance(params, dict) and isinstance(params.get("arguments"), dict):
        arguments, params["arguments"] = params["arguments"], {}
    envelope = to_json(message)
    if (size := len(envelope)) > MAX_ENVELOPE:
        problem = f"the message has {size} bytes besides the arguments of a tool, the limit is {MAX_ENVELOPE}"
        remedy = "Send one request of JSON-RPC, with what is long in params.arguments"
        raise Invalid(problem, code="body_too_large", field="body", value=size, remedy=remedy)
    return envelope, arguments


def _access(request: Request) -> Access:
    access: Access = request.scope[ACCESS]
    return access


def _may(request: Request, tool: Tool) -> bool:
    return tool.scope in _access(request).caller.scopes


def _memory(state: ServerState, request: Request, access: Access) -> AsyncHeedful:
    """The calls of a project, checked and run as those of other routes are."""

    async def run(operation: Call, arguments: Arguments) -> Any:
        if operation.scope == "read":
            access.caller.check("read")

        def work() -> Any:
            with state.opened(request, access.project, access.caller, operation) as project:
                if operation.undoes is not None:
                    access.caller.check(project.scope_to_retract(arguments[operation.undoes]))
                return AllowedCalls(project, access.caller)._run(operation, arguments)

        return await runner(state, operation, arguments, access.project, access.caller, len(access.body))(work)

    async def close() -> None:
        """The store is the server's."""

    return AsyncHeedful(run, close, f"<Heedful project {access.project!r}>")


class _Conversation(Response):
    """The response of the protocol to a body that was read."""

    def __init__(self, sessions: StreamableHTTPSessionManager, body: bytes) -> None:
        super().__init__()
        self._sessions = sessions
        self._message: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receiving() -> Message:
            message, self._message = self._message, None
            return await receive() if message is None else message

        await self._sessions.handle_request(scope, receiving, send)
