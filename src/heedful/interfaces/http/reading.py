"""Bodies, paths and queries of requests, read within limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl, unquote

import numpy as np
import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json
from starlette.requests import Request

from heedful.errors import Invalid, NotFound, few_errors, first_members, quoted
from heedful.interfaces.operations import Operation, Shape
from heedful.interfaces.operations.shape import HEADERS
from heedful.interfaces.problems import Wire
from heedful.model import limits

MAX_QUERY = 65_536
MAX_FIELDS = 1_000

MARKS = re.compile(rb'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+"?)*+([\[\]{},]|\Z)', re.DOTALL)
"""What begins, separates and ends the values of JSON, and the end of it; texts are passed over."""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """What a body may have at most."""

    size: int
    """In bytes."""
    values: int = limits.MAX_VALUES
    purpose: str = ""
    remedy: str = "Send it in several calls, or start the server with a larger --max-body"


FEEDBACK = BodyLimit(
    limits.MAX_FEEDBACK_BODY,
    limits.MAX_FEW_VALUES,
    "for feedback ",
    "Shorten the comment or the metadata sent with it",
)
READING = BodyLimit(limits.MAX_READ_BODY, limits.MAX_FEW_VALUES, "for a call that reads ", "Shorten what is sent")


def body_limit(call: Operation | Wire, by_token: bool, most: int) -> BodyLimit:
    """The limit of a call on a server that reads so many bytes: lower for one opinion, and for what only reads."""
    is_small = by_token or (call.scope == "feedback" and not call.batch)
    limit = FEEDBACK if is_small else READING if call.scope == "read" else BodyLimit(most)
    return limit if limit.size < most else BodyLimit(most, limit.values)


def expected_size(request: Request, limit: BodyLimit) -> int:
    """How many bytes of a body will be read: none of one that is too large."""
    length = request.headers.get("content-length", "")
    if length.isdecimal():
        return int(length) if int(length) <= limit.size else 0
    return limit.size if "transfer-encoding" in request.headers else 0


async def body_of(request: Request, limit: BodyLimit) -> bytes:
    """The whole body, if it is not larger than its limit; it is not read further than that."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit.size:
        raise _too_large(limit, int(length))
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit.size:
            raise _too_large(limit, None)
        parts.append(part)
    return b"".join(parts)


def _count(raw: bytes, marks: bytes) -> int:
    """How often these occur."""
    if len(raw) < 65_536:
        return sum(raw.count(mark) for mark in marks)
    # Counting in bytes would keep every other thread waiting.
    found = np.frombuffer(raw, np.uint8)
    return int(sum(np.count_nonzero(found == mark) for mark in marks))


def check_values(raw: bytes, most: int) -> None:
    """Refuses JSON of more values, or of an object with more members, than any call needs: however small they are, each
    takes memory, and time in which nothing else runs."""
    if _count(raw, b":") <= limits.MAX_MEMBERS and _count(raw, b",[{") <= most:
        return
    count, commas = 0, [0]
    for found in MARKS.finditer(raw):
        mark = found[1]
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


def _too_many(what: str, most: int) -> Invalid:
    remedy = "Send it in several calls"
    return Invalid(f"the body has {what}", code="body_too_large", field="body", value=most, remedy=remedy)


def path_of(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a path, decoded; a slash in one is written %2F."""
    try:
        return {name: unquote(value, errors="strict") for name, value in parameters.items()}
    except UnicodeDecodeError:
        raise NotFound("the path is not valid UTF-8") from None


def query_of(request: Request) -> list[tuple[str, str]]:
    """The pairs of a query string."""
    raw = request.scope["query_string"]
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


def arguments(shape: Shape, request: Request, raw: bytes, most: int) -> dict[str, Any]:
    """The arguments of an operation, by the names they have in Python; its JSON may have so many values."""
    values: dict[str, Any] = path_of(request.path_params)
    del values["project"]
    pairs = query_of(request)
    if shape.in_query:
        if raw.strip():
            raise Invalid("this call takes no body", code="malformed", remedy="Put parameters in the query string")
        values |= _from_query(shape, pairs)
    else:
        if pairs:
            raise Invalid(
                f"this call takes no query string, got {quoted(pairs[0][0])}",
                field=pairs[0][0],
                remedy="Put parameters in the body",
            )
        values |= _from_body(shape, raw.strip() or b"{}", most)
    for name in shape.headers:
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


def _from_body(shape: Shape, raw: bytes, most: int) -> dict[str, Any]:
    check_values(raw, most)

    def validate(given: bytes) -> Any:
        return shape.request.model_validate_json(given, strict=True)

    try:
        return shape.arguments(validate(raw))
    except ValidationError as error:
        few = few_errors(error, lambda: validate(to_json(first_members(from_json(raw)), inf_nan_mode="constants")))
        raise _refused(shape, few) from None


def _from_query(shape: Shape, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        return shape.arguments(shape.request.model_validate(_parsed(shape, pairs)))
    except ValidationError as error:
        raise _refused(shape, error.errors()) from None


def _parsed(shape: Shape, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        field = shape.request.model_fields.get(name)
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
    return values


def _plain(kind: Any) -> type | None:
    """list, dict or None, behind optional types."""
    for each in (kind, *get_args(kind)):
        origin = get_origin(each) or each
        if origin in (list, dict):
            return origin  # type: ignore[no-any-return]
    return None


def _refused(shape: Shape, errors: Sequence[ErrorDetails]) -> Invalid:
    first = errors[0]
    if first["type"] == "json_invalid":
        return Invalid(f"the body is not JSON ({first['ctx']['error']})", code="malformed", remedy="Send UTF-8 JSON")
    if first["type"] in ("model_type", "dict_type") and not first["loc"]:
        return Invalid("the body must be a JSON object", code="malformed", remedy='Send {"name": value, …}')
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        name = str(first["loc"][0])
        parameters = ", ".join(shape.request.model_fields)
        remedy = f"Its parameters are {parameters}" if parameters else "Leave it out: there are none"
        return Invalid(f"{name} is not a parameter of this call", field=name, remedy=remedy)
    return Invalid.from_validation(errors)


def _too_large(limit: BodyLimit, size: int | None) -> Invalid:
    length = f"more than {limit.size} bytes" if size is None else f"{size} bytes"
    return Invalid(
        f"the body has {length}, the limit {limit.purpose}is {limit.size}",
        code="body_too_large",
        field="body",
        value=size,
        remedy=limit.remedy,
    )
