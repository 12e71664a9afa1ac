"""Undoes an event: an opinion, a correction of a fact, or an action of a reviewer."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from heedful.errors import Conflict, NotFound
from heedful.memory.history import retract_event
from heedful.model import Metadata, Retraction
from heedful.review import teaching
from heedful.review.items import refold
from heedful.review.retraction import restore_feedback, restore_signal
from heedful.sessions import feedback
from heedful.sessions.improve import improve
from heedful.sessions.undo import DERIVED_PREFIX
from heedful.sql.space import ExecutionSpace
from heedful.storage import ledger, scopes
from heedful.storage.executions import golden
from heedful.storage.executions.proofs import TARGETS
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.ledger import CONFLICT, FEEDBACK, LINK_SIGNAL, POLICY, REVIEW, SIGNAL, SUPERSESSION
from heedful.storage.review import items
from heedful.storage.review.members import SESSION_TARGETS
from heedful.storage.rows import AnyRow
from heedful.storage.sessions.base import FeedbackRow
from heedful.storage.sessions.sql import SqlTransaction


def retract(space: ExecutionSpace, event_id: str, author: str | None) -> Retraction:
    """Undoes an event in one transaction. Idempotent."""
    retraction = _undo(space, event_id, author)
    if retraction is None and space.sessions.store.remote:
        retraction = feedback.retract(space.sessions, event_id, author)
    if retraction is None:
        raise NotFound(
            f"no event {event_id!r} in project {space.workspace.project!r}",
            field="event_id",
            value=event_id,
            remedy="Use the event_id of a signal or a supersession, or a feedback_id",
        )
    space.sessions.feedback_changed()
    return retraction


def undo(space: ExecutionSpace, event_id: str, author: str | None) -> bool:
    """Undoes an action of a reviewer; False if there is none with this id. Idempotent."""
    undone = _undo(space, event_id, author, [REVIEW]) is not None
    space.sessions.feedback_changed()
    return undone


def _undo(
    space: ExecutionSpace, event_id: str, author: str | None, kinds: Sequence[str] | None = None
) -> Retraction | None:
    """Undoes an event of the ledger that is of one of these kinds; None if there is none."""
    restored = _restore_remote(space, event_id) if space.sessions.store.remote else None
    with space.workspace.direct(write=True) as direct:
        event = ledger.get(direct.connection, space.workspace.project, event_id)
        if event is None or (kinds is not None and event.kind not in kinds):
            return None
        event_id = event.id
        if event.kind in (SIGNAL, SUPERSESSION, LINK_SIGNAL, POLICY, CONFLICT):
            return retract_event(space.workspace, direct.connection, event, author)
        tx = SqlTransaction(direct, event.project_id)
        retracted = feedback.retract_in(space.sessions, tx, event_id, author) if event.kind == FEEDBACK else None
        if retracted is not None:
            return retracted
        if event.kind != REVIEW:
            raise Conflict(
                f"event {event_id} is a {event.kind}, which can't be retracted",
                field="event_id",
                value=event_id,
                remedy="Give the opinion again",
            )
        earlier = ledger.retraction_of(tx.connection, event.project_id, event_id)
        if earlier is not None:
            return Retraction(event_id=earlier, retracted=event_id, updated_facts=[])
        if _retracted_session_feedback(event) and not space.sessions.store.remote:
            restored = restore_feedback(tx.feedbacks, event.body["event_id"], event_id, space.now())
        changed = _undo_fix(space, tx, event, author)
        retraction = ledger.retraction(event.project_id, event_id, author, space.now())
        ledger.append(tx.connection, [retraction])
        item = items.get(tx.connection, event.project_id, event.target_id)
        if item is not None:
            refold(tx.connection, event.project_id, [item.seq])
            items.touch(tx.connection, item.seq, space.now())
        improved = [] if restored is None else _improved(space, tx.connection, restored)
    for dataset in improved:
        assert restored is not None
        improve(space.sessions, space.workspace, None, dataset, [restored.session_id])
    return Retraction(event_id=retraction.id, retracted=event_id, updated_facts=changed)


def _restore_remote(space: ExecutionSpace, event_id: str) -> FeedbackRow | None:
    """Restores an opinion that an action retracted in another database. Idempotent: if the process dies before the
    action is undone, a second attempt finds the opinion restored."""
    with space.workspace.read() as connection:
        event = ledger.get(connection, space.workspace.project, event_id)
        if event is None or not _retracted_session_feedback(event):
            return None
        if ledger.retraction_of(connection, event.project_id, event_id) is not None:
            return None
    opinion, now = event.body["event_id"], space.now()
    return space.sessions.store.write(lambda tx: restore_feedback(tx.feedbacks, opinion, event_id, now))


def _retracted_session_feedback(event: AnyRow) -> bool:
    return event.kind == REVIEW and event.value == "retract" and event.body["target_type"] in SESSION_TARGETS


def _improved(space: ExecutionSpace, connection: Connection, opinion: FeedbackRow) -> list[str]:
    """The datasets with signals that were derived from an opinion."""
    prefix = f"{DERIVED_PREFIX}{opinion.id}/"
    derived = ledger.with_prefix(connection, space.workspace.project, prefix, active=False)
    names = scopes.dataset_names(connection, space.workspace.project)
    return sorted({names[event.dataset_id] for event in derived if event.dataset_id in names})


def _undo_fix(space: ExecutionSpace, tx: SqlTransaction, event: AnyRow, author: str | None) -> list[str]:
    """Undoes what a fix did in the store; returns the facts that changed."""
    body: Metadata = event.body
    if event.value == "supersede":
        supersession = ledger.get(tx.connection, space.workspace.project, body["event_id"])
        return (
            []
            if supersession is None
            else retract_event(space.workspace, tx.connection, supersession, author).updated_facts
        )
    if event.value == "teach":
        return teaching.forget(space, tx.connection, body)
    if event.value == "retract" and body["target_type"] == "fact":
        return restore_signal(space, tx.connection, body["event_id"])
    if event.value == "retract" and body["target_type"] in TARGETS:
        restore_feedback(tx.feedbacks, body["event_id"], event.id, space.now())
    if "example_id" in body:
        golden.remove(tx.connection, event.project_id, body["example_id"])
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
                restore_feedback(opinions, before.event_id, event.id, space.now())
