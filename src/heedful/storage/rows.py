"""What comes back from a database, and how much goes into one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import orjson
from sqlalchemy import Row

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns are read by name."""

Item = TypeVar("Item")

SIZE = 10_000
"""Bound values that every database accepts in one statement."""


def batches(items: Sequence[Item], size: int = SIZE) -> Iterator[Sequence[Item]]:
    """`items` in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def unpacked(value: Any) -> Any:
    """A JSON column, whether the driver gave it or the toolkit has read it already."""
    return orjson.loads(value) if isinstance(value, str) else value
