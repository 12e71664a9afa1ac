"""An open store, its engine and its transactions, the same for each database. Writers take turns, project by project;
those who wait for each other share a transaction (group commit), and with it the wait for the disk, and so do calls
that a thread makes one after the other (`together`)."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
from sqlalchemy import URL, Column, Connection, Engine, Table, create_engine, event, inspect, text
from sqlalchemy.engine import ExceptionContext

from heedful.clock import system_clock, to_stored
from heedful.errors import Conflict, HeedfulError, Invalid, NotFound, Unavailable
from heedful.storage.isolation import name_project
from heedful.storage.migrations import HEAD, REVISIONS
from heedful.storage.rows import SCHEMA, Direct, count_statement, dialect_of, insert_many, upsert
from heedful.storage.schema import events, facts
from heedful.threads import this_thread


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster."""

    address: str
    shards: int
    """How many shards it has; each holds some of the projects."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the projects of a store are."""

    nodes: list[Node]
    of_project: str | None
    """The address of the node that has the project."""


class Database(ABC):
    """A store, migrated to the current version by `prepare`; `heedful.storage.opening` opens it."""

    name: str
    """Its name: its file, or its address without secrets."""
    engine: Engine
    """For transactions that concern all projects."""
    of_project: Engine
    """The same connections, for transactions of one project: each of their statements names it."""
    folder: Path | None = None
    """Where indexes are kept; None where the database searches itself."""
    many_writers = False
    """Whether writers of different projects run concurrently."""
    read_only = False
    """Whether it is a read-only replica, or somebody only looks."""
    _only_looks = False
    _closed = False

    def __init__(self, engine: Engine, of_project: Engine) -> None:
        self.engine, self.of_project = engine, of_project

    @property
    def url(self) -> URL:
        """Its address, with secrets."""
        return self.engine.url

    @property
    def searches(self) -> bool:
        """Whether the database can search large datasets itself."""
        return self.folder is None

    def looking(self) -> Self:
        """The same open store, in which nothing can be written."""
        view = copy(self)
        view.read_only = view._only_looks = True
        return view

    def read(self, project: str | None = None) -> AbstractContextManager[Connection]:
        """A read transaction: one consistent snapshot."""
        self._check_open()
        _TOGETHER.settle()
        return self._begin(project, write=False, durable=True, exclusive=False)

    def write(
        self, project: str | None = None, *, durable: bool = True, exclusive: bool = True
    ) -> AbstractContextManager[Connection]:
        """A transaction, committed at the end, or rolled back on an error.

        What is not `durable` survives the death of the process, but perhaps not of the machine. `exclusive` keeps other
        writers of the project away until it ends.
        """
        self._check_open()
        self._check_writable()
        return self._begin(project, write=True, durable=durable, exclusive=exclusive)

    def direct(
        self, project: str, *, write: bool, durable: bool = True, exclusive: bool = True
    ) -> AbstractContextManager[Direct]:
        """A transaction for prepared statements, without the overhead of SQLAlchemy; see `write`."""
        self._check_open()
        if write:
            self._check_writable()
        else:
            _TOGETHER.settle()
        return self._begin_direct(project, write=write, durable=durable, exclusive=exclusive)

    def upsert(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[dict[str, Any]],
        *,
        keys: list[str],
        changed: list[str],
    ) -> None:
        """Inserts rows; where `keys` are there already, overwrites `changed` (or nothing)."""
        statement = upsert(dialect_of(connection), table, tuple(keys), tuple(changed))
        insert_many(connection, table, statement, rows, kind="upsert")

    def integrity(self) -> str:
        """ "ok", or what is wrong with the file."""
        with self.read() as connection:
            return self._integrity(connection)

    def outside(self, name: str) -> AbstractContextManager[Connection | None]:
        """A connection without a transaction, on PostgreSQL only; None while another caller has one by this name."""
        raise NotImplementedError

    def distribute(self) -> None:
        """Spreads the projects over the nodes of a cluster."""
        raise Unavailable(
            f"{self.name} is a file, which can't be distributed",
            code="not_a_cluster",
            remedy="Copy it to PostgreSQL with Citus first: heedful copy",
        )

    def placement(self, project: str | None) -> Placement | None:
        """The nodes that a store is spread over, and the one that has a project; None for one that isn't spread."""
        return None

    @abstractmethod
    def notices(self, stopped: threading.Event) -> Iterator[str | None]:
        """Yields soon after others have changed facts, until the event that is given: the project, or None if it is
        unknown. Some changes may be missed, so it can only speed up what happens anyway."""

    @abstractmethod
    def last_number(self, connection: Connection, column: Column[int]) -> int:
        """The last number that a column generated, even if its row was deleted."""

    @abstractmethod
    def set_last_number(self, connection: Connection, column: Column[int], number: int) -> None:
        """Makes a column continue after a number."""

    def _dispose(self, *, close: bool = True) -> None:
        """Ends or leaves all connections; others are opened when they are needed."""
        self.engine.dispose(close=close)
        self.of_project.pool = self.engine.pool

    def close(self) -> None:
        self._closed = True
        self._close()

    def prepare(self, *, create: bool, unfinished: bool) -> None:
        """Migrates the store. `create` creates a missing one; `unfinished` allows one that a copy has not filled."""
        try:
            if not create and not self._exists():
                raise NotFound(
                    f"there is no store at {self.name}", code="store_missing", value=self.name, remedy="Check its name"
                )
            if create:
                self._reserve()
            with self.read() as connection:
                version = _version(connection)
                if not unfinished:
                    _check_finished(connection, self.name)
            if create or version != HEAD:
                # Only when creating: a reader may lack the right to write.
                self._set_up()
            if version != HEAD:
                self._migrate(version)
        except BaseException:
            self.close()
            raise
        _OPEN.add(self)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(f"store {self.name} is closed", code="store_closed", remedy="Open it again")

    def _check_writable(self) -> None:
        if self._only_looks:
            remedy = "Open the store itself to write"
            raise Unavailable(f"store {self.name} is only looked at", code="store_read_only", remedy=remedy)

    def _migrate(self, current: str | None) -> None:
        if current is not None and current not in REVISIONS:
            raise Conflict(
                f"store {self.name} has revision {current}, which this Heedful does not know (its newest is {HEAD})",
                code="store_newer",
                remedy="Upgrade heedful, or open it with the version that made it; nothing was changed",
            )
        from heedful.storage.migrations.run import upgrade
        from heedful.storage.postgresql.tables import ensure_partitions

        # Several processes may open a new store at once: the write lock decides who migrates it. The library that
        # migrates serves one thread at a time.
        with _MIGRATING, self.write() as connection:
            self._lock_migration(connection)
            if _version(connection) != HEAD:
                upgrade(connection)
                ensure_partitions(connection, to_stored(system_clock()))

    @abstractmethod
    def _begin(
        self, project: str | None, *, write: bool, durable: bool, exclusive: bool
    ) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _begin_direct(
        self, project: str, *, write: bool, durable: bool, exclusive: bool
    ) -> AbstractContextManager[Direct]: ...

    @abstractmethod
    def _exists(self) -> bool: ...

    @abstractmethod
    def _reserve(self) -> None:
        """Creates a missing store, empty, if that can be done here."""

    @abstractmethod
    def _set_up(self) -> None:
        """Does what must happen before the tables are created."""

    @abstractmethod
    def _lock_migration(self, connection: Connection) -> None: ...

    @abstractmethod
    def _integrity(self, connection: Connection) -> str: ...

    @abstractmethod
    def _leave_parent(self) -> None:
        """Drops the connections of the parent process, without closing them."""

    @abstractmethod
    def _close(self) -> None: ...


UNFINISHED = "unfinished_copy"
"""A table that exists while a store is being copied into this one."""


def _check_finished(connection: Connection, name: str) -> None:
    if inspect(connection).has_table(UNFINISHED, dialect_of(connection).schema):
        raise Conflict(
            f"store {name} is a copy that was not finished",
            code="store_unfinished",
            remedy="Run the same heedful copy again: it resumes where it stopped",
        )


_MIGRATING = threading.Lock()


_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()


def _forget_connections() -> None:
    """A forked child must not use its parent's connections, nor wait for its parent's threads."""
    for database in list(_OPEN):
        database._leave_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


def _version(connection: Connection) -> str | None:
    schema = dialect_of(connection).schema
    names = set(inspect(connection).get_table_names(schema))
    if {"alembic_version", events.name, facts.name} <= names:
        if schema is not None and not connection.execute(_HAS_SCHEMA_USAGE).scalar():
            raise Unavailable(
                f"the schema {schema} of store {connection.engine.url.database} belongs to another user",
                code="store_read_only",
                remedy="Open it as that user, or have an administrator hand all of it over: REASSIGN OWNED BY … TO …",
            )
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if names:
        raise Conflict(
            f"{connection.engine.url.database} belongs to another program",
            code="store_foreign",
            remedy="Name another one; nothing was changed",
        )
    return None


_HAS_SCHEMA_USAGE = text(f"SELECT has_schema_privilege('{SCHEMA}', 'USAGE')")


BUSY_SECONDS = 60
"""Seconds that a writer waits for the others before it gives up."""


def unstorable(database: str) -> Invalid:
    """The error for a value that passed all checks, and that a database refuses nevertheless. It shows no value."""
    return Invalid(
        f"this holds a value that {database} can't store",
        code="unstorable",
        remedy="Use valid Unicode without NUL, whole numbers within 64 bits and less than 100 levels; "
        "nothing was stored",
    )


Translate = Callable[[BaseException, Engine | None], HeedfulError | None]
"""Returns the error to raise instead of a known error of a driver."""


def new_engines(url: URL, translate: Translate, **options: Any) -> tuple[Engine, Engine]:
    """Two engines with the same connections: for transactions of all projects, and of one. They raise our errors and
    count the bytes they store."""
    everything = _new_engine(url, translate, pool_size=8, max_overflow=24, **options)
    one_project = _new_engine(url, translate, pool=everything.pool)
    name_project(one_project)
    return everything, one_project


def _new_engine(url: URL, translate: Translate, **options: Any) -> Engine:
    def raise_ours(context: ExceptionContext) -> None:
        error = context.original_exception
        ours = None if isinstance(error, HeedfulError) else translate(error, context.engine)
        if ours is not None:
            raise ours from error

    engine = create_engine(
        url,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        # What people wrote belongs in no log.
        hide_parameters=True,
        **options,
    )
    event.listen(engine, "handle_error", raise_ours)
    event.listen(engine, "before_cursor_execute", _count)
    return engine


def _count(connection: Connection, cursor: Any, sql: str, arguments: Any, context: Any, executemany: bool) -> None:
    count_statement(sql, arguments if executemany else (arguments,))


MAX_WRITERS = 32
"""Writers that share a transaction."""

MAX_SECONDS = 0.02
"""Seconds after which a transaction takes no more writers: the first of them waits for all."""

Begin = Callable[[bool], AbstractContextManager[Direct]]


class _Group:
    """A transaction that writers share, and its outcome."""

    def __init__(self, transaction: AbstractContextManager[Direct], durable: bool) -> None:
        self._transaction = transaction
        self._direct = transaction.__enter__()
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._until = time.monotonic() + MAX_SECONDS
        self._writers = 0
        self._durable = durable

    @property
    def is_over(self) -> bool:
        """Whether it takes no more writers; to wait for them pays only where the disk is waited for."""
        if not self._durable or self._ended.is_set():
            return True
        return self._writers >= MAX_WRITERS or time.monotonic() >= self._until

    def join(self) -> AbstractContextManager[Direct]:
        """The next writer's part: undone by itself if it fails. That of the first is the whole transaction."""
        self._writers += 1
        return self._first() if self._writers == 1 else self._next()

    @contextmanager
    def _first(self) -> Iterator[Direct]:
        try:
            yield self._direct
        except BaseException as error:
            self.end(error)
            raise

    @contextmanager
    def _next(self) -> Iterator[Direct]:
        direct = self._direct.again()
        try:
            direct.begin_part()
            yield direct
            direct.end_part()
        except BaseException:
            try:
                direct.undo_part()
            except Exception as lost:
                # The database has given up the whole transaction: a full disk, a lost connection.
                self.end(lost)
            raise

    def end(self, error: BaseException | None = None) -> None:
        """Commits, or rolls back after an error; `wait` raises what went wrong. Once."""
        if self._ended.is_set():
            return
        try:
            if error is None:
                self._transaction.__exit__(None, None, None)
            else:
                self._transaction.__exit__(type(error), error, error.__traceback__)
                self._error = error if isinstance(error, Exception) else None
        except Exception as failure:
            self._error = failure
        except BaseException:
            self._error = Unavailable(
                "a write was interrupted and may or may not have been stored",
                code="store_unreachable",
                remedy="Retry with the same idempotency key; it counts once",
            )
            raise
        finally:
            self._ended.set()

    def failure(self) -> Exception | None:
        """Waits for the end of the transaction, and returns why it was not committed, if it was not."""
        self._ended.wait()
        return self._error

    def wait(self) -> None:
        """Returns when the transaction is committed."""
        if (failure := self.failure()) is not None:
            raise failure


class _Together(threading.local):
    """The calls that this thread makes `together`: it keeps the turn to write from one to the next, and with it the
    transaction open."""

    is_open = False
    held: GroupCommit | None = None
    """The writers whose turn the thread has kept."""
    groups: Sequence[_Group] = ()
    """The groups that the current call wrote to."""

    def end_turn(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.pass_turn()

    def settle(self) -> None:
        """Has what the current call wrote committed; it may read it, or write in another kind of transaction."""
        if self.groups:
            self.end_turn()
        for group in self.groups:
            group.wait()


_TOGETHER = _Together()

Outcome = tuple[Any, BaseException | None]


def together(calls: Iterable[Callable[[], Any]]) -> list[Outcome]:
    """Makes calls one after the other; returns the result or the error of each. Writes of several calls share a
    transaction where they can; all are committed when this returns."""
    made: list[tuple[Any, BaseException | None, Sequence[_Group]]] = []
    _TOGETHER.is_open = True
    for call in calls:
        _TOGETHER.groups = ()
        try:
            made.append((call(), None, _TOGETHER.groups))
        except BaseException as error:
            made.append((None, error, ()))
    _TOGETHER.is_open, _TOGETHER.groups = False, ()
    _TOGETHER.end_turn()
    return [(result, error or _failure(groups)) for result, error, groups in made]


def _failure(groups: Sequence[_Group]) -> Exception | None:
    return next((failure for group in groups if (failure := group.failure()) is not None), None)


class GroupCommit:
    """Writers take turns. Whoever is done while others wait leaves the transaction open for them, and returns when the
    last of them has committed it. Nobody waits for others to come: a lone writer commits at once."""

    def __init__(self, begin: Begin, held: Callable[[float], None] | None = None) -> None:
        """`begin` opens a transaction, durable or not, which its end commits; `held` is told for how many seconds a
        writer had the turn while other projects wrote, too, and may keep that writer waiting."""
        self._begin = begin
        self._held = held
        self._turns = Turns()
        self._open: _Group | None = None

    @contextmanager
    def write(self, project: str, durable: bool) -> Iterator[Direct]:
        """A part of a transaction, committed when this returns, or for calls that are made `together` when these are
        done; an error undoes this part only."""
        begun = self._take_turn(project)
        try:
            if self._open is None:
                self._open = _Group(self._begin(durable), durable)
            group = self._open
            with group.join() as direct:
                yield direct
        finally:
            seconds = time.monotonic() - begun
            if _TOGETHER.is_open and self._open is not None and not self._open.is_over:
                _TOGETHER.held = self
            else:
                self.pass_turn()
        if _TOGETHER.is_open:
            _TOGETHER.groups = (*_TOGETHER.groups, group)
        else:
            group.wait()
        self._tell(project, seconds)

    @contextmanager
    def alone(self, project: str) -> Iterator[None]:
        """Keeps writers away, for a transaction of another kind."""
        _TOGETHER.settle()
        begun = self._take_turn(project)
        try:
            self._end_open()
            yield
        finally:
            self._turns.end()
        self._tell(project, time.monotonic() - begun)

    def _tell(self, project: str, seconds: float) -> None:
        if self._held is not None and self._turns.has_others(project):
            self._held(seconds)

    def _take_turn(self, project: str) -> float:
        """Waits for the turn, unless this thread has kept it; returns when it came."""
        if _TOGETHER.held is self:
            _TOGETHER.held = None
            return time.monotonic()
        _TOGETHER.end_turn()
        place = self._turns.queue(project)
        try:
            is_called = place.wait(BUSY_SECONDS)
        except BaseException:
            if not self._turns.leave(place):
                # Somebody may just have left a transaction open for this writer.
                self.pass_turn()
            raise
        if not is_called and self._turns.leave(place):
            raise Unavailable(
                f"another writer in this process has held the store for {BUSY_SECONDS} s",
                code="store_busy",
                remedy="Try again; nothing was changed",
            )
        return time.monotonic()

    def pass_turn(self) -> None:
        """Leaves the open transaction to those who wait, or commits it."""
        if self._open is not None and not self._open.is_over and self._turns.hand_over():
            return
        try:
            self._end_open()
        finally:
            self._turns.end()

    def _end_open(self) -> None:
        group, self._open = self._open, None
        if group is not None:
            group.end()


ACTIVE_SECONDS = 1.0
"""Seconds for which others give way to a project after one of its writers came."""


class Place:
    """A place in the queue."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.gives_way = this_thread.gives_way
        self._called = threading.Lock()
        self._called.acquire()

    def call(self) -> None:
        """Says that it is their turn."""
        self._called.release()

    def wait(self, seconds: float) -> bool:
        """Whether the turn came within so many seconds."""
        return self._called.acquire(timeout=seconds)


class Turns:
    """One turn at a time. Whoever has it hands it over: nobody who comes again at once overtakes those who wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._queues: dict[str, deque[Place]] = {}
        """Those who wait, by project; the next project first."""
        self._latest: tuple[str, float] = "", -math.inf
        """The project whose writer came last, and when."""
        self._other_came_at = -math.inf
        """When a writer of another project last came."""

    def queue(self, project: str) -> Place:
        """A place for a writer of a project; called at once if nobody has the turn."""
        place = Place(project)
        with self._lock:
            if self._latest[0] != project:
                self._other_came_at = self._latest[1]
            self._latest = project, time.monotonic()
            if self._is_taken:
                self._queues.setdefault(project, deque()).append(place)
            else:
                self._is_taken = True
                place.call()
        return place

    def has_others(self, project: str) -> bool:
        """Whether other projects wrote lately."""
        with self._lock:
            name, came_at = self._latest
            return time.monotonic() - (self._other_came_at if name == project else came_at) < ACTIVE_SECONDS

    def leave(self, place: Place) -> bool:
        """Gives up a place; False if it was called before, so that its owner has the turn."""
        with self._lock:
            queue = self._queues.get(place.project, deque())
            if place not in queue:
                return False
            queue.remove(place)
            if not queue:
                del self._queues[place.project]
            return True

    def hand_over(self) -> bool:
        """Gives the turn to the next writer for the same transaction; False if nobody waits, or one who gives way to
        others: they would wait for what that one does."""
        with self._lock:
            next_queue = next(iter(self._queues.values()), None)
            return next_queue is not None and not next_queue[0].gives_way and self._call_next()

    def end(self) -> None:
        """Gives up the turn."""
        with self._lock:
            self._is_taken = self._call_next()

    def _call_next(self) -> bool:
        if not self._queues:
            return False
        project = next(iter(self._queues))
        queue = self._queues.pop(project)
        queue.popleft().call()
        if queue:
            self._queues[project] = queue
        return True
