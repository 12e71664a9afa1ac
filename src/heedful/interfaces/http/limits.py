"""How much a caller may ask for: calls a second, megabytes an hour, and queries and bytes at the same time."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cachetools import LRUCache

from heedful.errors import Unavailable

MAX_CALLERS = 100_000
"""Callers that are remembered; the one that was silent longest is forgotten first."""


class Buckets:
    """Allows each name so much a second, and a burst of so much at once."""

    def __init__(self) -> None:
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(MAX_CALLERS)

    def take(self, name: str, amount: float, rate: float, burst: float, now: float) -> float:
        """Takes an amount if it is there; otherwise, returns in how many seconds it will be."""
        left, at = self._buckets.get(name, (burst, now))
        left = min(burst, left + (now - at) * rate)
        is_enough = left >= min(amount, burst)
        self._buckets[name] = (left - amount if is_enough else left, now)
        return 0.0 if is_enough else (min(amount, burst) - left) / rate


class RateLimiter(Buckets):
    """Allows each caller so many calls a second, and twice as many at once."""

    def check(self, caller: str, rate: int, now: float) -> None:
        """Counts one call; `Unavailable` if it is too early for it."""
        if wait := self.take(caller, 1.0, rate, 2.0 * rate, now):
            raise Unavailable(
                f"more than {rate} {'call' if rate == 1 else 'calls'} a second",
                code="rate_limited",
                value=max(1, math.ceil(wait)),
                remedy="Wait as long as Retry-After says, and send it again",
            )


class WriteLimiter(Buckets):
    """Allows each project to send so many megabytes for storing within an hour."""

    def check(self, project: str, size: int, megabytes: int, now: float) -> None:
        """Counts a body; `Unavailable` if the project has sent enough."""
        burst = megabytes * 1_000_000.0
        if wait := self.take(project, size, burst / 3600, burst, now):
            raise Unavailable(
                f"this project has sent {megabytes} MB for storing within an hour, the limit of this server",
                code="write_limited",
                value=max(1, math.ceil(wait)),
                remedy="Wait as long as Retry-After says, or start the server with a larger --max-written",
            )


@dataclass(frozen=True, slots=True)
class Room:
    """How much there is of something: for a caller, for a project and for all."""

    caller: float
    project: float
    total: float = math.inf


class RoomLimiter:
    """Shares what calls under way in one event loop take: their number, or their bytes."""

    def __init__(self, room: Room, wait: float, busy: Callable[[], Unavailable]) -> None:
        self._room = room
        self._wait = wait
        self._busy = busy
        self._changed = asyncio.Condition()
        self._taken: Counter[tuple[str, ...]] = Counter()

    @asynccontextmanager
    async def taking(self, project: str, caller: str, amount: int = 1) -> AsyncIterator[None]:
        """Waits for room, and takes it while the block runs; `Unavailable` if there is none in time."""
        limits = {(project, caller): self._room.caller, (project,): self._room.project, (): self._room.total}

        def is_room() -> bool:
            # One alone is let through: how large it may be was checked.
            return all(not self._taken[name] or self._taken[name] + amount <= limits[name] for name in limits)

        async with self._changed:
            try:
                async with asyncio.timeout(self._wait):
                    await self._changed.wait_for(is_room)
            except TimeoutError:
                raise self._busy() from None
            self._taken.update(dict.fromkeys(limits, amount))
        try:
            yield
        finally:
            self._taken.subtract(dict.fromkeys(limits, amount))
            # Names that nobody uses any more are not kept.
            for name in limits:
                if not self._taken[name]:
                    del self._taken[name]
            async with self._changed:
                self._changed.notify_all()
