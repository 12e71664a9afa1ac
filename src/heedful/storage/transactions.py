"""Engines and transactions, the same for each database. Writers take turns, project by project; those who wait for each
other share a transaction (group commit), and with it the wait for the disk."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import orjson
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext

from heedful.caching import Bounded
from heedful.errors import HeedfulError, Invalid, Unavailable
from heedful.storage.rows import Direct, count_statement
from heedful.threads import this_thread

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


def new_engine(url: URL, translate: Translate, **options: Any) -> Engine:
    """An engine that raises our errors and counts the bytes it stores."""

    def raise_ours(context: ExceptionContext) -> None:
        error = context.original_exception
        ours = None if isinstance(error, HeedfulError) else translate(error, context.engine)
        if ours is not None:
            raise ours from error

    engine = create_engine(
        url,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        pool_size=8,
        max_overflow=24,
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

    def wait(self) -> None:
        """Returns when the transaction is committed."""
        self._ended.wait()
        if self._error is not None:
            raise self._error


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
        """A part of a transaction, committed when this returns; an error undoes this part only."""
        begun = self._take_turn(project)
        try:
            if self._open is None:
                self._open = _Group(self._begin(durable), durable)
            group = self._open
            with group.join() as direct:
                yield direct
        finally:
            seconds = time.monotonic() - begun
            self._pass_turn()
        group.wait()
        self._tell(project, seconds)

    @contextmanager
    def alone(self, project: str) -> Iterator[None]:
        """Keeps writers away, for a transaction of another kind."""
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
        """Waits for the turn; returns when it came."""
        place = self._turns.queue(project)
        try:
            is_called = place.wait(BUSY_SECONDS)
        except BaseException:
            if not self._turns.leave(place):
                # Somebody may just have left a transaction open for this writer.
                self._pass_turn()
            raise
        if not is_called and self._turns.leave(place):
            raise Unavailable(
                f"another writer in this process has held the store for {BUSY_SECONDS} s",
                code="store_busy",
                remedy="Try again; nothing was changed",
            )
        return time.monotonic()

    def _pass_turn(self) -> None:
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

MAX_REMEMBERED = 100
"""Projects whose last write is remembered."""


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
        self._came_at: Bounded[str, float] = Bounded(MAX_REMEMBERED)
        """When a writer of each project last came; the latest last."""

    def queue(self, project: str) -> Place:
        """A place for a writer of a project; called at once if nobody has the turn."""
        place = Place(project)
        with self._lock:
            self._came_at.keep(project, time.monotonic())
            if self._is_taken:
                self._queues.setdefault(project, deque()).append(place)
            else:
                self._is_taken = True
                place.call()
        return place

    def has_others(self, project: str) -> bool:
        """Whether other projects wrote lately."""
        with self._lock:
            latest = next((at for name, at in reversed(self._came_at.items()) if name != project), -math.inf)
        return time.monotonic() - latest < ACTIVE_SECONDS

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
