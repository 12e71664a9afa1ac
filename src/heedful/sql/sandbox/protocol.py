"""Messages between the server and a query process: four bytes of length, then JSON. Nothing in it is ever executed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from struct import Struct
from typing import Any

import orjson

from heedful import errors
from heedful.errors import HeedfulError
from heedful.results import Column, Result, decode, encode

_LENGTH = Struct(">I")


class BadFrame(Exception):
    """The data is no message, or too long."""


def send(descriptor: int, message: dict[str, Any]) -> None:
    body = orjson.dumps(message)
    remaining = memoryview(_LENGTH.pack(len(body)) + body)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def receive(descriptor: int, longest: int) -> dict[str, Any] | None:
    """Reads one message; None if the other side has ended."""
    header = _read(descriptor, _LENGTH.size)
    if header is None:
        return None
    (length,) = _LENGTH.unpack(header)
    if length > longest:
        raise BadFrame(f"{length} bytes")
    body = _read(descriptor, length)
    if body is None:
        return None
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadFrame("no JSON") from error
    if not isinstance(message, dict):
        raise BadFrame("no object")
    return message


def _read(descriptor: int, length: int) -> bytearray | None:
    data = bytearray()
    while len(data) < length:
        part = os.read(descriptor, min(length - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return data


_KINDS = {
    kind.__name__: kind
    for kind in (errors.NotFound, errors.Invalid, errors.Conflict, errors.Forbidden, errors.Unavailable)
}


def encode_error(error: HeedfulError) -> dict[str, Any]:
    details = {"code": error.code, "field": error.field, "value": _plain(error.value), "remedy": error.remedy}
    return {"kind": type(error).__name__, "message": error.message, "about": details}


def decode_error(sent: Mapping[str, Any]) -> HeedfulError:
    return _KINDS.get(sent["kind"], errors.Unavailable)(sent["message"], **sent["about"])


def encode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON, without loss: a result with one row."""
    return encode(Result(tuple(Column(name, "") for name in parameters), (tuple(parameters.values()),)))


def decode_parameters(sent: dict[str, Any]) -> dict[str, Any]:
    result = decode(sent)
    return dict(zip((column.name for column in result.columns), result.rows[0], strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
