"""Exports the rows of a project, page by page, in order."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

from sqlalchemy import Connection, Select, select

from heedful.storage.exports import recalls
from heedful.storage.exports.origins import ORIGINS, Origin
from heedful.storage.exports.query import ExportQuery, Rows, misplaced, number
from heedful.storage.rows import between, of_project

__all__ = ["ExportQuery", "Rows", "columns", "every", "misplaced", "number", "page"]


def page(
    connection: Connection, project: int, table: str, query: ExportQuery, after: str | None, limit: int
) -> tuple[Rows, str | None]:
    """The next rows of a table, and the position of the next page; None at the end."""
    if table == "recalls":
        return recalls.page(connection, project, query, after, limit)
    statement = _rows(connection, project, ORIGINS[table], query)
    if after is not None:
        statement = statement.where(ORIGINS[table].table.c.seq > number(after))
    rows = connection.execute(statement.limit(limit)).all()
    return rows, str(rows[-1][-1]) if len(rows) == limit else None


def every(
    connection: Connection, project: int, table: str, query: ExportQuery, batch_size: int
) -> Generator[Rows, None, None]:
    """All rows of a table in batches, from one statement: PostgreSQL checks row-level security once."""
    if table != "recalls":
        statement = _rows(connection, project, ORIGINS[table], query)
        with closing(connection.execute(statement, execution_options={"yield_per": batch_size})) as result:
            yield from result.partitions()
        return
    after: str | None = None
    while True:
        rows, after = recalls.page(connection, project, query, after, batch_size)
        yield rows
        if after is None:
            return


def _rows(connection: Connection, project: int, origin: Origin, query: ExportQuery) -> Select[Any]:
    """All rows of a table, in order, each with its number at the end."""
    table = origin.table
    owner = (table if origin.owner is None else origin.owner).c.project_id
    statement = (
        select(*(column.label(name) for name, column in origin.columns(query.now).items()), table.c.seq)
        .select_from(table if origin.joined is None else origin.joined)
        .where(of_project(connection, owner, project), *between(table.c[origin.at], query.since, query.until))
    )
    if origin.condition is not None:
        statement = statement.where(origin.condition)
    if query.dataset is not None:
        assert origin.dataset is not None
        statement = statement.where(origin.dataset == query.dataset)
    return statement.order_by(table.c.seq)


def columns(table: str) -> list[str]:
    """The names of the columns, in order."""
    return list(recalls.COLUMNS) if table == "recalls" else list(ORIGINS[table].columns(0))
