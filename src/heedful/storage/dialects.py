"""Where SQLite and PostgreSQL need different statements; `dialect_of` says which a connection takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    LargeBinary,
    String,
    Table,
    Text,
    cast,
    func,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

SCHEMA = "heedful"
"""Where the tables are in PostgreSQL, so that a database can be shared with other programs."""


class SqliteDialect:
    """How statements are put to SQLite."""

    schema = None
    searches = False
    """Whether the database itself searches large datasets."""
    has_row_level_security = False
    insert = staticmethod(sqlite.insert)

    # An index counts as part of its table. Page counts come from a virtual table that most builds of SQLite have.
    table_sizes = text(
        "SELECT coalesce(m.tbl_name, s.name) AS name, SUM(s.pgsize) AS bytes FROM dbstat s "
        "LEFT JOIN sqlite_master m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY 1"
    )

    def of_project(self, owner: ColumnElement[int], project: int) -> ColumnElement[bool]:
        # It would rather take the index of the project, and read all its rows; an expression prevents that.
        return owner + 0 == project

    def newest(self, connection: Connection, column: Column[int]) -> int:
        return int(connection.execute(select(func.max(column))).scalar() or 0)

    def lock(self, connection: Connection, number: int, *, shared: bool) -> None:
        """There is one writer at a time anyway."""

    def raw_json(self, column: Column[Any]) -> ColumnElement[Any]:
        # A column may hold anything, also what is not UTF-8.
        return cast(column, LargeBinary)

    def from_raw_json(self, value: ColumnElement[Any], column: Column[Any]) -> ColumnElement[Any]:
        return value

    def in_byte_order(self, column: Column[Any]) -> ColumnElement[Any]:
        return column


class PostgreSqlDialect:
    """How statements are put to PostgreSQL."""

    schema = SCHEMA
    searches = True
    has_row_level_security = True
    insert = staticmethod(postgresql.insert)

    table_sizes = text(
        "SELECT coalesce(p.relname, c.relname) AS name, SUM(pg_total_relation_size(c.oid))::bigint AS bytes "
        "FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent "
        "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY 1"
    )

    def of_project(self, owner: ColumnElement[int], project: int) -> ColumnElement[bool]:
        # It must see the column: it knows how many rows a project has, and expects few from an expression.
        return owner == project

    def newest(self, connection: Connection, column: Column[int]) -> int:
        # Not the maximum: to find that under row-level security, PostgreSQL reads all rows there are.
        sequence = f"pg_get_serial_sequence('{column.table.name}', '{column.name}')"
        return int(connection.exec_driver_sql(f"SELECT pg_sequence_last_value({sequence}::regclass)").scalar() or 0)

    def lock(self, connection: Connection, number: int, *, shared: bool) -> None:
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        connection.exec_driver_sql(f"SELECT {function}(%s)", (number,))

    def raw_json(self, column: Column[Any]) -> ColumnElement[Any]:
        return cast(column, Text)

    def from_raw_json(self, value: ColumnElement[Any], column: Column[Any]) -> ColumnElement[Any]:
        return cast(value, column.type)

    def in_byte_order(self, column: Column[Any]) -> ColumnElement[Any]:
        # As SQLite sorts, and not by the language of the server.
        return column.collate("C") if isinstance(column.type, String) else column


Dialect: TypeAlias = SqliteDialect | PostgreSqlDialect

_DIALECTS: dict[str, Dialect] = {"sqlite": SqliteDialect(), "postgresql": PostgreSqlDialect()}


def dialect_of(connection: Connection) -> Dialect:
    return _DIALECTS[connection.dialect.name]


@lru_cache
def upsert(dialect: Dialect, table: Table, keys: tuple[str, ...], changed: tuple[str, ...]) -> Insert:
    """Insert, or overwrite `changed` where `keys` are there already."""
    statement: Any = dialect.insert(table)
    values = {name: statement.excluded[name] for name in changed}
    result: Insert = (
        statement.on_conflict_do_update(index_elements=keys, set_=values)
        if changed
        else statement.on_conflict_do_nothing(index_elements=keys)
    )
    return result
