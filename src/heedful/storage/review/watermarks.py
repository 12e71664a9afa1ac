"""What the ledger has that the review queue has not seen yet."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, insert, or_, select

from heedful.storage.ledger import FEEDBACK, RETRACTION, SIGNAL, is_retracted
from heedful.storage.rows import AnyRow, of_project
from heedful.storage.schema import changes, events, projects
from heedful.storage.schema_insight import review_members, tallies, watermarks

EVENTS, FACTS = "review", "review_facts"
"""The watermarks: the last event, and the last change of facts, that were looked at."""

PARTITION_PREFIX, FULL_COMPARISON = "review_partition_", "review_full_comparison"
"""The watermarks of sessions in another database: the last place of each partition, and when all were compared."""

NEGATIVE = ("down", "1", "2")
"""What the event of a negative opinion says: a rating, or a score."""

DERIVED_SOURCE = "improve"
"""The source of signals that are made of opinions, and are none themselves."""

MAX_BACKLOG = 5_000
"""Negative opinions that nobody should wait for when they look at the queue."""


def get_watermark(connection: Connection, project: int, name: str) -> int:
    seq = connection.execute(
        select(watermarks.c.seq).where(
            watermarks.c.project_id == project, watermarks.c.key == "", watermarks.c.name == name
        )
    ).scalar()
    return int(seq or 0)


def set_watermark(connection: Connection, project: int, name: str, seq: int) -> None:
    connection.execute(
        delete(watermarks).where(watermarks.c.project_id == project, watermarks.c.key == "", watermarks.c.name == name)
    )
    connection.execute(insert(watermarks).values(project_id=project, key="", name=name, seq=seq))


def get_partitions(connection: Connection, project: int) -> dict[int, int]:
    """The places that were looked at last, by partition."""
    rows = connection.execute(select(watermarks.c.name, watermarks.c.seq).where(*_partition_rows(project)))
    return {int(row.name.removeprefix(PARTITION_PREFIX)): int(row.seq) for row in rows}


def set_partitions(connection: Connection, project: int, positions: dict[int, int]) -> None:
    """Puts these in the place of all that were there."""
    connection.execute(delete(watermarks).where(*_partition_rows(project)))
    for partition, position in positions.items():
        set_watermark(connection, project, f"{PARTITION_PREFIX}{partition}", position)


def _partition_rows(project: int) -> tuple[ColumnElement[bool], ...]:
    return (
        watermarks.c.project_id == project,
        watermarks.c.key == "",
        watermarks.c.name.startswith(PARTITION_PREFIX, autoescape=True),
    )


def events_after(connection: Connection, project: int, seq: int, limit: int) -> list[AnyRow]:
    """Negative opinions of a project behind an event, and retractions of those that are known; in order."""
    is_member = exists().where(review_members.c.event_id == events.c.target_id)
    negative_feedback = and_(events.c.kind == FEEDBACK, events.c.value.in_(NEGATIVE))
    negative_signal = and_(
        events.c.kind == SIGNAL, events.c.value == "not_helpful", events.c.source != DERIVED_SOURCE, ~is_retracted()
    )
    retraction = and_(events.c.kind == RETRACTION, is_member)
    statement = (
        select(events.c.seq, events.c.id, events.c.kind, events.c.target_type, events.c.target_id, events.c.at)
        .where(
            of_project(connection, events.c.project_id, project),
            events.c.seq > seq,
            or_(negative_feedback, negative_signal, retraction),
        )
        .order_by(events.c.seq)
        .limit(limit)
    )
    return list(connection.execute(statement))


def newest(connection: Connection) -> int:
    """The number of the newest event of all projects."""
    return int(connection.execute(select(func.max(events.c.seq))).scalar() or 0)


def newest_change(connection: Connection) -> int:
    """The number of the newest change of facts."""
    return int(connection.execute(select(func.max(changes.c.seq))).scalar() or 0)


def compared_since(connection: Connection, moment: int) -> set[str]:
    """The projects whose opinions in another database were compared with their queues since a moment."""
    rows = connection.execute(
        select(projects.c.name)
        .join(watermarks, watermarks.c.project_id == projects.c.id)
        .where(watermarks.c.key == "", watermarks.c.name == FULL_COMPARISON, watermarks.c.seq > moment)
    )
    return set(rows.scalars())


def due(connection: Connection) -> list[str]:
    """The projects that have many negative opinions, and many events that their queues have not seen."""
    end = newest(connection)
    rows = connection.execute(
        select(projects.c.name, projects.c.id)
        .join(tallies, tallies.c.project_id == projects.c.id)
        .where(tallies.c.key == "")
        .group_by(projects.c.name, projects.c.id)
        .having(func.sum(tallies.c.down) > MAX_BACKLOG)
        .order_by(projects.c.id)
    )
    return [name for name, number in rows if end - get_watermark(connection, number, EVENTS) > MAX_BACKLOG]
