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

from heedful.api import CALLS, checks
from heedful.api.calls import HEADERS, LOCAL_ONLY, Arguments, Call
from heedful.clock import new_id
from heedful.errors import HeedfulError, Invalid, Unavailable, quoted
from heedful.evaluation.training_files import line_of, training_file
from heedful.insight.export_files import export, from_json_rows
from heedful.interfaces.client.surface import adapted
from heedful.interfaces.problems import error_of
from heedful.model import ExportResult, TrainingExport
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
    method: str
    path: str
    headers: dict[str, str]
    content: bytes | None
    slow: bool
    callbacks: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    """The functions to call for events of a stream; without any, no stream is asked for."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of the server; status 0 with a problem if there is none."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    timed_out: bool = False
    """Whether it was waited for as long as the caller allows."""
    streamed: bool = False
    """Whether a callback was called; a retry would call it again."""


Exchange = Generator[Send | float, Reply | None, Any]
"""Yields requests, and the seconds of pauses; a request is answered with a reply."""


def exchange(project: str, call: Call, arguments: Arguments) -> Exchange:
    """The requests of one call, and its result."""
    if call.name == "insight.export":
        return (yield from _export(project, **arguments))
    if call.name == "insight.export_training":
        return (yield from _export_training(project, **arguments))
    call, values, errors = adapted(call, arguments)
    request = _request(call, project, values)
    attempt, waits = 1, 0
    while True:
        answer = yield request
        assert answer is not None
        in_progress = answer.status == 409 and _document(answer).get("code") == "in_progress"
        if waits < MAX_POLLS and in_progress:
            waits += 1
            yield max(1.0, _retry_after(answer))
        elif attempt < ATTEMPTS and _is_retryable(answer):
            yield max(_retry_after(answer), min(8.0, 0.1 * 2**attempt) * random.uniform(0.5, 1.0))
            attempt += 1
        else:
            result = _result(call, answer, attempt)
            return result.model_copy(update={"errors": errors + result.errors}) if errors else result


def _export(
    project: str, table: str, path: Any, format: str | None = None, overwrite: bool = False, **filters: Any
) -> Generator[Send | float, Reply | None, ExportResult]:
    """A table, page by page, in a file that is written here."""
    with export(table, path, format, filters.get("dataset"), overwrite) as output:
        cursor = None
        while True:
            page = yield from exchange(project, CALLS["insight.rows"], {"table": table, **filters, "cursor": cursor})
            output.add(from_json_rows(output.table, page.items))
            cursor = page.next_cursor
            if cursor is None:
                break
    return output.result()


def _export_training(
    project: str,
    path: Any,
    format: Any,
    overwrite: bool = False,
    progress: Callable[[int, int], object] | None = None,
    **filters: Any,
) -> Generator[Send | float, Reply | None, TrainingExport]:
    """The same for training data."""
    with training_file(path, overwrite) as output:
        cursor, written = None, 0
        while True:
            given = {"format": format, **filters, "cursor": cursor}
            page = yield from exchange(project, CALLS["insight.training"], given)
            output.add(map(line_of, page.items))
            written += len(page.items)
            if progress is not None:
                progress(written, page.data.lines)
            cursor = page.next_cursor
            if cursor is None:
                return output.end(page.data)


def _request(call: Call, project: str, values: Arguments) -> Send:
    for name in LOCAL_ONLY & values.keys():
        if values.pop(name) is not None:
            remedy = "Leave it out, or run it where the store is"
            raise Invalid(f"{name} names another store, which a server doesn't open for you", field=name, remedy=remedy)
    callbacks = {name: back for name in call.callbacks if (back := values.pop(name, None)) is not None}
    path = f"/v1/projects/{_segment('project', project)}" + call.path.format(
        **{name: _segment(name, values.pop(name)) for name in call.in_path}
    )
    headers = {HEADERS[name]: _header(name, values.pop(name, None)) for name in call.headers}
    headers = {name: value for name, value in headers.items() if value is not None}
    if not call.repeatable and "Idempotency-Key" not in headers:
        headers["Idempotency-Key"] = new_id()
    if "If-Match" in headers:
        headers["If-Match"] = f'"{headers["If-Match"]}"'
    content = None
    if call.in_query:
        # A query string has no types.
        try:
            call.request.model_validate(values, strict=True)
        except ValidationError as error:
            raise Invalid.from_validation(error) from None
        path += _query(values)
    else:
        headers["Content-Type"] = "application/json"
        content = b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), _json(name, item)) for name, item in values.items())
    headers["Accept"] = "text/event-stream" if callbacks else "application/json"
    return Send(call.method, path, headers, content, call.slow, callbacks)


def _segment(name: str, value: Any) -> str:
    """A part of a path; it is never empty and has no dots that are steps."""
    part = quote(checks.identifier(name, value), safe="")
    return part.replace(".", "%2E") if set(value) == {"."} else part


def _header(name: str, value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str) or not value or value != value.strip() or re.search(r"[\x00-\x1f\x7f]", value):
        raise Invalid(f"{name} must be a name, got {quoted(value)}", field=name, value=value)
    return checks.any_text(name, value)


def _query(values: dict[str, Any]) -> str:
    pairs = []
    for name, value in values.items():
        items = value if isinstance(value, list | tuple) else [] if value is None else [value]
        pairs += [(name, _written(name, item)) for item in items]
    query = f"?{urlencode(pairs)}" if pairs else ""
    if len(query) > MAX_URL:
        longest = max(pairs, key=lambda pair: len(pair[1]))[0]
        problem = f"{longest} is too long for a URL, which takes {MAX_URL} bytes"
        raise Invalid(problem, field=longest, remedy="Use fewer or shorter values")
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
        remedy = "Use texts, numbers, true, false, null, lists and mappings"
        raise Invalid(
            f"{name} contains values that JSON can't represent ({reason})", field=name, remedy=remedy
        ) from None


def _is_retryable(answer: Reply) -> bool:
    """Whether sending it again may help; each request either has a key or does no harm twice."""
    if answer.status in (500, 503):
        # A proxy says nothing of when to come back, and its servers may be back in a moment.
        return "retry-after" in answer.headers or "code" not in _document(answer)
    return answer.status in (0, 429, 502, 504) and not answer.timed_out and not answer.streamed


def _retry_after(answer: Reply) -> float:
    return seconds(answer.headers.get("retry-after", ""))


def _result(call: Call, answer: Reply, attempts: int) -> Any:
    if answer.timed_out:
        problem = f"the request timed out: {answer.problem}; it may or may not have been done"
        remedy = "Raise the timeout: connect(url, timeout=SECONDS); a call with an idempotency_key can be retried"
        raise Unavailable(problem, code="server_timeout", remedy=remedy)
    if answer.status == 0:
        problem = f"the server can't be reached: {answer.problem} (tried {attempts} times)"
        remedy = "Check the address, and that heedful serve runs there"
        raise Unavailable(problem, code="server_unreachable", remedy=remedy)
    if answer.status < 300:
        try:
            return _read(call, answer.content)
        except ValidationError:
            raise _unexpected_response(answer) from None
    error = _error(answer)
    if call.missing is not None and error.code == f"{call.missing}_not_found":
        return False
    raise error


def _read(call: Call, content: bytes) -> Any:
    """The result in an answer; a newer server may send fields that this client doesn't know."""
    try:
        return call.result.validate_json(content)
    except ValidationError:
        # Only now, because a union of models is told apart by the fields that each of them has.
        with ignoring_unknown_fields():
            return call.result.validate_json(content)


def _error(answer: Reply) -> HeedfulError:
    document = _document(answer)
    if document.get("code") == "key_missing":
        document["remedy"] = "Set HEEDFUL_API_KEY, or pass api_key=…"
    if document.get("code") == "no_route":
        return _unexpected_response(answer)
    if "code" in document or answer.status in (401, 403, 413, 429) or answer.status >= 500:
        return error_of(answer.status, document)
    return _unexpected_response(answer)


def _unexpected_response(answer: Reply) -> Unavailable:
    """Something answers, and it is not a server of Heedful's that this client understands."""
    kind = answer.headers.get("content-type", "no type")
    to = f", and points to {answer.headers['location']}" if "location" in answer.headers else ""
    message = f"the response is not from a compatible Heedful server: {answer.status}, {kind}{to}"
    remedy = "Check the address: http://host:port of heedful serve, without a path"
    return Unavailable(message, code="not_heedful", remedy=remedy)


def _document(answer: Reply) -> dict[str, Any]:
    try:
        document = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
