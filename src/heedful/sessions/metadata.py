"""Merging metadata: by key, where a dotted key reaches inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from heedful.errors import Invalid
from heedful.memory.checks import MAX_METADATA
from heedful.model import Metadata


def merged(current: Metadata, changes: Metadata) -> Metadata:
    """The metadata with each of the changes made.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": 3, "b.d": 4})
    {'a': 3, 'b': {'c': 2, 'd': 4}}
    """
    result = _copy(current)
    for key, value in changes.items():
        *above, name = key.split(".")
        _reach(result, above, key, make=True)[name] = value
    packed = orjson.dumps(result)
    if len(packed) > MAX_METADATA:
        raise Invalid(
            f"metadata would take {len(packed)} bytes, the limit is {MAX_METADATA}",
            field="metadata",
            value=len(packed),
            remedy="Delete keys that are no longer needed; nothing was changed",
        )
    return result


def without(current: Metadata, keys: Sequence[str]) -> Metadata:
    """The metadata less these keys; those that are not there are no matter.

    >>> without({"a": 1, "b": {"c": 2, "d": 3}}, ["b.c", "x"])
    {'a': 1, 'b': {'d': 3}}
    """
    result = _copy(current)
    for key in keys:
        *above, name = key.split(".")
        _reach(result, above, key, make=False).pop(name, None)
    return result


def _reach(values: Metadata, above: Sequence[str], key: str, *, make: bool) -> Metadata:
    """The mapping that a dotted key ends in; if it is not there, it is made, or an empty one is returned."""
    place = values
    for name in above:
        if name not in place:
            if not make:
                return {}
            place[name] = {}
        below: Any = place[name]
        if not isinstance(below, dict):
            if not make:
                return {}
            raise Invalid(
                f"metadata key {key!r} reaches into {name!r}, which is {below!r}",
                field="metadata",
                value=key,
                remedy=f"Replace {name!r} as a whole, or delete it first",
            )
        place = below
    return place


def _copy(values: Metadata) -> Metadata:
    copied: Metadata = orjson.loads(orjson.dumps(values))
    return copied
