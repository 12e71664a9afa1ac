"""The rows of a project as they leave it: a page at a time, in the order in which they came."""

from __future__ import annotations

from sqlalchemy import Connection, select

from heedful.storage.exports import recalls
from heedful.storage.exports.asked import Rows, Wanted, misplaced, number, within
from heedful.storage.exports.origins import ORIGINS

__all__ = ["Rows", "Wanted", "columns", "misplaced", "number", "page"]


def page(
    connection: Connection, project: int, table: str, wanted: Wanted, after: str | None, limit: int
) -> tuple[Rows, str | None]:
    """The next rows of a table, and where to go on; None at the end."""
    if table == "recalls":
        return recalls.page(connection, project, wanted, after, limit)
    origin = ORIGINS[table]
    statement = (
        select(*(column.label(name) for name, column in origin.columns(wanted.now).items()), origin.seq)
        .select_from(origin.rows)
        # By an expression, so that no database prefers the index of the project to the order of the rows.
        .where(origin.owner + 0 == project, *within(origin.at, wanted))
    )
    if origin.condition is not None:
        statement = statement.where(origin.condition)
    if wanted.dataset is not None:
        assert origin.dataset is not None
        statement = statement.where(origin.dataset == wanted.dataset)
    if after is not None:
        statement = statement.where(origin.seq > number(after))
    found = connection.execute(statement.order_by(origin.seq).limit(limit)).all()
    return found, str(found[-1][-1]) if len(found) == limit else None


def columns(table: str) -> list[str]:
    """The names of the columns, in order."""
    return list(recalls.COLUMNS) if table == "recalls" else list(ORIGINS[table].columns(0))
