"""One call, without input or output: which requests to send, when to send one again, and what the answer means.

Both clients, the one that blocks and the one that is awaited, drive the same generator.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from pydantic_core import PydanticSerializationError, ValidationError, to_json

from heedful.errors import HeedfulError, Invalid, Unavailable, quoted
from heedful.ids import new_id
from heedful.insight.writing import export, from_json_rows
from heedful.interfaces.client.surface import adapted
from heedful.interfaces.operations import OPERATIONS, Shape, shape
from heedful.interfaces.operations.shape import HEADERS, arguments
from heedful.interfaces.problems import error_of
from heedful.memory import checks
from heedful.model import ExportResult
from heedful.model.base import ignoring_unknown_fields
from heedful.retrying import seconds

ATTEMPTS = 4
MAX_POLLS = 60
"""How often it is asked what became of an attempt that broke off and is still in progress there."""

MAX_URL = 60_000
"""Bytes of the parameters in an address; servers and proxies refuse longer ones."""

SLOW_FACTOR = 10
"""How many times as long calls may take that are known to be slow."""


@dataclass(frozen=True, slots=True)
class Send:
    """A request to be sent."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes | None
    slow: bool
    callbacks: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    """What to call for each event of a stream; no stream is asked for if there are none."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """A pause."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; status 0 with a problem if nothing did."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    timed_out: bool = False
    """Whether it was waited for as long as the caller allows."""
    streamed: bool = False
    """Whether a callback was called; a retry would call it again."""


Exchange = Generator[Send | Sleep, Answer | None, Any]


def exchange(project: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exchange:
    """The requests of one call of a method, and its result."""
    values = arguments(name, args, kwargs)
    if name == "insight.export":
        return (yield from _export(project, **values))
    name, values, errors = adapted(name, values)
    operation_shape = shape(OPERATIONS[name])
    request = _request(operation_shape, project, values)
    attempt, waits = 1, 0
    while True:
        answer = yield request
        assert answer is not None
        if waits < MAX_POLLS and _in_progress(answer):
            waits += 1
            yield Sleep(max(1.0, _retry_after(answer)))
        elif attempt < ATTEMPTS and _is_retryable(answer):
            yield Sleep(max(_retry_after(answer), min(8.0, 0.1 * 2**attempt) * random.uniform(0.5, 1.0)))
            attempt += 1
        else:
            result = _result(operation_shape, answer, attempt)
            return result.model_copy(update={"errors": errors + result.errors}) if errors else result


def _export(
    project: str,
    table: str,
    path: Any,
    format: str | None = None,
    overwrite: bool = False,
    **filters: Any,
) -> Generator[Send | Sleep, Answer | None, ExportResult]:
    """A table, page by page, in a file that is written here."""
    with export(table, path, format, filters.get("dataset"), overwrite) as output:
        cursor = None
        while True:
            page = yield from exchange(project, "insight.rows", (table,), {**filters, "cursor": cursor})
            output.add(from_json_rows(output.table, page.items))
            cursor = page.next_cursor
            if cursor is None:
                break
    return output.result()


def _request(shape: Shape, project: str, values: dict[str, Any]) -> Send:
    operation = shape.operation
    callbacks = {name: call for name in shape.callbacks if (call := values.pop(name, None)) is not None}
    path = f"/v1/projects/{_segment('project', project)}" + operation.path.format(
        **{name: _segment(name, values.pop(name)) for name in shape.path}
    )
    headers = {HEADERS[name]: _header(name, values.pop(name, None)) for name in shape.headers}
    headers = {name: value for name, value in headers.items() if value is not None}
    if not operation.repeatable and "Idempotency-Key" not in headers:
        headers["Idempotency-Key"] = new_id()
    if "If-Match" in headers:
        headers["If-Match"] = f'"{headers["If-Match"]}"'
    content = None
    if shape.in_query:
        path += _query(_checked(shape, values))
    else:
        headers["Content-Type"] = "application/json"
        content = b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), _json(name, each)) for name, each in values.items())
    headers["Accept"] = "text/event-stream" if callbacks else "application/json"
    return Send(operation.method, path, headers, content, operation.slow, callbacks)


def _segment(name: str, value: Any) -> str:
    """A part of a path; it is never empty and has no dots that are steps."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"{name} must be a non-empty string, got {quoted(value)}", field=name, value=value)
    part = quote(checks.any_text(name, value), safe="")
    return part.replace(".", "%2E") if set(value) == {"."} else part


def _header(name: str, value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str) or not value or value != value.strip() or re.search(r"[\x00-\x1f\x7f]", value):
        raise Invalid(f"{name} must be a name, got {quoted(value)}", field=name, value=value)
    return checks.any_text(name, value)


def _checked(shape: Shape, values: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a query string, which has no types."""
    try:
        shape.request.model_validate(values, strict=True)
    except ValidationError as error:
        raise Invalid.from_validation(error) from None
    return values


def _query(values: dict[str, Any]) -> str:
    pairs = []
    for name, value in values.items():
        if value is None:
            continue
        items = value if isinstance(value, list | tuple) else [value]
        pairs += [(name, _written(name, item)) for item in items]
    query = f"?{urlencode(pairs)}" if pairs else ""
    if len(query) > MAX_URL:
        longest = max(pairs, key=lambda pair: len(pair[1]))[0]
        raise Invalid(
            f"{longest} is too long for a URL, which takes {MAX_URL} bytes",
            field=longest,
            remedy="Use fewer or shorter values",
        )
    return query


def _written(name: str, value: Any) -> str:
    return checks.any_text(name, value) if isinstance(value, str) else _json(name, value).decode().strip('"')


def _json(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        checks.any_text(name, value)
    try:
        return to_json(value, inf_nan_mode="constants")
    except (PydanticSerializationError, UnicodeEncodeError, RecursionError) as error:
        reason = str(error).removeprefix("Error serializing to JSON: ")
        raise Invalid(
            f"{name} contains values that JSON can't represent ({reason})",
            field=name,
            remedy="Use texts, numbers, true, false, null, lists and mappings",
        ) from None


def _is_retryable(answer: Answer) -> bool:
    """Whether sending it again may help; each request either has a key or does no harm twice."""
    if answer.status in (500, 503):
        # A proxy says nothing of when to come back, and its servers may be back in a moment.
        return "retry-after" in answer.headers or "code" not in _document(answer)
    return answer.status in (0, 429, 502, 504) and not answer.timed_out and not answer.streamed


def _in_progress(answer: Answer) -> bool:
    return answer.status == 409 and _document(answer).get("code") == "in_progress"


def _retry_after(answer: Answer) -> float:
    return seconds(answer.headers.get("retry-after", ""))


def _result(shape: Shape, answer: Answer, attempts: int) -> Any:
    if answer.timed_out:
        raise Unavailable(
            f"the request timed out: {answer.problem}; it may or may not have been done",
            code="server_timeout",
            remedy="Raise the timeout: connect(url, timeout=SECONDS); a call with an idempotency_key can be retried",
        )
    if answer.status == 0:
        raise Unavailable(
            f"the server can't be reached: {answer.problem} (tried {attempts} times)",
            code="server_unreachable",
            remedy="Check the address, and that heedful serve runs there",
        )
    if answer.status < 300:
        try:
            return _read(shape, answer.content)
        except ValidationError:
            raise _unexpected_response(answer) from None
    error = _error(answer)
    if shape.operation.missing is not None and error.code == f"{shape.operation.missing}_not_found":
        return False
    raise error


def _read(shape: Shape, content: bytes) -> Any:
    """The result in an answer; a newer server may send fields that this client doesn't know."""
    try:
        return shape.result.validate_json(content)
    except ValidationError:
        # Only now, because a union of models is told apart by the fields that each of them has.
        with ignoring_unknown_fields():
            return shape.result.validate_json(content)


def _error(answer: Answer) -> HeedfulError:
    document = _document(answer)
    if document.get("code") == "key_missing":
        document["remedy"] = "Set HEEDFUL_API_KEY, or pass api_key=…"
    if document.get("code") == "no_route":
        return _unexpected_response(answer)
    if "code" in document or answer.status in (401, 403, 413, 429) or answer.status >= 500:
        return error_of(answer.status, document)
    return _unexpected_response(answer)


def _unexpected_response(answer: Answer) -> Unavailable:
    """Something answers, and it is not a server of Heedful's that this client understands."""
    kind = answer.headers.get("content-type", "no type")
    to = f", and points to {answer.headers['location']}" if "location" in answer.headers else ""
    return Unavailable(
        f"the response is not from a compatible Heedful server: {answer.status}, {kind}{to}",
        code="not_heedful",
        remedy="Check the address: http://host:port of heedful serve, without a path",
    )


def _document(answer: Answer) -> dict[str, Any]:
    try:
        document = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
