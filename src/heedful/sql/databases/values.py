"""The texts in each column, so that names in a question can be recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

from sqlglot import exp

from heedful.errors import HeedfulError
from heedful.sql.databases.contract import Database, Limits
from heedful.sql.databases.schema import Schema, Table
from heedful.sql.guard import check_statement
from heedful.sql.statements import write

MAX_VALUE_LENGTH = 200
_MIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class TextValues:
    """The distinct texts of each (table, column); columns in `partial` may have more."""

    values: dict[tuple[str, str], tuple[str, ...]]
    partial: frozenset[tuple[str, str]]


def text_values(database: Database, schema: Schema, *, per_column: int = 1_000, seconds: float = 5.0) -> TextValues:
    """The texts of all text columns of tables, limited in number, length and time."""
    tables = [table for table in schema.tables if not table.is_view]
    text_columns = [(table, column.name) for table in tables for column in table.columns if column.is_text]
    values: dict[tuple[str, str], tuple[str, ...]] = {}
    partial: set[tuple[str, str]] = set()
    deadline = monotonic() + seconds
    with database.session() as session:
        for index, (table, column) in enumerate(text_columns):
            # Each column gets a share of the remaining time, so that one slow column doesn't starve the others.
            share = (deadline - monotonic()) / (len(text_columns) - index)
            key = (table.full_name, column)
            try:
                query = check_statement(_distinct(table, column, database.dialect), database.dialect)
                result = session.run(
                    query, {}, Limits(max(share, _MIN_SECONDS), per_column, per_column * MAX_VALUE_LENGTH * 8)
                )
            except HeedfulError as error:
                if error.code not in ("query_timeout", "database_forbidden", "read_only"):
                    raise
                values[key] = ()
                partial.add(key)
                continue
            values[key] = tuple(sorted(value for (value,) in result.rows if isinstance(value, str)))
            if result.truncated:
                partial.add(key)
    return TextValues(values, frozenset(partial))


def stream_values(
    database: Database, schema: Schema, table: str, column: str, limits: Limits, take: Callable[[list[str]], None]
) -> bool:
    """Hands on the distinct texts of one column, in parts; whether those are all of them."""
    found = schema.table(table)
    if found is None or all(each.name != column for each in found.columns):
        return True
    query = check_statement(_distinct(found, column, database.dialect), database.dialect)
    passing = replace(limits, take=lambda rows: take([row[0] for row in rows if isinstance(row[0], str)]))
    with database.session() as session:
        return not session.run(query, {}, passing).truncated


def _distinct(table: Table, column: str, dialect: str) -> str:
    identifier = exp.to_identifier(column, quoted=True)
    source = exp.table_(table.name, db=table.schema, quoted=True)
    short = exp.func("LENGTH", exp.Column(this=identifier.copy())) <= MAX_VALUE_LENGTH
    return write(exp.select(exp.Column(this=identifier)).distinct().from_(source).where(short), dialect)
