"""Routes of other systems, mounted from the tables in `heedful.compat`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from heedful import request_context
from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid
from heedful.interfaces.http.callers import Caller, check_allowed
from heedful.interfaces.http.envelope import document, headers_of
from heedful.interfaces.http.reading import BodyLimit, body_limit, header_of, json_of, path_of, query_of
from heedful.interfaces.http.routing import Endpoint
from heedful.interfaces.http.state import State
from heedful.interfaces.problems import ForeignRequest, Reply, Wire, status_of
from heedful.memory import checks
from heedful.store import Store

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
    """What was opened stays open until the request is answered."""

    def projects(self) -> list[str]:
        project = self.caller.project
        return self.store.projects() if project is None else [project]

    def has_project(self, project: str) -> bool:
        return self.caller.project in (None, project) and self.store.exists(project)

    def opened(self, project: str) -> Heedful:
        return check_allowed(self.resources.enter_context(self.store.using(self.caller.choose(project))), self.caller)


def endpoint(route: Wire, module: ModuleType, state: State) -> Endpoint:
    """What answers requests for one route of another system."""

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


async def _respond(route: Wire, state: State, request: Request) -> Response:
    caller = await state.caller(request, route.scope)
    if caller.claims is not None:
        caller.check("admin")
    path = path_of(request.path_params)
    project = _project(route, caller, path, request.headers, state)
    request.scope["heedful.project"] = project
    limit = body_limit(route, by_token=False, most=state.config.max_body)
    async with state.body(request, project, caller, limit) as raw:
        return await _handled(route, state, request, caller, project, path, raw, limit)


async def _handled(
    route: Wire,
    state: State,
    request: Request,
    caller: Caller,
    project: str,
    path: dict[str, str],
    raw: bytes,
    limit: BodyLimit,
) -> Response:
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    body: Any = None
    pairs = query_of(request)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        form, files = await state.run(state.calls, project, caller, lambda: asyncio.run(_form(request, raw)))
        fields = dict(form)
        pairs += form
    else:
        body = await state.parse(raw, project, caller, lambda: json_of(raw, limit.values))
    if isinstance(body, dict) and any(body.get(name) is not None for name in route.writes_with):
        caller.check("write")

    def work() -> Response:
        acting = request_context.acting_as(caller.calling(request))
        with acting, state.storing(project, route), ExitStack() as resources:
            server = CallerProjects(state.store, caller, resources)
            foreign = ForeignRequest(
                path=path,
                query=dict(pairs),
                every=_every(pairs),
                body=body,
                headers=dict(request.headers),
                server=server,
                author=checks.author((header_of(request, AUTHOR) or "").strip() or state.store.foreign_author),
                files=files,
                fields=fields,
            )
            result = route.handle(server.opened(project), foreign)
            reply = result if isinstance(result, Reply) else Reply(route.status, result)
        content = b"" if reply.status == 204 else to_json(reply.body)
        return state.answer(content, project, caller, reply.status, reply.headers)

    if route.queries:
        return await state.query(project, caller, work)
    return await state.run(state.short if route.scope == "feedback" else state.calls, project, caller, work)


def _project(route: Wire, caller: Caller, path: dict[str, str], headers: Mapping[str, str], state: State) -> str:
    if route.project is not None:
        return caller.choose(path[route.project])
    return caller.choose(headers.get(PROJECT) or caller.project or state.store.default_project)


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


def _every(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    values_by_name: dict[str, list[str]] = {}
    for name, value in pairs:
        values_by_name.setdefault(name, []).append(value)
    return values_by_name


def _error_response(error: HeedfulError, module: ModuleType, status: int | None = None) -> Response:
    status = status or status_of(error)
    status = getattr(module, "STATUSES", {}).get(status, status)
    return Response(to_json(module.error_body(error, status)), status, headers_of(error, status), "application/json")
