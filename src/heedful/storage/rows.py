"""Rows, batches and prepared statements: what every query of the store shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar, cast

import orjson
from sqlalchemy import ColumnElement, Connection, Engine, PoolProxiedConnection, Row, Table, bindparam
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.expression import ClauseElement

from heedful.storage.dialects import dialect_of
from heedful.storage.stored_bytes import count_statement

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns are read by name."""

Item = TypeVar("Item")

SIZE = 10_000
"""How many bound values every database accepts in one statement."""


def batches(items: Sequence[Item], size: int = SIZE) -> Iterator[Sequence[Item]]:
    """`items` in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


MAX_ROWS = 5_000
"""Rows that one transaction writes for a caller: on SQLite, all other writers wait for it."""


def weighed(items: Iterable[tuple[Item, int]], limit: int | None = None) -> Iterator[list[Item]]:
    """Items, given with their rows, in runs of at most `limit` rows (`MAX_ROWS`); a larger item is a run alone."""
    most = MAX_ROWS if limit is None else limit
    run: list[Item] = []
    total = 0
    for item, rows in items:
        if run and total + rows > most:
            yield run
            run, total = [], 0
        run.append(item)
        total += rows
    if run:
        yield run


def of_project(connection: Connection, owner: ColumnElement[int], project: int) -> ColumnElement[bool]:
    """The rows of a project, where another index finds them: by their numbers, or by many ids."""
    return dialect_of(connection).of_project(owner, project)


def between(at: ColumnElement[int], since: int | None, until: int | None) -> list[ColumnElement[bool]]:
    """The conditions for a period, which may be open on both sides; `until` is exclusive."""
    return [*([] if since is None else [at >= since]), *([] if until is None else [at < until])]


def unpacked(value: Any) -> Any:
    """A JSON column, whether or not it is parsed already."""
    return orjson.loads(value) if isinstance(value, str) else value


@contextmanager
def binary_cursor(connection: Connection) -> Iterator[Any]:
    """A cursor of PostgreSQL's driver in the same transaction. It reads bytes in binary, in half the time of text."""
    driver = connection.connection.driver_connection
    assert driver is not None
    with driver.cursor(binary=True) as cursor:
        yield cursor


PLACES = 64
"""How many values a prepared statement takes that looks for many."""


def one_of(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition of a prepared statement that `Direct.run_for` runs."""
    return column.in_([bindparam(f"place_{place}", type_=column.type) for place in range(PLACES)])


class Prepared:
    """One statement with named values, compiled once for each kind of database."""

    def __init__(self, statement: ClauseElement, columns: list[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[str, tuple[str, list[str] | None, dict[str, Any]]] = {}

    def compiled(self, engine: Engine) -> tuple[str, list[str] | None, dict[str, Any]]:
        """The SQL, the order of its values (None for a driver that takes them by name), and those
        values that are part of the statement."""
        cached = self._compiled.get(engine.dialect.name)
        if cached is None:
            compiled = self._statement.compile(dialect=engine.dialect, column_keys=self._columns)
            binds = getattr(compiled, "binds", {})
            fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
            cached = (str(compiled), getattr(compiled, "positiontup", None), fixed)
            self._compiled[engine.dialect.name] = cached
        return cached


class Direct:
    """An open transaction directly on the driver; `connection` is for statements that are not prepared."""

    def __init__(self, engine: Engine, borrowed: PoolProxiedConnection) -> None:
        self._engine = engine
        self._borrowed = borrowed
        self._driver: Any = borrowed.dbapi_connection
        self._connection: Connection | None = None

    @classmethod
    def on(cls, connection: Connection) -> Direct:
        """The transaction of a connection."""
        direct = cls(connection.engine, connection.connection)
        direct._connection = connection
        return direct

    def run(self, statement: Prepared, **values: Any) -> list[tuple[Any, ...]]:
        """Runs a prepared statement and returns its rows."""
        sql, order, fixed = statement.compiled(self._engine)
        by_name = fixed | values
        arguments: Any = by_name if order is None else [by_name[name] for name in order]
        count_statement(sql, (arguments,))
        cursor = self._driver.execute(sql, arguments)
        return cast(list[tuple[Any, ...]], cursor.fetchall()) if cursor.description else []

    def run_for(self, statement: Prepared, wanted: Sequence[Any], **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a prepared statement with `one_of` for these values."""
        for some in batches(wanted, PLACES):
            # Repeating one of them finds nothing new.
            places = {f"place_{place}": some[min(place, len(some) - 1)] for place in range(PLACES)}
            yield from self.run(statement, **places, **values)

    def again(self) -> Direct:
        """The same transaction for another writer."""
        return Direct(self._engine, self._borrowed)

    def begin_part(self) -> None:
        """Begins a part of the transaction that can be undone by itself."""
        self._driver.execute("SAVEPOINT part")

    def end_part(self) -> None:
        self._driver.execute("RELEASE SAVEPOINT part")

    def undo_part(self) -> None:
        self._driver.execute("ROLLBACK TO SAVEPOINT part")
        self._driver.execute("RELEASE SAVEPOINT part")

    @property
    def connection(self) -> Connection:
        """The same transaction for SQLAlchemy, which neither begins nor ends it."""
        if self._connection is None:
            connection = Connection(self._engine, connection=self._borrowed)
            self._connection = connection.execution_options(begun=True)
        return self._connection


_COMPILED: dict[tuple[str, str, tuple[str, ...], str], tuple[str, list[str] | None]] = {}


def insert_many(
    connection: Connection, table: Table, statement: Insert, rows: Sequence[dict[str, Any]], kind: str = "insert"
) -> None:
    """Inserts rows with the same columns; `kind` distinguishes statements of one table."""
    if not rows:
        return
    names = tuple(rows[0])
    key = (connection.dialect.name, table.name, names, kind)
    if key not in _COMPILED:
        compiled = statement.compile(dialect=connection.dialect, column_keys=list(names))
        _COMPILED[key] = (str(compiled), compiled.positiontup)
    sql, order = _COMPILED[key]
    # Drivers take values by position, or by name.
    arguments: Any = list(rows) if order is None else list(map(itemgetter(*order), rows))
    connection.exec_driver_sql(sql, arguments)
