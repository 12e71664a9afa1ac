"""Stores on PostgreSQL: connections, transactions, locks and error codes."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any

from sqlalchemy import Column, Connection, Engine, PoolProxiedConnection, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, TimeoutError

from heedful.errors import HeedfulError, Unavailable, extra_missing
from heedful.storage.database import BUSY_SECONDS, Database, GroupCommit, Placement, new_engines, unstorable
from heedful.storage.half_vectors import Packed
from heedful.storage.isolation import NO_PROJECT, OWN, route_by_project
from heedful.storage.postgresql import distribution
from heedful.storage.postgresql.tables import lock_project
from heedful.storage.rows import (
    CHANGED,
    CLUSTER,
    POOLED,
    SCHEMA,
    SEE_ALL,
    SEE_OWN,
    Direct,
    lock_exclusive,
    lock_number,
    set_project,
)
from heedful.storage.scopes import FIND_PROJECT

logger = logging.getLogger("heedful")

NOTIFY_SECONDS = 1.0
"""The shortest interval between notifications that a project has changed, in seconds."""

POLL_SECONDS, MAX_BACKOFF = 0.5, 30.0
"""Seconds after which listeners notice that they should stop, and the longest that they wait before they try an
unreachable server again."""

_SERVER_STATE = (
    "SELECT to_regclass(%s) IS NOT NULL, rolsuper OR rolbypassrls, pg_is_in_recovery() FROM pg_roles "
    "WHERE rolname = current_user"
)

# A server that disappears silently is noticed within about a minute.
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}

_ARGUMENTS: dict[str, Any] = {"application_name": "heedful", "connect_timeout": 10, **_KEEPALIVE}

_LEFT_TO_URL = {"connect_timeout", "application_name", *_KEEPALIVE}

# Some hosting providers install extensions in a schema of that name.
_SEARCH_PATH = f"search_path = {SCHEMA}, public, extensions"

_SETTINGS = (
    # The nodes of a cluster have the settings of a transaction, too; to any other server, this means nothing.
    "SET LOCAL citus.propagate_set_commands = 'local'",
    f"SET LOCAL {_SEARCH_PATH}",
    f"SET LOCAL lock_timeout = {BUSY_SECONDS * 1000}",
    "SET LOCAL timezone = 'UTC'",
    # What a call needs is mostly in memory. The default is that of a disk with moving parts: for the votes on some
    # questions, all facts would be read in order.
    "SET LOCAL random_page_cost = 1.1",
    # Processes that help take longer to start than most calls take to read; they are for reports on whole ledgers.
    "SET LOCAL parallel_setup_cost = 20000",
)
"""Settings of each transaction: behind a pooler, those of a session are lost, or reach others."""

_ONE_SHARD_AT_A_TIME = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""Of a transaction that sees all projects, which on a cluster could not change `projects` or `models` otherwise."""

_SESSION = "SELECT pg_backend_pid(), to_regclass('pg_catalog.pg_dist_node') IS NOT NULL"

_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('heedful', %s)"

_WRITE = ("BEGIN ISOLATION LEVEL READ COMMITTED", *_SETTINGS)
_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", *_SETTINGS)


class PostgreSql(Database):
    """A store on a server. Writers of one project are serialized; projects don't wait for each other."""

    many_writers = True

    def __init__(self, url: URL) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise extra_missing("postgresql", "a store on PostgreSQL needs an extra") from error
        self._psycopg = psycopg
        self.name = _name(url)
        super().__init__(*_engines(url.set(drivername="postgresql+psycopg")))
        self._notified_at: dict[str, float] = {}
        self._numbers: dict[str, int] = {}
        self._start_grouping()

    def _reserve(self) -> None:
        """Nothing to do: an administrator creates the database."""

    def _set_up(self) -> None:
        with self._begin(None, write=False, durable=True, exclusive=False) as connection:
            state = connection.exec_driver_sql(_SERVER_STATE, (f"{SCHEMA}.alembic_version",))
            is_migrated, bypasses_rls, self.read_only = state.one()
        if bypasses_rls:
            logger.warning(
                "the user of %s bypasses row-level security between projects: use a role that is not a superuser",
                self.name,
            )
        if is_migrated:
            return
        with self._begin(None, write=True, durable=True, exclusive=True) as connection:
            lock_exclusive(connection, "prepare")
            # A user who may not create a schema may have been given one.
            if connection.exec_driver_sql("SELECT to_regnamespace(%s)", (SCHEMA,)).scalar() is None:
                connection.exec_driver_sql(f"CREATE SCHEMA {SCHEMA}")
            _ensure_pgvector(connection, self.name)

    @contextmanager
    def _begin(self, project: str | None, *, write: bool, durable: bool, exclusive: bool) -> Iterator[Connection]:
        with self._transaction(project, write=write, durable=durable, exclusive=exclusive) as borrowed:
            connection = Direct(self.engine if project is None else self.of_project, borrowed).connection
            # Only tells SQLAlchemy that it has begun: the driver commits it.
            connection.begin()
            yield connection

    @contextmanager
    def _begin_direct(self, project: str, *, write: bool, durable: bool, exclusive: bool) -> Iterator[Direct]:
        if write and exclusive:
            # Writers of one project would wait for its lock: they share it instead.
            with self._grouping:
                writers = self._writers.setdefault(project, GroupCommit(partial(self._begin_group, project)))
            try:
                with writers.write(project, durable) as direct:
                    yield direct
            except self._psycopg.Error as error:
                raise translate_error(error, self.name) or error from error
            return
        with self._transaction(project, write=write, durable=durable, exclusive=exclusive) as borrowed:
            yield Direct(self.of_project, borrowed)

    def _start_grouping(self) -> None:
        self._grouping = threading.Lock()
        self._writers: dict[str, GroupCommit] = {}

    @contextmanager
    def _begin_group(self, project: str, durable: bool) -> Iterator[Direct]:
        with self._transaction(project, write=True, durable=durable, exclusive=True) as borrowed:
            yield Direct(self.of_project, borrowed)

    @contextmanager
    def _transaction(
        self, project: str | None, *, write: bool, durable: bool, exclusive: bool
    ) -> Iterator[PoolProxiedConnection]:
        borrowed = self._begun(project, write, durable, exclusive)
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

    def notices(self, stopped: threading.Event) -> Iterator[str | None]:
        waited = POLL_SECONDS
        # A replica has no notifications, and a pooler passes none on.
        while not stopped.is_set() and not self.read_only:
            try:
                with closing(self._borrowed()) as borrowed:
                    if borrowed.info[POOLED]:
                        return
                    borrowed.detach()
                    driver: Any = borrowed.dbapi_connection
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
            # A cluster's node may be lost, too: the coordinator says so in an internal error.
            if not driver.closed and not isinstance(error, self._psycopg.errors.InternalError_):
                raise
            message = f"the connection to {self.name} was lost during a write, which may or may not be stored ({error})"
            remedy = "Retry with the same idempotency key; it counts once"
            raise Unavailable(message, code="store_unreachable", remedy=remedy) from error

    def _begun(self, project: str | None, write: bool, durable: bool, exclusive: bool) -> PoolProxiedConnection:
        """A connection on which a transaction has begun. One that died while it waited in the pool is replaced: the
        first statement tells, and nothing has been done yet. So a connection need not be tried before each use."""
        begin = list(_WRITE if write else _READ)
        if write and not durable:
            begin.append("SET LOCAL synchronous_commit = off")
        while True:
            borrowed = self._borrowed()
            driver: Any = borrowed.dbapi_connection
            try:
                if project is None:
                    borrowed.info[OWN] = None
                    _execute(borrowed, [*begin, SEE_ALL, _ONE_SHARD_AT_A_TIME])
                else:
                    borrowed.info[OWN] = self._enter(borrowed, begin, project, lock=write and exclusive)
                borrowed.info["used"] = True
                return borrowed
            except self._psycopg.Error as error:
                waited = driver.closed and borrowed.info.get("used")
                borrowed.invalidate()
                if not waited:
                    raise translate_error(error, self.name) or error from error

    def _enter(self, borrowed: PoolProxiedConnection, begin: list[str], project: str, *, lock: bool) -> int:
        """Begins a transaction of a project, and has it wait for the project's other writers; returns its number."""
        driver: Any = borrowed.dbapi_connection
        number = self._numbers.get(project)
        if number is not None:
            locked = [lock_project(number)] if lock else []
            # After a restore from a backup, the number may be that of another project.
            named = f"SELECT 1 FROM projects WHERE id = {number} AND name = {self._psycopg.sql.quote(project, driver)}"
            if _execute(borrowed, [*begin, set_project(number), *locked, named]).rowcount:
                return number
            driver.rollback()
        # Who makes a project has no row to lock yet.
        alone = [f"SELECT pg_advisory_xact_lock({lock_number(f'project {project}')})"] if lock else []
        _execute(borrowed, [*begin, SEE_ALL, *alone])
        number = self._number(borrowed, project)
        locked = [lock_project(number)] if lock and number != NO_PROJECT else []
        _execute(borrowed, [SEE_OWN, set_project(number), *locked])
        if number == NO_PROJECT:
            self._numbers.pop(project, None)
        else:
            self._numbers[project] = number
        return number

    def _number(self, borrowed: PoolProxiedConnection, project: str) -> int:
        """The number of a project as a transaction sees it; `NO_PROJECT` if it is not there yet."""
        rows = Direct(self.engine, borrowed).run(FIND_PROJECT, name=project)
        return int(rows[0][0]) if rows else NO_PROJECT

    def _borrowed(self) -> PoolProxiedConnection:
        try:
            return self.engine.raw_connection()
        except self._psycopg.Error as error:
            raise translate_error(error, self.name) or error from error
        except TimeoutError as error:
            message = f"all connections to store {self.name} were busy for {BUSY_SECONDS} s"
            remedy = "Try again, or call from fewer threads at once; nothing was changed"
            raise Unavailable(message, code="store_busy", remedy=remedy) from error

    @contextmanager
    def outside(self, name: str) -> Iterator[Connection | None]:
        """A connection in autocommit mode; None while another caller has one by this name. It finds tables by the name
        of their schema only."""
        # What a session locks would stay locked behind a pooler.
        with self._begin(None, write=True, durable=True, exclusive=False) as locking:
            if not locking.exec_driver_sql("SELECT pg_try_advisory_xact_lock(%s)", (lock_number(name),)).scalar():
                yield None
                return
            # As the last statement, it also ends the snapshot of the one before, which an index would wait for.
            locking.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            with self.engine.connect() as plain:
                connection = plain.execution_options(isolation_level="AUTOCOMMIT")
                try:
                    if not connection.info[POOLED]:
                        # Building an index concurrently waits for all writers.
                        connection.exec_driver_sql("SET lock_timeout = 0")
                        connection.exec_driver_sql(f"SET {_SEARCH_PATH}")
                    yield connection
                finally:
                    # Settings must not remain on a pooled connection.
                    connection.invalidate()

    def distribute(self) -> None:
        with self.write() as connection:
            distribution.distribute(connection)

    def placement(self, project: str | None) -> Placement | None:
        with self.read() as connection:
            number = None if project is None else self._number(connection.connection, project)
            return distribution.placement(connection, number or None)

    def _lock_migration(self, connection: Connection) -> None:
        lock_exclusive(connection, "migrate")

    def _integrity(self, connection: Connection) -> str:
        connection.exec_driver_sql("SELECT 1")
        return "ok"

    def _exists(self) -> bool:
        with self.engine.connect() as connection:
            return bool(connection.exec_driver_sql(f"SELECT to_regclass('{SCHEMA}.alembic_version')").scalar())

    def last_number(self, connection: Connection, column: Column[int]) -> int:
        last = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {_sequence(connection, column)}"
        return int(connection.exec_driver_sql(last).scalar_one())

    def set_last_number(self, connection: Connection, column: Column[int], number: int) -> None:
        # A sequence can't be at 0: before its first number it is at 1 and not called.
        values = (_sequence(connection, column), max(number, 1), number > 0)
        connection.exec_driver_sql("SELECT setval(%s::text::regclass, %s, %s)", values)

    def _leave_parent(self) -> None:
        self._dispose(close=False)
        self._start_grouping()

    def _close(self) -> None:
        self._dispose()


def _name(url: URL) -> str:
    # A password may also be among the options.
    return url.difference_update_query(["password"]).set(drivername="postgresql").render_as_string(hide_password=True)


def _engines(url: URL) -> tuple[Engine, Engine]:
    # The URL overrides our defaults.
    arguments = {name: value for name, value in _ARGUMENTS.items() if name not in _LEFT_TO_URL & url.query.keys()}
    engines = new_engines(url, _translate, connect_args=arguments, pool_timeout=BUSY_SECONDS)

    def prepare(connection: Any, record: Any) -> None:
        _prepare(connection, record)
        if record.info[CLUSTER]:
            route_by_project(engines[1])

    event.listen(engines[0], "connect", prepare)
    add_read_timeout(engines[0])
    return engines


def _sequence(connection: Connection, column: Column[int]) -> str:
    """The name of a column's sequence."""
    names = (f"{SCHEMA}.{column.table.name}", column.name)
    return str(connection.exec_driver_sql("SELECT pg_get_serial_sequence(%s, %s)", names).scalar_one())


def _translate(error: BaseException, engine: Engine | None) -> HeedfulError | None:
    return translate_error(error, "the store" if engine is None else _name(engine.url))


def translate_error(error: BaseException, name: str) -> HeedfulError | None:
    """The error to raise instead of a known error of the driver."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state, where = error.sqlstate or "", f"store {name}"
    if isinstance(error, psycopg.DataError) or state.startswith("54"):
        return unstorable("PostgreSQL")
    if state in ("55P03", "40P01", "40001"):
        return Unavailable(f"{where} was locked ({error})", code="store_busy", remedy="Try again; nothing was changed")
    if state in ("42501", "25006"):
        return Unavailable(f"{where} can't be written ({error})", code="store_read_only", remedy=_ALLOWED)
    if state.startswith("53"):
        return Unavailable(f"{where} has no space left ({error})", code="disk_full", remedy=_SPACE_REMEDY)
    if isinstance(error, psycopg.ProgrammingError) and "connection option" in str(error):
        message = f"{where} has an unknown option ({error})"
        return Unavailable(message, code="store_refused", remedy="Check the options after the ? in the URL")
    if isinstance(error, psycopg.OperationalError):
        # Errors of connecting have no code, only a message.
        if re.search(r"password|role .* does not exist|no pg_hba.conf entry", str(error)):
            return Unavailable(f"{where} rejected the user ({error})", code="store_refused", remedy=_LOGIN_REMEDY)
        if re.search(r"database .* does not exist", str(error)):
            remedy = "Check the name, or make it: CREATE DATABASE … OWNER …"
            return Unavailable(f"{where} does not exist ({error})", code="store_refused", remedy=remedy)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(f"{where} can't be reached ({error})", code="store_unreachable", remedy=_CONNECTION_REMEDY)
    return None


_ALLOWED = (
    "Give the user of the URL the right to create and write in the schema heedful, or name the primary server if this "
    "is a replica; nothing was changed"
)
_SPACE_REMEDY = "Free some space or raise the server's limits, and try again; nothing was changed"
_CONNECTION_REMEDY = "Check the address and that the server runs; what was under way was not stored"
_LOGIN_REMEDY = "Check the user of the URL and the password, which may be in the URL, in PGPASSWORD or in ~/.pgpass"
SILENT_SECONDS = 30.0
"""Seconds that a statement waits before it checks whether the server accepts connections. If it does, it waits on."""


def add_read_timeout(engine: Engine) -> None:
    """Ends an engine's connections when their server has fallen silent."""
    import psycopg

    class Watched(psycopg.Connection[Any]):
        """A connection that can open another one to its server."""

        reach: Callable[[], object] | None = None

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
            return super().wait(gen if self.reach is None else _watched(self, self.reach, gen), *args, **options)

    def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
        connection = Watched.connect(*arguments, **options)
        connection.reach = lambda: psycopg.connect(*arguments, **options).close()
        return connection

    event.listen(engine, "do_connect", connect)


def _watched(connection: Any, reach: Callable[[], object], gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Waits as before, but fails once the server accepts no connections."""
    import psycopg

    ask_at = monotonic() + SILENT_SECONDS
    try:
        state = next(gen)
        while True:
            ready = yield state
            # Nothing has arrived for a while: drivers check several times a second.
            if not ready and monotonic() > ask_at:
                try:
                    reach()
                except psycopg.errors.ConnectionTimeout:
                    connection.close()
                    raise psycopg.OperationalError("the server accepts connections but doesn't answer") from None
                except psycopg.OperationalError:
                    # It refused, so it is alive.
                    pass
                ask_at = monotonic() + SILENT_SECONDS
            state = gen.send(ready)
    except StopIteration as done:
        return done.value


MIN_PGVECTOR = (0, 8)
"""The first version with iterative index scans, which continue until enough results pass a filter."""


def _ensure_pgvector(connection: Connection, name: str) -> None:
    """Installs the extension in the store called `name`, if needed."""
    if not _pgvector_version(connection):
        try:
            with connection.begin_nested():
                connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
        except (DBAPIError, Unavailable) as error:
            raise Unavailable(
                f"store {name} needs the extension pgvector, which is not there and can't be created ({error})",
                code="pgvector_missing",
                remedy="Install pgvector 0.8 or later on the server, and have an administrator run in this database: "
                "CREATE EXTENSION vector SCHEMA public",
            ) from error
    version = _pgvector_version(connection)
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_PGVECTOR:
        raise Unavailable(
            f"store {name} has pgvector {version}, and needs 0.8 or later",
            code="pgvector_missing",
            remedy="Install a later one on the server, and have an administrator run in this database: "
            "ALTER EXTENSION vector UPDATE",
        )
    if connection.exec_driver_sql("SELECT to_regtype('halfvec')").scalar() is None:
        message = f"store {name} has pgvector in a schema that is not searched"
        remedy = "Have an administrator run in this database: ALTER EXTENSION vector SET SCHEMA public"
        raise Unavailable(message, code="pgvector_missing", remedy=remedy)


def _execute(borrowed: PoolProxiedConnection, statements: list[str]) -> Any:
    """Executes statements in one round trip; returns a cursor at the result of the last."""
    driver: Any = borrowed.dbapi_connection
    if borrowed.info[CLUSTER]:
        # It passes on to its nodes the whole message that a setting came in.
        with driver.pipeline():
            return [driver.execute(statement) for statement in statements][-1]
    # Several can't be prepared.
    cursor = driver.execute("; ".join(statements), prepare=False)
    while cursor.nextset():
        pass
    return cursor


def _prepare(connection: Any, record: Any) -> None:
    """Has transactions begun by us, and vectors sent in binary form, not as text."""
    connection.autocommit = True
    session, record.info[CLUSTER] = connection.execute(_SESSION).fetchone()
    # A pooler reports an invented number.
    record.info[POOLED] = session != connection.info.backend_pid
    if record.info[CLUSTER] and connection.execute(distribution.IS_WORKER).fetchone()[0]:
        message = "the store's server is a worker node of a cluster, and only the coordinator gives out numbers"
        raise Unavailable(message, code="store_refused", remedy="Give the address of the coordinator")
    if record.info[POOLED]:
        # Another session of the server would not know them.
        connection.prepare_threshold = None
    elif record.info[CLUSTER]:
        # A generic plan, which is for any project, would go to all nodes.
        connection.execute("SET plan_cache_mode = force_custom_plan")
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class PackedDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Packed) -> bytes:
            return obj.sent()

    connection.adapters.register_dumper(Packed, PackedDumper)


def _pgvector_version(connection: Connection) -> str:
    """The installed version; empty if it is not installed."""
    found = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    return str(connection.exec_driver_sql(found).scalar() or "")
