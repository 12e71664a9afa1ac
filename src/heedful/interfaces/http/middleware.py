"""The way of every request, in one layer: an id, a line in the log, a number in the metrics, a span for OpenTelemetry
if an exporter is configured, time for its body, the endpoint that answers its path, and a document for each error."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Router, request_response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.access.audit import is_refusal
from heedful.clock import new_id
from heedful.errors import HeedfulError, Invalid, NotFound, Unavailable, extra_missing
from heedful.interfaces.http.sharing import Buckets
from heedful.interfaces.http.state import REQUEST_CYCLE, ServerState
from heedful.interfaces.problems import problem, status_of
from heedful.storage.audit import Refusal
from heedful.version import __version__

logger = logging.getLogger("heedful.interfaces.http")

ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")
"""The ids of requests that are taken over."""

CLIENT_CLOSED_REQUEST = 499
"""The status that is noted for a caller who left before the answer."""

IS_DELAYED = "heedful.is_delayed"
"""Set in the scope of a request whose answer is a refusal that is kept back."""

LINE = "%s %s %s %.1f ms request=%s key=%s"
"""A line of the log."""

MAX_LOGGED = 200
"""Characters of a path in the log."""

REFUSALS_PER_SECOND = 10.0
"""Refusals a second that a caller, or an address without a good key, gets at once."""
REFUSED_SECONDS = 1.0
"""Seconds that the answer takes beyond that."""


class Application:
    """The server. Nothing of a request but its path is logged: no key, no query, no body.

    `answer` takes each request, and `respond` those that are counted already: layers around them go there.
    """

    def __init__(
        self,
        state: ServerState,
        routes: Routes,
        measures: Measures,
        lifespan: Callable[[Any], AbstractAsyncContextManager[None]],
    ) -> None:
        self.state = state
        self.answer: ASGIApp = self._answer
        self.respond: ASGIApp = BodyTimeout(self._respond, state.config.body_seconds)
        self._routes = routes
        self._measures = measures
        self._refused = Buckets[str]()
        self._lifespan = Router(lifespan=lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.answer if scope["type"] == "http" else self._lifespan)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Routes are matched before the path is decoded, so that an id may hold a slash.
        scope["path"] = scope["raw_path"].decode("ascii", errors="replace")
        named = (value.decode() for name, value in scope["headers"] if name == b"x-request-id" and ID.fullmatch(value))
        request_id = scope["heedful.request_id"] = next(named, None) or new_id()
        started = time.perf_counter()
        status: int | None = None

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode()))
                message["headers"].append((b"x-content-type-options", b"nosniff"))
                # A caller who is known makes mistakes at their own cost: calls are counted.
                if status in (401, 429) or (400 <= status < 500 and "heedful.caller" not in scope):
                    await self._slow_down(scope)
            await send(message)

        try:
            await self.respond(scope, receive, sending)
        except (Exception, asyncio.CancelledError) as raised:
            error: Exception = _stopping() if isinstance(raised, asyncio.CancelledError) else raised
            response = error_response(scope, error)
            if status is None:
                await response(scope, receive, sending)
            elif error is raised:
                raise
        finally:
            self._note(scope, status or CLIENT_CLOSED_REQUEST, time.perf_counter() - started)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await self._routes.find(request)(request)
            await response(scope, receive, send)
        except HeedfulError as error:
            await error_response(scope, error)(scope, receive, send)

    async def _slow_down(self, scope: Scope) -> None:
        """Keeps a caller waiting who is refused again and again: each answer takes time from others."""
        client = scope.get("client")
        name = scope.get("heedful.caller") or (client[0] if client else "")
        rate, now = REFUSALS_PER_SECOND, time.monotonic()
        if self._refused.take(name, 1.0, rate, 2 * rate, now, least=0.0) < 0:
            scope[IS_DELAYED] = True
            await asyncio.sleep(REFUSED_SECONDS)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method, route, caller = scope["method"], scope.get("heedful.route", "other"), scope.get("heedful.caller")
        error = scope.get("heedful.error")
        if isinstance(error, HeedfulError) and is_refusal(error):
            # Names that we made, and none that was sent.
            operation = scope.get("heedful.operation", f"{method} {route}")
            address = scope["client"][0] if scope.get("client") else None
            self.state.refusals.note(Refusal(operation, error.code, scope.get("heedful.project"), caller, address))
        self._measures.request(method, route, status, seconds)
        if logger.isEnabledFor(logging.INFO):
            path, request_id = scope["path"][:MAX_LOGGED], scope["heedful.request_id"]
            values = (method, path, status, seconds * 1000, request_id, caller or "-")
            # Without looking for the caller of this line, which takes as long as the rest of it.
            logger.handle(logger.makeRecord(logger.name, logging.INFO, __file__, 0, LINE, values, None))


def error_response(scope: Scope, error: Exception) -> Response:
    """The document of an error, which is noted in the scope of its request."""
    scope["heedful.error"] = error
    status, body, problem = document(error, scope["heedful.request_id"])
    return Response(body, status, headers_of(problem, status), "application/problem+json")


def _stopping() -> Unavailable:
    """The error of a call that the server no longer waits for."""
    remedy = "Send it again later; it may or may not have been done, and with an idempotency key it counts once"
    return Unavailable("the server is stopping, and this call took too long", code="server_stopping", remedy=remedy)


def headers_of(error: HeedfulError, status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status == 429:
        return {"Retry-After": str(error.value or 1)}
    return {"Retry-After": "1"} if error.code in ("store_busy", "in_progress", "fault") else {}


def document(error: Exception, request_id: str) -> tuple[int, bytes, HeedfulError]:
    """The status and the document of an error; an unexpected one is only logged."""
    if not isinstance(error, HeedfulError):
        logger.error("fault in request %s", request_id, exc_info=error)
        remedy = f"Look for {request_id} in the server's log; the call can be retried"
        error = Unavailable("internal server error", code="fault", remedy=remedy)
        return 500, orjson.dumps(problem(error, 500, request_id)), error
    status = status_of(error)
    return status, orjson.dumps(problem(error, status, request_id)), error


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
            cycle = REQUEST_CYCLE.get()
            # Often all of it is there already.
            is_complete = is_complete or (cycle is not None and not cycle.more_body)
            if is_complete:
                return await receive()
            started = time.monotonic()
            try:
                async with asyncio.timeout(max(remaining, 0)):
                    message = await receive()
            except TimeoutError:
                remedy = f"Send at least {MIN_BYTES_PER_SECOND} bytes a second, or send it in several calls"
                raise Invalid("the body takes too long to arrive", code="too_slow", remedy=remedy) from None
            if message["type"] == "http.request":
                remaining += len(message.get("body", b"")) / MIN_BYTES_PER_SECOND - (time.monotonic() - started)
                is_complete = not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (408, 413) and not is_complete:
                # What is left of the body would be taken for the next request.
                message["headers"].append((b"connection", b"close"))
            await send(message)

        # Nobody is left to answer.
        with suppress(ClientDisconnect):
            await self._app(scope, receiving, sending)


EXPORTERS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def provider() -> Any:
    """The maker and sender of spans; None where nobody has asked for them. It is shut down when the server stops."""
    if not any(os.environ.get(name) for name in EXPORTERS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        message = "OTEL_EXPORTER_OTLP_ENDPOINT is set, and tracing needs an extra"
        raise extra_missing("telemetry", message) from error
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "heedful")})
    tracer_provider = TracerProvider(resource=resource)
    tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return tracer_provider


class Tracing:
    """A span for each request, under that of the caller if there is one. Nothing of what was said is in it."""

    def __init__(self, app: ASGIApp, provider: Any) -> None:
        self._app = app
        self._tracer = provider.get_tracer("heedful", __version__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"], context=extract(carrier), kind=SpanKind.SERVER
        ) as span:

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, sending)
            finally:
                route = scope.get("heedful.route", "other")
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.request.method", scope["method"])
                span.set_attribute("http.route", route)
                span.set_attribute("heedful.request_id", scope.get("heedful.request_id", ""))


SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder of the workers' metrics, so that any of them can report those of all."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Measures:
    """The numbers of one worker."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter(
            "heedful_requests_total", "Requests by route and status.", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "heedful_request_seconds", "How long requests take.", labels[:2], registry=self._registry, buckets=BUCKETS
        )
        self._labelled: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") else "other"
        name = (method, route, status)
        if name not in self._labelled:
            self._labelled[name] = self._requests.labels(method, route, status), self._seconds.labels(method, route)
        requests, duration = self._labelled[name]
        requests.inc()
        duration.observe(seconds)

    def text(self) -> bytes:
        """All numbers of all workers, in Prometheus's own words."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


Endpoint = Callable[[Request], Awaitable[Response]]

ENDPOINTS = "heedful.endpoints"
"""The key of a request's scope with the endpoints of its path, by method."""


class _Route(NamedTuple):
    number: int
    path: str
    parameters: Mapping[int, str]
    """Their names, by the places of their segments."""
    endpoints: Mapping[str, Endpoint]


@dataclass(slots=True)
class _Node:
    """The paths that begin with the same segments."""

    routes: list[_Route] = field(default_factory=list)
    """Those that end here."""
    following: dict[str | None, _Node] = field(default_factory=dict)
    """By the next segment, with None for a parameter."""


class Routes(BaseRoute):
    """Endpoints by path and method. Where several paths match, the one that was named first answers.

    `heedful.route` in the scope of a request says which path it was.
    """

    def __init__(self, routes: Mapping[str, Mapping[str, Endpoint]]) -> None:
        self._root = _Node()
        self._longest = 0
        for number, (path, endpoints) in enumerate(routes.items()):
            segments = path.split("/")
            self._longest = max(self._longest, len(segments))
            names = {place: name.strip("{}") for place, name in enumerate(segments) if name.startswith("{")}
            node = self._root
            for place, segment in enumerate(segments):
                node = node.following.setdefault(None if place in names else segment, _Node())
            node.routes.append(_Route(number, path, names, endpoints))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        method = _method(scope)
        # What is split no further than the longest path matches none.
        segments = scope["path"].split("/", self._longest)
        candidates = self._candidates(segments)
        if not candidates:
            return Match.NONE, {}
        route = next((route for route in candidates if method in route.endpoints), candidates[0])
        parameters = {name: segments[place] for place, name in route.parameters.items()}
        match = Match.FULL if method in route.endpoints else Match.PARTIAL
        return match, {"heedful.route": route.path, "path_params": parameters, ENDPOINTS: route.endpoints}

    def _candidates(self, segments: Sequence[str]) -> list[_Route]:
        """The routes whose paths match, in the order in which they were named."""
        nodes = [self._root]
        for segment in segments:
            # A parameter is any segment that is not empty.
            keys = (segment, None) if segment else (segment,)
            nodes = [node.following[key] for node in nodes for key in keys if key in node.following]
        return sorted(route for node in nodes for route in node.routes)

    def find(self, request: Request) -> Endpoint:
        """The endpoint for a request."""
        match, found = self.matches(request.scope)
        if match is Match.NONE:
            message = f"no route for {request.scope['path'][:200]}"
            raise NotFound(message, code="no_route", remedy="All routes: /openapi.json")
        request.scope.update(found)
        endpoints: Mapping[str, Endpoint] = found[ENDPOINTS]
        return endpoints[_method(request.scope)] if match is Match.FULL else _refuse_method

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoints: Mapping[str, Endpoint] = scope[ENDPOINTS]
        if _method(scope) not in endpoints:
            raise HTTPException(405, headers={"Allow": _allowed(scope)})
        await request_response(endpoints[_method(scope)])(scope, receive, send)


def _method(scope: Scope) -> str:
    return "GET" if scope["method"] == "HEAD" else str(scope["method"])


def _allowed(scope: Scope) -> str:
    """The methods of the path that matched."""
    endpoints: Mapping[str, Endpoint] = scope[ENDPOINTS]
    return ", ".join(sorted({*endpoints, "HEAD"} if "GET" in endpoints else endpoints))


async def _refuse_method(request: Request) -> Response:
    allowed, message = _allowed(request.scope), f"{request.method} is not allowed here"
    error = Invalid(message, code="method", value=request.method, remedy=f"Use {allowed}")
    response = error_response(request.scope, error)
    response.headers["Allow"] = allowed
    return response
