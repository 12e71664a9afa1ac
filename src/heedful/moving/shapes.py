"""What the JSON columns of a store hold, and what is wrong with a value that its readers could not use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

Shape = Callable[[Any, str], str | None]
"""Given a value and what to call it: what is wrong with it, or None."""

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}


def broken(table: str, column: str, stored: bytes | str | None, *, nullable: bool) -> str | None:
    """What is wrong with a stored value, in a few words, or None."""
    if stored is None:
        return None
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return f"broken JSON in {column}"
    if value is None and nullable:
        return None
    wrong = SHAPES[table, column](value, column)
    return wrong and f"wrong JSON: {wrong}"


def _of(*kinds: type) -> Shape:
    """A value of one of these types."""
    expected = _KINDS[kinds[0]]

    def check(value: Any, name: str) -> str | None:
        # Not isinstance: a boolean is a number to Python, and not to a reader.
        return None if type(value) in kinds else f"{name} is {_KINDS.get(type(value), 'null')} instead of {expected}"

    return check


def _list_of(item: Shape) -> Shape:
    """A list of things of one shape."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _of(list)(value, name):
            return wrong
        return next((wrong for each in value if (wrong := item(each, f"an item of {name}"))), None)

    return check


def _row(*fields: Shape, least: int) -> Shape:
    """A list with fields in a fixed order, of which the first `least` are always there."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _of(list)(value, name):
            return wrong
        if not least <= len(value) <= len(fields):
            return f"{name} has {len(value)} fields instead of {least}"
        named = ((field, each, place) for place, (field, each) in enumerate(zip(fields, value, strict=False), start=1))
        return next((wrong for field, each, place in named if (wrong := field(each, f"field {place} of {name}"))), None)

    return check


def _object(**fields: Shape) -> Shape:
    """An object; the fields that are named have a shape of their own where they are there."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _of(dict)(value, name):
            return wrong
        there = ((field, value[key], key) for key, field in fields.items() if key in value)
        return next((wrong for field, each, key in there if (wrong := field(each, f"{key} of {name}"))), None)

    return check


_TEXT = _of(str)
_NUMBER = _of(float, int)
_TEXTS = _list_of(_TEXT)
_OBJECTS = _list_of(_object())
_ANY = _object()

SHAPES: dict[tuple[str, str], Shape] = {
    ("datasets", "metadata"): _ANY,
    ("facts", "metadata"): _ANY,
    ("events", "body"): _object(created=_of(bool)),
    ("receipts", "shown"): _list_of(
        _row(_TEXT, _NUMBER, _NUMBER, _NUMBER, _TEXT, _NUMBER, _TEXTS, least=6),
    ),
    ("requests", "result"): _ANY,
    ("sessions", "metadata"): _ANY,
    ("entries", "used"): _list_of(_row(_TEXT, _NUMBER, _TEXTS, least=3)),
    ("entries", "usage"): _ANY,
    ("feedbacks", "extra"): _ANY,
    ("outbox", "payload"): _ANY,
    ("connectors", "options"): _ANY,
    ("connectors", "schema"): _object(tables=_OBJECTS),
    ("executions", "parameters"): _ANY,
    ("executions", "result"): _object(columns=_OBJECTS, rows=_list_of(_of(list))),
    ("keys", "scopes"): _TEXTS,
    ("jobs", "arguments"): _ANY,
}
"""By table and column."""
