"""How much visitors wrote on a day: counted as they write, so that nobody has to read the ledger for it."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from heedful.storage.dialects import dialect_of, upsert
from heedful.storage.schema import visitor_usage

_KEY = ("project_id", "day", "subject")


def read(connection: Connection, project: int, day: int, subjects: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """The changes and bytes of each subject on a day."""
    chosen = select(visitor_usage.c.subject, visitor_usage.c.changes, visitor_usage.c.bytes).where(
        visitor_usage.c.project_id == project, visitor_usage.c.day == day, visitor_usage.c.subject.in_(subjects)
    )
    found = {row.subject: (row.changes, row.bytes) for row in connection.execute(chosen)}
    return {subject: found.get(subject, (0, 0)) for subject in subjects}


def write(connection: Connection, project: int, day: int, usage: dict[str, tuple[int, int]]) -> None:
    """Stores what was read and counted on; days before are over."""
    rows = [
        {"project_id": project, "day": day, "subject": subject, "changes": changes, "bytes": size}
        for subject, (changes, size) in usage.items()
    ]
    connection.execute(upsert(dialect_of(connection), visitor_usage, _KEY, ("changes", "bytes")), rows)
    if any(changes == 1 for changes, _ in usage.values()):
        connection.execute(
            delete(visitor_usage).where(visitor_usage.c.project_id == project, visitor_usage.c.day < day)
        )
