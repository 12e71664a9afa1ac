"""What the review queue has not read of the ledger yet."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, insert, or_, select

from heedful.storage.ledger import CONFLICT, FEEDBACK, RETRACTION, SIGNAL, is_retracted
from heedful.storage.rows import AnyRow, of_project
from heedful.storage.schema import changes, events, projects
from heedful.storage.schema_insight import review_members, tallies, watermarks

EVENTS, FACTS = "review", "review_facts"
"""The watermarks: the last event and the last change of facts that were read."""

PARTITION_PREFIX, FULL_COMPARISON = "review_partition_", "review_full_comparison"
"""The watermarks of sessions in another database: each partition's position, and the last full comparison."""

NEGATIVE = ("down", "1", "2")
"""The values of a negative opinion's event: a rating, or a score."""

DERIVED_SOURCE = "improve"
"""The source of signals that are derived from opinions."""

MAX_BACKLOG = 5_000
"""With more new opinions than this, a worker updates the queue."""


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
    """The positions that were read last, by partition."""
    rows = connection.execute(select(watermarks.c.name, watermarks.c.seq).where(*_partition_rows(project)))
    return {int(row.name.removeprefix(PARTITION_PREFIX)): int(row.seq) for row in rows}


def set_partitions(connection: Connection, project: int, positions: dict[int, int]) -> None:
    """Replaces all positions."""
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
    """Negative opinions and conflicts of a project after an event, and retractions of known ones, in order."""
    is_member = exists().where(review_members.c.event_id == events.c.target_id)
    negative_feedback = and_(events.c.kind == FEEDBACK, events.c.value.in_(NEGATIVE))
    negative_signal = and_(
        events.c.kind == SIGNAL, events.c.value == "not_helpful", events.c.source != DERIVED_SOURCE, ~is_retracted()
    )
    conflict = and_(events.c.kind == CONFLICT, ~is_retracted())
    retraction = and_(events.c.kind == RETRACTION, is_member)
    statement = (
        select(events.c.seq, events.c.id, events.c.kind, events.c.target_type, events.c.target_id, events.c.at)
        .where(
            of_project(connection, events.c.project_id, project),
            events.c.seq > seq,
            or_(negative_feedback, negative_signal, conflict, retraction),
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
    """The projects whose sessions in another database were compared since a time."""
    rows = connection.execute(
        select(projects.c.name)
        .join(watermarks, watermarks.c.project_id == projects.c.id)
        .where(watermarks.c.key == "", watermarks.c.name == FULL_COMPARISON, watermarks.c.seq > moment)
    )
    return set(rows.scalars())


def due(connection: Connection) -> list[str]:
    """The projects with many negative opinions and many unread events."""
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
