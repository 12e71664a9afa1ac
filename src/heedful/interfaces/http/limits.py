"""How much a caller may ask for: calls a second, megabytes an hour, and queries and bytes at the same time."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from cachetools import LRUCache

from heedful.errors import Unavailable

Name = TypeVar("Name")

MAX_CALLERS = 100_000
"""Callers that are remembered; the one that was silent longest is forgotten first."""


class Buckets(Generic[Name]):
    """The amount that each name has left, refilled at a rate up to a burst; threads may share it."""

    def __init__(self) -> None:
        self._buckets: LRUCache[Name, tuple[float, float]] = LRUCache(MAX_CALLERS)
        self._taking = threading.Lock()

    def take(self, name: Name, amount: float, rate: float, burst: float, now: float, least: float = -math.inf) -> float:
        """Takes an amount, unless less than `least` would be left; returns what is left, or would be."""
        with self._taking:
            left, at = self._buckets.get(name, (burst, now))
            left = min(burst, left + (now - at) * rate)
            rest = left - amount
            self._buckets[name] = (rest if rest >= least else left, now)
            return rest


class RateLimiter(Buckets[str]):
    """Allows each caller so many calls a second, and twice as many at once."""

    def check(self, caller: str, rate: int, now: float) -> None:
        """Counts one call; `Unavailable` if it is too early for it."""
        rest = self.take(caller, 1.0, rate, 2.0 * rate, now, least=0.0)
        if rest < 0:
            raise Unavailable(
                f"more than {rate} {'call' if rate == 1 else 'calls'} a second",
                code="rate_limited",
                value=max(1, math.ceil(-rest / rate)),
                remedy="Wait as long as Retry-After says, and send it again",
            )


Account = tuple[str, Literal["read", "write"]]
"""A project, and whether its calls write, or read and only store receipts: neither keeps the other from going on."""


class WriteLimiter(Buckets[Account]):
    """Allows the calls of each account to store so many megabytes within an hour."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self._burst = megabytes * 1_000_000.0
        self._rate = self._burst / 3600
        self._megabytes = megabytes

    def charge(self, account: Account, size: int, now: float) -> None:
        """Counts bytes that a call has stored."""
        self.take(account, size, self._rate, self._burst, now)

    def check(self, account: Account, now: float) -> None:
        """`Unavailable` if an account has used up its share."""
        left = self.take(account, 0, self._rate, self._burst, now)
        if left < 0:
            stored = "its recalls have stored receipts of" if account[1] == "read" else "it has stored"
            raise Unavailable(
                f"this project has used up its share of the disk: {stored} {self._megabytes} MB within an hour",
                code="write_limited",
                value=max(1, math.ceil(-left / self._rate)),
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
