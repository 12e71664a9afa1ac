"""Where agents call by MCP. What answers them is loaded with the first call: that takes a third of a server's start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from heedful.errors import Forbidden
from heedful.interfaces.http.state import State

if TYPE_CHECKING:
    from heedful.interfaces.http.mcp import McpEndpoint


class Agents:
    """Passes requests on to the endpoint of MCP."""

    def __init__(self, state: State) -> None:
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
        self._check_origin(request)
        caller = await self._state.caller(request, None)
        if caller.claims is not None:
            # A token is for the feedback of one visitor, who sends it to other routes.
            caller.check("admin")
        if self._endpoint is None:
            self._endpoint = asyncio.get_running_loop().create_future()
            # In a task of its own, because what begins there has to end there.
            self._serving = asyncio.create_task(self._serve(self._endpoint))
        return await (await asyncio.shield(self._endpoint)).answer(request, caller)

    def _check_origin(self, request: Request) -> None:
        """Pages in a browser need to be allowed, so that none reaches a server of its visitor's by another name."""
        origin = request.headers.get("origin")
        if origin is not None and not {origin, "*"}.intersection(self._state.config.cors_origins):
            raise Forbidden(
                "pages of this origin may not call by MCP",
                code="origin_not_allowed",
                field="Origin",
                value=origin,
                remedy="Start the server with --cors-origin and this origin",
            )

    async def _serve(self, endpoint: asyncio.Future[McpEndpoint]) -> None:
        try:
            loaded = await asyncio.to_thread(self._load)
            async with loaded.running():
                endpoint.set_result(loaded)
                await self._ended.wait()
        except Exception as error:
            if endpoint.done():
                raise
            # The next call tries again.
            self._endpoint = None
            endpoint.set_exception(error)

    def _load(self) -> McpEndpoint:
        from heedful.interfaces.http.mcp import McpEndpoint

        return McpEndpoint(self._state)
