"""Calls that nobody has to wait for to the end: neither an agent nor the interpreter when it exits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from typing import Any

from heedful.errors import Unavailable


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
        """What a call returns, within this many seconds."""
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

    def _start(self, seconds: float, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            late = sum(each < time.monotonic() for each in self._running.values())
            if late >= self._max_late:
                raise Unavailable(f"no call is started while {late} earlier ones have no answer")
            if self._threads < self._max_threads:
                # Not those of a pool, which the interpreter waits for when it exits.
                threading.Thread(target=self._work, name="heedful-agent", daemon=True).start()
                self._threads += 1
            self._waiting[future] = seconds, partial(copy_context().run, call)
        return future

    def _work(self) -> None:
        """Runs calls until there are none."""
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
    """What a call that is awaited returns, within this many seconds; then it is cancelled."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError:
        if limit.expired():
            raise _too_slow(seconds) from None
        raise


def _too_slow(seconds: float) -> Unavailable:
    return Unavailable(f"it did not answer within {seconds:g} seconds")
