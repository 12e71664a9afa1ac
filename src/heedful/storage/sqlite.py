"""All that only SQLite understands: pragmas, locking and its error codes."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from sqlalchemy import Column, Connection, Engine, PoolProxiedConnection, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool

from heedful import files
from heedful.errors import HeedfulError, Unavailable
from heedful.storage.database import BUSY_SECONDS, Database, GroupCommit, new_engines, unstorable
from heedful.storage.isolation import NO_PROJECT, OWN
from heedful.storage.rows import Direct
from heedful.threads import kept_others_waiting

KEPT_READERS = 4
"""Connections that wait for the next reader outside of the pool."""

POLL_SECONDS = 1.0
"""Seconds between polls for changes by others."""

_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -1024",
    "PRAGMA mmap_size = 268435456",
    "PRAGMA synchronous = FULL",
    # Deleted data is overwritten, so that neither the file nor a copy of it contains it.
    "PRAGMA secure_delete = ON",
)


class Sqlite(Database):
    """A store in a file, with one writer at a time; a store "in memory" is a temporary file."""

    def __init__(self, url: URL) -> None:
        self._temporary: TemporaryDirectory[str] | None = None
        if url.database and url.database != ":memory:":
            file = Path(url.database)
        else:
            self._temporary = TemporaryDirectory(prefix="heedful-")
            file = Path(self._temporary.name) / "heedful.db"
        if not file.parent.is_dir():
            raise Unavailable(
                f"the folder {file.parent} does not exist",
                code="store_read_only",
                remedy="Create it, or name another file",
            )
        self.name = str(file)
        self.folder = file.with_name(f"{file.name}-index")
        self._files = _Files(file)
        super().__init__(*_engines(url.set(database=str(file)), self._files))
        self._writers = GroupCommit(self._begin_group, kept_others_waiting)
        # Getting a connection each time costs half as much as a write. Writers are serialized and share one.
        self._writer: PoolProxiedConnection | None = None
        self._readers: list[PoolProxiedConnection] = []
        self._inherited: list[PoolProxiedConnection | None] = []

    def _reserve(self) -> None:
        """Creates the file before SQLite does, which would make it readable by all."""
        try:
            files.create(Path(self.name)).close()
        except FileExistsError:
            return
        except OSError as error:
            raise Unavailable(
                f"store {self.name} can't be created ({error.strerror})",
                code="store_read_only",
                remedy=f"{_READ_ONLY}; nothing was changed",
            ) from error

    def _set_up(self) -> None:
        """WAL mode: readers and one writer at the same time. Stored in the file, so set once."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")

    @contextmanager
    def _begin(self, project: str | None, *, write: bool, durable: bool, exclusive: bool) -> Iterator[Connection]:
        engine = self.engine if project is None else self.of_project
        with self._translating():
            if not write:
                with engine.connect() as connection, connection.begin():
                    self._enter(connection.connection, project)
                    yield connection
                return
            with self._writers.alone(project or ""), engine.connect() as connection:
                connection = connection.execution_options(write=True, durable=durable)
                with connection.begin():
                    self._enter(connection.connection, project)
                    yield connection
                    self._files.before_commit()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """For what runs on the driver itself."""
        try:
            yield
        except sqlite3.Error as error:
            raise translate_error(error, self.engine) or error from error

    @contextmanager
    def _begin_direct(self, project: str, *, write: bool, durable: bool, exclusive: bool) -> Iterator[Direct]:
        with self._translating():
            if write:
                with self._writers.write(project, durable) as transaction:
                    assert self._writer is not None
                    self._enter(self._writer, project)
                    yield transaction
            else:
                with self._reader() as reader, _on_driver(self.of_project, reader) as transaction:
                    self._enter(reader, project)
                    yield transaction

    @contextmanager
    def _reader(self) -> Iterator[PoolProxiedConnection]:
        """A connection to read with."""
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = self.engine.raw_connection()
        try:
            yield reader
        finally:
            if len(self._readers) < KEPT_READERS and not self._closed:
                reader.detach()
                self._readers.append(reader)
            else:
                reader.close()

    def _begin_group(self, durable: bool) -> AbstractContextManager[Direct]:
        """A write transaction, begun by one who has the turn."""
        if self._writer is None:
            self._writer = self.engine.raw_connection()
            self._writer.detach()
        return _on_driver(self.of_project, self._writer, self._files, durable=durable)

    def _enter(self, borrowed: PoolProxiedConnection, project: str | None) -> None:
        """The statements of the transaction concern this project from now on."""
        driver: Any = borrowed.dbapi_connection
        borrowed.info[OWN] = None
        if project is not None:
            row = driver.execute("SELECT id FROM projects WHERE name = ?", (project,)).fetchone()
            borrowed.info[OWN] = NO_PROJECT if row is None else row[0]

    def _lock_migration(self, connection: Connection) -> None:
        """The write lock of the file is enough."""

    def notices(self, stopped: threading.Event) -> Iterator[str | None]:
        with closing(self.engine.raw_connection()) as borrowed:
            driver: Any = borrowed.dbapi_connection
            version = driver.execute("PRAGMA data_version").fetchone()
            while not stopped.wait(POLL_SECONDS):
                current = driver.execute("PRAGMA data_version").fetchone()
                if current != version:
                    yield None
                version = current

    def _integrity(self, connection: Connection) -> str:
        """ "ok", or the fault that SQLite found in the file."""
        return str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())

    def _exists(self) -> bool:
        # Unlike a path, this takes any text for the name of a file that is not there.
        return os.path.isfile(self.name) and os.path.getsize(self.name) > 0

    def last_number(self, connection: Connection, column: Column[int]) -> int:
        result = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = ?", (column.table.name,))
        return int(result.scalar() or 0)

    def set_last_number(self, connection: Connection, column: Column[int], number: int) -> None:
        name = column.table.name
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        if number:
            connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, number))

    def _leave_parent(self) -> None:
        self._dispose(close=False)
        self._files.reset()
        self._writers = GroupCommit(self._begin_group, kept_others_waiting)
        # Not closed, which would release the parent's locks.
        self._inherited += [self._writer, *self._readers]
        self._writer = None
        # In place: those who only look share them.
        self._readers.clear()

    def _close(self) -> None:
        with self._writers.alone(""):
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        while self._readers:
            self._readers.pop().close()
        self._dispose()
        self._files.reset()
        if self._temporary is not None:
            self._temporary.cleanup()


def is_unused(file: Path) -> bool:
    """Whether nobody has this store open: only then can it leave WAL mode."""
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
        try:
            return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",))
        except sqlite3.OperationalError:
            return False


class _Files:
    """The files that the connections of a store have open, and whether they are still there under their names.

    SQLite writes on to a file that was deleted or replaced, and what it commits then is lost with the process.
    """

    def __init__(self, file: Path) -> None:
        self._name = str(file)
        # The folder of the process may change while the store is open.
        self._path = os.path.abspath(file)
        self._open: dict[str, tuple[int, int]] = {}

    def connect(self, dialect: object, record: object, given: object, options: dict[str, Any]) -> sqlite3.Connection:
        """Opens the file that the other connections have open; never creates one."""
        self._check()
        connection: sqlite3.Connection = sqlite3.connect(f"{Path(self._path).as_uri()}?mode=rw", uri=True, **options)
        self._add("")
        return connection

    def before_commit(self) -> None:
        """Fails if one of the files is another by now. That costs microseconds; a file that goes after it takes only
        what it had."""
        # A transaction that writes has the log open, which a store has in WAL mode.
        self._add("-wal", "-shm")
        self._check()

    def _add(self, *suffixes: str) -> None:
        for suffix in suffixes:
            if suffix not in self._open and (identity := self._find(suffix)) is not None:
                self._open[suffix] = identity

    def _check(self) -> None:
        for suffix, opened in list(self._open.items()):
            if self._find(suffix) != opened:
                raise Unavailable(
                    f"store {self._name}{suffix} was moved, deleted or replaced while it was open",
                    code="store_moved",
                    remedy="Put the file back, or close the store and open it again; nothing was changed",
                )

    def reset(self) -> None:
        """No connection is open now: the last one that closes removes the log."""
        self._open = {suffix: identity for suffix, identity in self._open.items() if not suffix}

    def _find(self, suffix: str) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path + suffix)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def _engines(url: URL, opened: _Files) -> tuple[Engine, Engine]:
    """Engines whose transactions are opened by us: `BEGIN IMMEDIATE` to write, `BEGIN` to read."""
    options = {"isolation_level": None, "check_same_thread": False, "timeout": BUSY_SECONDS}
    engines = new_engines(url, translate_error, poolclass=QueuePool, connect_args=options)
    event.listen(engines[0], "do_connect", opened.connect)
    event.listen(engines[0], "connect", _prepare)
    for engine in engines:
        event.listen(engine, "begin", _begin)
    return engines


def _prepare(connection: sqlite3.Connection, record: Any) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)


@contextmanager
def _on_driver(
    engine: Engine, borrowed: PoolProxiedConnection, written: _Files | None = None, *, durable: bool = True
) -> Iterator[Direct]:
    """A transaction directly on the driver of a pooled connection; one that writes names the files it writes to."""
    driver: Any = borrowed.dbapi_connection
    try:
        if written is not None:
            _synchronise(driver, borrowed.info, durable=durable)
        driver.execute("BEGIN" if written is None else "BEGIN IMMEDIATE")
        yield Direct(engine, borrowed)
        if written is not None:
            written.before_commit()
        driver.execute("COMMIT")
    finally:
        # Only what was not committed is rolled back.
        driver.rollback()


def _begin(connection: Connection) -> None:
    options, driver = connection.get_execution_options(), cast(Any, connection.connection.dbapi_connection)
    if driver.in_transaction or options.get("isolation_level") == "AUTOCOMMIT":
        return
    if options.get("write"):
        _synchronise(driver, connection.info, durable=options.get("durable", True))
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("write") else "BEGIN")


def _synchronise(driver: Any, info: MutableMapping[Any, Any], *, durable: bool) -> None:
    mode = "FULL" if durable else "NORMAL"
    if info.get("synchronous", "FULL") != mode:
        driver.execute(f"PRAGMA synchronous = {mode}")
        info["synchronous"] = mode


def translate_error(error: BaseException, engine: Engine | None) -> HeedfulError | None:
    """The error to raise instead of a known error of the driver."""
    if isinstance(error, sqlite3.DataError | OverflowError | UnicodeEncodeError):
        return unstorable("SQLite")
    if not isinstance(error, sqlite3.Error):
        return None
    code = getattr(error, "sqlite_errorcode", None)
    if code is None or code & 0xFF not in _TRANSLATIONS:
        return None
    kind, problem, remedy = _TRANSLATIONS[code & 0xFF]
    if engine is not None and os.path.isdir(engine.url.database or ""):
        problem, remedy = "is a folder", "Name a file in it"
    where = f"store {engine.url.database}" if engine is not None else "the store"
    return Unavailable(f"{where} {problem} ({error})", code=kind, remedy=f"{remedy}; nothing was changed")


_DAMAGED = "Restore it from a backup, or name another file"
_READ_ONLY = "Check that the folder exists and that you may write to it"
_TRANSLATIONS = {
    sqlite3.SQLITE_NOTADB: ("store_damaged", "is not a Heedful store, or is damaged", _DAMAGED),
    sqlite3.SQLITE_CORRUPT: ("store_damaged", "is damaged", _DAMAGED),
    sqlite3.SQLITE_READONLY: ("store_read_only", "can't be written", _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: ("store_read_only", "can't be opened or created", _READ_ONLY),
    sqlite3.SQLITE_FULL: ("disk_full", "can't be written: the disk is full", "Free some space and try again"),
    sqlite3.SQLITE_IOERR: ("store_io", "can't be read or written", _READ_ONLY),
    sqlite3.SQLITE_BUSY: (
        "store_busy",
        f"was locked for {BUSY_SECONDS} s",
        "Look for a process that holds a transaction open",
    ),
}
