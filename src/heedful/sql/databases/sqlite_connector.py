"""SQLite: a file opened with mode=ro, an authorizer that lets only reads through, and a handler that stops it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from heedful.errors import HeedfulError
from heedful.results import Column, Result
from heedful.sql.databases import errors
from heedful.sql.databases.any_database import Limits, Parameters, bound, collect, file_version
from heedful.sql.databases.schema import STORE_TABLES, Schema, reflected
from heedful.sql.guard import CheckedStatement, is_denied

BUSY_SECONDS = 10

_STEPS = 10_000
_LONGEST_VALUE = 4_000_000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 250_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""Far below SQLite's own limits, and above what people write."""

_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
# Full-text tables ask for it themselves.
_PRAGMAS = {"data_version"}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_TYPES = {int: "integer", float: "real", str: "text", bytes: "blob"}


class SQLite:
    dialect = "sqlite"

    def __init__(self, url: URL) -> None:
        path = url.database or ""
        # A URI could choose another mode, or another way to read files.
        if not path or path.startswith((":memory:", "file:")):
            raise errors.no_file("SQLite")
        self._path = Path(path).absolute()
        self.address = f"sqlite:///{self._path}"

    @contextmanager
    def session(self) -> Iterator[SQLiteSession]:
        with closing(self._connect()) as connection:
            yield SQLiteSession(connection)

    def read_schema(self) -> Schema:
        engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool, hide_parameters=True)
        try:
            with engine.connect() as connection:
                return reflected(connection)
        except DBAPIError as error:
            raise errors.unreachable(self.address, errors.one_line(error.orig)) from error
        finally:
            engine.dispose()

    def check_rights(self) -> None:
        """Nothing to check: the file is opened read-only."""

    def data_version(self) -> str | None:
        """Derived from the files: SQLite's own `data_version` is only comparable within one connection."""
        path = errors.existing_file(self._path, "SQLite")
        return file_version(path, path.with_name(f"{path.name}-wal"))

    def _connect(self) -> sqlite3.Connection:
        errors.existing_file(self._path, "SQLite")
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(self._path))}?mode=ro",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.OperationalError as error:
            raise errors.unreachable(self.address, errors.one_line(error)) from None
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.DatabaseError as error:
            connection.close()
            raise self._unusable(error) from None
        if tables >= STORE_TABLES:
            connection.close()
            raise errors.own_store(self._path)
        connection.text_factory = _text
        return connection

    def _unusable(self, error: sqlite3.DatabaseError) -> HeedfulError:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return errors.not_a_database(self._path, "SQLite")
        if error.sqlite_errorcode & 0xFF in _LOCKED:
            return errors.in_use(self.address)
        return errors.unreachable(self.address, errors.one_line(error))


class SQLiteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        _open_virtual_tables(connection)
        connection.set_authorizer(_authorize)
        for limit, maximum in _LIMITS.items():
            connection.setlimit(limit, maximum)

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement; a progress handler stops it at the time limit."""
        values = bound(query, parameters)
        started = monotonic()
        deadline = started + limits.seconds
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        self._connection.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
        try:
            cursor = self._connection.execute(query.sql, values)
            names = [column[0] for column in cursor.description or ()]
            result = collect([Column(name, "") for name in names], cursor.fetchmany, limits, started)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self._translate_error(error, limits) from error
        finally:
            self._connection.set_progress_handler(None, 0)
        columns = tuple(Column(name, _type(result.rows, index)) for index, name in enumerate(names))
        return replace(result, columns=columns)

    def _translate_error(self, error: Exception, limits: Limits) -> HeedfulError:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_INTERRUPT:
            return errors.timed_out(limits.seconds)
        if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY):
            return errors.changes_data(error)
        if code is not None and code & 0xFF in _LOCKED:
            return errors.in_use("the SQLite file")
        if code is not None and code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return errors.out_of_disk()
        if "no such table" in str(error):
            return errors.unknown_table(error)
        if "no such column" in str(error):
            return errors.unknown_column(error)
        return errors.failed(error)


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action in _READING:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and not is_denied(second or "", "sqlite"):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS and second is None:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _open_virtual_tables(connection: sqlite3.Connection) -> None:
    """Uses virtual tables once: some prepare writes at their first use, which the authorizer would refuse."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'create virtual table%'")
    for (name,) in rows.fetchall():
        quoted = name.replace('"', '""')
        try:
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')
        except sqlite3.Error:
            # Its module is missing; a query that needs it will report that.
            continue


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _type(rows: Sequence[Sequence[Any]], index: int) -> str:
    """The type that all values of a column share: SQLite has types for values, not for columns."""
    types = {_TYPES[type(row[index])] for row in rows if row[index] is not None}
    return types.pop() if len(types) == 1 else "any" if types else "null"
