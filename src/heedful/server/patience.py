"""How long a body may take to arrive: a connection that drips is not waited for."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.errors import Invalid

SLOWEST = 10_000
"""Bytes a second that a body may bring its time with."""


class Patience:
    """Waits so many seconds for a body, and longer for one that keeps coming."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left, whole = self._seconds, False

        async def receiving() -> Message:
            nonlocal left, whole
            if whole:
                return await receive()
            began = time.monotonic()
            try:
                async with asyncio.timeout(max(left, 0)):
                    message = await receive()
            except TimeoutError:
                raise Invalid(
                    "the body takes too long to arrive",
                    code="too_slow",
                    remedy=f"Send at least {SLOWEST} bytes a second, or send it in several calls",
                ) from None
            if message["type"] == "http.request":
                left += len(message.get("body", b"")) / SLOWEST - (time.monotonic() - began)
                whole = not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 408:
                message["headers"].append((b"connection", b"close"))
            await send(message)

        await self._app(scope, receiving, sending)
