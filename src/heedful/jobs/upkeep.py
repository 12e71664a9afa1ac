"""What is done to a whole store now and then."""

from __future__ import annotations

from collections.abc import Callable

from heedful.clock import DAY
from heedful.jobs.base import Queue
from heedful.storage import Database

EVERY = DAY // 24
"""Between two rounds of upkeep, in stored time."""

KEPT = 30 * DAY
"""How long a job that has ended is shown."""


def forget_jobs(database: Database, queue: Queue, now: int) -> None:
    """Removes jobs that ended long ago."""
    while queue.forget(now - KEPT):
        pass


UPKEEP: tuple[Callable[[Database, Queue, int], object], ...] = (forget_jobs,)
"""In this order, each with the store, its queue and the time; each may be stopped and started again."""


def add_when_due(queue: Queue, now: int) -> None:
    """Has the upkeep done, if that was long ago."""
    last = queue.last_added("upkeep")
    if last is None or now - last >= EVERY:
        queue.add(None, "upkeep", {})
