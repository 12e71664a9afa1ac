"""Rows that nobody could read: they are named, instead of stopping whoever reads them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import JSON, ColumnElement, Connection, func, select, true

from heedful.learning.signals import WEIGHTS
from heedful.moving.lines import KINDS, ours
from heedful.storage.ledger import LINK_SIGNAL, SIGNAL
from heedful.storage.schema import events


def readable(connection: Connection, column: ColumnElement[object]) -> ColumnElement[bool]:
    """Whether a column holds JSON; PostgreSQL lets nothing else in."""
    if connection.dialect.name == "postgresql":
        return true()
    return column.is_(None) | (func.json_valid(column) == 1)


def unreadable(connection: Connection, project: int) -> Iterator[tuple[str, str, list[str]]]:
    """Tables and columns with broken JSON, and the ids of the rows that have it."""
    for kind in KINDS.values():
        table = kind.table
        key = table.columns.get("id", next(iter(table.primary_key)))
        for column in table.columns:
            if isinstance(column.type, JSON):
                broken = select(key).where(ours(table, project), ~readable(connection, column)).order_by(key)
                found = [str(row[0]) for row in connection.execute(broken)]
                if found:
                    yield table.name, column.name, found


def unknown_signals(connection: Connection, project: int) -> list[str]:
    """The events of signals that are worth nothing that is known: no score can be folded from them."""
    statement = select(events.c.id).where(
        events.c.project_id == project,
        events.c.kind.in_((SIGNAL, LINK_SIGNAL)),
        events.c.value.is_(None) | events.c.value.not_in(sorted(WEIGHTS)),
    )
    return [row.id for row in connection.execute(statement.order_by(events.c.id))]
