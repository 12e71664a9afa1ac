"""Retracting an opinion of an item, and restoring it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields, replace

from sqlalchemy import Connection

from heedful.errors import Conflict, NotFound
from heedful.ids import new_id
from heedful.memory.history import retract_event
from heedful.model import Metadata
from heedful.review.cases import LoadedItem
from heedful.review.fixes import FixResult
from heedful.review.items import Opinion
from heedful.sessions.undo import DERIVED_PREFIX, RetractedFeedback, change
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, ledger, scopes, scores
from heedful.storage.executions import opinions
from heedful.storage.ledger import Event
from heedful.storage.review import members
from heedful.storage.review.members import SESSION_TARGETS, NewMember
from heedful.storage.rows import AnyRow
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import FeedbackRow

Record = Callable[[Connection, FixResult], str]
"""Appends the event of an action in an open transaction, and returns its id."""


def retract(space: ExecutionSpace, seen: LoadedItem, event_id: str, author: str | None, record: Record) -> str:
    """Retracts one of the opinions of an item, or one that says the contrary; returns the event of the action."""
    opinion = find_opinion(space, seen, event_id)
    if opinion.target_type in SESSION_TARGETS:
        return _of_session(space, event_id, author, record)
    body: Metadata = {"event_id": event_id, "target_type": opinion.target_type, "target_id": opinion.target_id}
    with space.workspace.write() as connection:
        project = space.project(connection)
        if opinion.target_type == "fact":
            event = ledger.get(connection, space.workspace.project, event_id)
            if event is None or ledger.retraction_of(connection, project, event_id) is not None:
                raise _already_retracted(event_id)
            retract_event(space.workspace, connection, event, author)
            return record(connection, FixResult(body))
        row = opinions.get(connection, project, event_id)
        if row is None:
            raise _already_retracted(event_id)
        opinions.withdraw(connection, project, row, author, space.now())
        return record(connection, FixResult(body, opinions.snapshot(row)))


def _of_session(space: ExecutionSpace, event_id: str, author: str | None, record: Record) -> str:
    made: list[str] = []

    def take_back(tx: Transaction, gone: RetractedFeedback) -> None:
        row = tx.feedbacks.get(event_id)
        if row is None or not row.active:
            raise _already_retracted(event_id)
        if tx.connection is not None:
            made.append(record(tx.connection, _capture(space, tx.connection, row)))
        gone.withdraw(tx, [row], author, space.now())

    row = space.sessions.store.read(lambda tx: tx.feedbacks.get(event_id))
    if row is None or not row.active:
        raise _already_retracted(event_id)
    if space.sessions.store.remote:
        # What is needed to undo it is safe before it is done.
        with space.workspace.write() as connection:
            made.append(record(connection, _capture(space, connection, row)))
    change(space.sessions, take_back)
    return made[-1]


def _capture(space: ExecutionSpace, connection: Connection, row: FeedbackRow) -> FixResult:
    derived = ledger.with_prefix(connection, space.workspace.project, f"{DERIVED_PREFIX}{row.id}/")
    names = scopes.dataset_names(connection, space.workspace.project)
    improved = sorted({names[each.dataset_id] for each in derived if each.dataset_id in names})
    body = {"event_id": row.id, "target_type": row.target_type, "target_id": row.target_id}
    return FixResult(body, {**asdict(row), "improved": improved})


def restore_feedback(tx: Transaction, event_id: str, kept: Metadata | None, now: int) -> None:
    """Gives an opinion about a session or an entry again, as it was; doing it again changes nothing.

    What its author said of the same thing since stays instead.
    """
    if kept is None:
        raise _text_deleted(event_id)
    row = FeedbackRow(**{name: value for name, value in kept.items() if name != "improved"})
    key = f"undo/{event_id}"
    if tx.feedbacks.with_key(key) is not None:
        return
    alone = row.target_type == "entry" or row.author is not None
    if alone and tx.feedbacks.active_by(row.author, row.target_type, row.target_id):
        return
    if not tx.feedbacks.add(replace(row, id=new_id(), active=True), key, now):
        raise _text_deleted(event_id)


def restore_signal(space: ExecutionSpace, connection: Connection, event_id: str) -> list[str]:
    """Gives a signal again, as it was; returns the facts whose scores changed."""
    event = ledger.get(connection, space.workspace.project, event_id)
    places = {} if event is None else facts.locate(connection, space.workspace.project, [event.target_id])
    if event is None or not places:
        # The fact was forgotten, and with it what was said of it.
        return []
    fact = places[event.target_id][0]
    again = _copy(event, space.now())
    ledger.append(connection, [again])
    ledger.annotate(connection, [(again.id, fact, text) for text in ledger.notes_of(connection, event_id)])
    dataset_of = dict(places.values())
    scores.refold(space.workspace.database, connection, dataset_of, sorted(dataset_of))
    return list(places)


def _copy(event: AnyRow, now: int) -> Event:
    names = [each.name for each in fields(Event) if each.name not in ("id", "idempotency_key", "recorded_at")]
    return Event(recorded_at=now, **{name: getattr(event, name) for name in names})


def find_opinion(space: ExecutionSpace, seen: LoadedItem, event_id: str) -> Opinion | NewMember:
    """The opinion of an item, or one that says the contrary, that stands under this id."""
    for each in (*seen.newest, *seen.against):
        if each.event_id == event_id and each.active:
            return each
    with space.workspace.read() as connection:
        row = members.get_member(connection, seen.row.seq, event_id)
    if row is None:
        raise NotFound(
            f"item {seen.row.id} has no opinion {event_id!r}",
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
