"""Messages between the server and a query process: four bytes of length, then JSON. Nothing in it is ever executed."""

from __future__ import annotations

import os
from struct import Struct
from typing import Any

import orjson

_LENGTH = Struct(">I")


class BadFrame(Exception):
    """What came is no message, or too long for one."""


def send(descriptor: int, message: dict[str, Any]) -> None:
    """Writes one message."""
    body = orjson.dumps(message)
    rest = memoryview(_LENGTH.pack(len(body)) + body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


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
