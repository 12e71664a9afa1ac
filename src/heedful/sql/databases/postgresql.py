"""PostgreSQL: a read-only transaction that is always rolled back, a cursor at the server, and cancelling.

The query is declared as a cursor. PostgreSQL itself refuses to declare anything but one statement that returns rows.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from heedful.errors import HeedfulError
from heedful.results import Column, Result
from heedful.sql.databases import errors, postgresql_rights
from heedful.sql.databases.contract import Limits, Parameters, Watchdog, bound, closing, collect, timed_out
from heedful.sql.databases.libpq import parameters
from heedful.sql.databases.schema import STORE_TABLES, Schema, reflected
from heedful.sql.guard import CheckedStatement

if TYPE_CHECKING:
    import psycopg

_OPTIONS = "-c default_transaction_read_only=on -c standard_conforming_strings=on"
_GRACE_SECONDS = 5.0

_UNKNOWN_TABLE = {"42P01", "3F000"}
_UNKNOWN_COLUMN = {"42703"}
_READ_ONLY = {"25006"}
_RIGHTS = {"42501"}
_STOPPED = {"57014"}

# Written rows take a new transaction id, so equal snapshots see equal data; foreign tables change without one.
_VERSION = """
SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_table)
THEN pg_catalog.pg_current_snapshot()::text || ' ' || extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text
END
"""

_STORES = """
SELECT count(*) FROM (
  SELECT FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p') AND relname = ANY(%s)
  GROUP BY relnamespace HAVING count(*) = %s
) AS stores
"""


class PostgreSQL:
    """A database of a PostgreSQL server; `role` is what its queries run as."""

    dialect = "postgres"

    def __init__(self, url: URL, role: str | None = None) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise errors.missing_driver("psycopg", "postgresql") from None
        self._url = url.set(drivername="postgresql+psycopg")
        self._role = role
        self.address = errors.address(url)

    def __repr__(self) -> str:
        return f"PostgreSQL({self.address!r})"

    @contextmanager
    def session(self) -> Iterator[PostgreSQLSession]:
        """Opens a new connection."""
        with closing(self._connect()) as connection:
            yield PostgreSQLSession(connection, self._role)

    def read_schema(self) -> Schema:
        """The tables and views that the connector's user, or its role, may see."""
        engine = create_engine(self._url, creator=self._connect, poolclass=NullPool, hide_parameters=True)
        try:
            with engine.connect() as connection:
                if self._role:
                    quoted = engine.dialect.identifier_preparer.quote_identifier(self._role)
                    connection.execute(text(f"SET LOCAL ROLE {quoted}"))
                return reflected(connection)
        except DBAPIError as error:
            raise _translate_error(error.orig or error) from error
        finally:
            engine.dispose()

    def check_rights(self) -> None:
        """Fails if the login, or a role that it can switch to, may do more than read."""
        with closing(self._connect()) as connection, _translated():
            postgresql_rights.check(connection, self.address)

    def data_version(self) -> str | None:
        """The snapshot that a query would see now, and since when the server runs."""
        with closing(self._connect()) as connection, _translated():
            snapshot: str | None = connection.execute(_VERSION).fetchone()[0]
            connection.rollback()
            return snapshot

    def _connect(self) -> Any:
        import psycopg

        from heedful.sql.databases.postgresql_types import register

        try:
            connection = psycopg.connect(**parameters(self._url, psycopg.pq.version(), _OPTIONS))
        except psycopg.ProgrammingError:
            raise errors.unreachable(self.address, "the URL has an option that is not known") from None
        except psycopg.Error as error:
            raise _connect_error(str(error), self.address) from None
        try:
            self._check_no_store(connection)
        except BaseException:
            connection.close()
            raise
        connection.read_only = True
        register(connection)
        return connection

    def _check_no_store(self, connection: psycopg.Connection[Any]) -> None:
        """Checked on every connection, because a store may be created there later."""
        connection.autocommit = True
        with _translated():
            row = connection.execute(_STORES, (list(STORE_TABLES), len(STORE_TABLES))).fetchone()
        if row is None or row[0]:
            raise errors.own_store(self.address)
        connection.autocommit = False


class PostgreSQLSession:
    """One connection to a PostgreSQL database."""

    def __init__(self, connection: psycopg.Connection[Any], role: str | None) -> None:
        self._connection = connection
        self._role = role

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement in a transaction that is rolled back."""
        import psycopg

        values = bound(query, parameters)
        sql = query.written(lambda name: f"%({name})s", _doubled) if values else query.sql
        watchdog = Watchdog(limits.seconds, _Stop(self._connection))
        try:
            with watchdog, _translated():
                return self._fetch(sql, values, limits)
        except HeedfulError:
            if watchdog.fired:
                raise timed_out(limits) from None
            raise
        finally:
            # A lost connection has nothing to roll back.
            with contextlib.suppress(psycopg.Error):
                self._connection.rollback()

    def _fetch(self, sql: str, values: dict[str, Any], limits: Limits) -> Result:
        from psycopg import sql as writing

        started = monotonic()
        # In case this process dies before it can cancel.
        self._connection.execute(
            writing.SQL("SET LOCAL statement_timeout = {}").format(int((limits.seconds + 1) * 1000))
        )
        if self._role:
            self._connection.execute(writing.SQL("SET LOCAL ROLE {}").format(writing.Identifier(self._role)))
        with self._connection.cursor(name="heedful") as cursor:
            cursor.execute(sql.encode(), values or None)
            columns = [Column(field.name, field.type_display) for field in cursor.description or ()]
            return collect(columns, cursor.fetchmany, limits, started)


class _Stop:
    """Asks the server to cancel; closes the connection if it doesn't within some seconds."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._first: float | None = None

    def __call__(self) -> None:
        import psycopg

        self._first = self._first or monotonic()
        with contextlib.suppress(psycopg.Error, OSError):
            if monotonic() - self._first < _GRACE_SECONDS:
                self._connection.cancel_safe(timeout=1.0)
            else:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)


def _doubled(text: str) -> str:
    return text.replace("%", "%%")


@contextmanager
def _translated() -> Iterator[None]:
    import psycopg

    try:
        yield
    except (psycopg.Error, OverflowError) as error:
        raise _translate_error(error) from error


def _translate_error(error: BaseException) -> HeedfulError:
    state = getattr(error, "sqlstate", None)
    if state in _UNKNOWN_TABLE:
        return errors.failed(error, "unknown_table")
    if state in _UNKNOWN_COLUMN:
        return errors.failed(error, "unknown_column")
    if state in _READ_ONLY:
        return errors.changes_data(error)
    if state in _RIGHTS:
        return errors.not_allowed(error)
    if state is None and "out of memory" in str(error):
        # libpq's message for a row that doesn't fit into memory.
        return errors.out_of_memory()
    if state is None or state in _STOPPED or state.startswith(("08", "57P")):
        return errors.unreachable("the PostgreSQL server", errors.one_line(error))
    return errors.failed(error)


def _connect_error(message: str, address: str) -> HeedfulError:
    """Errors of connecting have no code in libpq, only a message."""
    text = message.lower()
    if "does not exist" in text and "database" in text:
        return errors.missing_database(address)
    if any(word in text for word in ("password", "authentication", "no pg_hba.conf", "role")):
        return errors.refused_login(address)
    if any(word in text for word in ("ssl", "certificate", "tls")):
        return errors.no_tls(address)
    if "startup parameter" in text:
        return errors.unreachable(address, "a pooler refuses the parameter options: see its ignore_startup_parameters")
    return errors.unreachable(address, "timeout" if "timeout" in text else "no connection")
