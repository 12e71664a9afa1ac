"""Group commit: writers who wait for each other share a transaction, and with it the wait for the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from heedful.errors import Unavailable
from heedful.storage.backend import BUSY_SECONDS
from heedful.storage.rows import Direct
from heedful.storage.turns import Turns

MAX_WRITERS = 32
"""How many writers share a transaction."""

MAX_SECONDS = 0.02
"""Seconds after which a transaction takes no more writers: the first of them waits for all."""

Begin = Callable[[bool], AbstractContextManager[Direct]]


class _Group:
    """A transaction that writers share, and what became of it."""

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
        """Returns when what was written is committed."""
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
            group = self._group(durable)
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

    def _group(self, durable: bool) -> _Group:
        if self._open is None:
            self._open = _Group(self._begin(durable), durable)
        return self._open

    def _end_open(self) -> None:
        group, self._open = self._open, None
        if group is not None:
            group.end()
