"""The operations of the engine as routes under /v1/projects/{project}."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from typing import Any

import orjson
from pydantic_core import to_jsonable_python
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from heedful import request_context
from heedful.access import visitors
from heedful.access.idempotency import run_once
from heedful.errors import Invalid, NotFound
from heedful.interfaces.http import callers
from heedful.interfaces.http.callers import Caller
from heedful.interfaces.http.envelope import document
from heedful.interfaces.http.reading import arguments, body_limit, header_of, path_of
from heedful.interfaces.http.routing import Endpoint
from heedful.interfaces.http.state import State
from heedful.interfaces.operations import Operation, Shape, shape
from heedful.model import etag
from heedful.project import Project
from heedful.storage.requests import fingerprint

PREFIX = "/v1/projects/{project}"

ETAG_OPERATIONS = frozenset(
    {
        "sessions.get_metadata",
        "sessions.update_metadata",
        "sessions.delete_metadata",
        "feedback.get",
        "feedback.update",
        "golden_examples.get",
        "golden_examples.update",
        "review.get",
        "review.assign",
        "review.resolve",
        "review.dismiss",
        "review.reopen",
    }
)
"""Operations whose result has an etag, with which a change can be made only if nobody else made one."""

INSIDE = {"review.get": "item"}
"""Those whose result has inside, by this name, what can be changed; the rest of it may change by itself."""


def endpoint(operation: Operation, state: State) -> Endpoint:
    """What answers requests for an operation."""
    operation_shape = shape(operation)

    async def answer(request: Request) -> Response:
        request.scope["heedful.operation"] = operation.name
        caller = await state.caller(request, None)
        caller.check_call(operation)
        if operation.everywhere:
            caller.check_everywhere()
        project = caller.choose(path_of(request.path_params)["project"])
        request.scope["heedful.project"] = project
        limit = body_limit(operation, caller.claims is not None, state.config.max_body)
        async with AsyncExitStack() as held:
            raw = await held.enter_async_context(state.body(request, project, caller, limit))
            return await respond(request, caller, project, raw, limit.values, held)

    async def respond(
        request: Request, caller: Caller, project: str, raw: bytes, most: int, held: AsyncExitStack
    ) -> Response:
        _check_media_type(request, raw)
        read = partial(arguments, operation_shape, request, raw, most)
        values = await state.parse(raw, project, caller, read)
        if values.get(operation.writes_with or "") is not None:
            caller.check("write")
        if values.get(operation.restricted or "") is not None:
            caller.check("admin")
        # A call that only reads can be repeated, and its answer need not be kept for that.
        writes = operation.scope != "read" or values.get(operation.writes_with or "") is not None
        key = header_of(request, "Idempotency-Key") if writes and not operation_shape.keyed else None

        # A key of one project made that project. Whoever opens all may mistype a name.
        looked_up = caller.project is None and (operation.scope == "read" or operation.name == "set_policy")

        def call(callbacks: Mapping[str, Any]) -> bytes:
            if looked_up:
                state.store.check_known(project)
            acting = request_context.acting_as(caller.calling(request))
            with acting, state.storing(project, operation), state.store.using(project) as opened:
                return _called(state, opened, caller, operation_shape, values, callbacks, key)

        run = runner(state, operation, values, project, caller)
        if wants_stream(request, operation_shape):
            return stream(run, request, operation_shape, call, held.pop_all())
        content = await run(lambda: call({}))
        return _response(request, operation, content, partial(state.answer, project=project, caller=caller))

    return answer


def runner(
    state: State, operation: Operation, values: Mapping[str, Any], project: str, caller: Caller
) -> Callable[..., Awaitable[Any]]:
    """Where a call is done: what asks a database apart, all else in turn with its like."""
    if operation.queries:
        return partial(state.query, project, caller)
    if operation.scope == "feedback":
        lane = state.short
    else:
        answers = values.get("answer") or values.get("session_id") is not None
        lane = state.recalls if operation.name == "recall" and not answers else state.calls
    return partial(state.run, lane, project, caller)


def _called(
    state: State,
    project: Project,
    caller: Caller,
    shape: Shape,
    values: dict[str, Any],
    callbacks: Mapping[str, Any],
    key: str | None,
) -> bytes:
    """The result of a call, as JSON."""
    name, engine = shape.operation.name, caller.connecting(project)
    if shape.operation.undoes is not None:
        caller.check(project.scope_to_retract(values[shape.operation.undoes]))
    writing: AbstractContextManager[None] = nullcontext()
    if caller.claims is not None:
        size = visitors.size_of(values)
        values, target = callers.check_token(caller.claims, name, values, project)
        visitor, most = (caller.claims.author, target), state.store.visitor_daily_bytes
        writing = visitors.counted(state.store.database, project.name, state.store.now, visitor, size, most)

    def work() -> Any:
        owner = getattr(engine, shape.operation.namespace) if shape.operation.namespace else engine
        result = getattr(owner, shape.operation.verb)(**values, **callbacks)
        if result is False and shape.operation.missing is not None:
            missing = shape.operation.missing
            raise NotFound(f"no such {missing} in project {project.name!r}", code=f"{missing}_not_found")
        return result

    with writing:
        if key is None:
            return shape.result.dump_json(work())
        # Numbers of any size: they are refused later, and by name.
        digest = fingerprint(name, json.dumps(to_jsonable_python(values), sort_keys=True))
        stored = run_once(
            state.store.database,
            project.name,
            state.store.now,
            key,
            digest,
            lambda: shape.result.dump_python(work(), mode="json"),
            secret=shape.operation.secret,
        )
        return orjson.dumps(stored)


def _response(request: Request, operation: Operation, body: bytes, answer: Callable[..., Response]) -> Response:
    headers = {}
    if operation.name in ETAG_OPERATIONS:
        content, field = orjson.loads(body), INSIDE.get(operation.name)
        tag = f'"{etag(content if field is None else content[field])}"'
        if operation.method == "GET" and field is None and request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        headers["ETag"] = tag
    return answer(body, headers=headers)


def _check_media_type(request: Request, raw: bytes) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and media_type and media_type != "application/json" and not media_type.endswith("+json"):
        raise Invalid(
            f"the body is {media_type}",
            code="media_type",
            field="Content-Type",
            value=media_type,
            remedy="Send application/json",
        )


def wants_stream(request: Request, shape: Shape) -> bool:
    """Whether the caller asks for a stream, and there is something to stream."""
    return bool(shape.callbacks) and "text/event-stream" in request.headers.get("accept", "")


def stream(
    run: Callable[..., Awaitable[bytes]],
    request: Request,
    shape: Shape,
    call: Callable[[Mapping[str, Any]], bytes],
    held: AsyncExitStack,
) -> Response:
    """Runs a call and streams its events; it runs to completion, even if nobody listens any more. What is held until
    then is given back."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def emit(name: str, *args: Any) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event(name, orjson.dumps(args)))

    async def work() -> None:
        try:
            result = await run(lambda: call({name: partial(emit, name) for name in shape.callbacks}))
            queue.put_nowait(event("result", result))
        except Exception as error:
            request.scope["heedful.error"] = error
            queue.put_nowait(event("problem", document(error, request.scope["heedful.request_id"])[1]))
        finally:
            queue.put_nowait(None)
            await held.aclose()

    async def events(task: asyncio.Task[None]) -> AsyncIterator[bytes]:
        while (chunk := await queue.get()) is not None:
            yield chunk
        await task

    return StreamingResponse(
        events(asyncio.ensure_future(work())), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


def event(name: str, data: bytes) -> bytes:
    """One event of a stream; JSON has no line breaks of its own."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
