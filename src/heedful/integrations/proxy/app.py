"""The proxy as an application: it lets requests through to the endpoint behind it, and those that ask a model with
memories."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import orjson
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from heedful.access.credentials import id_of
from heedful.clock import new_id
from heedful.errors import Forbidden, Invalid, NotFound, Unavailable, quoted
from heedful.integrations.proxy.conversations import Conversations, Turn
from heedful.integrations.proxy.protocols import PROTOCOLS, AnswerReader, Protocol, Reply, answer_name
from heedful.integrations.turns import BlockingMemory
from heedful.interfaces.http.app import GRACE, listen, set_up
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig, is_loopback
from heedful.interfaces.http.middleware import BodyTimeout, document
from heedful.interfaces.http.state import KNOWN_AS, BodyLimit, Caller, body_of, presented_key
from heedful.model import Scope as KeyScope
from heedful.model import limits

logger = logging.getLogger("heedful.proxy")

OWN = "/heedful/"
"""The beginning of paths that the proxy answers itself."""

RATINGS = f"{OWN}ratings/"
RATING_FIELDS = ("rating", "comment", "scale", "author")

CONNECT_SECONDS = 10.0
UPSTREAM_SECONDS = 600.0
"""Seconds that the endpoint may be silent; models that think say nothing for minutes."""

RATING_SECONDS = 10.0
"""Seconds that a rating, or looking up a key, may take."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade expect".split()
)

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Upstream:
    """The endpoint behind the proxy."""

    url: str
    """As clients of it have it as their base URL."""
    key: str | None = None
    """Sent instead of the key of callers."""


class Proxy:
    """An ASGI application. `memory` is used for all callers; `find_caller` knows keys, and without it, none is
    needed: then only programs on this machine may call."""

    def __init__(
        self,
        memory: BlockingMemory,
        upstream: Upstream,
        *,
        project: str,
        max_body: int,
        find_caller: Callable[[str], Caller] | None = None,
        **options: Any,
    ) -> None:
        self._memory = memory
        self._conversations = Conversations(memory, **options)
        self._upstream = upstream
        self._url = httpx.URL(upstream.url)
        timeout = httpx.Timeout(UPSTREAM_SECONDS, connect=CONNECT_SECONDS, pool=None)
        self._client = httpx.AsyncClient(timeout=timeout, limits=httpx.Limits(max_keepalive_connections=100))
        self._project = project
        self._limit = BodyLimit(max_body, remedy="Start the proxy with a larger --max-body")
        self._find_caller = find_caller
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="heedful-proxy")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        started, status = time.perf_counter(), 0

        async def sending(message: Any) -> None:
            nonlocal status
            status = status or message["status"]
            await send(message)

        path = scope["raw_path"].decode("ascii", errors="replace")
        try:
            await self._answer(Request(scope, receive), path, sending)
        except ClientDisconnect:
            pass
        except Exception as error:
            code, body = _problem(error)
            if status:
                raise
            await _send(sending, code, [(b"content-type", b"application/problem+json")], body)
        finally:
            milliseconds = (time.perf_counter() - started) * 1000
            logger.info("%s %s %s %.1f ms", scope["method"], path[:200], status or 499, milliseconds)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begins and ends with the server; answers that are being stored are waited for."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._conversations.finish()
        await self._client.aclose()
        self._pool.shutdown(wait=False, cancel_futures=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, request: Request, path: str, send: Send) -> None:
        is_rating = path.startswith(RATINGS)
        is_reading = request.method in ("GET", "HEAD", "OPTIONS")
        key = await self._admit(request, "feedback" if is_rating else "read" if is_reading else "write")
        if is_rating and request.method == "PUT":
            await self._rate(request, unquote(path.removeprefix(RATINGS)), send)
        elif path.startswith(OWN):
            raise NotFound(f"no route for {request.method} {path[:200]}", code="no_route", remedy=f"PUT {RATINGS}ID")
        elif any(unquote(segment) in (".", "..") for segment in path.split("/")):
            # Nobody leaves the path of the base URL with its key.
            raise NotFound(f"no route for {path[:200]}", code="no_route", remedy="Leave . and .. out of the path")
        else:
            await self._pass_on(request, path, key, send)

    async def _admit(self, request: Request, scope: KeyScope) -> str | None:
        """The key with which somebody may call; None if none is needed."""
        if self._find_caller is None:
            for name in ("host", "origin"):
                value = request.headers.get(name, "")
                # A page that somebody looks at must not reach a program on their machine, by whatever name.
                if value and not is_local(urlsplit(value if "://" in value else f"//{value}").hostname):
                    raise Forbidden(
                        f"without a key, only programs on this machine may call, and {name} is {quoted(value)}",
                        code="origin_not_allowed",
                        field=name,
                        remedy="Set HEEDFUL_PROXY_KEY, and send it as the API key",
                    )
            caller = "local"
            key = None
        else:
            key = request.headers.get("x-heedful-key") or presented_key(request.headers.get("authorization"), None)
            found = await self._in_thread(partial(self._find_caller, key))
            if found.claims is not None:
                # A token is for one visitor, who sends it to a server.
                raise Forbidden("tokens can't be used here", code="key_invalid", remedy="Use a key of the store")
            found.choose(self._project)
            found.check(scope)
            caller = found.key_id
        if known_as := request.scope.get(KNOWN_AS):
            known_as(caller, self._project)
        return key

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        try:
            async with asyncio.timeout(RATING_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._pool, call)
        except TimeoutError:
            raise Unavailable("the store did not answer in time", remedy="Send it again later") from None

    async def _rate(self, request: Request, answer_id: str, send: Send) -> None:
        raw = await body_of(request, BodyLimit(limits.MAX_FEEDBACK_BODY, remedy="Send a shorter comment"))
        try:
            given = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Invalid(f"the body is not JSON ({error})", code="malformed", remedy="Send UTF-8 JSON") from None
        if not isinstance(given, dict):
            raise Invalid("the body must be a JSON object", code="malformed", remedy='Send {"rating": "up"}')
        if unknown := next((name for name in given if name not in RATING_FIELDS), None):
            raise Invalid.unknown("field", unknown, RATING_FIELDS)
        given.setdefault("author", _header(request, "x-heedful-user"))
        stored = bool(await self._in_thread(partial(self._memory.sessions.rate, answer_name(answer_id), **given)))
        body = orjson.dumps({"stored": stored})
        await _send(send, 200 if stored else 202, [(b"content-type", b"application/json")], body)

    async def _pass_on(self, request: Request, path: str, key: str | None, send: Send) -> None:
        path = path.removeprefix("/v1") if path.startswith("/v1/") else path
        protocol = PROTOCOLS.get(path) if request.method == "POST" else None
        headers = self._headers(request.headers.raw, key)
        turn: Turn | None = None
        is_read = asyncio.Event()
        content: bytes | AsyncIterator[bytes] | None = None
        if protocol is not None:
            content = await body_of(request, self._limit)
            # So Open WebUI calls chats that are not to be kept.
            is_temporary = request.headers.get("x-heedful-session", "").startswith(("temporary:", "local:"))
            if not is_temporary and not request.headers.get("x-heedful-skip"):
                content, turn = await self._remember(protocol, request, content)
            dropped = (b"content-length", b"accept-encoding") if turn is not None else (b"content-length",)
            headers = [(name, value) for name, value in headers if name not in dropped]
            # An answer that is read must not be compressed.
            headers += [(b"accept-encoding", b"identity")] if turn is not None else []
        elif "content-length" in request.headers or "transfer-encoding" in request.headers:
            content = _stream(request, is_read)
        if content is None or isinstance(content, bytes):
            is_read.set()
        query = request.scope["query_string"]
        target = self._url.raw_path.rstrip(b"/") + path.encode() + (b"?" + query if query else b"")
        outgoing = httpx.Request(request.method, self._url.copy_with(raw_path=target), headers=headers, content=content)
        await _unless_gone(request.receive, is_read, self._exchange(outgoing, protocol, turn, send))

    def _headers(self, given: Iterable[tuple[bytes, bytes]], key: str | None) -> Headers:
        """The headers of a request as they are passed on, without any key of Heedful's."""
        headers = [
            (name, value)
            for name, value in _end_to_end(given)
            if name != b"host" and not name.startswith(b"x-heedful-") and not _has_key(value, key)
        ]
        if self._upstream.key is not None:
            headers = [(name, value) for name, value in headers if name != b"authorization"]
            headers.append((b"authorization", b"Bearer " + self._upstream.key.encode()))
        return headers

    async def _remember(self, protocol: Protocol, request: Request, raw: bytes) -> tuple[bytes, Turn | None]:
        """A request with memories, and what becomes of its answer; one that asks nothing stays as it is."""
        try:
            text = raw.decode()
            given = await asyncio.to_thread(json.loads, text)
        except (ValueError, RecursionError):
            return raw, None
        if not isinstance(given, dict):
            return raw, None
        asked = protocol.asked(given)
        user, session, answer_id = (_header(request, f"x-heedful-{name}") for name in ("user", "session", "answer"))
        turn = await self._conversations.ask(asked, user or asked.user, session, answer_id)
        if turn is not None and turn.memories.prompt:
            raw = (await asyncio.to_thread(protocol.with_memories, text, turn.memories.prompt)).encode()
        return raw, turn

    async def _exchange(
        self, outgoing: httpx.Request, protocol: Protocol | None, turn: Turn | None, send: Send
    ) -> None:
        try:
            answer = await self._client.send(outgoing, stream=True)
        except httpx.TimeoutException as error:
            remedy = "Ask again, or look at what is behind HEEDFUL_UPSTREAM"
            raise Unavailable(_failed("did not answer", error), code="upstream_timeout", remedy=remedy) from error
        except httpx.HTTPError as error:
            remedy = "Check HEEDFUL_UPSTREAM, and whether it runs"
            raise Unavailable(_failed("can't be reached", error), code="upstream_failed", remedy=remedy) from error
        reader: AnswerReader | None = None
        if protocol is not None and turn is not None:
            reader = _reader(protocol, answer, partial(self._conversations.keep, turn))
        async with aclosing(answer):
            start = {"type": "http.response.start", "status": answer.status_code}
            await send({**start, "headers": _end_to_end(answer.headers.raw)})
            try:
                async for part in answer.aiter_raw():
                    if reader is not None:
                        # Before it is sent: what continues a response may follow at once.
                        reader.feed(part)
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            except httpx.HTTPError as error:
                # Not ended properly, so that nobody takes it for the whole.
                logger.warning("%s", _failed("stopped in the middle of an answer", error))
            finally:
                if reader is not None:
                    # Callers may leave with the last word.
                    reader.end()


def serve(app: Proxy, config: Config, ready: Callable[[str], None]) -> None:
    """Serves until it is stopped; `ready` is called with the address."""
    set_up(config)
    listening, address = listen(config)
    ready(address)
    limited = BodyTimeout(app, config.body_seconds)
    options = {"timeout_graceful_shutdown": GRACE, "date_header": False}
    uvicorn.Server(ServerConfig(limited, config, **options)).run(sockets=[listening])


def is_local(host: str | None) -> bool:
    """Whether a host is this machine, as programs on it or in its containers call it."""
    named = host in ("localhost", "host.docker.internal") or (host or "").endswith(".localhost")
    return named or is_loopback(host)


def _reader(protocol: Protocol, answer: httpx.Response, keep: Callable[[Reply], None]) -> AnswerReader | None:
    """Reads an answer that can be read; errors, and what is compressed, are not."""
    if not answer.is_success or "content-encoding" in answer.headers:
        return None
    is_stream = "event-stream" in answer.headers.get("content-type", "").lower()
    length = answer.headers.get("content-length", "")
    return AnswerReader(protocol, keep, is_stream, int(length) if length.isdecimal() and not is_stream else None)


async def _unless_gone(receive: Receive, is_read: asyncio.Event, work: Awaitable[None]) -> None:
    """Does the work, and stops when the caller has gone."""

    async def gone() -> None:
        await is_read.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        await working
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _stream(request: Request, is_read: asyncio.Event) -> AsyncIterator[bytes]:
    async for part in request.stream():
        yield part
    is_read.set()


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers without those that are about one connection."""
    lower = [(name.lower(), value) for name, value in headers]
    named = {part.strip().lower() for name, value in lower if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in lower if name not in HOP_BY_HOP | named]


def _has_key(value: bytes, key: str | None) -> bool:
    """Whether a header has this key, or any of a store's."""
    text = value.decode("latin-1")
    return (key is not None and key in text) or id_of(text.rpartition(" ")[2]) is not None


def _header(request: Request, name: str) -> str | None:
    """A header that may have been written as UTF-8, as some do."""
    value = request.headers.get(name, "").encode("latin-1").decode("utf-8", errors="replace").strip()
    return value or None


def _failed(how: str, error: httpx.HTTPError) -> str:
    return f"the endpoint behind the proxy {how}: {error or type(error).__name__}"


def _problem(error: Exception) -> tuple[int, bytes]:
    """The status and the document of an error, which says the same once more in the words of OpenAI's clients."""
    status, body, problem = document(error, new_id())
    named = {"message": str(problem), "type": "heedful_error", "param": problem.field, "code": problem.code}
    return status, orjson.dumps({**orjson.loads(body), "error": named})


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
