"""The files that pages bring along: a style, a script and an icon, which browsers keep."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

KINDS = {"css": "text/css", "js": "application/javascript", "svg": "image/svg+xml"}
MAX_AGE = 31_536_000


@cache
def content(name: str) -> bytes:
    return files("heedful.interfaces.dashboard").joinpath("static", name).read_bytes()


def address(name: str) -> str:
    """Where a file is, with its hash: other content has another address."""
    return f"/static/{hashlib.sha256(content(name)).hexdigest()[:16]}/{name}"


NAMES = ("dashboard.css", "dashboard.js", "icon.svg")


async def respond(request: Request) -> Response:
    """One of the files."""
    name = request.path_params["name"]
    if name not in NAMES or request.url.path != address(name):
        return Response("not found", 404, media_type="text/plain")
    return Response(
        content(name),
        media_type=f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8",
        headers={"Cache-Control": f"public, max-age={MAX_AGE}, immutable"},
    )
