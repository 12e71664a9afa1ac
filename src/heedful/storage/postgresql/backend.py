"""All that only PostgreSQL understands: its schema, its locks and its error codes."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Column, Connection, Engine, PoolProxiedConnection, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.exc import TimeoutError

from heedful.errors import HeedfulError, Unavailable
from heedful.storage import locks
from heedful.storage.backend import BUSY_SECONDS, CHANGED, unstorable
from heedful.storage.dialects import SCHEMA
from heedful.storage.group_commit import GroupCommit
from heedful.storage.postgresql import pgvector, read_timeout
from heedful.storage.rows import Direct
from heedful.storage.stored_bytes import count_on

logger = logging.getLogger("heedful")

EVERYTHING = "heedful.everything"
"""The setting that lets a transaction see all projects; `heedful.project` names the only one that it sees otherwise."""

NOTIFY_SECONDS = 1.0
"""The shortest interval between notifications that a project has changed, in seconds."""

POLL_SECONDS, MAX_BACKOFF = 0.5, 30.0
"""How soon listeners notice that they should stop, and how long they wait for an
unreachable server before they retry, in seconds."""

_SERVER_STATE = (
    "SELECT to_regclass(%s) IS NOT NULL, rolsuper OR rolbypassrls, pg_is_in_recovery() FROM pg_roles "
    "WHERE rolname = current_user"
)

# A server that disappears silently is noticed within about a minute.
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}

# Some hosting providers install extensions in a schema of that name.
_OPTIONS = f"-c search_path={SCHEMA},public,extensions -c lock_timeout={BUSY_SECONDS * 1000} -c timezone=UTC"

_ARGUMENTS: dict[str, Any] = {"options": _OPTIONS, "application_name": "heedful", "connect_timeout": 10, **_KEEPALIVE}

_LEFT_TO_URL = {"connect_timeout", "application_name", *_KEEPALIVE}

_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('heedful', %s)"


@dataclass(frozen=True, slots=True)
class _Opening:
    """How a transaction begins: one statement sets its project and takes its lock."""

    project: str | None
    write: bool
    durable: bool
    exclusive: bool

    @property
    def statement(self) -> tuple[str, tuple[Any, ...]]:
        setting, value = (EVERYTHING, "on") if self.project is None else ("heedful.project", self.project)
        words, values = "SELECT set_config(%s, %s, true)", [setting, value]
        if self.write and not self.durable:
            words += ", set_config('synchronous_commit', 'off', true)"
        if self.write and self.exclusive and self.project is not None:
            return f"{words}, pg_advisory_xact_lock(%s)", (*values, locks.number(locks.project(self.project)))
        return words, tuple(values)


class PostgreSql:
    """A store on a server. Writers of one project are serialized; projects don't wait for each other."""

    folder: Path | None = None
    many_writers = True
    read_only = False

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
        self.name = _name(url)
        self.engine = _engine(url.set(drivername="postgresql+psycopg"))
        self._notified_at: dict[str, float] = {}
        self._start_grouping()

    def reserve(self) -> None:
        """Nothing to do: an administrator creates the database."""

    def prepare(self) -> None:
        with self.begin(None, write=False, durable=True, exclusive=False) as connection:
            is_migrated, bypasses_rls, self.read_only = connection.exec_driver_sql(
                _SERVER_STATE, (f"{SCHEMA}.alembic_version",)
            ).one()
        if bypasses_rls:
            logger.warning(
                "the user of %s bypasses row-level security between projects: use a role that is not a superuser",
                self.name,
            )
        if is_migrated:
            return
        with self.begin(None, write=True, durable=True, exclusive=True) as connection:
            locks.lock_exclusive(connection, "prepare")
            # A user who may not create a schema may have been given one.
            if connection.exec_driver_sql("SELECT to_regnamespace(%s)", (SCHEMA,)).scalar() is None:
                connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")
            pgvector.ensure(connection, self.name)

    @contextmanager
    def begin(self, project: str | None, *, write: bool, durable: bool, exclusive: bool) -> Iterator[Connection]:
        with self._transaction(project, write=write, durable=durable, exclusive=exclusive) as borrowed:
            connection = Direct(self.engine, borrowed).connection
            # Only tells SQLAlchemy that it has begun: the driver commits it.
            connection.begin()
            yield connection

    @contextmanager
    def direct(self, project: str, *, write: bool, durable: bool, exclusive: bool) -> Iterator[Direct]:
        if write and exclusive:
            # Writers of one project would wait for its lock: they share it instead.
            try:
                with self._writers_of(project).write(project, durable) as direct:
                    yield direct
            except self._psycopg.Error as error:
                raise translate_error(error, self.name) or error from error
            return
        with self._transaction(project, write=write, durable=durable, exclusive=exclusive) as borrowed:
            yield Direct(self.engine, borrowed)

    def _start_grouping(self) -> None:
        self._grouping = threading.Lock()
        self._writers: dict[str, GroupCommit] = {}

    def _writers_of(self, project: str) -> GroupCommit:
        with self._grouping:
            return self._writers.setdefault(project, GroupCommit(partial(self._begin_direct, project)))

    @contextmanager
    def _begin_direct(self, project: str, durable: bool) -> Iterator[Direct]:
        with self._transaction(project, write=True, durable=durable, exclusive=True) as borrowed:
            yield Direct(self.engine, borrowed)

    @contextmanager
    def _transaction(
        self, project: str | None, *, write: bool, durable: bool, exclusive: bool
    ) -> Iterator[PoolProxiedConnection]:
        borrowed = self._begun(_Opening(project, write=write, durable=durable, exclusive=exclusive))
        driver: Any = borrowed.dbapi_connection
        try:
            borrowed.info.pop(CHANGED, None)
            yield borrowed
            self._commit(driver)
            if project is not None and borrowed.info.get(CHANGED):
                self._notify(driver, project)
        except self._psycopg.Error as error:
            raise translate_error(error, self.name) or error from error
        finally:
            self._give_back(borrowed)

    def _give_back(self, borrowed: PoolProxiedConnection) -> None:
        """Only what was not committed is rolled back. A connection that is lost rolls back by itself, and must not
        hide what else was wrong."""
        driver: Any = borrowed.dbapi_connection
        if driver is not None:
            with suppress(self._psycopg.Error):
                driver.rollback()
        if driver is not None and not driver.closed:
            borrowed.close()
        elif borrowed.is_valid:
            borrowed.invalidate()

    def _notify(self, driver: Any, project: str) -> None:
        """Not in the transaction itself: those that notify are committed one after the other, in the whole server. And
        not each time: nobody relies on it."""
        now = time.monotonic()
        if now - self._notified_at.get(project, -NOTIFY_SECONDS) >= NOTIFY_SECONDS:
            self._notified_at[project] = now
            # The change is stored; a lost notification must not fail the write.
            with suppress(self._psycopg.Error):
                driver.execute(_NOTIFY, (project,))
                driver.commit()

    def notices(self, stopped: threading.Event) -> Iterator[str | None]:
        waited = POLL_SECONDS
        # A replica has no notifications.
        while not stopped.is_set() and not self.read_only:
            try:
                with closing(self._borrowed()) as borrowed:
                    borrowed.detach()
                    driver: Any = borrowed.dbapi_connection
                    driver.autocommit = True
                    driver.execute("LISTEN heedful")
                    # Something may have changed while nobody listened.
                    yield None
                    while not stopped.is_set():
                        for notice in driver.notifies(timeout=POLL_SECONDS):
                            yield notice.payload
                        waited = POLL_SECONDS
            except (self._psycopg.Error, Unavailable) as error:
                if waited == POLL_SECONDS:
                    logger.info("no notifications from store %s for now: %s", self.name, error)
                waited = min(2 * waited, MAX_BACKOFF)
                stopped.wait(waited)

    def _commit(self, driver: Any) -> None:
        try:
            driver.commit()
        except self._psycopg.Error as error:
            if not driver.closed:
                raise
            raise Unavailable(
                f"the connection to {self.name} was lost during a write, which may or may not be stored ({error})",
                code="store_unreachable",
                remedy="Retry with the same idempotency key; it counts once",
            ) from error

    def _begun(self, opening: _Opening) -> PoolProxiedConnection:
        """A connection on which a transaction has begun. One that died while it waited in the pool is replaced: the
        first statement tells, and nothing has been done yet. So a connection need not be tried before each use."""
        committed = self._psycopg.IsolationLevel.READ_COMMITTED
        repeatable = self._psycopg.IsolationLevel.REPEATABLE_READ
        while True:
            borrowed = self._borrowed()
            driver: Any = borrowed.dbapi_connection
            try:
                driver.isolation_level = committed if opening.write else repeatable
                # Not False, which a replica would refuse.
                driver.read_only = None if opening.write else True
                driver.execute(*opening.statement)
                borrowed.info["used"] = True
                return borrowed
            except self._psycopg.Error as error:
                waited = driver.closed and borrowed.info.get("used")
                borrowed.invalidate()
                if not waited:
                    raise translate_error(error, self.name) or error from error

    def _borrowed(self) -> PoolProxiedConnection:
        try:
            return self.engine.raw_connection()
        except self._psycopg.Error as error:
            raise translate_error(error, self.name) or error from error
        except TimeoutError as error:
            raise Unavailable(
                f"all connections to store {self.name} were busy for {BUSY_SECONDS} s",
                code="store_busy",
                remedy="Try again, or call from fewer threads at once; nothing was changed",
            ) from error

    @contextmanager
    def outside(self, name: str) -> Iterator[Connection | None]:
        """A connection in autocommit mode; None while another caller has one by this name."""
        with self.engine.connect() as plain:
            connection = plain.execution_options(isolation_level="AUTOCOMMIT")
            if not connection.exec_driver_sql("SELECT pg_try_advisory_lock(%s)", (locks.number(name),)).scalar():
                yield None
                return
            try:
                # Building an index concurrently waits for all writers.
                connection.exec_driver_sql("SET lock_timeout = 0")
                connection.exec_driver_sql("SELECT set_config(%s, 'on', false)", (EVERYTHING,))
                yield connection
            finally:
                # The settings and the lock must not remain on a pooled connection.
                connection.invalidate()

    def migrating(self, connection: Connection) -> None:
        locks.lock_exclusive(connection, "migrate")

    def integrity(self, connection: Connection) -> str:
        connection.exec_driver_sql("SELECT 1")
        return "ok"

    def exists(self) -> bool:
        with self.engine.connect() as connection:
            return bool(connection.exec_driver_sql(f"SELECT to_regclass('{SCHEMA}.alembic_version')").scalar())

    def last_number(self, connection: Connection, column: Column[int]) -> int:
        sequence = _sequence(connection, column)
        result = connection.exec_driver_sql(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
        return int(result.scalar_one())

    def set_last_number(self, connection: Connection, column: Column[int], number: int) -> None:
        # A sequence can't be at 0: before its first number it is at 1 and not called.
        values = (_sequence(connection, column), max(number, 1), number > 0)
        connection.exec_driver_sql("SELECT setval(%s::text::regclass, %s, %s)", values)

    def after_fork(self) -> None:
        self.engine.dispose(close=False)
        self._start_grouping()

    def close(self) -> None:
        self.engine.dispose()


def _name(url: URL) -> str:
    # A password may also be among the options.
    displayed = url.difference_update_query(["password"]).set(drivername="postgresql")
    return displayed.render_as_string(hide_password=True)


def _engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        # The URL overrides our defaults.
        connect_args={name: value for name, value in _ARGUMENTS.items() if name not in _LEFT_TO_URL & url.query.keys()},
        pool_size=8,
        max_overflow=24,
        # What people wrote belongs in no log.
        hide_parameters=True,
        pool_timeout=BUSY_SECONDS,
    )
    event.listen(engine, "handle_error", _translate)
    count_on(engine)
    event.listen(engine, "connect", pgvector.adapt)
    read_timeout.add_read_timeout(engine)
    return engine


def _sequence(connection: Connection, column: Column[int]) -> str:
    """The name of a column's sequence."""
    table = f"{SCHEMA}.{column.table.name}"
    return str(connection.exec_driver_sql("SELECT pg_get_serial_sequence(%s, %s)", (table, column.name)).scalar_one())


def connecting(url: URL) -> tuple[str, dict[str, Any]]:
    """How to connect to a store with access to all projects: an address with secrets, and driver options."""
    options = _ARGUMENTS | {"options": f"{_OPTIONS} -c {EVERYTHING}=on"}
    return url.set(drivername="postgresql").render_as_string(hide_password=False), options


def _translate(context: ExceptionContext) -> None:
    if context.is_pre_ping:
        # The pool replaces a dead connection, but only if it sees the driver's own error.
        return
    error = context.original_exception
    name = "the store" if context.engine is None else _name(context.engine.url)
    translated = None if isinstance(error, HeedfulError) else translate_error(error, name)
    if translated is not None:
        raise translated from error


def translate_error(error: BaseException, name: str) -> HeedfulError | None:
    """The error to raise instead of a known error of the driver."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    if isinstance(error, psycopg.DataError) or state.startswith("54"):
        return unstorable("PostgreSQL")
    if state in ("55P03", "40P01", "40001"):
        return Unavailable(
            f"store {name} was locked ({error})", code="store_busy", remedy="Try again; nothing was changed"
        )
    if state in ("42501", "25006"):
        return Unavailable(f"store {name} can't be written ({error})", code="store_read_only", remedy=_ALLOWED)
    if state.startswith("53"):
        return Unavailable(f"store {name} has no space left ({error})", code="disk_full", remedy=_SPACE_REMEDY)
    if isinstance(error, psycopg.ProgrammingError) and "connection option" in str(error):
        return Unavailable(f"store {name} has an unknown option ({error})", code="store_refused", remedy=_OPTION_REMEDY)
    if isinstance(error, psycopg.OperationalError):
        # Errors of connecting have no code, only a message.
        if re.search(r"password|role .* does not exist|no pg_hba.conf entry", str(error)):
            return Unavailable(f"store {name} rejected the user ({error})", code="store_refused", remedy=_LOGIN_REMEDY)
        if re.search(r"database .* does not exist", str(error)):
            return Unavailable(f"store {name} does not exist ({error})", code="store_refused", remedy=_DATABASE_REMEDY)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(
            f"store {name} can't be reached ({error})", code="store_unreachable", remedy=_CONNECTION_REMEDY
        )
    return None


_ALLOWED = (
    "Give the user of the URL the right to create and write in the schema heedful, or name the primary server if this "
    "is a replica; nothing was changed"
)
_SPACE_REMEDY = "Free some space or raise the server's limits, and try again; nothing was changed"
_CONNECTION_REMEDY = "Check the address and that the server runs; what was under way was not stored"
_LOGIN_REMEDY = "Check the user of the URL and the password, which may be in the URL, in PGPASSWORD or in ~/.pgpass"
_DATABASE_REMEDY = "Check the name, or make it: CREATE DATABASE … OWNER …"
_OPTION_REMEDY = "Check the options after the ? in the URL"
