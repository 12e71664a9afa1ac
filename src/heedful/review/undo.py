"""Undoing an event: an opinion, a correction of a fact, or what a reviewer did. Its kind says what that takes."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import Conflict, NotFound
from heedful.memory.history import retract_event
from heedful.model import Metadata, Retraction
from heedful.review import retraction as retracting
from heedful.review import teaching
from heedful.review.items import refold
from heedful.sessions import feedback
from heedful.sessions.improve import improve
from heedful.sql.space import ExecutionSpace
from heedful.storage import ledger
from heedful.storage.executions import golden, opinions
from heedful.storage.ledger import FEEDBACK, LINK_SIGNAL, REVIEW, SIGNAL, SUPERSESSION
from heedful.storage.review import actions, items
from heedful.storage.review.actions import Note
from heedful.storage.review.members import SESSION_TARGETS
from heedful.storage.rows import AnyRow, Direct
from heedful.storage.sessions.sql import SqlTransaction


def retract(space: ExecutionSpace, event_id: str, author: str | None) -> Retraction:
    """Undoes an event in one transaction; doing it again changes nothing."""
    found = _undo(space, event_id, author)
    if found is None and space.sessions.store.remote:
        found = feedback.retract(space.sessions, event_id, author)
    if found is None:
        raise NotFound(
            f"no event {event_id!r} in project {space.workspace.project!r}",
            field="event_id",
            value=event_id,
            remedy="Use an event_id that signal() or supersede() returned, or a feedback_id",
        )
    return found


def undo(space: ExecutionSpace, event_id: str, author: str | None) -> bool:
    """Undoes what a reviewer did; False if no action has this id. Doing it again changes nothing."""
    return _undo(space, event_id, author, [REVIEW]) is not None


def _undo(
    space: ExecutionSpace, event_id: str, author: str | None, kinds: Sequence[str] | None = None
) -> Retraction | None:
    """Undoes an event of the ledger that is of one of these kinds; None if there is none."""
    if space.sessions.store.remote:
        _restore_remote(space, event_id)
    improved: list[tuple[str, str]] = []
    with space.workspace.direct(write=True) as direct:
        event = ledger.get(direct.connection, space.workspace.project, event_id)
        if event is None or (kinds is not None and event.kind not in kinds):
            return None
        if event.kind in (SIGNAL, SUPERSESSION, LINK_SIGNAL):
            return retract_event(space.workspace, direct.connection, event, author)
        retracted = _retract_feedback(space, direct, event, author) if event.kind == FEEDBACK else None
        if retracted is not None:
            return retracted
        if event.kind != REVIEW:
            raise Conflict(
                f"event {event_id} is a {event.kind}, which can't be retracted",
                field="event_id",
                value=event_id,
                remedy="Give the opinion again",
            )
        undone = _undo_action(space, direct, event, author, improved)
    for dataset, session_id in improved:
        improve(space.sessions, space.workspace, None, dataset, [session_id])
    return undone


def _retract_feedback(space: ExecutionSpace, direct: Direct, event: AnyRow, author: str | None) -> Retraction | None:
    """None if its words are gone."""
    if event.target_type in SESSION_TARGETS:
        return feedback.retract_in(space.sessions, SqlTransaction(direct, event.project_id), event.id, author)
    row = opinions.get(direct.connection, event.project_id, event.id)
    if row is None:
        return None
    made = opinions.withdraw(direct.connection, event.project_id, row, author, space.now())
    return Retraction(event_id=made, retracted=event.id, updated_facts=[])


def _undo_action(
    space: ExecutionSpace, direct: Direct, event: AnyRow, author: str | None, improved: list[tuple[str, str]]
) -> Retraction:
    """Afterwards everything is as it was before; `improved` gets what is still to be made of a restored opinion, as
    (dataset, session)."""
    connection = direct.connection
    earlier = ledger.retraction_of(connection, event.project_id, event.id)
    if earlier is not None:
        return Retraction(event_id=earlier, retracted=event.id, updated_facts=[])
    kept = actions.read(connection, event.project_id, [event.id]).get(event.id, Note()).kept
    if _retracted_session_feedback(event):
        if not space.sessions.store.remote:
            retracting.restore_feedback(SqlTransaction(direct, event.project_id), event.id, kept, space.now())
        improved += [(dataset, kept["session_id"]) for dataset in kept["improved"]] if kept else []
    changed = _undo_fix(space, direct, event, kept, author)
    made = ledger.retraction(event.project_id, event.id, author, space.now())
    ledger.append(connection, [made])
    item = items.get(connection, event.project_id, event.target_id)
    if item is not None:
        refold(connection, event.project_id, [item.seq])
        items.touch(connection, item.seq, space.now())
    return Retraction(event_id=made.id, retracted=event.id, updated_facts=changed)


def _restore_remote(space: ExecutionSpace, event_id: str) -> None:
    """Gives an opinion again that an action retracted in another database; should the process die before the action is
    undone, a second attempt finds it done."""
    with space.workspace.read() as connection:
        event = ledger.get(connection, space.workspace.project, event_id)
        if event is None or not _retracted_session_feedback(event):
            return
        if ledger.retraction_of(connection, event.project_id, event_id) is not None:
            return
        kept = actions.read(connection, event.project_id, [event_id]).get(event_id, Note()).kept
    space.sessions.store.write(lambda tx: retracting.restore_feedback(tx, event_id, kept, space.now()))


def _retracted_session_feedback(event: AnyRow) -> bool:
    return event.kind == REVIEW and event.value == "retract" and event.body["target_type"] in SESSION_TARGETS


def _undo_fix(
    space: ExecutionSpace, direct: Direct, event: AnyRow, kept: Metadata | None, author: str | None
) -> list[str]:
    """Undoes what a fix did in the store; returns the facts that changed."""
    connection = direct.connection
    body: Metadata = event.body
    if event.value == "supersede":
        made = ledger.get(connection, space.workspace.project, body["event_id"])
        return [] if made is None else retract_event(space.workspace, connection, made, author).updated_facts
    if event.value == "teach":
        return teaching.forget(space, connection, body)
    if event.value == "retract" and body["target_type"] == "fact":
        return retracting.restore_signal(space, connection, body["event_id"])
    if event.value == "retract" and kept is not None and body["target_type"] in opinions.TARGETS:
        opinions.restore(connection, event.project_id, kept, space.now())
    if "example_id" in body:
        golden.remove(connection, event.project_id, body["example_id"])
    if "feedback_id" in body:
        _retract_own_opinion(space, direct, event, kept, author)
    return []


def _retract_own_opinion(
    space: ExecutionSpace, direct: Direct, event: AnyRow, kept: Metadata | None, author: str | None
) -> None:
    """Retracts the reviewer's own opinion, and restores the one that it replaced. What was said since stays."""
    connection = direct.connection
    row = opinions.get(connection, event.project_id, event.body["event_id"])
    if row is not None and row.event_id == event.body["event_id"]:
        opinions.withdraw(connection, event.project_id, row, author, space.now())
        if kept is not None:
            opinions.restore(connection, event.project_id, kept, space.now())
