"""Threads for calls that are many and short."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")

Completed = tuple["asyncio.Future[Any]", Any, BaseException | None]


class ShortCalls:
    """Runs calls in a few threads. Results that come together are delivered together, which wakes the loop less often
    than one at a time."""

    def __init__(self, threads: int, name: str) -> None:
        self._waiting: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._completing = threading.Lock()
        self._completed: list[Completed] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns or raises; it runs even if the caller has gone."""
        self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = self._loop.create_future()
        self._waiting.put((future, work))
        return await future

    def close(self) -> None:
        """Does what is waiting, and ends."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            future, work = waiting
            try:
                completed: Completed = (future, work(), None)
            except BaseException as error:
                completed = (future, None, error)
            with self._completing:
                self._completed.append(completed)
                is_first = len(self._completed) == 1
            if is_first:
                assert self._loop is not None
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._completing:
            completed, self._completed = self._completed, []
        for future, result, error in completed:
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
