"""What a store needs now and then: room for the time to come, counts of opinions, and an end for what is old."""

from __future__ import annotations

from heedful.settings import Retention
from heedful.storage import partitions, retention, tallies
from heedful.storage.database import Database


def upkeep(database: Database, now: int, kept: Retention) -> list[str]:
    """Does what is due, and returns what was done, in words. It may be done at any time, by several at once."""
    done = [f"made {name}" for name in iter(lambda: _next_partition(database, now), None)]
    with database.read() as connection:
        counts = tallies.due(connection)
    for project, number, key in counts:
        with database.write(project, durable=False) as connection:
            tallies.fold(connection, number, key)
        done.append(f"counted the opinions of {project}{f' by {key}' if key else ''}")
    return done + retention.apply(database, now, kept)


def _next_partition(database: Database, now: int) -> str | None:
    # A transaction for each: nobody waits for more than one table at a time.
    with database.write() as connection:
        return partitions.ensure_next(connection, now)
