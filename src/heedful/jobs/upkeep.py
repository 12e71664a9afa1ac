"""What is done to a whole store now and then."""

from __future__ import annotations

from heedful.clock import DAY
from heedful.jobs.base import Queue

EVERY = DAY // 24
"""Between two rounds of upkeep, in stored time."""

KEPT = 30 * DAY
"""How long a job that has ended is shown."""


def forget_jobs(queue: Queue, now: int) -> None:
    """Removes jobs that ended long ago."""
    while queue.forget(now - KEPT):
        pass


def add_when_due(queue: Queue, now: int) -> None:
    """Has the upkeep done, if that was long ago."""
    last = queue.last_added("upkeep")
    if last is None or now - last >= EVERY:
        queue.add(None, "upkeep", {})
