"""Routes of the server itself: liveness, readiness, metrics, projects, jobs, audit trail, and files for browsers."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files

import orjson
from starlette.requests import Request
from starlette.responses import Response

from heedful.access.audit import list_entries
from heedful.errors import Unavailable, extra_missing
from heedful.interfaces.http.calls import query_of
from heedful.interfaces.http.middleware import Endpoint, Measures
from heedful.interfaces.http.openapi import description
from heedful.interfaces.http.state import ServerState
from heedful.jobs.queue import to_job
from heedful.version import __version__

NO_PROJECT = ""
"""Whose share the calls about the whole server take: nobody else has this name."""

NEWEST = 100
"""The entries of the audit trail on a page, and the jobs that are shown."""

logger = logging.getLogger("heedful")


class ServerRoutes:
    def __init__(self, state: ServerState, measures: Measures) -> None:
        self._state = state
        self._measures = measures

    def by_path(self) -> dict[str, Endpoint]:
        """All of them; each answers GET."""
        pages = api_pages() if self._state.config.api_docs else {}
        return {
            "/": self.root,
            "/healthz": self.healthz,
            "/health": self.health,
            "/readyz": self.readyz,
            "/widget.js": widget(),
            "/metrics": self.metrics,
            "/openapi.json": self.openapi,
            **pages,
            "/v1/projects": self.projects,
            "/v1/jobs": self.jobs,
            "/v1/audit": self.audit,
        }

    async def root(self, request: Request) -> Response:
        """The name and version of the server, for those who look with a browser; it needs no key."""
        docs = {"docs": "/docs"} if self._state.config.api_docs else {}
        return _json({"name": "heedful", "version": __version__, "openapi": "/openapi.json"} | docs)

    async def healthz(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Ready when the store can be read; `Unavailable` otherwise."""
        await self._state.run_lookup(self._check_store)
        return _json({"status": "ready"})

    async def health(self, request: Request) -> Response:
        """The same for clients of other systems, which look for it before they go on."""
        await self._state.run_lookup(self._check_store)
        return _json({"status": "healthy", "database": "connected"})

    def _check_store(self) -> None:
        try:
            with self._state.store.database.read() as connection:
                connection.exec_driver_sql("SELECT 1")
        except Unavailable as error:
            # Anybody may ask, and where the store is, is not for anybody.
            logger.warning("not ready: %s", error)
            raise Unavailable("the store can't be read", code=error.code, remedy="See the log of the server") from None

    async def metrics(self, request: Request) -> Response:
        """Numbers about all projects, so not for the key of one."""
        (await self._state.caller(request, "admin")).check_everywhere()
        return Response(self._measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def projects(self, request: Request) -> Response:
        """The projects that the key opens."""
        caller = await self._state.caller(request, "read")
        if caller.project is not None:
            return _json([caller.project])
        return _json(await self._state.run(self._state.calls, NO_PROJECT, caller, self._state.store.projects))

    async def jobs(self, request: Request) -> Response:
        """The newest jobs of all projects and of the store, for those who open all."""
        caller = await self._state.caller(request, "admin")
        caller.check_everywhere(f"Look at its own jobs: /v1/projects/{caller.project}/jobs")

        def newest() -> list[dict[str, object]]:
            rows = self._state.store.queue.listed(None, None, None, None, NEWEST)
            return [to_job(row).model_dump(mode="json") for row in rows]

        return _json(await self._state.run(self._state.calls, NO_PROJECT, caller, newest))

    async def audit(self, request: Request) -> Response:
        """The newest entries of the audit trail of the whole server."""
        caller = await self._state.caller(request, "admin")
        caller.check_everywhere(f"Look at its own: /v1/projects/{caller.project}/audit")
        cursor = dict(query_of(request)).get("cursor")
        work = partial(list_entries, self._state.store.database, None, None, None, cursor, NEWEST)
        page = await self._state.run(self._state.calls, NO_PROJECT, caller, work)
        return Response(page.model_dump_json(), media_type="application/json")

    async def openapi(self, request: Request) -> Response:
        """The description of the API; it holds no secret and needs no key."""
        return Response(await self._state.run_lookup(description), media_type="application/json")


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


CARRIER = "fastapi-swagger"
"""The package that carries Swagger UI; its files are read, and its code is never imported."""

# A key that somebody enters here can't be sent anywhere else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

SCRIPT, STYLE = "application/javascript; charset=utf-8", "text/css; charset=utf-8"


def widget() -> Endpoint:
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
        raise extra_missing("server", f"{CARRIER} is not installed") from None
    with open(str(package.locate_file(f"fastapi_swagger/resources/{name}")), "rb") as file:
        return file.read()
