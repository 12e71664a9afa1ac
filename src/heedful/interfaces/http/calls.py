"""The operations of the engine as routes under /v1/projects/{project}: reading what was sent within limits, checking
what a token may do, running the call, and writing its result."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl

import numpy as np
import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json, to_jsonable_python
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from heedful.access import visitors
from heedful.access.credentials import Claims, target_claim
from heedful.access.repeated_calls import run_once
from heedful.api.calls import HEADERS, Call
from heedful.compat.foreign_api import ForeignRoute
from heedful.engine import Heedful, Project, run
from heedful.errors import Forbidden, Invalid, NotFound, few_errors, first_members, quoted
from heedful.interfaces.http.middleware import Endpoint, document
from heedful.interfaces.http.state import BodyLimit, Caller, ServerState, path_of
from heedful.model import etag, limits
from heedful.storage.call_results import fingerprint

PREFIX = "/v1/projects/{project}"

_WITH_ETAG = {
    "sessions": ("get_metadata", "update_metadata", "delete_metadata"),
    "feedback": ("get", "update"),
    "golden_examples": ("get", "update"),
    "review": ("get", "assign", "resolve", "dismiss", "reopen"),
}
ETAG_OPERATIONS = frozenset(f"{namespace}.{verb}" for namespace, verbs in _WITH_ETAG.items() for verb in verbs)
"""Operations whose result has an etag, with which a change can be made only if nobody else made one."""

INSIDE = {"review.get": "item"}
"""Those whose result has inside, by this name, what can be changed; the rest of it may change by itself."""


def endpoint(operation: Call, state: ServerState) -> Endpoint:
    async def answer(request: Request) -> Response:
        request.scope["heedful.operation"] = operation.name
        caller = await state.caller(request, None)
        by_token = caller.claims is not None
        # A token that names a suggestion may confirm it.
        caller.check("feedback" if by_token and operation.name == CONFIRM else operation.scope)
        if operation.also_reads:
            caller.check("read")
        if operation.everywhere:
            caller.check_everywhere()
        project = caller.choose(path_of(request.path_params)["project"])
        request.scope["heedful.project"] = project
        limit = body_limit(operation, by_token, state.config.max_body)
        async with AsyncExitStack() as held:
            raw = await held.enter_async_context(state.body(request, project, caller, limit))
            _check_media_type(request, raw)
            values = await state.parse(
                raw, project, caller, partial(read_arguments, operation, request, raw, limit.values)
            )
            caller.check_arguments(operation, values)
            # A call that only reads can be repeated, and its answer need not be kept for that.
            writes = operation.scope != "read" or values.get(operation.writes_with or "") is not None
            key = header_of(request, "Idempotency-Key") if writes and not operation.keyed else None

            def call(callbacks: Mapping[str, Any]) -> bytes:
                with state.opened(request, project, caller, operation) as opened:
                    return _result(state, opened, caller, operation, values, callbacks, key)

            run_there = runner(state, operation, values, project, caller, len(raw))
            if operation.callbacks and "text/event-stream" in request.headers.get("accept", ""):
                return stream(run_there, request, operation, call, held.pop_all())
            content = await run_there(lambda: call({}))
            return _response(request, operation, content, partial(state.answer, project=project, caller=caller))

    return answer


def runner(
    state: ServerState, operation: Call, values: Mapping[str, Any], project: str, caller: Caller, size: int
) -> Callable[..., Awaitable[Any]]:
    """The place to run a call with a body of so many bytes: apart if it asks a database, otherwise in turn with others
    of its kind."""
    if operation.queries:
        return partial(state.query, project, caller)
    lane = state.lane(operation, size)
    if operation.name == "recall" and not values.get("answer") and values.get("session_id") is None:
        lane = state.recalls
    return partial(state.run, lane, project, caller)


def _result(
    state: ServerState,
    project: Project,
    caller: Caller,
    operation: Call,
    values: dict[str, Any],
    callbacks: Mapping[str, Any],
    key: str | None,
) -> bytes:
    """The result of a call, as JSON."""
    project = caller.connected(project)
    database, now = state.store.database, state.store.now
    if operation.undoes is not None:
        caller.check(project.scope_to_retract(values[operation.undoes]))
    writing: AbstractContextManager[None] = nullcontext()
    if caller.claims is not None:
        size = visitors.size_of(values)
        values, target = check_token(caller.claims, operation.name, values, project)
        visitor, most = (caller.claims.author, target), state.store.config.visitor_daily_bytes
        writing = visitors.counted(database, project.name, now, visitor, size, most)

    def work() -> Any:
        result = run(project, operation, {**values, **callbacks})
        if result is False and operation.missing is not None:
            missing = operation.missing
            raise NotFound(f"no such {missing} in project {project.name!r}", code=f"{missing}_not_found")
        return result

    def as_json() -> Any:
        return operation.result.dump_python(work(), mode="json")

    with writing:
        if key is None:
            return operation.result.dump_json(work())
        # Numbers of any size: they are refused later, and by name.
        digest = fingerprint(operation.name, json.dumps(to_jsonable_python(values), sort_keys=True))
        return orjson.dumps(run_once(database, project.name, now, key, digest, as_json, secret=operation.secret))


def _response(request: Request, operation: Call, body: bytes, answer: Callable[..., Response]) -> Response:
    headers = {}
    if operation.name in ETAG_OPERATIONS:
        content, field = orjson.loads(body), INSIDE.get(operation.name)
        tag = f'"{etag(content if field is None else content[field])}"'
        if operation.method == "GET" and field is None and request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        headers["ETag"] = tag
    return answer(body, headers=headers)


def _check_media_type(request: Request, raw: bytes) -> None:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and sent and sent != "application/json" and not sent.endswith("+json"):
        remedy = "Send application/json"
        raise Invalid(f"the body is {sent}", code="media_type", field="Content-Type", value=sent, remedy=remedy)


def stream(
    run: Callable[..., Awaitable[bytes]],
    request: Request,
    operation: Call,
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
            result = await run(lambda: call({name: partial(emit, name) for name in operation.callbacks}))
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


MAX_QUERY = 65_536
MAX_FIELDS = 1_000

MARKS = re.compile(rb'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+"?)*+([\[\]{},]|\Z)', re.DOTALL)
"""The marks that begin, separate and end the values of JSON, and its end; texts are passed over."""


FEEDBACK = BodyLimit(
    limits.MAX_FEEDBACK_BODY, limits.MAX_FEW_VALUES, "for feedback ", "Shorten the comment or the metadata sent with it"
)
READING = BodyLimit(limits.MAX_READ_BODY, limits.MAX_FEW_VALUES, "for a call that reads ", "Shorten what is sent")


def body_limit(call: Call | ForeignRoute, by_token: bool, most: int) -> BodyLimit:
    """The limit of a call on a server that reads so many bytes: lower for one opinion, and for what only reads."""
    is_small = by_token or (call.scope == "feedback" and not call.batch)
    limit = FEEDBACK if is_small else READING if call.scope == "read" else BodyLimit(most)
    return limit if limit.size < most else BodyLimit(most, limit.values)


def _count(raw: bytes, marks: bytes) -> int:
    if len(raw) < 65_536:
        return sum(raw.count(mark) for mark in marks)
    # Counting in bytes would keep every other thread waiting.
    codes = np.frombuffer(raw, np.uint8)
    return int(sum(np.count_nonzero(codes == mark) for mark in marks))


def check_values(raw: bytes, most: int) -> None:
    """Refuses JSON of more values, or of an object with more members, than any call needs: however small they are, each
    takes memory, and time in which nothing else runs."""
    if _count(raw, b":") <= limits.MAX_MEMBERS and _count(raw, b",[{") <= most:
        return
    count, commas = 0, [0]
    for match in MARKS.finditer(raw):
        mark = match[1]
        if mark in b"]}":
            # Also the end, where nothing is counted any more.
            if len(commas) > 1:
                commas.pop()
            continue
        count += 1
        if count > most:
            raise _too_many(f"more than {most} values", most)
        if mark == b",":
            commas[-1] += 1
            if commas[-1] >= limits.MAX_MEMBERS:
                raise _too_many(f"an object with more than {limits.MAX_MEMBERS} members", limits.MAX_MEMBERS)
        else:
            # A list may be longer: it begins so low that the limit of objects is out of reach.
            commas.append(0 if mark == b"{" else -most)


def _too_many(values: str, most: int) -> Invalid:
    remedy = "Send it in several calls"
    return Invalid(f"the body has {values}", code="body_too_large", field="body", value=most, remedy=remedy)


def query_of(request: Request) -> list[tuple[str, str]]:
    raw = request.scope["query_string"]
    if not raw:
        return []
    if len(raw) > MAX_QUERY:
        raise Invalid(f"the query string has {len(raw)} bytes, the limit is {MAX_QUERY}", code="malformed")
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise Invalid(f"the query string can't be read ({error})", code="malformed") from None


def json_of(raw: bytes, most: int) -> Any:
    """A body as JSON of so many values; None if it is empty."""
    if not raw.strip():
        return None
    check_values(raw, most)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON ({error})", code="malformed", remedy="Send UTF-8 JSON") from None


def read_arguments(call: Call, request: Request, raw: bytes, most: int) -> dict[str, Any]:
    """The arguments of an operation, by the names they have in Python; its JSON may have so many values."""
    values: dict[str, Any] = path_of(request.path_params)
    del values["project"]
    pairs = query_of(request)
    if call.in_query:
        if raw.strip():
            raise Invalid("this call takes no body", code="malformed", remedy="Put parameters in the query string")
        values |= _from_query(call, pairs)
    else:
        if pairs:
            name, remedy = pairs[0][0], "Put parameters in the body"
            raise Invalid(f"this call takes no query string, got {quoted(name)}", field=name, remedy=remedy)
        values |= _from_body(call, raw.strip() or b"{}", most)
    for name in call.headers:
        value = header_of(request, HEADERS[name])
        if value is not None:
            values[name] = value.strip('"') if name == "if_match" else value
    if values.get("if_match") == "*":
        # Whatever it is now: there is nothing to compare.
        del values["if_match"]
    return values


def header_of(request: Request, name: str) -> str | None:
    """A header. They arrive as Latin-1; what was sent as UTF-8 is read as that."""
    value = request.headers.get(name)
    try:
        return None if value is None else value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _from_body(call: Call, raw: bytes, most: int) -> dict[str, Any]:
    check_values(raw, most)

    def validate(given: bytes) -> Any:
        return call.request.model_validate_json(given, strict=True)

    try:
        return call.arguments_of(validate(raw))
    except ValidationError as error:
        few = few_errors(error, lambda: validate(to_json(first_members(from_json(raw)), inf_nan_mode="constants")))
        raise _invalid(call, few) from None


def _from_query(call: Call, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        field = call.request.model_fields.get(name)
        kind = None if field is None else _plain(field.annotation)
        if kind is list:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise Invalid(f"{name} is passed twice", field=name, value=value, remedy="Pass it once")
        elif kind is dict:
            try:
                # Not by orjson, which makes a fraction of a whole number of more than 64 bits.
                values[name] = from_json(value)
            except ValueError as error:
                raise Invalid(f"{name} is not JSON ({error})", field=name, value=value) from None
        else:
            values[name] = value
    try:
        return call.arguments_of(call.request.model_validate(values))
    except ValidationError as error:
        raise _invalid(call, error.errors()) from None


def _plain(kind: Any) -> type | None:
    """list, dict or None, behind optional types."""
    origins = [get_origin(option) or option for option in (kind, *get_args(kind))]
    return next((origin for origin in origins if origin in (list, dict)), None)


def _invalid(call: Call, errors: Sequence[ErrorDetails]) -> Invalid:
    first = errors[0]
    if first["type"] == "json_invalid":
        return Invalid(f"the body is not JSON ({first['ctx']['error']})", code="malformed", remedy="Send UTF-8 JSON")
    if first["type"] in ("model_type", "dict_type") and not first["loc"]:
        return Invalid("the body must be a JSON object", code="malformed", remedy='Send {"name": value, …}')
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        name = str(first["loc"][0])
        parameters = ", ".join(call.request.model_fields)
        remedy = f"Its parameters are {parameters}" if parameters else "Leave it out: there are none"
        return Invalid(f"{name} is not a parameter of this call", field=name, remedy=remedy)
    return Invalid.from_validation(errors)


TARGET_FIELDS = {
    "sessions.add_feedback": ("session_id", "qa_id"),
    "sessions.rate": ("external_id",),
    "sessions.delete_feedback": ("session_id", "qa_id"),
    "sessions.add_session_feedback": ("session_id",),
    "signal_recall": ("recall_id",),
}
"""Operations whose arguments name what they are about."""

CONFIRM = "chat.confirm_suggestion"
CREATE = frozenset({"feedback.create", "feedback.create_positive", "feedback.create_negative"})
CHANGE = frozenset({"feedback.update", "feedback.delete"})


def check_token(
    claims: Claims, operation: str, arguments: dict[str, Any], project: Project
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments, under the name of the token, and what they are about; `Forbidden` if it doesn't allow this."""
    if operation in CHANGE:
        return arguments, _own_target(claims, project, arguments["feedback_id"])
    targets: list[dict[str, str]] = []
    if operation in TARGET_FIELDS:
        targets = [target_claim(**{name: arguments.get(name) for name in TARGET_FIELDS[operation]})]
    elif operation in CREATE:
        given = {name: arguments.get(name) for name in ("execution_id", "chat_message_id")}
        targets = [target_claim(**{name: value}) for name, value in given.items() if value is not None]
    elif operation == CONFIRM:
        targets = [target_claim(execution_id=arguments["execution_id"], question=arguments["user_query"])]
    elif operation == "retract":
        targets = [_own_session(claims, project, arguments["event_id"])]
    if not targets or not all(claims.names(target) for target in targets):
        raise _not_allowed()
    if operation == CONFIRM:
        arguments = _with_source(arguments, project)
    return {**arguments, "author": claims.author}, targets[-1]


def _with_source(arguments: dict[str, Any], project: Project) -> dict[str, Any]:
    """The arguments with the connector and audience of the execution that they name; `Forbidden` if they name others:
    a token must not prove SQL for another audience."""
    space = project.executions
    with space.workspace.read() as connection:
        source = space.suggestion_source(connection, arguments["execution_id"])
        connector = space.connector(connection, source.connector_id)
    matches = arguments.get("connector_id") in (None, connector.id, connector.name)
    if not matches or arguments.get("audience") not in (None, source.audience):
        raise _not_allowed()
    return {**arguments, "connector_id": connector.id, "audience": source.audience}


def _own_target(claims: Claims, project: Project, feedback_id: str) -> dict[str, str]:
    feedback = Heedful(project).feedback.get(feedback_id)
    targets = [target_claim(chat_message_id=feedback.chat_message_id), target_claim(execution_id=feedback.execution_id)]
    named = [claim for claim in targets if claims.names(claim)]
    if feedback.author != claims.author or not named:
        raise NotFound(f"no feedback {feedback_id!r} of yours", field="feedback_id", value=feedback_id)
    return named[0]


def _own_session(claims: Claims, project: Project, event_id: str) -> dict[str, str]:
    """The session that an opinion of the token's author is about."""
    opinion = project.session_feedback(event_id)
    if opinion is not None and opinion.active and opinion.author == claims.author and opinion.target_type == "session":
        named = target_claim(session_id=opinion.session_id)
        if claims.names(named):
            return named
    raise NotFound(f"no feedback {event_id!r} of yours", field="event_id", value=event_id)


def _not_allowed() -> Forbidden:
    remedy = "Name the target when the token is made: keys.create_token([{…}])"
    return Forbidden("the token does not allow this", code="scope_missing", remedy=remedy)
