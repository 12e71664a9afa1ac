"""Bodies, paths and queries of requests, read within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl, unquote

import orjson
from pydantic import ValidationError
from starlette.requests import Request

from heedful.errors import Invalid, NotFound
from heedful.interfaces.operations import Shape
from heedful.interfaces.operations.shape import HEADERS

MAX_QUERY = 65_536
MAX_FIELDS = 1_000


async def body_of(request: Request, most: int) -> bytes:
    """The whole body, if it is not larger than allowed; it is not read further than that."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


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


def json_of(raw: bytes) -> Any:
    """A body as JSON; None if it is empty."""
    if not raw.strip():
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON ({error})", code="malformed", remedy="Send UTF-8 JSON") from None


def arguments(shape: Shape, request: Request, raw: bytes) -> dict[str, Any]:
    """The arguments of an operation, by the names they have in Python."""
    values: dict[str, Any] = path_of(request.path_params)
    del values["project"]
    pairs = query_of(request)
    try:
        if shape.in_query:
            if raw.strip():
                raise Invalid("this call takes no body", code="malformed", remedy="Put parameters in the query string")
            values |= shape.arguments(shape.request.model_validate(_from_query(shape, pairs)))
        else:
            if pairs:
                raise Invalid(
                    f"this call takes no query string, got {pairs[0][0]!r}",
                    field=pairs[0][0],
                    remedy="Put parameters in the body",
                )
            values |= shape.arguments(shape.request.model_validate_json(raw.strip() or b"{}", strict=True))
    except ValidationError as error:
        raise _refused(shape, error) from None
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


def _from_query(shape: Shape, pairs: list[tuple[str, str]]) -> dict[str, Any]:
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
                values[name] = orjson.loads(value)
            except orjson.JSONDecodeError as error:
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


def _refused(shape: Shape, error: ValidationError) -> Invalid:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return Invalid(f"the body is not JSON ({first['ctx']['error']})", code="malformed", remedy="Send UTF-8 JSON")
    if first["type"] in ("model_type", "dict_type") and not first["loc"]:
        return Invalid("the body must be a JSON object", code="malformed", remedy='Send {"name": value, …}')
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        name = str(first["loc"][0])
        parameters = ", ".join(shape.request.model_fields)
        remedy = f"Its parameters are {parameters}" if parameters else "Leave it out: there are none"
        return Invalid(f"{name} is not a parameter of this call", field=name, remedy=remedy)
    return Invalid.from_validation(error)


def _too_large(most: int) -> Invalid:
    return Invalid(
        f"the body has more than {most} bytes",
        code="body_too_large",
        remedy="Send it in several calls, or start the server with a larger --max-body",
    )
