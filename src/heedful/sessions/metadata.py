"""Metadata of sessions: keys, dotted or not, and what changes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from heedful.api import checks
from heedful.errors import Invalid, quoted
from heedful.model import Metadata
from heedful.model.limits import MAX_METADATA


def check_changes(value: Any) -> Metadata:
    """Metadata to merge: top-level keys may be dotted, inner ones not."""
    return check_keys("metadata", checks.metadata("metadata", value), dotted=True)


def check_keys(field: str, values: Metadata, *, dotted: bool = False) -> Metadata:
    """The values, after checking that every store can hold their keys."""
    for name, value in values.items():
        if dotted:
            check_key(field, name)
        else:
            _check_part(field, name, name)
        _check_nested(field, name, value)
    return values


def check_key_list(value: Any) -> list[str]:
    """Metadata keys to delete."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Sequence):
        raise Invalid.got("keys", "must be a list of names", value)
    for name in value:
        check_key("keys", name)
    return list(value)


def check_key(field: str, value: Any) -> None:
    """A (dotted) key of metadata."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"{field} has the key {quoted(value)}, which is not a name", field=field, value=value)
    for name in value.split("."):
        _check_part(field, value, name)


def _check_part(field: str, key: str, value: str) -> None:
    checks.any_text(field, value)
    if not value.strip() or value.startswith("$") or "." in value:
        remedy = "Use names without a leading $ or dot; a dot addresses a nested key"
        raise Invalid(f"{field} has the key {quoted(key)}", field=field, value=key, remedy=remedy)


def _check_nested(field: str, key: str, value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_part(field, f"{key}.{name}", name)
            _check_nested(field, f"{key}.{name}", inner)
    elif isinstance(value, list):
        for item in value:
            _check_nested(field, key, item)


def merge(current: Metadata, changes: Metadata) -> Metadata:
    """The metadata with all changes applied.

    >>> merge({"a": 1, "b": {"c": 2}}, {"a": 3, "b.d": 4})
    {'a': 3, 'b': {'c': 2, 'd': 4}}
    """
    result: Metadata = orjson.loads(orjson.dumps(current))
    for key, value in changes.items():
        *parents, name = key.split(".")
        _descend(result, parents, key, make=True)[name] = value
    packed = orjson.dumps(result)
    if len(packed) > MAX_METADATA:
        message = f"metadata would take {len(packed)} bytes, the limit is {MAX_METADATA}"
        remedy = "Delete keys that are no longer needed; nothing was changed"
        raise Invalid(message, field="metadata", value=len(packed), remedy=remedy)
    return result


def remove_keys(current: Metadata, keys: Sequence[str]) -> Metadata:
    """The metadata without these keys; missing ones are ignored.

    >>> remove_keys({"a": 1, "b": {"c": 2, "d": 3}}, ["b.c", "x"])
    {'a': 1, 'b': {'d': 3}}
    """
    result: Metadata = orjson.loads(orjson.dumps(current))
    for key in keys:
        *parents, name = key.split(".")
        _descend(result, parents, key, make=False).pop(name, None)
    return result


def _descend(values: Metadata, parents: Sequence[str], key: str, *, make: bool) -> Metadata:
    """The mapping that contains a dotted key; a missing one is created, or an empty one is returned."""
    node = values
    for name in parents:
        child: Any = node.setdefault(name, {}) if make else node.get(name, {})
        if not isinstance(child, dict):
            if not make:
                return {}
            message = f"metadata key {quoted(key)} reaches into {quoted(name)}, which is {quoted(child)}"
            remedy = f"Replace {quoted(name)} as a whole, or delete it first"
            raise Invalid(message, field="metadata", value=key, remedy=remedy)
        node = child
    return node
