"""Limits on connections whose caller is not known yet: how large and slow a request may begin, and how many at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heedful.errors import Invalid

MAX_HEADERS = 98_304
"""Bytes of the address and the headers of a request; what a query string may have fits in."""

UNKNOWN = "heedful.connection"
"""Where a request finds its connection, to say that its caller is known."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server allows to those it doesn't know."""

    header_seconds: float = 10.0
    """How long the headers of a request may take."""
    most: int = 512
    """Connections at the same time, in a worker."""
    most_from_one: int = 128
    """The same, from one address that is no trusted proxy."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose headers are believed."""


class ServerConfig(uvicorn.Config):
    """The configuration of uvicorn, with the limits."""

    def __init__(self, app: Any, limits: Limits, **options: Any) -> None:
        self.limits = limits
        super().__init__(
            app,
            http=LimitedProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            # Whoever sends them may write into them what they like.
            proxy_headers=bool(limits.proxies),
            forwarded_allow_ips=list(limits.proxies),
            lifespan="on",
            **options,
        )


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed when its request begins too slowly or too large, or when there are too many."""

    _unknown: ClassVar[Counter[str]] = Counter()
    """Connections of this process whose caller is not known, by address."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limits: Limits = getattr(self.config, "limits", Limits())
        self._address = self.client[0] if self.client else ""
        self._timer: asyncio.TimerHandle | None = None
        self._size = 0
        self._refusal: tuple[int, str] | None = None
        self._is_unknown = True
        self._unknown[self._address] += 1
        if self._is_too_many():
            self._refuse(503, "Too many connections.")
        else:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self.mark_known()
        self._forget_timer()
        super().connection_lost(exc)

    def mark_known(self) -> None:
        """Says that the caller has shown a good key: the connection no longer counts."""
        if self._is_unknown:
            self._is_unknown = False
            self._unknown[self._address] -= 1
            if not self._unknown[self._address]:
                del self._unknown[self._address]

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        between = self.cycle is None or self.cycle.response_complete
        if between and self._timer is None:
            # Also for what is left of a body that nobody wanted.
            self._expect_headers()
        super().data_received(data)
        if self._timer is not None and self.parser is not None:
            self._size += len(data)
            if self._size > MAX_HEADERS and between:
                self._refuse(431, "The headers are too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._size = 0

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEADERS:
            self._refusal = (431, "The headers are too large.")
            raise ValueError("the headers are too large")
        self._forget_timer()
        super().on_headers_complete()
        cast(dict[str, Any], self.scope)[UNKNOWN] = self

    def send_400_response(self, msg: str) -> None:
        if self._refusal is None:
            super().send_400_response(msg)
        else:
            self._refuse(*self._refusal)

    def _expect_headers(self) -> None:
        self._forget_timer()
        self._timer = self.loop.call_later(self._limits.header_seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        self._refuse(408, "The request took too long to begin.")

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_too_many(self) -> bool:
        if self._unknown.total() > self._limits.most:
            return True
        return self._unknown[self._address] > self._limits.most_from_one and not _is_proxy(self._address, self._limits)

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        reason = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}[status]
        lines = [
            f"HTTP/1.1 {status} {reason}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(message)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*lines, "", message]).encode("ascii"))
        self.transport.close()


def _is_proxy(address: str, limits: Limits) -> bool:
    try:
        peer = ip_address(address)
    except ValueError:
        return False
    return any(peer in ip_network(proxy, strict=False) for proxy in limits.proxies)


MIN_BYTES_PER_SECOND = 10_000
"""Bytes a second that a body may bring its time with."""


class BodyTimeout:
    """Waits so many seconds for a body, and longer for one that keeps coming."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        remaining, is_complete = self._seconds, False

        async def receiving() -> Message:
            nonlocal remaining, is_complete
            if is_complete:
                return await receive()
            started = time.monotonic()
            try:
                async with asyncio.timeout(max(remaining, 0)):
                    message = await receive()
            except TimeoutError:
                raise Invalid(
                    "the body takes too long to arrive",
                    code="too_slow",
                    remedy=f"Send at least {MIN_BYTES_PER_SECOND} bytes a second, or send it in several calls",
                ) from None
            if message["type"] == "http.request":
                remaining += len(message.get("body", b"")) / MIN_BYTES_PER_SECOND - (time.monotonic() - started)
                is_complete = not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (408, 413) and not is_complete:
                # What is left of the body would be taken for the next request.
                message["headers"].append((b"connection", b"close"))
            await send(message)

        await self._app(scope, receiving, sending)
