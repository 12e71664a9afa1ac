"""Rows of any table as they are: in the order of their keys, and with JSON as the text that is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    func,
    select,
    tuple_,
)
from sqlalchemy import insert as inserting
from sqlalchemy import update as updating

from heedful.storage import schema
from heedful.storage.rows import batches, dialect_of

BATCH_SIZE = 2000
"""Rows that are read, written and committed at once."""

Key = tuple[Any, ...]

TABLES = [table for table in schema.metadata.sorted_tables if table is not schema.jobs]
"""The tables of a store, each behind those that it refers to. Jobs are left where they are: a queue has handed them
out, and another one knows nothing of them."""


def columns(table: Table) -> list[Column[Any]]:
    """The columns that the database does not compute itself."""
    return [column for column in table.columns if column.computed is None]


def streamed(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    """All rows of a table, in an order that is the same in every kind of store."""
    verbatim = [
        cast(column, Text).label(column.name) if isinstance(column.type, JSON) else column for column in columns(table)
    ]
    order = [dialect_of(connection).in_byte_order(column) for column in table.primary_key]
    rows = connection.execution_options(yield_per=BATCH_SIZE).execute(select(*verbatim).order_by(*order))
    names = [str(column.name) for column in columns(table)]
    for row in rows:
        yield dict(zip(names, row, strict=True))


def key(table: Table, row: dict[str, Any]) -> Key:
    return tuple(row[column.name] for column in table.primary_key)


def insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Adds rows that have the same columns, with JSON as text."""
    values = {name: _raw_column(connection, table.columns[name], name) for name in rows[0]}
    connection.execute(inserting(table).values(values), list(rows))


def update(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Overwrites rows that are there, by their keys."""
    keys = {column.name for column in table.primary_key}
    changed = [column for column in columns(table) if column.name not in keys]
    statement = updating(table).values(
        {column.name: _raw_column(connection, column, f"new_{column.name}") for column in changed}
    )
    for column in table.primary_key:
        statement = statement.where(column == bindparam(f"new_{column.name}"))
    connection.execute(statement, [{f"new_{name}": value for name, value in row.items()} for row in rows])


def remove(connection: Connection, table: Table, keys: Sequence[Key]) -> None:
    for run in batches(keys, 1000):
        connection.execute(delete(table).where(tuple_(*table.primary_key).in_(list(run))))


def count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def is_empty(connection: Connection, table: Table) -> bool:
    return connection.execute(select(*table.primary_key).limit(1)).first() is None


def _raw_column(connection: Connection, column: Column[Any], name: str) -> ColumnElement[Any]:
    if not isinstance(column.type, JSON):
        return bindparam(name, type_=column.type)
    return dialect_of(connection).from_raw_json(bindparam(name, type_=Text()), column)
