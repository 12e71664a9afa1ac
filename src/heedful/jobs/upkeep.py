"""What is done to a whole store now and then."""

from __future__ import annotations

from heedful.clock import DAY
from heedful.jobs.base import Queue
from heedful.model import Over

EVERY = DAY // 24
"""Between two rounds of upkeep, in stored time."""


def forget_jobs(queue: Queue, now: int, days: int) -> None:
    """Removes jobs that ended so many days ago; none with 0."""
    while days and queue.forget(now - days * DAY):
        pass


def add_when_due(queue: Queue, now: int) -> None:
    """Has the upkeep done, if that was long ago."""
    last = queue.last_added("upkeep")
    if last is None or now - last >= EVERY:
        queue.add(None, "upkeep", {})


def add_digest_when_due(queue: Queue, now: int, every: Over | None) -> None:
    """Has digests of the last whole day or week sent, once; again an hour after that failed."""
    if every is None:
        return
    since, until = last_whole(every, now)
    newest = queue.listed(None, None, "digest", None, 1)
    due = not newest or newest[0].created_at < until
    if due or (newest[0].status == "failed" and now - newest[0].created_at >= EVERY):
        queue.add(None, "digest", {"since": since, "until": until})


def last_whole(every: Over, now: int) -> tuple[int, int]:
    """The last day or week that is over, in UTC; weeks begin on Mondays.

    >>> last_whole("day", 5 * DAY + 7)
    (345600000000, 432000000000)
    >>> [moment // DAY for moment in last_whole("week", 14 * DAY)]
    [4, 11]
    """
    today = now // DAY
    if every == "day":
        return (today - 1) * DAY, today * DAY
    # 1970 began on a Thursday.
    monday = (today + 3) // 7 * 7 - 3
    return (monday - 7) * DAY, monday * DAY
