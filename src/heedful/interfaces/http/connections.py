"""Limits on connections: how large and slow a request may begin, and how many each caller holds open at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from itertools import chain
from typing import Any, NoReturn, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from heedful.errors import Unavailable
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.middleware import IS_DELAYED
from heedful.interfaces.http.state import KNOWN_AS, REQUEST_CYCLE
from heedful.model.limits import MAX_PATH, MAX_SEGMENT

MAX_FIELDS = 100
"""Headers of a request: however short they are, each takes memory, and time in which nothing else runs."""

MAX_QUEUED = 8
"""Requests that wait on a connection for the answer to the one before."""

MAX_HEADERS = 98_304
"""Bytes of the address and the headers of a request; what a query string may have fits in."""

RESERVED_DESCRIPTORS = 384
"""Descriptors of a process that are left for the store's files, databases, query processes, and connections that
were accepted but not counted yet."""

BACKLOG = 128
"""Connections that are accepted before the first of them is counted."""

MAX_CONNECTIONS = 4096
"""Connections of a worker, if it may have so many descriptors: each takes memory."""

MAX_TOKEN_CONNECTIONS = 16
"""Connections with one token; a browser opens six."""

UNREAD_SECONDS = 60
"""Seconds that a caller may leave an answer unread."""


TOO_MANY = (503, "Too many connections.")

Share = tuple[str, str]
"""Connections that are limited together: what they have in common, and its name."""

ALL: Share = ("all", "")


class Connections:
    """The open connections of a process.

    A connection counts for the caller of its last request. Where there are too many, the one that waited longest for
    a request is closed, so that only requests under way can fill a share.
    """

    def __init__(self, config: Config) -> None:
        most = _most_connections() if config.max_connections is None else config.max_connections
        unknown = max(1, min(config.max_unknown, most // 2))
        self._most = {
            "all": most,
            "unknown": unknown,
            "address": min(config.max_unknown_from_one, unknown),
            "project": max(1, most // 2),
            "visitors": max(1, most // 4),
            "key": max(1, most // 4),
            "token": max(1, min(MAX_TOKEN_CONNECTIONS, most // 8)),
        }
        self._held: dict[Share, dict[LimitedProtocol, None]] = {}
        """Those of each share; the one that waited longest first."""

    def count(self, share: Share = ALL) -> int:
        return len(self._held.get(share, ()))

    def most(self, share: Share) -> int:
        return self._most[share[0]]

    def move(self, connection: LimitedProtocol, shares: Sequence[Share]) -> Share | None:
        """Counts a connection in these shares instead of its former ones; the share that is full, if one is."""
        self.remove(connection)
        full = next((share for share in (ALL, *shares) if not self._has_room(share)), None)
        connection.shares = (ALL, *shares) if full is None else (ALL,)
        for share in connection.shares:
            self._held.setdefault(share, {})[connection] = None
        return full

    def remove(self, connection: LimitedProtocol) -> None:
        for share in connection.shares:
            del self._held[share][connection]
            if not self._held[share]:
                del self._held[share]
        connection.shares = ()

    def wait(self, connection: LimitedProtocol) -> None:
        """Says that a connection begins to wait for a request."""
        for share in connection.shares:
            self._held[share][connection] = self._held[share].pop(connection)

    def _has_room(self, share: Share) -> bool:
        while self.count(share) >= self.most(share):
            held = self._held[share]
            # Whoever is refused anyway goes before those who only wait.
            useless = chain((one for one in held if one.is_delayed), (one for one in held if one.is_idle))
            if share[0] in ("all", "unknown", "address"):
                # Whoever can't be told apart from others must not keep them waiting.
                useless = chain(useless, (one for one in held if one.is_stalled))
            longest = next(useless, None)
            if longest is None:
                return False
            longest.make_room()
        return True


def _most_connections() -> int:
    """The connections that the limit of descriptors leaves room for."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows has no such limit
        return MAX_CONNECTIONS
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2))


class ServerConfig(uvicorn.Config):
    """The configuration of uvicorn, with the limits."""

    def __init__(self, app: Any, config: Config, **options: Any) -> None:
        self.limits = config
        self.open_connections = Connections(config)
        super().__init__(
            app,
            http=LimitedProtocol,
            # What becomes of a connection that is handed over is not counted here.
            ws="none",
            backlog=BACKLOG,
            log_config=None,
            access_log=False,
            server_header=False,
            # Whoever sends them may write into them what they like.
            proxy_headers=bool(config.trusted_proxies),
            forwarded_allow_ips=config.trusted_proxies,
            lifespan="on",
            **options,
        )


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed when its request begins too slowly or too large, or when there are too many."""

    config: ServerConfig
    shares: tuple[Share, ...] = ()
    """The shares it counts for."""
    _running: RequestResponseCycle | None = None
    """The request under way, or the last one; others may have arrived behind it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limits = self.config.limits
        self._open = self.config.open_connections
        self._timer: asyncio.TimerHandle | None = None
        self._size = 0
        self._framing = 0
        """Bytes since the headers that are no body: sizes and extensions of chunks, and trailers."""
        self._refusal: tuple[int, str] | None = None
        accepted = transport.get_extra_info("socket")
        if hasattr(socket, "TCP_USER_TIMEOUT") and accepted.family != getattr(socket, "AF_UNIX", None):
            # Closing alone would wait for somebody who doesn't read.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECONDS * 1000)
        address = self.client[0] if self.client else ""
        unknown: list[Share] = [("unknown", "")]
        if not _is_proxy(address, self._limits.trusted_proxies):
            unknown.append(("address", address))
        if self._open.move(self, unknown) is None:
            self._expect_headers()
        else:
            self._refuse(*TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.remove(self)
        self._forget_timer()
        self._disconnect()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self._running is None or self._running.response_complete

    @property
    def is_delayed(self) -> bool:
        """Whether the answer under way is a refusal that is kept back."""
        return self._running is not None and not self.is_idle and IS_DELAYED in self._running.scope

    @property
    def is_stalled(self) -> bool:
        """Whether a request is under way whose body doesn't arrive, or whose answer isn't read."""
        running = self._running
        return self.flow.write_paused or (running is not None and running.more_body and not running.response_started)

    def make_room(self) -> None:
        """Closes the connection at once, for one that is needed more."""
        self._open.remove(self)
        if self._running is None:
            self._refuse(*TOO_MANY)
        else:
            self._disconnect()
            self.transport.abort()

    def _known_as(
        self, cycle: RequestResponseCycle, caller: str, project: str | None, *, is_visitor: bool = False
    ) -> None:
        """Counts the connection for the caller of a request; `Unavailable` if they have too many requests under way."""
        shares: list[Share] = [("token" if is_visitor else "key", caller)]
        if project is not None:
            shares += [("visitors", project), ("project", project)] if is_visitor else [("project", project)]
        full = None if self.shares == (ALL, *shares) else self._open.move(self, shares)
        if full is not None:
            cycle.keep_alive = False
            whose = {"visitors": "visitors of this project", "project": "this project"}.get(full[0], f"one {full[0]}")
            message = f"more than {self._open.most(full)} requests of {whose} are under way at the same time"
            remedy = "Wait as long as Retry-After says, and send it again"
            raise Unavailable(message, code="rate_limited", value=1, remedy=remedy)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        between = self.is_idle
        if between and self._timer is None:
            # Also for what is left of a body that nobody wanted.
            self._expect_headers()
        self._framing += len(data)
        super().data_received(data)
        if self._framing > MAX_HEADERS and self._is_in_body():
            self._refuse(431, "The body has too little in its chunks, or too many trailers.")
        if self._timer is not None and self.parser is not None:
            self._size += len(data)
            if self._size > MAX_HEADERS and between:
                self._refuse(431, "The headers are too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are no headers: nobody reads them, and a proxy in front may not have looked at them.
        if not self._is_in_body():
            if len(self.headers) >= MAX_FIELDS:
                self._stop(431, f"There are more than {MAX_FIELDS} headers.")
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        # A chunk may take as many bytes besides as it has.
        self._framing = max(0, self._framing - 2 * len(body))
        super().on_body(body)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEADERS:
            self._stop(431, "The headers are too large.")
        path = self.url.partition(b"?")[0]
        if len(path) > MAX_PATH:
            self._stop(414, f"The path has {len(path)} bytes, the limit is {MAX_PATH}.")
        if (longest := max(map(len, path.split(b"/")))) > MAX_SEGMENT:
            self._stop(414, f"A part of the path has {longest} bytes, the limit is {MAX_SEGMENT}.")
        if len(self.pipeline) >= MAX_QUEUED:
            self._stop(503, f"More than {MAX_QUEUED} requests wait on this connection.")
        self._forget_timer()
        self._framing = 0
        super().on_headers_complete()
        cast(dict[str, Any], self.scope)[KNOWN_AS] = partial(self._known_as, self.cycle)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        REQUEST_CYCLE.set(cycle)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._open.wait(self)

    def _stop(self, status: int, message: str) -> NoReturn:
        """Ends the reading of a request, and refuses it."""
        self._refusal = (status, message)
        raise ValueError(message)

    def send_400_response(self, msg: str) -> None:
        if self._refusal is None:
            super().send_400_response(msg)
        else:
            self._refuse(*self._refusal)

    def _disconnect(self) -> None:
        """Tells the request under way that nobody is left to answer."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def _is_in_body(self) -> bool:
        return self.cycle is not None and self.cycle.scope is self.scope and self.cycle.more_body

    def _expect_headers(self) -> None:
        self._forget_timer()
        refuse = partial(self._refuse, 408, "The request took too long to begin.")
        self._timer = self.loop.call_later(self._limits.header_seconds, refuse)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        retry = "retry-after: 1\r\n" if status == 503 else ""
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        head += f"content-length: {len(message)}\r\n{retry}connection: close\r\n\r\n"
        self.transport.write((head + message).encode("ascii"))
        self.transport.close()


def _is_proxy(address: str, proxies: Sequence[str]) -> bool:
    try:
        peer = ip_address(address)
    except ValueError:
        return False
    return any(peer in ip_network(proxy, strict=False) for proxy in proxies)


def is_loopback(host: str | None) -> bool:
    """Whether an address is of this machine."""
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False
