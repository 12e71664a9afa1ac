"""Routes of other systems, mounted from the tables in `heedful.compat.<system>.routes`."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic_core import to_json
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import Response

from heedful import compat, request_context
from heedful.api import checks
from heedful.compat.foreign_api import ForeignRequest, ForeignRoute
from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid
from heedful.interfaces.http.calls import body_limit, header_of, json_of, query_of
from heedful.interfaces.http.middleware import Endpoint, document, headers_of
from heedful.interfaces.http.state import AllowedCalls, ServerState, path_of
from heedful.interfaces.problems import status_of
from heedful.store import Store

FOREIGN_APIS = tuple(import_module(f"heedful.compat.{system}.routes") for system in compat.SERVED)
"""Modules of the systems whose clients find their own routes here."""

PROJECT = "x-heedful-project"
"""The header with which a key that opens all projects names one, where the path has no place for it."""

AUTHOR = "x-heedful-author"
"""The header that names the author of feedback."""


def endpoint(route: ForeignRoute, module: ModuleType, state: ServerState) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            return await _respond(route, state, request)
        except HeedfulError as error:
            request.scope["heedful.error"] = error
            return _error_response(error, module)
        except Exception as error:
            _, _, problem = document(error, request.scope["heedful.request_id"])
            return _error_response(problem, module, 500)

    return answer


async def _respond(route: ForeignRoute, state: ServerState, request: Request) -> Response:
    caller = await state.caller(request, route.scope)
    if caller.claims is not None:
        caller.check("admin")
    path = path_of(request.path_params)
    named = request.headers.get(PROJECT) or caller.project or state.store.default_project
    project = caller.choose(named if route.project is None else path[route.project])
    request.scope["heedful.project"] = project
    limit = body_limit(route, by_token=False, most=state.config.max_body)
    async with state.body(request, project, caller, limit) as raw:
        form: list[tuple[str, str]] = []
        files: dict[str, bytes] = {}
        body: Any = None
        pairs = query_of(request)
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            form, files = await state.run(state.calls, project, caller, lambda: asyncio.run(_form(request, raw)))
            pairs += form
        else:
            body = await state.parse(raw, project, caller, lambda: json_of(raw, limit.values))
        if isinstance(body, dict) and any(body.get(name) is not None for name in route.writes_with):
            caller.check("write")
        every: dict[str, list[str]] = {}
        for name, value in pairs:
            every.setdefault(name, []).append(value)

        def work() -> Response:
            acting = request_context.acting_as(caller.calling(request))
            # Projects that are opened stay open until the request is answered.
            with acting, state.storing(project, route), ExitStack() as opened_projects:

                def opened(name: str) -> Heedful:
                    inside = opened_projects.enter_context(state.store.using(caller.choose(name)))
                    return AllowedCalls(inside, caller)

                author = checks.author(
                    "author", (header_of(request, AUTHOR) or "").strip() or state.store.config.foreign_author
                )
                projects = partial(_projects, state.store, caller.project)
                foreign = ForeignRequest(path, dict(pairs), every, body, projects, opened, author, files, dict(form))
                result = route.handle(opened(project), foreign)
            return state.answer(to_json(result), project, caller, route.status)

        if route.queries:
            return await state.query(project, caller, work)
        return await state.run(state.lane(route, len(raw)), project, caller, work)


def _projects(store: Store, only: str | None) -> list[str]:
    return [name for name in (store.projects() if only is None else [only]) if store.exists(name)]


async def _form(request: Request, raw: bytes) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    async def replay() -> Any:
        return {"type": "http.request", "body": raw, "more_body": False}

    fields: list[tuple[str, str]] = []
    files: dict[str, bytes] = {}
    try:
        async with Request(request.scope, replay).form() as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields.append((name, value))
                else:
                    called = value.filename or name
                    # Two files may have one name.
                    files[called if called not in files else f"{called} ({len(files) + 1})"] = await value.read()
    except MultiPartException as error:
        raise Invalid(f"the form can't be read ({error.message})", code="malformed") from None
    return fields, files


def _error_response(error: HeedfulError, module: ModuleType, status: int | None = None) -> Response:
    status = status or status_of(error)
    status = getattr(module, "STATUSES", {}).get(status, status)
    return Response(to_json(module.error_body(error, status)), status, headers_of(error, status), "application/json")
