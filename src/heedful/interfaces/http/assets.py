"""Files for browsers: the feedback widget, and the interactive pages about the API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from heedful.errors import Unavailable
from heedful.interfaces.http.routing import Endpoint

CARRIER = "fastapi-swagger"
"""The package that carries Swagger UI; its files are read, and its code is never imported."""

# A key that somebody enters here can't be sent anywhere else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

SCRIPT, STYLE = "application/javascript; charset=utf-8", "text/css; charset=utf-8"


def widget() -> Endpoint:
    """The widget, for everybody."""
    headers = {
        "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
        # Any page may load it, also as a module or with an integrity hash; whether it may call is another question.
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return _file(lambda: _own("widget.js"), SCRIPT, headers)


def api_pages() -> dict[str, Endpoint]:
    """Swagger UI on the description of the API, by path; it needs no network."""
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}
    return {
        "/docs": _file(lambda: _own("docs.html"), "text/html; charset=utf-8", headers),
        "/docs/start.js": _file(lambda: _own("docs.js"), SCRIPT, headers),
        "/docs/swagger-ui.js": _file(lambda: _carried("swagger-ui-bundle.js"), SCRIPT, headers),
        "/docs/swagger-ui.css": _file(lambda: _carried("swagger-ui.css"), STYLE, headers),
    }


def _file(read: Callable[[], bytes], media_type: str, headers: dict[str, str]) -> Endpoint:
    """Serves a file, with a 304 for those who have it."""

    @cache
    def load() -> tuple[bytes, dict[str, str]]:
        content = read()
        return content, headers | {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}

    async def answer(request: Request) -> Response:
        content, sent = load()
        etags = [etag.strip().removeprefix("W/") for etag in request.headers.get("if-none-match", "").split(",")]
        if sent["ETag"] in etags:
            return Response(status_code=304, headers=sent)
        return Response(content, headers=sent, media_type=media_type)

    return answer


def _own(name: str) -> bytes:
    return files("heedful.interfaces.http").joinpath(f"static/{name}").read_bytes()


def _carried(name: str) -> bytes:
    try:
        package = distribution(CARRIER)
    except PackageNotFoundError:
        raise Unavailable(
            f"{CARRIER} is not installed", code="extra_missing", remedy='Run: pip install "heedful[server]"'
        ) from None
    with open(str(package.locate_file(f"fastapi_swagger/resources/{name}")), "rb") as file:
        return file.read()
