"""What reviewers did: events of the ledger, and their words beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Select, delete, insert, select, update

from heedful.model import Metadata
from heedful.storage import ledger
from heedful.storage.ledger import REVIEW, SIGNAL, Event, is_retracted
from heedful.storage.review.watermarks import DERIVED_SOURCE
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import datasets, events, facts, notes, queries
from heedful.storage.schema_insight import review_notes

TAUGHT = "taught"
"""What the event of a teaching names: the fact that it made."""

_KEPT = '{"kept":'
"""How a note begins that has words of users."""


class Note(NamedTuple):
    """What belongs to an action in words."""

    note: str | None = None
    kept: Metadata | None = None
    """What is needed to undo it."""


def append(
    connection: Connection, project: int, item_id: str, action: str, author: str | None, at: int, body: Metadata
) -> str:
    """Appends the event of an action, which has ids and no words; returns its id."""
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
    found: dict[str, list[AnyRow]] = {item_id: [] for item_id in item_ids}
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
            found[row.target_id].append(row)
    return found


def get(connection: Connection, project: int, event_id: str) -> AnyRow:
    """One of these events, which is there."""
    statement = select(events, is_retracted().label("retracted"))
    return connection.execute(statement.where(events.c.project_id == project, events.c.id == event_id)).one()


def write(connection: Connection, project: int, seq: int, event_id: str, said: Note) -> None:
    """Keeps what belongs to an action, if that is anything."""
    if said != Note():
        values = {"event_id": event_id, "item_seq": seq, "project_id": project, "text": _packed(said)}
        connection.execute(insert(review_notes).values(**values))


def read(connection: Connection, project: int, event_ids: Sequence[str]) -> dict[str, Note]:
    """What belongs to actions, by event."""
    return {
        row.event_id: Note(**orjson.loads(row.text))
        for run in batches(event_ids)
        for row in connection.execute(
            select(review_notes).where(review_notes.c.project_id == project, review_notes.c.event_id.in_(run))
        )
    }


def with_words(connection: Connection, project: int) -> dict[str, Note]:
    """The notes of a project that have words of users."""
    rows = connection.execute(
        select(review_notes).where(
            review_notes.c.project_id == project, review_notes.c.text.startswith(_KEPT, autoescape=True)
        )
    )
    return {row.event_id: Note(**orjson.loads(row.text)) for row in rows}


def forget_words(connection: Connection, said: dict[str, Note]) -> None:
    """Removes the words of users from notes."""
    rewrite(connection, {event_id: Note(each.note) for event_id, each in said.items()})


def rewrite(connection: Connection, said: dict[str, Note]) -> None:
    """Puts other notes in the place of those that are there; one that has nothing left goes."""
    for event_id, each in said.items():
        own = review_notes.c.event_id == event_id
        if each == Note():
            connection.execute(delete(review_notes).where(own))
        else:
            connection.execute(update(review_notes).where(own).values(text=_packed(each)))


def _packed(said: Note) -> str:
    kept = {} if said.kept is None else {"kept": said.kept}
    return orjson.dumps(kept | ({} if said.note is None else {"note": said.note})).decode()


def signals(connection: Connection, project: int, event_ids: Sequence[str]) -> list[AnyRow]:
    """These signals, if the facts that they are about are there."""
    return [
        row
        for run in batches(event_ids)
        for row in connection.execute(_signals(connection, project).where(events.c.id.in_(run)))
    ]


def helpful(connection: Connection, project: int, fact_ids: Sequence[str]) -> list[AnyRow]:
    """The active signals that say that one of these facts was helpful."""
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
