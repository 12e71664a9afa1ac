"""A thread for calls that a store does one after the other anyway: they wait here, not for its lock."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
Done = tuple["asyncio.Future[Any]", Any, BaseException | None]

TOGETHER = 32
"""Results that are handed over at once while there is more to do."""


class Lane:
    """Runs calls in order. Handing results over in bunches wakes the loop less often."""

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
            if len(done) >= TOGETHER or not self._waiting:
                assert self._loop is not None
                self._loop.call_soon_threadsafe(_hand_over, done)
                done = []


def _hand_over(done: list[Done]) -> None:
    for future, result, error in done:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
