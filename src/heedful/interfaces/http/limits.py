"""How much a caller may ask for: calls a second, and queries at the same time."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cachetools import LRUCache

from heedful.errors import Unavailable
from heedful.sql.sandbox.pool import busy

MAX_CALLERS = 100_000
"""Callers that are remembered; the one that was silent longest is forgotten first."""


class RateLimiter:
    """Allows each caller so many calls a second, and twice as many at once."""

    def __init__(self) -> None:
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(MAX_CALLERS)

    def take(self, caller: str, rate: int, now: float) -> None:
        """Takes one call from a caller's bucket; an empty one is `Unavailable`."""
        burst = 2.0 * rate
        tokens, at = self._buckets.get(caller, (burst, now))
        tokens = min(burst, tokens + (now - at) * rate)
        self._buckets[caller] = (max(0.0, tokens - 1), now)
        if tokens < 1:
            raise Unavailable(
                f"more than {rate} {'call' if rate == 1 else 'calls'} a second",
                code="rate_limited",
                value=max(1, math.ceil((1 - tokens) / rate)),
                remedy="Wait as long as Retry-After says, and send it again",
            )


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
