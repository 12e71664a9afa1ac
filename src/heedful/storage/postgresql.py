"""All that only PostgreSQL understands: its schema, its locks, its error codes, its upsert."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.sql.dml import Insert

from heedful.errors import HeedfulError, Unavailable
from heedful.storage.prepared import Direct

SCHEMA = "heedful"
"""Where the tables are, so that a database can be shared with other programs."""

BUSY_SECONDS = 60
"""How long a writer waits for the others before it gives up."""

_OPTIONS = f"-c search_path={SCHEMA},public -c lock_timeout={BUSY_SECONDS * 1000} -c timezone=UTC"


class PostgreSql:
    """A store on a server. Writers of one project come one at a time; projects don't wait for each other."""

    folder: Path | None = None

    def __init__(self, url: URL) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise Unavailable(
                "a store on PostgreSQL needs an extra",
                code="extra_missing",
                remedy='Run: pip install "heedful[postgresql]"',
            ) from error
        self._psycopg = psycopg
        self.name = url.render_as_string(hide_password=True)
        self.engine = _engine(url.set(drivername="postgresql+psycopg"))

    def prepare(self) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_number("prepare"),))
            connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")

    @contextmanager
    def begin(self, project: str | None, *, write: bool, durable: bool, alone: bool) -> Iterator[Connection]:
        level = "READ COMMITTED" if write else "REPEATABLE READ"
        with self.engine.connect() as plain:
            connection = plain.execution_options(isolation_level=level)
            with connection.begin():
                for statement, values in _opening(project, write=write, durable=durable, alone=alone):
                    connection.exec_driver_sql(statement, values)
                yield connection

    @contextmanager
    def direct(self, project: str, *, write: bool, durable: bool, alone: bool) -> Iterator[Direct]:
        borrowed = self.engine.raw_connection()
        driver: Any = borrowed.dbapi_connection
        try:
            for statement, values in _opening(project, write=write, durable=durable, alone=alone):
                driver.execute(statement, values)
            yield Direct(self.engine, borrowed)
            driver.commit()
        except self._psycopg.Error as error:
            raise translated(error, self.name) or error from error
        finally:
            # Only what was not committed is taken back.
            if not driver.closed:
                driver.rollback()
            borrowed.close()

    def migrating(self, connection: Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_number("migrate"),))

    def upsert(self, table: Table, keys: tuple[str, ...], changed: tuple[str, ...]) -> Insert:
        return _upsert(table, keys, changed)

    def integrity(self, connection: Connection) -> str:
        connection.exec_driver_sql("SELECT 1")
        return "ok"

    def left(self) -> None:
        self.engine.dispose(close=False)

    def close(self) -> None:
        self.engine.dispose()


def _engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        connect_args={"options": _OPTIONS, "application_name": "heedful", "connect_timeout": 10},
        pool_size=8,
        max_overflow=24,
        pool_pre_ping=True,
    )
    event.listen(engine, "handle_error", _translate)
    return engine


def _opening(
    project: str | None, *, write: bool, durable: bool, alone: bool
) -> Iterator[tuple[str, tuple[Any, ...] | None]]:
    """What a transaction begins with."""
    if not write:
        yield "SET TRANSACTION READ ONLY", None
        return
    if not durable:
        yield "SET LOCAL synchronous_commit = off", None
    if alone and project is not None:
        yield "SELECT pg_advisory_xact_lock(%s)", (_number(f"project {project}"),)


def _number(name: str) -> int:
    """The number of a lock."""
    return int.from_bytes(hashlib.blake2b(f"heedful {name}".encode(), digest_size=8).digest(), "big", signed=True)


@lru_cache
def _upsert(table: Table, keys: tuple[str, ...], changed: tuple[str, ...]) -> Insert:
    statement = insert(table)
    if not changed:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(
        index_elements=keys, set_={name: statement.excluded[name] for name in changed}
    )


def _translate(context: ExceptionContext) -> None:
    error = context.original_exception
    name = "the store" if context.engine is None else context.engine.url.render_as_string(hide_password=True)
    known = None if isinstance(error, HeedfulError) else translated(error, name)
    if known is not None:
        raise known from error


def translated(error: BaseException, name: str) -> Unavailable | None:
    """What an error of the driver means to a user, where that is known."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    if state in ("55P03", "40P01", "40001"):
        return Unavailable(
            f"store {name} was locked ({error})", code="store_busy", remedy="Try again; nothing was changed"
        )
    if state in ("42501", "25006"):
        return Unavailable(f"store {name} can't be written ({error})", code="store_read_only", remedy=_ALLOWED)
    if state.startswith("53"):
        return Unavailable(f"store {name} has no room left ({error})", code="disk_full", remedy=_FULL)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(f"store {name} can't be reached ({error})", code="store_unreachable", remedy=_REACH)
    return None


_ALLOWED = "Give the user of the URL the right to create and write in the schema heedful; nothing was changed"
_FULL = "Free some space or raise the server's limits, and try again; nothing was changed"
_REACH = "Check the address and that the server runs; what was under way was not stored"
