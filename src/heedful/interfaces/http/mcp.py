"""MCP over HTTP: the tools of an agent, for callers with a key. Needs the extra `mcp`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from heedful import request_context
from heedful.aio import AsyncHeedful
from heedful.errors import Invalid
from heedful.interfaces.http.callers import Caller, check_allowed
from heedful.interfaces.http.calls import runner
from heedful.interfaces.http.envelope import document
from heedful.interfaces.http.reading import READING, BodyLimit, json_of, path_of
from heedful.interfaces.http.state import State
from heedful.interfaces.mcp.serving import make_server
from heedful.interfaces.mcp.tools import TOOLS, Tool
from heedful.interfaces.operations import OPERATIONS
from heedful.model import Model
from heedful.version import __version__

ACCESS = "heedful.mcp"
"""Where a request has who calls, and which project."""

MAX_MESSAGE = 6_500_000
"""Bytes of a message: a fact at its limit fits in."""

MAX_ENVELOPE = 16_384
"""Bytes of a message without the arguments of a tool. The protocol's library reads it on the event loop, and says of
what it refuses all that is in it."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who calls, the project that the tools work on, and what was sent."""

    caller: Caller
    project: str
    body: bytes
    arguments: Mapping[str, Any]
    """Those of the tool, which the protocol's library doesn't see."""


class McpEndpoint:
    """Answers requests of MCP. No session is kept, so that any worker can answer the next request of a client."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._limit = BodyLimit(min(MAX_MESSAGE, state.config.max_body))
        self._sessions = StreamableHTTPSessionManager(
            make_server(__version__, _tools, self._run),
            json_response=True,
            stateless=True,
            max_request_body_size=self._limit.size,
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """A block in which requests are answered."""
        return self._sessions.run()

    async def answer(self, request: Request, caller: Caller) -> Response:
        """Hands a caller's message to the protocol."""
        named = path_of(request.path_params).get("project")
        project = caller.choose(named or caller.project or self._state.store.default_project)
        request.scope["heedful.project"] = project
        limit = READING if caller.scopes == {"read"} else self._limit
        async with self._state.body(request, project, caller, limit) as body:
            envelope, arguments = await self._state.parse(body, project, caller, lambda: _split(body, limit.values))
        request.scope[ACCESS] = Access(caller, project, body, arguments)
        return _Conversation(self._sessions, envelope)

    async def _run(self, request: Request, tool: Tool, _: Mapping[str, Any]) -> Model:
        request.scope["heedful.operation"] = tool.name
        access: Access = request.scope[ACCESS]
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
    if len(envelope) > MAX_ENVELOPE:
        raise Invalid(
            f"the message has {len(envelope)} bytes besides the arguments of a tool, the limit is {MAX_ENVELOPE}",
            code="body_too_large",
            field="body",
            value=len(envelope),
            remedy="Send one request of JSON-RPC, with what is long in params.arguments",
        )
    return envelope, arguments


def _tools(request: Request) -> Collection[Tool]:
    """Those that the caller may use."""
    return [tool for tool in TOOLS.values() if tool.scope in request.scope[ACCESS].caller.scopes]


def _memory(state: State, request: Request, access: Access) -> AsyncHeedful:
    """The calls of a project, checked and run as those of other routes are."""

    async def run(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operation = OPERATIONS[f"{namespace}.{name}".lstrip(".")]
        if operation.scope == "read":
            access.caller.check("read")

        def work() -> Any:
            if access.caller.project is None and operation.scope == "read":
                state.store.check_known(access.project)
            acting = request_context.acting_as(access.caller.calling(request))
            with acting, state.storing(access.project, operation), state.store.using(access.project) as project:
                if operation.undoes is not None:
                    access.caller.check(project.scope_to_retract(kwargs[operation.undoes]))
                engine = check_allowed(project, access.caller)
                owner = getattr(engine, namespace) if namespace else engine
                return getattr(owner, name)(*args, **kwargs)

        return await runner(state, operation, kwargs, access.project, access.caller)(work)

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
