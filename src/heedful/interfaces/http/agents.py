"""Where agents call by MCP. What answers them is loaded with the first call: that takes a third of a server's start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from heedful.interfaces.http.state import State

if TYPE_CHECKING:
    from heedful.interfaces.http.mcp import McpEndpoint


class Agents:
    """Passes requests on to the endpoint of MCP."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._called = asyncio.Event()
        self._ended = asyncio.Event()
        self._endpoint: asyncio.Future[McpEndpoint] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A block in which requests are answered."""
        self._endpoint = asyncio.get_running_loop().create_future()
        # In a task of its own, because what begins there has to end there.
        serving = asyncio.create_task(self._serve(self._endpoint))
        try:
            yield
        finally:
            self._ended.set()
            self._called.set()
            await serving

    async def answer(self, request: Request) -> Response:
        """Waits for the endpoint, and has it answer."""
        assert self._endpoint is not None
        self._called.set()
        return await (await asyncio.shield(self._endpoint)).answer(request)

    async def _serve(self, endpoint: asyncio.Future[McpEndpoint]) -> None:
        await self._called.wait()
        if self._ended.is_set():
            return
        try:
            loaded = await asyncio.to_thread(self._load)
        except Exception as error:
            endpoint.set_exception(error)
            return
        async with loaded.running():
            endpoint.set_result(loaded)
            await self._ended.wait()

    def _load(self) -> McpEndpoint:
        from heedful.interfaces.http.mcp import McpEndpoint

        return McpEndpoint(self._state)
