"""Which rows to export, and positions of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func
from sqlalchemy import cast as sql_cast
from sqlalchemy.types import Text

from heedful.errors import Invalid, quoted

Rows = Sequence[Sequence[Any]]
"""Values in the order of the columns, perhaps followed by others. Times are integers, JSON is text."""


@dataclass(frozen=True, slots=True)
class ExportQuery:
    """Which rows."""

    now: int
    since: int | None = None
    until: int | None = None
    """Exclusive."""
    dataset: str | None = None


def number(position: str) -> int:
    """Parses a position that is a number."""
    if not (position.isascii() and position.isdecimal() and len(position) <= 18):
        raise misplaced(position)
    return int(position)


def misplaced(position: str) -> Invalid:
    """The error for an invalid position."""
    return Invalid(
        f"invalid cursor {quoted(position)}",
        field="cursor",
        value=position,
        remedy="Use the next_cursor of the page before",
    )


def as_text(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """JSON as text; null and missing values are NULL."""
    return func.nullif(sql_cast(column, Text), "null")
