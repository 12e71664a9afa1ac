"""Routes for operators: liveness, readiness, metrics and the list of projects."""

from __future__ import annotations

import logging
from functools import partial

import orjson
from starlette.requests import Request
from starlette.responses import Response

from heedful.access.audit import list_entries
from heedful.errors import Unavailable
from heedful.interfaces.http.metrics import Measures
from heedful.interfaces.http.openapi import description
from heedful.interfaces.http.reading import query_of
from heedful.interfaces.http.routing import Endpoint
from heedful.interfaces.http.state import State
from heedful.jobs.contract import to_job

ENTRIES = 100
"""How many of the newest entries of the audit trail are on a page."""

NO_PROJECT = ""
"""Whose share the calls about the whole server take: nobody else has this name."""

JOBS = 100
"""How many of the newest jobs are shown."""


logger = logging.getLogger("heedful")


def healthz(state: State) -> Endpoint:
    async def answer(request: Request) -> Response:
        return _json({"status": "ok"})

    return answer


def readyz(state: State) -> Endpoint:
    """Ready when the store can be read; `Unavailable` otherwise."""

    def check() -> None:
        try:
            with state.store.database.read() as connection:
                connection.exec_driver_sql("SELECT 1")
        except Unavailable as error:
            # Anybody may ask, and where the store is, is not for anybody.
            logger.warning("not ready: %s", error)
            raise Unavailable("the store can't be read", code=error.code, remedy="See the log of the server") from None

    async def answer(request: Request) -> Response:
        await state.run_lookup(check)
        return _json({"status": "ready"})

    return answer


def health(state: State) -> Endpoint:
    """What clients of other systems look for before they go on."""
    ready = readyz(state)

    async def answer(request: Request) -> Response:
        await ready(request)
        return _json({"status": "healthy", "database": "connected"})

    return answer


def metrics(state: State, measures: Measures) -> Endpoint:
    """Numbers about all projects, so not for the key of one."""

    async def answer(request: Request) -> Response:
        (await state.caller(request, "admin")).check_everywhere()
        return Response(measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return answer


def projects(state: State) -> Endpoint:
    """The projects that the key opens."""

    async def answer(request: Request) -> Response:
        caller = await state.caller(request, "read")
        if caller.project is not None:
            return _json([caller.project])
        return _json(await state.run(state.calls, NO_PROJECT, caller, state.store.projects))

    return answer


def jobs(state: State) -> Endpoint:
    """The newest jobs of all projects and of the store, for those who open all."""

    def check() -> list[dict[str, object]]:
        rows = state.store.queue.listed(None, None, None, None, JOBS)
        return [to_job(row).model_dump(mode="json") for row in rows]

    async def answer(request: Request) -> Response:
        caller = await state.caller(request, "admin")
        caller.check_everywhere(f"Look at its own jobs: /v1/projects/{caller.project}/jobs")
        return _json(await state.run(state.calls, NO_PROJECT, caller, check))

    return answer


def audit(state: State) -> Endpoint:
    """The newest entries of the audit trail of the whole server."""

    async def answer(request: Request) -> Response:
        caller = await state.caller(request, "admin")
        caller.check_everywhere(f"Look at its own: /v1/projects/{caller.project}/audit")
        query = dict(query_of(request))
        database = state.store.database
        work = partial(list_entries, database, None, None, None, query.get("cursor"), ENTRIES)
        page = await state.run(state.calls, NO_PROJECT, caller, work)
        return Response(page.model_dump_json(), media_type="application/json")

    return answer


def openapi(state: State) -> Endpoint:
    """The description of the API; it holds no secret and needs no key."""

    async def answer(request: Request) -> Response:
        return Response(await state.run_lookup(description), media_type="application/json")

    return answer


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
