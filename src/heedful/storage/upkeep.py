"""What a store needs now and then: room for the time to come, counts of opinions, and an end for old receipts."""

from __future__ import annotations

from heedful.clock import DAY
from heedful.storage import partitions, receipts, tallies
from heedful.storage.database import Database

TOGETHER = 2000
"""Receipts that are removed in one transaction, so that nobody waits for long."""


def upkeep(database: Database, now: int, receipt_days: int | None) -> list[str]:
    """Does what is due, and returns what was done, in words. It may be done at any time, by several at once."""
    with database.write() as connection:
        done = [f"made {name}" for name in partitions.ensure(connection, now)]
    with database.read() as connection:
        counts = tallies.due(connection)
    for project, number, key in counts:
        with database.write(project, durable=False) as connection:
            tallies.fold(connection, number, key)
        done.append(f"counted the opinions of {project}{f' by {key}' if key else ''}")
    if receipt_days is not None:
        before = now - receipt_days * DAY
        with database.write() as connection:
            done += [f"dropped {name}" for name in partitions.drop_receipts(connection, before)]
        removed = 0
        while True:
            with database.write(durable=False) as connection:
                expired = receipts.expire(connection, before, TOGETHER)
            removed += expired
            if expired < TOGETHER:
                break
        if removed:
            done.append(f"removed {removed} receipts")
    return done
