"""Calls that an agent doesn't wait long for, and those that it doesn't wait for at all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from math import inf
from typing import Any

from heedful.errors import Unavailable


class Breaker:
    """Says whether to try: after a failure nobody does for some seconds, then one, then all again if that worked.
    Threads may share it."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._failed = False
        self._next_try = 0.0
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Whether the caller may try now."""
        with self._lock:
            if not self._failed:
                return True
            if time.monotonic() < self._next_try:
                return False
            # Others wait for what comes of this one.
            self._next_try = time.monotonic() + self._pause
            return True

    def failed(self) -> None:
        with self._lock:
            self._failed, self._next_try = True, time.monotonic() + self._pause

    def worked(self) -> None:
        self._failed = False


class Calls:
    """Runs calls in threads, in the order they come. Threads and tasks may share it.

    A call that takes longer than its caller waits runs on, and its result is dropped; one that has not begun by then is
    not made. At most `threads` run at the same time. While `late` of them run longer than their callers waited, no
    other is started.
    """

    def __init__(self, *, threads: int, late: int) -> None:
        self._max_threads = threads
        self._max_late = late
        self._threads = 0
        self._waiting: dict[Future[Any], tuple[float, Callable[[], Any]]] = {}
        self._running: dict[Future[Any], float] = {}
        """When each of them is late."""
        self._lock = threading.Lock()

    def run(self, seconds: float, call: Callable[[], Any]) -> Any:
        """The result of a call, within this many seconds."""
        future = self._start(seconds, call)
        try:
            if not wait([future], seconds).done:
                raise _too_slow(seconds)
            return future.result()
        finally:
            self._drop(future)

    async def arun(self, seconds: float, call: Callable[[], Any]) -> Any:
        """The same, awaited."""
        future = self._start(seconds, call)
        try:
            return await within(seconds, asyncio.wrap_future(future))
        finally:
            self._drop(future)

    def later(self, call: Callable[[], Any], most: int) -> None:
        """Makes a call that nobody waits for, and whose failures are its own; fails if `most` of them wait."""
        if len(self._waiting) >= most:
            raise Unavailable(f"{most} earlier ones are waiting")
        self._start(inf, call)

    def finish(self, seconds: float) -> int:
        """Waits for all calls, so many seconds at most; returns how many are not done then."""
        with self._lock:
            calls = [*self._waiting, *self._running]
        return len(wait(calls, seconds).not_done)

    def _start(self, seconds: float, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            late = sum(moment < time.monotonic() for moment in self._running.values())
            if late >= self._max_late:
                raise Unavailable(f"no call is started while {late} earlier ones have no answer")
            if self._threads < self._max_threads:
                # Not those of a pool, which the interpreter waits for when it exits.
                threading.Thread(target=self._work, name="heedful-agent", daemon=True).start()
                self._threads += 1
            self._waiting[future] = seconds, partial(copy_context().run, call)
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                future = next(iter(self._waiting))
                seconds, call = self._waiting.pop(future)
                if not future.set_running_or_notify_cancel():
                    continue
                self._running[future] = time.monotonic() + seconds
            self._finish(future, call)

    def _finish(self, future: Future[Any], call: Callable[[], Any]) -> None:
        result, failure = None, None
        # Whatever it is, it is the caller's.
        try:
            result = call()
        except BaseException as error:
            failure = error
        with self._lock:
            del self._running[future]
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)

    def _drop(self, future: Future[Any]) -> None:
        """Forgets a call that nobody waits for any more."""
        with self._lock:
            self._waiting.pop(future, None)


async def within(seconds: float, call: Awaitable[Any]) -> Any:
    """The result of a call that is awaited, within this many seconds; then it is cancelled."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError:
        if limit.expired():
            raise _too_slow(seconds) from None
        raise


def blocking(call: Callable[..., Any], loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """A call that is awaited in a loop, for other threads."""
    return lambda *args, **kwargs: asyncio.run_coroutine_threadsafe(call(*args, **kwargs), loop).result()


def _too_slow(seconds: float) -> Unavailable:
    return Unavailable(f"it did not answer within {seconds:g} seconds")
