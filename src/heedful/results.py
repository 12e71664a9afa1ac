"""Results of queries, and their way to JSON and back without loss.

In JSON a column has a `kind`. With `json`, its values are what JSON has; a value that JSON lacks is an object
with one key, as in {"$decimal": "1.50"}. If all values of a column lack in the same way, the column's kind says so
once (`decimal`), and they are plain texts.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from heedful.errors import Invalid

_LONGEST_INTEGER = 2**63 - 1
SAFE_INTEGER = 2**53 - 1
"""Up to here, every reader of JSON gets a whole number as it was written."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result: its name, and its type as the database calls it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query. `truncated_by` says which limit cut it short: `rows` or `bytes`."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False
    truncated_by: str | None = None
    seconds: float = 0.0


def encode(result: Result) -> dict[str, Any]:
    """The result as JSON has it."""
    rows = [[_tagged(value) for value in row] for row in result.rows]
    kinds = [_kind([row[index] for row in rows]) for index in range(len(result.columns))]
    for index, kind in enumerate(kinds):
        if kind != "json":
            for row in rows:
                row[index] = None if row[index] is None else row[index][f"${kind}"]
    return {
        "columns": [
            {"name": column.name, "type": column.type, "kind": kind}
            for column, kind in zip(result.columns, kinds, strict=True)
        ],
        "rows": rows,
        "truncated": result.truncated,
        "truncated_by": result.truncated_by,
        "seconds": result.seconds,
    }


def decode(encoded: dict[str, Any]) -> Result:
    """The result that was encoded: equal values of the same Python types."""
    try:
        kinds = [column["kind"] for column in encoded["columns"]]
        return Result(
            columns=tuple(Column(column["name"], column["type"]) for column in encoded["columns"]),
            rows=tuple(
                tuple(_untagged(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in encoded["rows"]
            ),
            truncated=encoded["truncated"],
            truncated_by=encoded["truncated_by"],
            seconds=encoded["seconds"],
        )
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        message = f"this is not an encoded result ({type(error).__name__})"
        remedy = "Pass what heedful.results.encode returned"
        raise Invalid(message, code="result_unreadable", field="result", remedy=remedy) from error


def plain(value: Any) -> Any:
    """A value for readers of JSON that know no kinds: numbers are numbers, and what JSON lacks is text.

    A number stays text if a float can't hold it, since a wrong number would look like a right one.

    >>> plain([Decimal("10.50"), Decimal("0.12345678901234567890"), 2**60, date(2024, 2, 29), b"x"])
    [10.5, '0.12345678901234567890', 1152921504606846976, '2024-02-29', 'eA==']
    """
    kind = type(value)
    if kind is Decimal:
        close = float(value)
        return close if value.is_finite() and Decimal(repr(close)) == value else str(value)
    if kind is int:
        return value if -_LONGEST_INTEGER - 1 <= value <= _LONGEST_INTEGER else str(value)
    if kind is float:
        return value if math.isfinite(value) else None if math.isnan(value) else repr(value)
    if kind is str:
        return value.encode("utf-8", "replace").decode()
    if kind in _WRITERS:
        return _WRITERS[kind][1](value)
    if kind is list:
        return [plain(item) for item in value]
    if kind is dict:
        return {str(plain(key)): plain(item) for key, item in value.items()}
    return value


def row_size(row: Sequence[Any]) -> int:
    """The bytes that a row takes in JSON, at most."""
    return len(orjson.dumps([_tagged(value) for value in row]))


def normalize(value: Any) -> Any:
    """A driver's value as one of the types that results hold; what isn't one of them becomes text."""
    kind = type(value)
    if kind in _PLAIN or kind in _WRITERS:
        return _fixed(value) if kind is datetime or kind is time else value
    if isinstance(value, dict):
        return {key if type(key) in _PLAIN else str(key): normalize(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [normalize(item) for item in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return str(value)


def _fixed(value: datetime | time) -> datetime | time | str:
    """With the offset itself instead of a named zone, in which one clock time can be two moments."""
    if value.tzinfo is None:
        return value
    offset = value.utcoffset()
    return str(value) if offset is None else value.replace(tzinfo=timezone(offset), fold=0)


def _kind(values: list[Any]) -> str:
    kinds = {next(iter(value)) if _is_tag(value) else "" for value in values if value is not None}
    (kind,) = kinds if len(kinds) == 1 else [""]
    return kind[1:] if kind[1:] in _READERS else "json"


def _is_tag(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith("$")


def _tagged(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else {"$integer": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is str:
        return value if _is_storable(value) else {"$text": _base64(value.encode("utf-8", "surrogatepass"))}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {f"${name}": write(value)}
    if kind is list:
        return [_tagged(item) for item in value]
    if kind is dict:
        if any(type(key) is not str or key.startswith("$") or not _is_storable(key) for key in value):
            return {"$map": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
        return {key: _tagged(item) for key, item in value.items()}
    raise Invalid(
        f"a result can't hold a {kind.__name__}", code="result_unreadable", field="result", remedy="Cast it to text"
    )


def _is_storable(text: str) -> bool:
    # JSON has NUL, but not every database that keeps JSON does.
    return "\0" not in text and (text.isascii() or not _SURROGATE.search(text))


def _untagged(value: Any, kind: str = "json") -> Any:
    if kind != "json":
        return None if value is None else _READERS[kind](value)
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if not _is_tag(value):
        return {key: _untagged(item) for key, item in value.items()}
    ((name, inner),) = value.items()
    if name == "$map":
        return {_untagged(key): _untagged(item) for key, item in inner}
    return _READERS[name[1:]](inner)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _interval(value: timedelta) -> str:
    return f"P{value.days}DT{value.seconds}.{value.microseconds:06}S"


def _read_interval(text: str) -> timedelta:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return timedelta(days=int(match[1]), seconds=int(match[2]), microseconds=int(match[3]))


_SURROGATE = re.compile("[\ud800-\udfff]")
_INTERVAL = re.compile(r"P(-?\d+)DT(\d+)\.(\d{6})S")
_PLAIN = {type(None), bool, int, float, str}

_WRITERS: dict[type, tuple[str, Callable[[Any], str]]] = {
    Decimal: ("decimal", str),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("interval", _interval),
    bytes: ("bytes", _base64),
    UUID: ("uuid", str),
}

_READERS: dict[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "interval": _read_interval,
    "bytes": lambda text: b64decode(text, validate=True),
    "uuid": UUID,
    "integer": int,
    "float": float,
    "text": lambda text: b64decode(text, validate=True).decode("utf-8", "surrogatepass"),
}
