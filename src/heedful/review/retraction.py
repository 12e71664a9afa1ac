"""Retracting an opinion of an item, and restoring it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from sqlalchemy import Connection

from heedful.errors import Conflict, NotFound
from heedful.ids import new_id
from heedful.memory.history import retract_event
from heedful.model import Metadata
from heedful.review.cases import LoadedItem
from heedful.review.items import Opinion
from heedful.sessions.undo import RetractedFeedback, change, change_in
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, ledger, scores
from heedful.storage.ledger import Event
from heedful.storage.review import members
from heedful.storage.review.members import SESSION_TARGETS, NewMember
from heedful.storage.rows import AnyRow
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import FeedbackRow, Feedbacks
from heedful.storage.sessions.sql import SqlTransaction

Record = Callable[[Connection, Metadata], str]
"""Appends the event of an action in an open transaction, and returns its id."""


def retract(space: ExecutionSpace, loaded: LoadedItem, event_id: str, author: str | None, record: Record) -> str:
    """Retracts an opinion of an item, or a contrary one; returns the id of the action."""
    opinion = find_opinion(space, loaded, event_id)
    body: Metadata = {"event_id": event_id, "target_type": opinion.target_type, "target_id": opinion.target_id}

    def withdraw(tx: Transaction, retracted: RetractedFeedback) -> None:
        retracted.withdraw(tx, [_active(tx, event_id)], author, space.now())

    if space.sessions.store.remote and opinion.target_type in SESSION_TARGETS:
        space.sessions.store.read(lambda tx: _active(tx, event_id))
        # The action is recorded first, so that it can be undone in any case.
        with space.workspace.write() as connection:
            action_id = record(connection, body)
        change(space.sessions, withdraw)
        return action_id
    with space.workspace.direct(write=True) as direct:
        connection = direct.connection
        if opinion.target_type == "fact":
            event = ledger.get(connection, space.workspace.project, event_id)
            if event is None or ledger.retraction_of(connection, event.project_id, event_id) is not None:
                raise _already_retracted(event_id)
            retract_event(space.workspace, connection, event, author)
        else:
            change_in(space.workspace, SqlTransaction(direct, space.project(connection)), withdraw)
        action_id = record(connection, body)
    space.sessions.feedback_changed()
    return action_id


def _active(tx: Transaction, event_id: str) -> FeedbackRow:
    for row in tx.feedbacks.by_event_ids([event_id]):
        if row.active:
            return row
    raise _already_retracted(event_id)


def restore_feedback(feedbacks: Feedbacks, event_id: str, action: str, now: int) -> FeedbackRow:
    """Restores an opinion that an action retracted or replaced. Idempotent.

    A newer opinion of the same author takes precedence.
    """
    row = next(iter(feedbacks.by_event_ids([event_id])), None)
    if row is None:
        raise _text_deleted(action)
    key = f"undo/{action}"
    has_one_opinion = row.target_type == "entry" or row.author is not None
    if feedbacks.with_key(key) is not None or (has_one_opinion and feedbacks.active_by(row.author, *row.target)):
        return row
    new_event_id = new_id()
    new = replace(row, id=new_event_id if row.session_id else row.id, event_id=new_event_id, active=True)
    if not feedbacks.add(new, key, now):
        raise _text_deleted(action)
    return row


def restore_signal(space: ExecutionSpace, connection: Connection, event_id: str) -> list[str]:
    """Restores a signal as it was; returns the facts whose scores changed."""
    event = ledger.get(connection, space.workspace.project, event_id)
    places = {} if event is None else facts.locate(connection, space.workspace.project, [event.target_id])
    if event is None or not places:
        # The fact was forgotten, with its opinions.
        return []
    fact = places[event.target_id][0]
    again = _copy(event, space.now())
    ledger.append(connection, [again])
    ledger.annotate(connection, [(again.id, fact, text) for text in ledger.notes_of(connection, event_id)])
    dataset_of = dict(places.values())
    scores.refold(space.workspace.database, connection, dataset_of, dataset_of, [event.query_id])
    return list(places)


def _copy(event: AnyRow, now: int) -> Event:
    names = [field.name for field in fields(Event) if field.name not in ("id", "idempotency_key", "recorded_at")]
    return Event(recorded_at=now, **{name: getattr(event, name) for name in names})


def find_opinion(space: ExecutionSpace, loaded: LoadedItem, event_id: str) -> Opinion | NewMember:
    """The active opinion with this id, of an item or contrary to it."""
    for opinion in (*loaded.newest, *loaded.against):
        if opinion.event_id == event_id and opinion.active:
            return opinion
    with space.workspace.read() as connection:
        row = members.get_member(connection, loaded.row.seq, event_id)
    if row is None:
        raise NotFound(
            f"item {loaded.row.id} has no opinion {event_id!r}",
            field="event_id",
            value=event_id,
            remedy="Use the event_id of one of its opinions",
        )
    if not row.active:
        raise _already_retracted(event_id)
    return NewMember(row.event_id, row.target_type, row.target_id, row.at)


def _already_retracted(event_id: str) -> Conflict:
    return Conflict(
        f"opinion {event_id} was already retracted",
        field="event_id",
        value=event_id,
        remedy="Read the item again",
    )


def _text_deleted(event_id: str) -> Conflict:
    return Conflict(
        f"the opinion that event {event_id} retracted was deleted with its session and can't be restored",
        field="event_id",
        value=event_id,
    )
