"""Threads: those wanted while the process ends, their time of the processor, forks, and work in the background."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from heedful.errors import HeedfulError

logger = logging.getLogger("heedful")

Item = TypeVar("Item")

KEPT_WAITING_FACTOR = 20.0
"""How many times as long a thread that gives way leaves to others what it had to itself."""

UNNOTICED_SECONDS = 0.01
"""How long others may wait without noticing it."""

MAX_REST_SECONDS = 5.0
"""How long it leaves that to them at most."""

MAX_PAUSE_SECONDS = 1.0
"""Seconds that work in the background pauses after a step, at most."""


def start_unless_ending(thread: threading.Thread) -> bool:
    """Starts a thread; returns whether it runs. From Python 3.12 on, none can be started after the main thread has
    ended, and what is still to do must be done without."""
    try:
        thread.start()
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise
        return False
    return True


class LeavesParent(Protocol):
    def leave_parent(self) -> None:
        """Forgets the threads and connections of the parent process, which a forked child doesn't have."""


_OWNERS: weakref.WeakSet[LeavesParent] = weakref.WeakSet()


def leave_parent_when_forked(owner: LeavesParent) -> None:
    """Has `owner.leave_parent` called in each forked child."""
    _OWNERS.add(owner)


def _leave_parent() -> None:
    for owner in list(_OWNERS):
        owner.leave_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_parent)


class ProcessorTime:
    """Seconds of the processor that a thread takes from now on, with those that help it; any thread may read it."""

    def __init__(self) -> None:
        # Where threads have no clock, one of real time, which is never behind it.
        is_linux = sys.platform == "linux"
        self._clock = time.pthread_getcpuclockid(threading.get_ident()) if is_linux else time.CLOCK_MONOTONIC
        self._begun = time.clock_gettime(self._clock)
        self._ended: float | None = None
        self.helped = 0.0
        this_thread.time = self

    def end(self) -> None:
        """Stops counting the time of the thread."""
        self._ended = time.clock_gettime(self._clock)

    def seconds(self) -> float:
        until = time.clock_gettime(self._clock) if self._ended is None else self._ended
        return until - self._begun + self.helped


class _ThisThread(threading.local):
    time: ProcessorTime | None = None
    """The measurement of this thread."""
    helpers = os.cpu_count() or 1
    """How many threads may work for it at the same time."""
    rested_at = 0.0
    """Its processor time when it last paused."""
    gives_way = False
    """Whether it rests after it kept others waiting."""


this_thread = _ThisThread()


def in_parallel(work: Callable[[Item], object], items: Sequence[Item]) -> None:
    """Does work that releases the interpreter's lock for each item, in as many threads as this one may use."""

    def measured(item: Item) -> float:
        begun = time.thread_time()
        work(item)
        return time.thread_time() - begun

    waiting = list(items)
    if min(len(items), this_thread.helpers) > 1:
        # An interpreter that is ending gives no threads; work that fails fails again.
        with suppress(RuntimeError), ThreadPoolExecutor(min(len(items), this_thread.helpers)) as pool:
            for seconds in pool.map(measured, items):
                if this_thread.time is not None:
                    this_thread.time.helped += seconds
            waiting = []
    for item in waiting:
        work(item)
        rest()


def rest() -> None:
    """Has a thread that gives way pause for as long as it computed since it last did."""
    if this_thread.gives_way and this_thread.time is not None:
        now = time.thread_time()
        time.sleep(min(now - this_thread.rested_at, MAX_REST_SECONDS))
        this_thread.rested_at = now


def work_alone() -> None:
    """Has this thread do all that it does by itself, so that it keeps one processor busy and no more."""
    this_thread.helpers = 1


def give_way() -> None:
    """Has this thread work alone, and leave to others what it kept them waiting for."""
    work_alone()
    this_thread.gives_way = True


def kept_others_waiting(seconds: float) -> None:
    """Counts what this thread alone could use for so long, such as the right to write, as so many processors."""
    counted = KEPT_WAITING_FACTOR * max(0.0, seconds - UNNOTICED_SECONDS)
    if this_thread.time is not None:
        this_thread.time.helped += counted
    if this_thread.gives_way:
        time.sleep(min(counted, MAX_REST_SECONDS))


Steps = Iterator[object]
"""Work in small steps: each is done when the next value is asked for."""


class Background:
    """One thread for work that nobody waits for, which exists while there is some. Owners take turns, a step each, and
    the thread pauses after each step for as long as the step took: calls find the processor and the model free."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._work: OrderedDict[object, OrderedDict[str, Steps]] = OrderedDict()
        """The work that is left, by owner and name; the next one comes first."""
        self._running: object = None
        """Whose step is under way."""
        self._thread: threading.Thread | None = None

    def add(self, owner: object, name: str, begin: Callable[[], Steps]) -> None:
        """Does some work soon, unless work of this name is waiting or under way for its owner."""
        with self._changed:
            waiting = self._work.setdefault(owner, OrderedDict())
            if name not in waiting:
                waiting[name] = begin()
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="heedful-background")
                self._thread = thread if start_unless_ending(thread) else None

    def finish(self, owner: object) -> None:
        """Does one more step of everything that an owner has waiting, and drops the rest."""
        with self._changed:
            left = self._work.pop(owner, OrderedDict())
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._running is not owner)
        for name, steps in left.items():
            _step(name, steps)

    def _run(self) -> None:
        work_alone()
        while (following := self._next()) is not None:
            begun = time.monotonic()
            has_more = _step(*following)
            self._end(following[0], has_more)
            time.sleep(min(time.monotonic() - begun, MAX_PAUSE_SECONDS))

    def _next(self) -> tuple[str, Steps] | None:
        with self._changed:
            if not self._work or not threading.main_thread().is_alive():
                self._thread = None
                return None
            self._running, waiting = next(iter(self._work.items()))
            return next(iter(waiting.items()))

    def _end(self, name: str, has_more: bool) -> None:
        with self._changed:
            waiting = self._work.get(self._running, OrderedDict())
            if name in waiting:
                waiting.move_to_end(name)
                if not has_more:
                    del waiting[name]
            if waiting:
                self._work.move_to_end(self._running)
            else:
                self._work.pop(self._running, None)
            self._running = None
            self._changed.notify_all()


def _step(name: str, steps: Steps) -> bool:
    """Does one step; returns whether there are more."""
    try:
        next(steps)
    except StopIteration:
        return False
    except Exception as error:
        # It is tried again by whoever wants it next.
        logger.warning(
            "%s can't be done now: %s", name, error, exc_info=None if isinstance(error, HeedfulError) else error
        )
        return False
    return True
