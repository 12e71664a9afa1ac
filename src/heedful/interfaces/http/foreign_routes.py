"""Routes of other systems, mounted from the tables in `heedful.compat.<system>.routes`."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from heedful import compat, request_context
from heedful.api import values
from heedful.compat.foreign_api import ForeignRequest, ForeignRoute, Reply
from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid
from heedful.interfaces.http.calls import body_limit, header_of, json_of, query_of
from heedful.interfaces.http.middleware import Endpoint, document, headers_of
from heedful.interfaces.http.state import AllowedCalls, Caller, ServerState, path_of
from heedful.interfaces.problems import status_of
from heedful.store import Store

FOREIGN_APIS = tuple(import_module(f"heedful.compat.{system}.routes") for system in compat.SERVED)
"""Modules of the systems whose clients find their own routes here."""

PROJECT = "x-heedful-project"
"""The header with which a key that opens all projects names one, where the path has no place for it."""

AUTHOR = "x-heedful-author"
"""The header that names the author of feedback."""


@dataclass(frozen=True, slots=True)
class CallerProjects:
    """The projects of the store, as far as a caller's key opens them."""

    store: Store
    caller: Caller
    resources: ExitStack
    """Projects that were opened stay open until the request is answered."""

    def projects(self) -> list[str]:
        only = self.caller.project
        return [name for name in (self.store.projects() if only is None else [only]) if self.store.exists(name)]

    def opened(self, project: str) -> Heedful:
        opened = self.resources.enter_context(self.store.using(self.caller.choose(project)))
        return AllowedCalls(opened, self.caller)


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
            with acting, state.storing(project, route), ExitStack() as resources:
                server = CallerProjects(state.store, caller, resources)
                author = values.author((header_of(request, AUTHOR) or "").strip() or state.store.config.foreign_author)
                foreign = ForeignRequest(path, dict(pairs), every, body, server, author, files, dict(form))
                result = route.handle(server.opened(project), foreign)
                reply = result if isinstance(result, Reply) else Reply(route.status, result)
            content = b"" if reply.status == 204 else to_json(reply.body)
            return state.answer(content, project, caller, reply.status, reply.headers)

        if route.queries:
            return await state.query(project, caller, work)
        return await state.run(state.short if route.scope == "feedback" else state.calls, project, caller, work)


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
    except HTTPException as error:
        raise Invalid(f"the form can't be read ({error.detail})", code="malformed") from None
    return fields, files


def _error_response(error: HeedfulError, module: ModuleType, status: int | None = None) -> Response:
    status = status or status_of(error)
    status = getattr(module, "STATUSES", {}).get(status, status)
    return Response(to_json(module.error_body(error, status)), status, headers_of(error, status), "application/json")
