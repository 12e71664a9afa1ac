"""Threads that calls run on: one after the other where the store allows no more, and few of a key at once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from heedful.sql.sandbox.pool import busy

Result = TypeVar("Result")
Done = tuple["asyncio.Future[Any]", Any, BaseException | None]

BATCH_SIZE = 32
"""Results that are handed over at once while there is more to do."""


class SerialExecutor:
    """Runs calls in order. Delivering results in batches wakes the loop less often."""

    def __init__(self, name: str) -> None:
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._come = threading.Semaphore(0)
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns or raises; it is done also when the one who asked has gone."""
        self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = self._loop.create_future()
        self._waiting.append((future, work))
        self._come.release()
        return await future

    def close(self) -> None:
        """Does what is waiting, and ends."""
        self._closing = True
        self._come.release()
        self._thread.join()

    def _work(self) -> None:
        done: list[Done] = []
        while True:
            self._come.acquire()
            if not self._waiting:
                if self._closing:
                    return
                continue
            future, work = self._waiting.popleft()
            try:
                done.append((future, work(), None))
            except BaseException as error:
                done.append((future, None, error))
            if len(done) >= BATCH_SIZE or not self._waiting:
                assert self._loop is not None
                self._loop.call_soon_threadsafe(_deliver, done)
                done = []


def _deliver(done: list[Done]) -> None:
    for future, result, error in done:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


class ConcurrencyLimiter:
    """Counts the calls under way in one event loop."""

    def __init__(self, per_caller: int, per_project: int, wait: float) -> None:
        self._per_caller = per_caller
        self._per_project = per_project
        self._wait = wait
        self._changed = asyncio.Condition()
        self._callers: Counter[tuple[str, str]] = Counter()
        self._projects: Counter[str] = Counter()

    @asynccontextmanager
    async def slot(self, project: str, caller: str) -> AsyncIterator[None]:
        """Waits for room, and takes it while the block runs; `Unavailable` if there is none in time."""
        async with self._changed:
            try:
                async with asyncio.timeout(self._wait):
                    await self._changed.wait_for(lambda: self._has_room(project, caller))
            except TimeoutError:
                raise busy() from None
            self._count(project, caller, 1)
        try:
            yield
        finally:
            self._count(project, caller, -1)
            async with self._changed:
                self._changed.notify_all()

    def _has_room(self, project: str, caller: str) -> bool:
        return self._callers[project, caller] < self._per_caller and self._projects[project] < self._per_project

    def _count(self, project: str, caller: str, step: int) -> None:
        self._callers[project, caller] += step
        self._projects[project] += step
        # Names that nobody uses any more are not kept.
        self._callers += Counter()
        self._projects += Counter()
