"""So many calls of one caller, and of one project, at a time: who comes later waits without taking a thread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from heedful.executions.sandbox.gate import busy


class Turns:
    """Counts the calls under way in one event loop."""

    def __init__(self, per_caller: int, per_project: int, wait: float) -> None:
        self._per_caller = per_caller
        self._per_project = per_project
        self._wait = wait
        self._changed = asyncio.Condition()
        self._callers: Counter[tuple[str, str]] = Counter()
        self._projects: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, project: str, caller: str) -> AsyncIterator[None]:
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
