"""Which queue a store has."""

from __future__ import annotations

from collections.abc import Callable

from heedful.errors import Unavailable
from heedful.jobs.base import Pace, Queue
from heedful.jobs.sqlite import SqliteQueue
from heedful.storage import Database


def queue_of(database: Database, now: Callable[[], int], pace: Pace | None = None) -> Queue:
    """The queue of a store."""
    pace = pace or Pace()
    if database.url.get_backend_name() != "postgresql":
        return SqliteQueue(database, now, pace)
    try:
        from heedful.jobs.postgresql import PostgreSqlQueue
    except ImportError as error:
        raise Unavailable(
            f"a store on PostgreSQL needs an extra ({error.name} is missing)",
            code="extra_missing",
            remedy='Run: pip install "heedful[postgresql]"',
        ) from error
    return PostgreSqlQueue(database, now, pace)
