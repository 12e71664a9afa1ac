"""Common to all kinds of database: limits, collecting rows within them, stopping what takes too long, and reading the
texts in columns, so that names in a question can be recognised."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic, time_ns
from typing import Any, Protocol

from sqlglot import exp

from heedful.errors import HeedfulError, Invalid, quoted
from heedful.results import Column, Result, normalize, row_size
from heedful.sql.databases.schema import Schema, Table, TextValues, is_listed
from heedful.sql.guard import CheckedStatement, check_statement
from heedful.sql.statements import write

_LARGEST_BATCH = 1_000
_AGAIN_SECONDS = 0.1

Parameters = Mapping[str, Any]
Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a query may take, and how much of its result is kept (`bytes` as JSON)."""

    seconds: float = 30.0
    rows: int = 10_000
    bytes: int = 10_000_000
    take: Callable[[Sequence[Row]], None] | None = None
    """Takes the rows as they come, so that no more than a batch is in memory; the result has none then."""

    def __post_init__(self) -> None:
        for name in ("seconds", "rows", "bytes"):
            value = getattr(self, name)
            if not (0 < value < math.inf):
                raise Invalid(f"{name} must be above 0, got {quoted(value)}", field=name, value=value)


class Session(Protocol):
    """One connection that only reads."""

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement without side effects."""


class Database(Protocol):
    """A database that queries run against."""

    @property
    def dialect(self) -> str:
        """The dialect that its SQL is guarded in."""

    @property
    def address(self) -> str:
        """Its address without secrets."""

    def session(self) -> AbstractContextManager[Session]:
        """A fresh connection: nothing carries over from one query to the next."""

    def read_schema(self) -> Schema:
        """The tables and views, as the database describes them."""

    def check_rights(self) -> None:
        """Fails if its user may do more than read, as far as the database reports that."""

    def data_version(self) -> str | None:
        """A value that changes whenever data change; None if the database has none."""


class Deadline:
    """Calls `stop` from another thread when the time is up, repeatedly until the work has ended."""

    def __init__(self, seconds: float, stop: Callable[[], object]) -> None:
        self.fired = False
        self._done = Event()
        self._stop = stop
        self._seconds = seconds
        self._thread = Thread(target=self._watch, name="heedful-watchdog", daemon=True)

    def __enter__(self) -> Deadline:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        wait = self._seconds
        # The first call is lost if the database has not started the query yet.
        while not self._done.wait(wait):
            self.fired = True
            self._stop()
            wait = _AGAIN_SECONDS


def collect(columns: Sequence[Column], fetch: Callable[[int], Sequence[Row]], limits: Limits, started: float) -> Result:
    """Fetches rows in batches with `fetch(count)` until a limit is reached."""
    rows: list[tuple[Any, ...]] = []
    size, truncated_by = 0, None
    if limits.take is not None:
        return Result(tuple(columns), (), *_passed_on(fetch, limits, limits.take), monotonic() - started)
    # The size of a row is unknown until one is read.
    batch = 1
    while truncated_by is None:
        fetched = fetch(batch)
        for raw in fetched:
            row = tuple(normalize(value) for value in raw)
            size += row_size(row)
            truncated_by = "rows" if len(rows) == limits.rows else "bytes" if size > limits.bytes else None
            if truncated_by:
                break
            rows.append(row)
        if len(fetched) < batch:
            break
        room = (limits.bytes - size) * (len(rows) + 1) // max(size, 1)
        batch = max(1, min(_LARGEST_BATCH, limits.rows + 1 - len(rows), room))
    return Result(tuple(columns), tuple(rows), truncated_by is not None, truncated_by, monotonic() - started)


def _passed_on(
    fetch: Callable[[int], Sequence[Row]], limits: Limits, take: Callable[[Sequence[Row]], None]
) -> tuple[bool, str | None]:
    """Hands rows on, batch by batch; whether there were more than the limit, and which one."""
    remaining = limits.rows
    while fetched := fetch(min(_LARGEST_BATCH, remaining + 1)):
        take(fetched[:remaining])
        if len(fetched) > remaining:
            return True, "rows"
        remaining -= len(fetched)
    return False, None


def bound(query: CheckedStatement, parameters: Parameters) -> dict[str, Any]:
    """The values of the query's parameters; a missing or an extra one is an error."""
    missing, unknown = set(query.parameters) - set(parameters), set(parameters) - set(query.parameters)
    if missing or unknown:
        names = ", ".join(sorted(missing or unknown))
        message = f"no value for the parameters {names}" if missing else f"the SQL has no parameters {names}"
        remedy = "Give each :name of the SQL one value"
        raise Invalid(
            message, code="sql_parameter", field="parameters", value=sorted(missing or unknown), remedy=remedy
        )
    return dict(parameters)


MAX_VALUE_LENGTH = 200
_MIN_SECONDS = 0.05


def text_values(
    database: Database, schema: Schema, *, without: Collection[str] = (), per_column: int = 1_000, seconds: float = 5.0
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
    source = schema.table(table)
    if source is None or all(known.name != column for known in source.columns):
        return None
    sql = _distinct(source, column, database.dialect, after=after is not None, rows=limits.rows if ordered else None)
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


_SETTLED = 2_000_000_000
"""Two changes closer than this (in nanoseconds) may have the same timestamp."""


def file_version(path: Path, *logs: Path) -> str | None:
    """Changes with every commit to the file or its logs; None just after one, when the next could look the same."""
    parts = []
    for file in (path, *logs):
        try:
            state = file.stat()
        except FileNotFoundError:
            continue
        # A reader may leave an empty log, which is no change.
        if file is not path and state.st_size == 0:
            continue
        if time_ns() - state.st_mtime_ns < _SETTLED:
            return None
        parts.append(f"{file.name} {state.st_ino} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
