"""Rows, and the statements that read and write them: batches, what SQLite and PostgreSQL need differently, prepared
statements on the driver, and the count of stored bytes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar, cast

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Insert,
    LargeBinary,
    PoolProxiedConnection,
    Row,
    Select,
    String,
    Table,
    Text,
    any_,
    bindparam,
    func,
    select,
    text,
)
from sqlalchemy import cast as cast_sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement

from heedful.clock import from_stored
from heedful.model import Model
from heedful.storage.isolation import OWN

CHANGED = "changed"
"""The key in `Connection.info` that marks a transaction as changing facts."""

CLUSTER = "cluster"
"""The key in `Connection.info` that tells whether the server is a coordinator of Citus."""

POOLED = "pooled"
"""The key in `Connection.info` that tells of a pooler, which gives each transaction another session of the server."""

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
"""A row whose columns are read by name."""

Item = TypeVar("Item")
Noun = TypeVar("Noun", bound=Model)

SIZE = 10_000
"""The bound values that every database accepts in one statement."""


def batches(items: Sequence[Item], size: int = SIZE) -> Iterator[Sequence[Item]]:
    """`items` in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def select_in(
    connection: Connection, statement: Select[Any], column: ColumnElement[Any], values: Sequence[Any]
) -> Iterator[AnyRow]:
    """The rows of a statement in which a column has one of these values, however many these are."""
    for run in batches(values):
        # At once: they are in memory anyway, and one by one each would be fetched from the driver.
        yield from connection.execute(statement.where(one_of(connection, column, run))).all()


def one_of(connection: Connection, column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """The condition that a column has one of these values."""
    if connection.dialect.name != "postgresql":
        return column.in_(values)
    # In one array, so that the statement is the same for any number of them: it is read and prepared once.
    return column == any_(bindparam(None, list(values), type_=postgresql.ARRAY(column.type)))


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


def between(at: ColumnElement[int], since: int | None, until: int | None) -> list[ColumnElement[bool]]:
    """The conditions for a period, which may be open on both sides; `until` is exclusive."""
    return [*([] if since is None else [at >= since]), *([] if until is None else [at < until])]


def unpacked(value: Any) -> Any:
    """A JSON column, whether or not it is parsed already."""
    return orjson.loads(value) if isinstance(value, str) else value


def to_model(kind: type[Noun], row: object, /, **values: Any) -> Noun:
    """A row as a model: fields from `values`, or else by name, with stored times as datetimes."""
    for name, is_time in _fields(kind):
        if name not in values:
            value = getattr(row, name)
            values[name] = from_stored(value) if is_time and isinstance(value, int) else value
    return kind(**values)


@cache
def _fields(kind: type[Model]) -> tuple[tuple[str, bool], ...]:
    """The fields of a model, and whether they hold times."""
    times = (datetime, datetime | None)
    return tuple((name, field.annotation in times) for name, field in kind.model_fields.items())


@contextmanager
def binary_cursor(connection: Connection) -> Iterator[Any]:
    """A cursor of PostgreSQL's driver in the same transaction. It reads bytes in binary, in half the time of text."""
    driver = connection.connection.driver_connection
    assert driver is not None
    with driver.cursor(binary=True) as cursor:
        yield cursor


SCHEMA = "heedful"
"""Where the tables are in PostgreSQL, so that a database can be shared with other programs."""


class SqliteDialect:
    """The statements that SQLite takes."""

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

    def newest(self, connection: Connection, column: Column[int]) -> int:
        return int(connection.execute(select(func.max(column))).scalar() or 0)

    def lock(self, connection: Connection, number: int, *, shared: bool) -> None:
        """There is one writer at a time anyway."""

    def see_all(self, connection: Connection) -> None:
        """Statements that name no project see all rows anyway."""

    def see_project(self, connection: Connection, number: int) -> None:
        connection.info[OWN] = number

    def clock(self, connection: Connection) -> int:
        return time.time_ns() // 1000

    def raw_json(self, column: Column[Any]) -> ColumnElement[Any]:
        # A column may hold anything, also bytes that are not UTF-8.
        return cast_sql(column, LargeBinary)

    def from_raw_json(self, value: ColumnElement[Any], column: Column[Any]) -> ColumnElement[Any]:
        return value

    def in_byte_order(self, column: Column[Any]) -> ColumnElement[Any]:
        return column


class PostgreSqlDialect:
    """The statements that PostgreSQL takes."""

    schema = SCHEMA
    searches = True
    has_row_level_security = True
    insert = staticmethod(postgresql.insert)

    table_sizes = text(
        "SELECT coalesce(p.relname, c.relname) AS name, SUM(pg_total_relation_size(c.oid))::bigint AS bytes "
        "FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent "
        "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY 1"
    )

    def newest(self, connection: Connection, column: Column[int]) -> int:
        # Not the maximum: to find that under row-level security, PostgreSQL reads all rows there are.
        sequence = f"pg_get_serial_sequence('{column.table.name}', '{column.name}')"
        return int(connection.exec_driver_sql(f"SELECT pg_sequence_last_value({sequence}::regclass)").scalar() or 0)

    def lock(self, connection: Connection, number: int, *, shared: bool) -> None:
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        connection.exec_driver_sql(f"SELECT {function}(%s)", (number,))

    def see_all(self, connection: Connection) -> None:
        connection.exec_driver_sql(SEE_ALL)

    def see_project(self, connection: Connection, number: int) -> None:
        connection.exec_driver_sql(SEE_OWN)
        connection.exec_driver_sql(set_project(number))
        connection.info[OWN] = number

    def clock(self, connection: Connection) -> int:
        # Of the server: the clocks of those who share it may differ.
        now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return int(connection.exec_driver_sql(now).scalar_one())

    def raw_json(self, column: Column[Any]) -> ColumnElement[Any]:
        return cast_sql(column, Text)

    def from_raw_json(self, value: ColumnElement[Any], column: Column[Any]) -> ColumnElement[Any]:
        return cast_sql(value, column.type)

    def in_byte_order(self, column: Column[Any]) -> ColumnElement[Any]:
        # As SQLite sorts, and not by the language of the server.
        return column.collate("C") if isinstance(column.type, String) else column


SEE_ALL, SEE_OWN = (f"SET LOCAL heedful.everything = '{value}'" for value in ("on", "off"))
"""A transaction on PostgreSQL sees the rows of all projects, or of its own only."""


def set_project(number: int) -> str:
    """The statement that sets the number of a transaction's project on PostgreSQL."""
    return f"SET LOCAL heedful.project_id = '{number:d}'"


Dialect: TypeAlias = SqliteDialect | PostgreSqlDialect

_DIALECTS: dict[str, Dialect] = {"sqlite": SqliteDialect(), "postgresql": PostgreSqlDialect()}


def dialect_of(connection: Connection) -> Dialect:
    return _DIALECTS[connection.dialect.name]


@lru_cache
def upsert(dialect: Dialect, table: Table, keys: tuple[str, ...], changed: tuple[str, ...]) -> Insert:
    """Insert, or overwrite `changed` where `keys` are there already."""
    statement: Any = dialect.insert(table)
    if not changed:
        return cast(Insert, statement.on_conflict_do_nothing(index_elements=keys))
    values = {name: statement.excluded[name] for name in changed}
    return cast(Insert, statement.on_conflict_do_update(index_elements=keys, set_=values))


def lock_exclusive(connection: Connection, name: str) -> None:
    """Takes a lock exclusively until the transaction ends; on SQLite, which has one writer at a time, does nothing."""
    dialect_of(connection).lock(connection, lock_number(name), shared=False)


def lock_shared(connection: Connection, name: str) -> None:
    """Takes a lock together with others who share it, and excludes `lock_exclusive`."""
    dialect_of(connection).lock(connection, lock_number(name), shared=True)


def lock_number(name: str) -> int:
    """The number of a lock for PostgreSQL."""
    return int.from_bytes(hashlib.blake2b(f"heedful {name}".encode(), digest_size=8).digest(), "big", signed=True)


ROW_BYTES = 24
"""The size of a row besides its values."""

NUMBER_BYTES = 8
"""The size of a value that is neither text nor bytes."""


@dataclass(slots=True)
class StoredBytes:
    """Bytes written so far, even if they were rolled back later."""

    total: int = 0


_COUNTED: ContextVar[StoredBytes | None] = ContextVar("heedful_stored_bytes", default=None)


@contextmanager
def counting() -> Iterator[StoredBytes]:
    """Counts what this thread or task writes inside the block."""
    counted = StoredBytes()
    token = _COUNTED.set(counted)
    try:
        yield counted
    finally:
        _COUNTED.reset(token)


def count_statement(sql: str, rows: Sequence[Any]) -> None:
    """Counts the values of a statement that inserts or updates rows."""
    counted = _COUNTED.get()
    if counted is not None and sql.startswith(("INSERT", "UPDATE")):
        values = [value for row in rows for value in (row.values() if isinstance(row, dict) else row)]
        counted.total += ROW_BYTES * len(rows) + sum(map(_value_bytes, values))


def count_with(size: Callable[[], int]) -> None:
    """Counts bytes that are written otherwise; `size` is called only if somebody counts."""
    counted = _COUNTED.get()
    if counted is not None:
        counted.total += size()


def _value_bytes(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))
    if value is None or isinstance(value, int | float):
        return NUMBER_BYTES
    if isinstance(value, bytes | memoryview):
        return len(value)
    if isinstance(value, list | dict):
        return len(orjson.dumps(value, default=str))
    # PostgreSQL's driver wraps bytes and JSON.
    return _value_bytes(value.obj) if hasattr(value, "obj") else NUMBER_BYTES


PLACES = (16, 64)
"""The values that a prepared statement on SQLite takes that looks for a few, or for many."""

_PLACE_NAMES = tuple(f"place_{place}" for place in range(PLACES[-1]))


class OneOf(ColumnElement[bool]):
    """The condition of a prepared statement that `Direct.run_for` runs: a column has one of the values."""

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column


@compiles(OneOf)
def _compile_places(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    places = [bindparam(name, type_=element.column.type) for name in _PLACE_NAMES[: options.get("places")]]
    return compiler.process(element.column.in_(places), **options)


@compiles(OneOf, "postgresql")
def _compile_array(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    # Planned once. One with many values would be planned each time, which takes longer than it runs.
    places = bindparam("places", type_=postgresql.ARRAY(element.column.type))
    return compiler.process(element.column == any_(places), **options)


Compiled: TypeAlias = tuple[str, Callable[[dict[str, Any]], Any], dict[str, Any]]
"""The SQL, the order of its values, and those that are part of the statement."""


def _arguments(order: Sequence[str] | None) -> Callable[[dict[str, Any]], Any]:
    """Puts values, given by name, in the order that a driver takes."""
    if order is None:
        return dict
    return itemgetter(*order) if len(order) > 1 else lambda values: [values[name] for name in order]


class Prepared:
    """One statement with named values, compiled once for each kind of database."""

    def __init__(self, statement: ClauseElement, columns: list[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[object, Compiled] = {}

    def compiled(self, engine: Engine, places: int = 0) -> Compiled:
        """The statement for a database, with so many places for the values of `OneOf`."""
        key = engine.dialect.statement_compiler, places
        if key not in self._compiled:
            options: Any = {"column_keys": self._columns, "compile_kwargs": {"places": places}}
            compiled = self._statement.compile(dialect=engine.dialect, **options)
            binds = getattr(compiled, "binds", {})
            fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
            self._compiled[key] = str(compiled), _arguments(getattr(compiled, "positiontup", None)), fixed
        return self._compiled[key]


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
        return self._run(statement.compiled(self._engine), values)

    def run_for(self, statement: Prepared, wanted: Sequence[Any], **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a prepared statement with `OneOf` for these values."""
        if self._engine.dialect.name == "postgresql":
            for some in batches(wanted):
                yield from self.run(statement, places=list(some), **values)
            return
        few, many = PLACES
        for some in batches(wanted, many):
            places = few if len(some) <= few else many
            # Repeating one of them finds nothing new.
            named = zip(_PLACE_NAMES, [*some, *[some[-1]] * (places - len(some))], strict=False)
            yield from self._run(statement.compiled(self._engine, places), {**values, **dict(named)})

    def _run(self, statement: Compiled, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        sql, in_order, fixed = statement
        arguments = in_order({**fixed, OWN: self._borrowed.info.get(OWN), **values})
        count_statement(sql, (arguments,))
        cursor = self._driver.execute(sql, arguments)
        return cast(list[tuple[Any, ...]], cursor.fetchall()) if cursor.description else []

    def run_many(self, sql: str, rows: list[Any]) -> None:
        """Runs a statement that returns nothing once for each row."""
        count_statement(sql, rows)
        if len(rows) == 1:
            self._driver.execute(sql, rows[0])
            return
        with closing(self._driver.cursor()) as cursor:
            cursor.executemany(sql, rows)

    def again(self) -> Direct:
        """The same transaction for another writer."""
        return Direct(self._engine, self._borrowed)

    def begin_part(self) -> None:
        """Begins a part of the transaction that can be undone by itself."""
        self._driver.execute("SAVEPOINT part")
        self._own = self._borrowed.info.get(OWN)

    def end_part(self) -> None:
        self._driver.execute("RELEASE SAVEPOINT part")

    def undo_part(self) -> None:
        self._driver.execute("ROLLBACK TO SAVEPOINT part")
        # The project may have been made in it.
        self._borrowed.info[OWN] = self._own
        self._driver.execute("RELEASE SAVEPOINT part")

    @property
    def connection(self) -> Connection:
        """The same transaction for SQLAlchemy, which neither begins nor ends it."""
        if self._connection is None:
            self._connection = Connection(self._engine, connection=self._borrowed)
        return self._connection


_COMPILED: dict[tuple[object, str, tuple[str, ...], str], tuple[str, Callable[[dict[str, Any]], Any]]] = {}


def insert_many(
    connection: Connection, table: Table, statement: Insert, rows: Sequence[dict[str, Any]], kind: str = "insert"
) -> None:
    """Inserts rows with the same columns; `kind` distinguishes statements of one table."""
    if not rows:
        return
    names = tuple(rows[0])
    key = (connection.dialect.statement_compiler, table.name, names, kind)
    if key not in _COMPILED:
        # Nothing is returned.
        compiled = statement.inline().compile(dialect=connection.dialect, column_keys=list(names))
        _COMPILED[key] = (str(compiled), _arguments(compiled.positiontup))
    sql, arguments = _COMPILED[key]
    own = {OWN: connection.info.get(OWN)}
    Direct.on(connection).run_many(sql, [arguments(own | row) for row in rows])
