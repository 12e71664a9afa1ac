"""Undoes the actions of reviewers, with what they changed."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial

from sqlalchemy import Connection

from heedful.clock import new_id
from heedful.errors import Conflict
from heedful.ledger import events, scores, supersessions
from heedful.ledger.derived_signals import DERIVED_PREFIX
from heedful.ledger.events import REVIEW, TAUGHT, Event
from heedful.ledger.opinions import FeedbackRow, Feedbacks, SqlFeedbacks
from heedful.ledger.proven_sql import TARGETS
from heedful.ledger.retract import UndoHandler, Undoing, retract_event, undo_event
from heedful.model import Metadata, Retraction
from heedful.review import tables
from heedful.review.items import refold
from heedful.review.tables import SESSION_TARGETS
from heedful.sessions.improve import improve
from heedful.sessions.sql_store import SqlTransaction
from heedful.sql import records
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, scopes
from heedful.storage.rows import AnyRow


def undo_handler(space: ExecutionSpace) -> UndoHandler:
    """How the actions of reviewers are undone."""
    prepare = partial(_restore_remote, space) if space.sessions.store.remote else None
    return UndoHandler(partial(_undo_review, space), prepare)


def undo_action(space: ExecutionSpace, event_id: str, author: str | None) -> bool:
    """Undoes an action of a reviewer; False if there is none with this id. Idempotent."""
    undone = undo_event(space.workspace, event_id, author, {REVIEW: undo_handler(space)}, [REVIEW]) is not None
    space.sessions.feedback_changed()
    return undone


def _undo_review(space: ExecutionSpace, undoing: Undoing) -> Retraction:
    event, author = undoing.event, undoing.author
    tx = SqlTransaction(undoing.direct, event.project_id)
    earlier = events.retraction_of(tx.connection, event.project_id, event.id)
    if earlier is not None:
        return Retraction(event_id=earlier, retracted=event.id, updated_facts=[])
    restored: FeedbackRow | None = undoing.prepared
    if _retracted_session_feedback(event) and not space.sessions.store.remote:
        restored = _restore_feedback(tx.feedbacks, event.body["event_id"], event.id, space.now())
    changed = _undo_fix(space, tx, event, author)
    retraction = events.retraction(event.project_id, event.id, author, space.now())
    events.append(tx.connection, [retraction])
    item = tables.get_item(tx.connection, event.project_id, event.target_id)
    if item is not None:
        refold(tx.connection, event.project_id, [item.seq])
        tables.touch_item(tx.connection, item.seq, space.now())
    if restored is not None:
        sessions = [restored.session_id]
        for dataset in _improved(space, tx.connection, restored):
            undoing.afterwards.append(partial(improve, space.sessions, space.workspace, None, dataset, sessions))
    return Retraction(event_id=retraction.id, retracted=event.id, updated_facts=changed)


def _restore_remote(space: ExecutionSpace, event: AnyRow) -> FeedbackRow | None:
    """Restores an opinion that an action retracted in another database."""
    if not _retracted_session_feedback(event):
        return None
    opinion, now = event.body["event_id"], space.now()
    return space.sessions.store.write(lambda tx: _restore_feedback(tx.feedbacks, opinion, event.id, now))


def _retracted_session_feedback(event: AnyRow) -> bool:
    return event.kind == REVIEW and event.value == "retract" and event.body["target_type"] in SESSION_TARGETS


def _improved(space: ExecutionSpace, connection: Connection, opinion: FeedbackRow) -> list[str]:
    """The datasets with signals that were derived from an opinion."""
    prefix = f"{DERIVED_PREFIX}{opinion.id}/"
    derived = events.with_prefix(connection, space.workspace.project, prefix, active=False)
    names = scopes.dataset_names(connection, space.workspace.project)
    return sorted({names[event.dataset_id] for event in derived if event.dataset_id in names})


def _undo_fix(space: ExecutionSpace, tx: SqlTransaction, event: AnyRow, author: str | None) -> list[str]:
    """Undoes what a fix did in the store; returns the facts that changed."""
    body: Metadata = event.body
    if event.value == "supersede":
        supersession = events.get(tx.connection, space.workspace.project, body["event_id"])
        if supersession is None:
            return []
        return retract_event(space.workspace, tx.connection, supersession, author).updated_facts
    if event.value == "teach":
        places = facts.locate(tx.connection, space.workspace.project, [body[TAUGHT]])
        for seq, dataset in places.values():
            supersessions.remove_facts(tx.connection, dataset, [seq])
        return list(places)
    if event.value == "retract" and body["target_type"] == "fact":
        return _restore_signal(space, tx.connection, body["event_id"])
    if event.value == "retract" and body["target_type"] in TARGETS:
        _restore_feedback(tx.feedbacks, body["event_id"], event.id, space.now())
    if "example_id" in body:
        records.remove_example(tx.connection, event.project_id, body["example_id"])
    if "feedback_id" in body:
        _retract_own_opinion(space, tx.feedbacks, event, author)
    return []


def _retract_own_opinion(space: ExecutionSpace, opinions: SqlFeedbacks, event: AnyRow, author: str | None) -> None:
    """Retracts the reviewer's own opinion, and restores the one that it replaced. Later opinions stay."""
    for row in opinions.by_event_ids([event.body["event_id"]]):
        if row.active:
            before = opinions.before(row)
            opinions.withdraw([row], author, space.now())
            if before is not None:
                _restore_feedback(opinions, before.event_id, event.id, space.now())


def _restore_feedback(feedbacks: Feedbacks, event_id: str, action: str, now: int) -> FeedbackRow:
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


def _restore_signal(space: ExecutionSpace, connection: Connection, event_id: str) -> list[str]:
    """Restores a signal as it was; returns the facts whose scores changed."""
    event = events.get(connection, space.workspace.project, event_id)
    places = {} if event is None else facts.locate(connection, space.workspace.project, [event.target_id])
    if event is None or not places:
        # The fact was forgotten, with its opinions.
        return []
    fact = places[event.target_id][0]
    names = [field.name for field in fields(Event) if field.name not in ("id", "idempotency_key", "recorded_at")]
    again = Event(recorded_at=space.now(), **{name: getattr(event, name) for name in names})
    events.append(connection, [again])
    events.annotate(connection, [(again.id, fact, text) for text in events.notes_of(connection, event_id)])
    dataset_of = dict(places.values())
    scores.refold(space.workspace.database, connection, dataset_of, dataset_of, [event.query_id])
    return list(places)


def _text_deleted(event_id: str) -> Conflict:
    return Conflict(
        f"the opinion that event {event_id} retracted was deleted with its session and can't be restored",
        field="event_id",
        value=event_id,
    )
