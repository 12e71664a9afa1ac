"""Threads: those that may be wanted while the process ends, and what they take of the processor."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")

KEPT_WAITING_FACTOR = 20.0
"""How many times as long a thread that gives way leaves to others what it had to itself."""

MAX_REST_SECONDS = 5.0
"""How long it leaves that to them at most."""


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


class ProcessorTime:
    """Seconds of the processor that a thread takes from now on, with those that help it; any thread may read it."""

    def __init__(self) -> None:
        self._clock = _clock()
        self._begun = time.clock_gettime(self._clock)
        self.helped = 0.0
        _own.time = self

    def seconds(self) -> float:
        return time.clock_gettime(self._clock) - self._begun + self.helped


def _clock() -> int:
    """The clock of this thread; where threads have none, a clock of real time, which is never behind it."""
    if sys.platform == "linux":
        return time.pthread_getcpuclockid(threading.get_ident())
    return time.CLOCK_MONOTONIC


class _Own(threading.local):
    time: ProcessorTime | None = None
    """What is measured of this thread."""
    helpers = os.cpu_count() or 1
    """How many threads may work for it at the same time."""
    gives_way = False
    """Whether it rests after it kept others waiting."""


_own = _Own()


def in_parallel(work: Callable[[Item], object], items: Sequence[Item]) -> None:
    """Does work that releases the interpreter's lock for each item, in as many threads as this one may use."""

    def measured(item: Item) -> float:
        begun = time.thread_time()
        work(item)
        return time.thread_time() - begun

    waiting = list(items)
    if min(len(items), _own.helpers) > 1:
        # An interpreter that is ending gives no threads; work that fails fails again.
        with suppress(RuntimeError), ThreadPoolExecutor(min(len(items), _own.helpers)) as pool:
            for seconds in pool.map(measured, items):
                if _own.time is not None:
                    _own.time.helped += seconds
            waiting = []
    for item in waiting:
        work(item)


def work_alone() -> None:
    """Has this thread do all that it does by itself, so that it keeps one processor busy and no more, and give way to
    others after each time that it kept them waiting."""
    _own.helpers = 1
    _own.gives_way = True


def gives_way() -> bool:
    """Whether this thread gives way to others."""
    return _own.gives_way


def kept_others_waiting(seconds: float) -> None:
    """Counts what this thread alone could use for so long, such as the right to write, as so many processors."""
    if _own.time is not None:
        _own.time.helped += KEPT_WAITING_FACTOR * seconds
    if _own.gives_way:
        time.sleep(min(KEPT_WAITING_FACTOR * seconds, MAX_REST_SECONDS))
