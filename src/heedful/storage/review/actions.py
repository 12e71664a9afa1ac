"""Actions of reviewers: events of the ledger, and their notes beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, insert, select

from heedful.model import Metadata
from heedful.storage import ledger
from heedful.storage.ledger import REVIEW, SIGNAL, Event, is_retracted
from heedful.storage.review.watermarks import DERIVED_SOURCE
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import datasets, events, facts, notes, queries
from heedful.storage.schema_insight import review_notes

TAUGHT = "taught"
"""The key in the event of a teaching for the fact that it created."""


def append(
    connection: Connection, project: int, item_id: str, action: str, author: str | None, at: int, body: Metadata
) -> str:
    """Appends the event of an action, with ids but without text; returns its id."""
    event = Event(
        project_id=project,
        kind=REVIEW,
        target_type="review_item",
        target_id=item_id,
        source="review",
        at=at,
        recorded_at=at,
        author=author,
        value=action,
        body=body,
    )
    ledger.append(connection, [event])
    return event.id


def of_items(connection: Connection, project: int, item_ids: Sequence[str]) -> dict[str, list[AnyRow]]:
    """The events about items, in order, by item; `retracted` says whether they were retracted."""
    result: dict[str, list[AnyRow]] = {item_id: [] for item_id in item_ids}
    for run in batches(item_ids):
        rows = connection.execute(
            select(events, is_retracted().label("retracted"))
            .where(
                of_project(connection, events.c.project_id, project),
                events.c.kind == REVIEW,
                events.c.target_id.in_(run),
            )
            .order_by(events.c.seq)
        )
        for row in rows:
            result[row.target_id].append(row)
    return result


def get(connection: Connection, project: int, event_id: str) -> AnyRow:
    """One of these events, which must exist."""
    statement = select(events, is_retracted().label("retracted"))
    return connection.execute(statement.where(events.c.project_id == project, events.c.id == event_id)).one()


def write(connection: Connection, project: int, seq: int, event_id: str, note: str | None) -> None:
    """Stores the note of an action, if there is one."""
    if note is not None:
        values = {"event_id": event_id, "item_seq": seq, "project_id": project, "text": note}
        connection.execute(insert(review_notes).values(**values))


def read(connection: Connection, project: int, event_ids: Sequence[str]) -> dict[str, str]:
    """The notes of actions, by event."""
    return {
        row.event_id: row.text
        for run in batches(event_ids)
        for row in connection.execute(
            select(review_notes).where(review_notes.c.project_id == project, review_notes.c.event_id.in_(run))
        )
    }


def signals(connection: Connection, project: int, event_ids: Sequence[str]) -> list[AnyRow]:
    """These signals, if their facts exist."""
    return [
        row
        for run in batches(event_ids)
        for row in connection.execute(_signals(connection, project).where(events.c.id.in_(run)))
    ]


def helpful(connection: Connection, project: int, fact_ids: Sequence[str]) -> list[AnyRow]:
    """The active helpful signals about these facts."""
    return [
        row
        for run in batches(fact_ids)
        for row in connection.execute(
            _signals(connection, project).where(
                events.c.target_id.in_(run),
                events.c.kind == SIGNAL,
                events.c.value == "helpful",
                events.c.source != DERIVED_SOURCE,
                ~is_retracted(),
            )
        )
    ]


def _signals(connection: Connection, project: int) -> Select[Any]:
    return (
        select(
            events,
            queries.c.text.label("question"),
            datasets.c.name.label("dataset"),
            notes.c.text.label("note"),
            is_retracted().label("retracted"),
        )
        .join(facts, facts.c.id == events.c.target_id)
        .join(datasets, datasets.c.id == facts.c.dataset_id)
        .outerjoin(queries, queries.c.id == events.c.query_id)
        .outerjoin(notes, notes.c.event_id == events.c.id)
        .where(of_project(connection, events.c.project_id, project))
    )
