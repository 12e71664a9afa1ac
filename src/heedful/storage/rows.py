"""What comes back from a database, and how much goes into one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import orjson
from sqlalchemy import ColumnElement, Connection, Row

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns are read by name."""

Item = TypeVar("Item")

SIZE = 10_000
"""Bound values that every database accepts in one statement."""


def batches(items: Sequence[Item], size: int = SIZE) -> Iterator[Sequence[Item]]:
    """`items` in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def of_project(connection: Connection, owner: ColumnElement[int], project: int) -> ColumnElement[bool]:
    """The rows of a project, where they are found by something else: their numbers, or many ids.

    SQLite would rather take the index of the project, and look at all it has; an expression keeps it from that.
    PostgreSQL must see the column: it knows how many rows a project has, and takes an expression for a few.
    """
    return owner == project if connection.dialect.name == "postgresql" else owner + 0 == project


def unpacked(value: Any) -> Any:
    """A JSON column, whether the driver gave it or the toolkit has read it already."""
    return orjson.loads(value) if isinstance(value, str) else value
