"""What stands around every answer: headers that browsers keep to, and paths that may hold a slash."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Walls:
    """Refuses forms that other sites post, and puts the headers on all answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Routes are matched before the path is decoded, so that an id may hold a slash.
        if "raw_path" in scope:
            scope["path"] = scope["raw_path"].partition(b"?")[0].decode("ascii", errors="replace")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "private, no-cache")
            await send(message)

        if scope["method"] == "POST" and Headers(scope=scope).get("sec-fetch-site") == "cross-site":
            await PlainTextResponse("This form came from another site.", 403)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)
