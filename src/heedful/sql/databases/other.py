"""A database through SQLAlchemy alone, as MySQL is asked: a transaction that is rolled back, and a line that is cut.

There are two safeguards here and not three: what keeps a statement that passed the guard from writing is the rollback,
and the rights of the user in the URL. Give it one that may only read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from heedful.results import Column, Result
from heedful.sql.databases import errors
from heedful.sql.databases.contract import Limits, Parameters, Watchdog, bound, collect, timed_out
from heedful.sql.databases.schema import Schema, reflected
from heedful.sql.guard import CheckedStatement
from heedful.sql.statements import parser_dialect


class Other:
    """A database that is only known through SQLAlchemy."""

    def __init__(self, url: URL) -> None:
        self._engine = _engine(url)
        self.dialect = parser_dialect(url.get_backend_name())
        self.address = errors.address(url)

    def __repr__(self) -> str:
        return f"Other({self.address!r})"

    @contextmanager
    def session(self) -> Iterator[OtherSession]:
        """Opens a new connection."""
        with self._connected() as connection:
            yield OtherSession(connection)

    def read_schema(self) -> Schema:
        """The tables and views."""
        with self._connected() as connection:
            try:
                return reflected(connection)
            except DBAPIError as error:
                raise errors.failed(error.orig) from error

    def check_rights(self) -> None:
        """Can't be checked here."""

    def data_version(self) -> str | None:
        """Can't be determined here."""
        return None

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            connection = self._engine.connect()
        except SQLAlchemyError as error:
            reason = "timeout" if "timed out" in str(error) else type(error).__name__
            raise errors.unreachable(self.address, reason) from None
        with connection:
            yield connection


class OtherSession:
    """One connection through SQLAlchemy."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement in a transaction that is rolled back."""
        values = bound(query, parameters)
        watchdog = Watchdog(limits.seconds, lambda: _close_connection(self._connection))
        try:
            with watchdog:
                return self._fetch(query, values, limits)
        except DBAPIError as error:
            if watchdog.fired:
                raise timed_out(limits) from None
            raise errors.failed(error.orig) from error
        finally:
            if watchdog.fired:
                self._connection.invalidate()
            else:
                self._connection.rollback()

    def _fetch(self, query: CheckedStatement, values: dict[str, Any], limits: Limits) -> Result:
        started = monotonic()
        statement = text(query.written(lambda name: f":{name}", lambda part: part.replace(":", "\\:")))
        with self._connection.execution_options(stream_results=True).execute(statement, values) as result:
            columns = (
                [Column(field[0], _type(field[1])) for field in result.cursor.description] if result.cursor else []
            )
            return collect(columns, result.fetchmany, limits, started)


def _engine(url: URL) -> Engine:
    try:
        return create_engine(url, poolclass=NullPool, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise errors.missing_driver(error.name or url.drivername, None) from None


def _close_connection(connection: Connection) -> None:
    raw = connection.connection.dbapi_connection
    # Drivers differ in how a query is cancelled from another thread; all of them can close the connection.
    for name in ("interrupt", "cancel", "close"):
        stop = getattr(raw, name, None)
        if stop is not None:
            with contextlib.suppress(Exception):
                stop()
            return


def _type(code: Any) -> str:
    return "unknown" if code is None else str(getattr(code, "__name__", code)).lower()
