"""The client over HTTP: connecting, sending and pausing, blocking and awaited."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import orjson
from httpx_sse import EventSource, ServerSentEvent

from heedful import settings
from heedful.aio import AsyncHeedful
from heedful.api import checks
from heedful.api.calls import Arguments, Call
from heedful.errors import Invalid, quoted
from heedful.interfaces.client.exchange import SLOW_FACTOR, Exchange, Reply, Send, exchange
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.version import __version__

CONNECTIONS = 64


class Transport:
    """Blocks."""

    def __init__(self, url: str, project: str, api_key: str | None, timeout: float) -> None:
        self.project = project
        self._timeout = timeout
        self._client = httpx.Client(**_options(url, api_key, timeout))

    def run(self, call: Call, arguments: Arguments) -> Any:
        steps = exchange(self.project, call, arguments)
        step = _next(steps, None)
        while isinstance(step, Send | float):
            answer = None
            if isinstance(step, float):
                time.sleep(step)
            else:
                answer = self._send(step)
            step = _next(steps, answer)
        return step[0]

    def close(self) -> None:
        self._client.close()

    def _send(self, step: Send) -> Reply:
        events = Events(step.callbacks)
        try:
            if not step.callbacks:
                return _answer(self._client.request(**_arguments(step, self._timeout)))
            with self._client.stream(**_arguments(step, self._timeout)) as response:
                if not _is_stream(response):
                    response.read()
                    return _answer(response)
                for event in EventSource(response).iter_sse():
                    events.take(event)
                return events.end()
        except httpx.RequestError as error:
            return _connection_error(error, events)


class AsyncTransport:
    """Is awaited."""

    def __init__(self, url: str, project: str, api_key: str | None, timeout: float) -> None:
        self._project = project
        self._timeout = timeout
        self._client = httpx.AsyncClient(**_options(url, api_key, timeout))

    async def run(self, call: Call, arguments: Arguments) -> Any:
        # Files that are named are read at once, in a thread.
        steps = exchange(self._project, call, arguments)
        step = await asyncio.to_thread(_next, steps, None)
        while isinstance(step, Send | float):
            answer = None
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                answer = await self._send(step)
            step = _next(steps, answer)
        return step[0]

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, step: Send) -> Reply:
        events = Events(step.callbacks)
        try:
            if not step.callbacks:
                return _answer(await self._client.request(**_arguments(step, self._timeout)))
            async with self._client.stream(**_arguments(step, self._timeout)) as response:
                if not _is_stream(response):
                    await response.aread()
                    return _answer(response)
                async for event in EventSource(response).aiter_sse():
                    events.take(event)
                return events.end()
        except httpx.RequestError as error:
            return _connection_error(error, events)


def _next(steps: Exchange, answer: Reply | None) -> Send | float | tuple[Any]:
    """The next step, or the result in a tuple: StopIteration can't leave a coroutine."""
    try:
        return steps.send(answer)
    except StopIteration as done:
        return (done.value,)


def _options(url: str, api_key: str | None, timeout: float) -> dict[str, Any]:
    if not isinstance(url, str) or not _is_address(url):
        remedy = "Use http://host:port or https://host"
        raise Invalid(f"invalid url {quoted(url)}", field="url", value=url, remedy=remedy)
    if httpx.URL(url).userinfo:
        remedy = "Use http://host:port or https://host, and pass the key as api_key"
        raise Invalid("url contains a user name or a password", field="url", remedy=remedy)
    headers = {"User-Agent": f"heedful-python/{__version__}"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    return {
        "base_url": url.rstrip("/"),
        "headers": headers,
        "timeout": httpx.Timeout(timeout, connect=min(timeout, 10.0)),
        "limits": httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
    }


def _is_address(url: str) -> bool:
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return False
    if read.scheme not in ("http", "https") or not read.host or any(character.isspace() for character in url):
        return False
    return (read.port or 80) < 65536 and not read.query and not read.fragment


def _arguments(step: Send, timeout: float) -> dict[str, Any]:
    headers = [(name.encode(), value.encode()) for name, value in step.headers.items()]
    arguments: dict[str, Any] = {"method": step.method, "url": step.path, "headers": headers, "content": step.content}
    if step.slow:
        arguments["timeout"] = httpx.Timeout(timeout * SLOW_FACTOR, connect=min(timeout, 10.0))
    return arguments


def _answer(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.content, response.headers)


def _is_stream(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/event-stream")


def _connection_error(error: httpx.RequestError, events: Events) -> Reply:
    timed_out = isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout)
    return Reply(0, problem=str(error) or type(error).__name__, timed_out=timed_out, streamed=events.streamed)


TIMEOUT = 60.0


def connect(
    url: str, *, api_key: str | None = None, project: str | None = None, timeout: float = TIMEOUT
) -> RemoteHeedful:
    """Connects to a server: the same methods as `open` gives, over HTTP. Nothing is sent yet.

    `api_key` is HEEDFUL_API_KEY if left out, `project` what the settings name. A call takes at most `timeout` seconds,
    ten times as long where it is known to be slow. Calls that fail in a way that may pass are sent again; they count
    once.
    """
    name, key = _check_options(project, api_key, timeout)
    return RemoteHeedful(Transport(url, name, key, timeout), f"<RemoteHeedful {url} project={name!r}>")


async def aconnect(
    url: str, *, api_key: str | None = None, project: str | None = None, timeout: float = TIMEOUT
) -> AsyncHeedful:
    """Connects to a server for asyncio; see `connect`."""
    name, key = _check_options(project, api_key, timeout)
    transport = AsyncTransport(url, name, key, timeout)
    return AsyncHeedful(transport.run, transport.close, f"<AsyncHeedful {url} project={name!r}>")


def _check_options(project: str | None, api_key: str | None, timeout: float) -> tuple[str, str | None]:
    name = checks.name("project", settings.load().project if project is None else project)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
        raise Invalid(f"timeout must be seconds above 0, got {quoted(timeout)}", field="timeout", value=timeout)
    key = os.environ.get(settings.API_KEY) or None if api_key is None else api_key
    if key is not None and (not key.isascii() or not key.isprintable() or not key.strip()):
        source = f"{settings.API_KEY} in the environment" if api_key is None else "api_key"
        raise Invalid(f"{source} is not a key", field="api_key", remedy="Pass it as it was shown: hf_…")
    return name, key


class Events:
    """Calls back for each event, until the result or a problem comes."""

    def __init__(self, callbacks: Mapping[str, Callable[..., object]]) -> None:
        self._callbacks = callbacks
        self.answer: Reply | None = None
        self.streamed = False
        """Whether a callback has heard something."""

    def take(self, event: ServerSentEvent) -> None:
        if event.event == "result":
            self.answer = Reply(200, event.data.encode())
        elif event.event == "problem":
            self.answer = Reply(orjson.loads(event.data)["status"], event.data.encode())
        elif event.event in self._callbacks:
            self.streamed = True
            self._callbacks[event.event](*orjson.loads(event.data))

    def end(self) -> Reply:
        return self.answer or Reply(0, problem="the stream ended before the result", streamed=self.streamed)
