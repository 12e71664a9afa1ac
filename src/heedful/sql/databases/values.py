"""The texts in each column, so that names in a question can be recognised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from sqlglot import exp

from heedful.errors import HeedfulError
from heedful.sql.databases.contract import Database, Limits, Row
from heedful.sql.databases.schema import Schema, Table
from heedful.sql.guard import check_statement
from heedful.sql.statements import write

MAX_VALUE_LENGTH = 200
_MIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class TextValues:
    """The distinct texts of each (table, column); columns in `partial` may have more. `columns` are all of the schema,
    also those of views and those that hold no texts."""

    values: dict[tuple[str, str], tuple[str, ...]]
    partial: frozenset[tuple[str, str]]
    columns: frozenset[tuple[str, str]] = frozenset()


def text_values(
    database: Database,
    schema: Schema,
    *,
    without: Collection[str] = (),
    per_column: int = 1_000,
    seconds: float = 5.0,
) -> TextValues:
    """The texts of all text columns of tables, except those `without`, limited in number, length and time."""
    tables = [table for table in schema.tables if not table.is_view]
    text_columns = [
        (table, column.name)
        for table in tables
        for column in table.columns
        if column.is_text and not is_listed(table, column.name, without)
    ]
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
    columns = frozenset((table.full_name, column.name) for table in schema.tables for column in table.columns)
    return TextValues(values, frozenset(partial), columns)


def is_listed(table: Table, column: str, names: Collection[str]) -> bool:
    """Whether a list names a column, as `table.column` or `schema.table.column`, in any case."""
    listed = {name.lower() for name in names}
    return not listed.isdisjoint({f"{table.full_name}.{column}".lower(), f"{table.name}.{column}".lower()})


def stream_values(
    database: Database,
    schema: Schema,
    table: str,
    column: str,
    limits: Limits,
    take: Callable[[list[str]], None],
    *,
    ordered: bool = True,
    after: str | None = None,
) -> str | None:
    """Hands on distinct texts of one column, in parts: the first ones `after` a text in the database's order, or any.

    Returns the last one if there may be more.
    """
    found = schema.table(table)
    if found is None or all(each.name != column for each in found.columns):
        return None
    sql = _distinct(found, column, database.dialect, after=after is not None, rows=limits.rows if ordered else None)
    count, last = 0, after

    def pass_on(rows: Sequence[Row]) -> None:
        nonlocal count, last
        count += len(rows)
        texts = [row[0] for row in rows if isinstance(row[0], str)]
        last = texts[-1] if texts else last
        take(texts)

    with database.session() as session:
        query = check_statement(sql, database.dialect)
        session.run(query, {} if after is None else {"after": after}, replace(limits, take=pass_on))
    # Without a text that is later, the next ones would be the same.
    return last if ordered and count == limits.rows and last != after else None


def _distinct(table: Table, column: str, dialect: str, *, after: bool = False, rows: int | None = None) -> str:
    """The different texts of a column that are not too long; up to so many `rows` in order, from `:after` on."""
    name = write(exp.Column(this=exp.to_identifier(column, quoted=True)), dialect)
    source = write(exp.table_(table.name, db=table.schema, quoted=True), dialect)
    sql = f"SELECT DISTINCT {name} FROM {source} WHERE LENGTH({name}) <= {MAX_VALUE_LENGTH}"
    if rows is None:
        return sql
    return f"{sql}{f' AND {name} > :after' if after else ''} ORDER BY {name} LIMIT {rows}"
