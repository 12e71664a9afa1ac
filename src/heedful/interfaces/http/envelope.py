"""What every request gets: an id, a line in the log, a number in the metrics, and a document for each error."""

from __future__ import annotations

import asyncio
import logging
import re
import time

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.access.audit import Refusals, is_refusal
from heedful.errors import HeedfulError, Unavailable
from heedful.ids import new_id
from heedful.interfaces.http.connections import IS_DELAYED
from heedful.interfaces.http.limits import Buckets
from heedful.interfaces.http.metrics import Measures
from heedful.interfaces.problems import problem, status_of
from heedful.storage.audit import Refusal

logger = logging.getLogger("heedful.interfaces.http")

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")
CLIENT_CLOSED_REQUEST = 499
"""What is noted of a caller who left before the answer."""


MAX_LOGGED = 200
"""Characters of a path in the log."""

REFUSALS_PER_SECOND = 10.0
"""Refusals a second that a caller, or an address without a good key, gets at once."""
REFUSED_SECONDS = 1.0
"""How long the answer takes beyond that."""


class Envelope:
    """The outermost layer. Nothing of a request but its path is logged: no key, no query, no body."""

    def __init__(self, app: ASGIApp, measures: Measures, refusals: Refusals) -> None:
        self._app = app
        self._measures = measures
        self._refusals = refusals
        self._refused = Buckets[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Routes are matched before the path is decoded, so that an id may hold a slash.
        scope["path"] = scope["raw_path"].decode("ascii", errors="replace")
        request_id = _request_id(scope)
        scope["heedful.request_id"] = request_id
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
            await self._app(scope, receive, sending)
        except (Exception, asyncio.CancelledError) as raised:
            error = _stopping() if isinstance(raised, asyncio.CancelledError) else raised
            scope["heedful.error"] = error
            failed, body, problem = document(error, request_id)
            if status is None:
                response = Response(body, failed, headers_of(problem, failed), "application/problem+json")
                await response(scope, receive, sending)
            elif error is raised:
                raise
        finally:
            self._note(scope, status or CLIENT_CLOSED_REQUEST, time.perf_counter() - started)

    async def _slow_down(self, scope: Scope) -> None:
        """Keeps a caller waiting who is refused again and again: each answer takes time from others."""
        client = scope.get("client")
        name = scope.get("heedful.caller") or (client[0] if client else "")
        rate, now = REFUSALS_PER_SECOND, time.monotonic()
        if self._refused.take(name, 1.0, rate, 2 * rate, now, least=0.0) < 0:
            scope[IS_DELAYED] = True
            await asyncio.sleep(REFUSED_SECONDS)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("heedful.route", "other")
        error = scope.get("heedful.error")
        if isinstance(error, HeedfulError) and is_refusal(error):
            self._refusals.note(_refusal(scope, route, error))
        self._measures.request(scope["method"], route, status, seconds)
        logger.info(
            "%s %s %s %.1f ms request=%s key=%s",
            scope["method"],
            scope["path"][:MAX_LOGGED],
            status,
            seconds * 1000,
            scope["heedful.request_id"],
            scope.get("heedful.caller", "-"),
        )


def _stopping() -> Unavailable:
    """The error of a call that the server no longer waits for."""
    return Unavailable(
        "the server is stopping, and this call took too long",
        code="server_stopping",
        remedy="Send it again later; it may or may not have been done, and with an idempotency key it counts once",
    )


def _refusal(scope: Scope, route: str, error: HeedfulError) -> Refusal:
    """What is kept of it: names that we made, and none that was sent."""
    return Refusal(
        operation=scope.get("heedful.operation", f"{scope['method']} {route}"),
        code=error.code,
        project=scope.get("heedful.project"),
        caller=scope.get("heedful.caller"),
        address=scope["client"][0] if scope.get("client") else None,
    )


def headers_of(error: HeedfulError, status: int) -> dict[str, str]:
    """What a status asks to say besides."""
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status == 429:
        return {"Retry-After": str(error.value or 1)}
    return {"Retry-After": "1"} if error.code in ("store_busy", "in_progress", "fault") else {}


def document(error: Exception, request_id: str) -> tuple[int, bytes, HeedfulError]:
    """The status and the document of an error; an unexpected one is only logged."""
    if not isinstance(error, HeedfulError):
        logger.error("fault in request %s", request_id, exc_info=error)
        error = Unavailable(
            "internal server error",
            code="fault",
            remedy=f"Look for {request_id} in the server's log; the call can be retried",
        )
        return 500, orjson.dumps(problem(error, 500, request_id)), error
    status = status_of(error)
    return status, orjson.dumps(problem(error, status, request_id)), error


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            request_id: str = value.decode()
            return request_id
    return new_id()
