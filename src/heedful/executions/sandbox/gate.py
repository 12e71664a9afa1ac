"""Who may start a query now: so many at once in all, for a project, and for a caller."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from heedful.errors import Unavailable

RETRY_SECONDS = 1
"""What a caller who finds no room is told to wait."""


class Gate:
    """Lets so many in at once. A caller, and a project that has callers, leave room for others."""

    def __init__(self, most: int, per_caller: int, wait: float) -> None:
        self._most = most
        self._per_caller = per_caller
        self._per_project = max(1, most - 1)
        self._wait = wait
        self._changed = threading.Condition()
        self._all = 0
        self._by_project: Counter[str] = Counter()
        self._by_caller: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def turn(self, project: str, caller: str | None) -> Iterator[None]:
        """Waits for room, and takes it while the block runs; `Unavailable` if there is none in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(project, caller), self._wait):
                raise busy()
            self._count(project, caller, 1)
        try:
            yield
        finally:
            with self._changed:
                self._count(project, caller, -1)
                self._changed.notify_all()

    def _has_room(self, project: str, caller: str | None) -> bool:
        if self._all >= self._most:
            return False
        if caller is None:
            return True
        return self._by_project[project] < self._per_project and self._by_caller[project, caller] < self._per_caller

    def _count(self, project: str, caller: str | None, step: int) -> None:
        self._all += step
        if caller is None:
            return
        self._by_project[project] += step
        self._by_caller[project, caller] += step
        # Names that nobody uses any more are not kept.
        self._by_project += Counter()
        self._by_caller += Counter()


def busy() -> Unavailable:
    """The error for a query that found no room."""
    return Unavailable(
        "other queries of this caller, or of others, take all the room that there is",
        code="query_busy",
        value=RETRY_SECONDS,
        remedy="Wait for them to end and send it again, or raise query_processes in the settings",
    )
