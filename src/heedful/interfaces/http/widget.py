"""The feedback widget: one file, for any page."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from heedful.interfaces.http.calls import Endpoint


def widget() -> Endpoint:
    """Serves the widget to everybody, with a 304 for those who have it."""
    script = files("heedful.interfaces.http").joinpath("static/widget.js").read_bytes()
    tag = f'"{hashlib.sha256(script).hexdigest()[:32]}"'
    headers = {
        "ETag": tag,
        "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
        # Any page may load it, also as a module or with an integrity hash; whether it may call is another question.
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }

    async def answer(request: Request) -> Response:
        etags = [etag.strip().removeprefix("W/") for etag in request.headers.get("if-none-match", "").split(",")]
        if tag in etags:
            return Response(status_code=304, headers=headers)
        return Response(script, headers=headers, media_type="application/javascript; charset=utf-8")

    return answer
