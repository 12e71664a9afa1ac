"""Undoing what a reviewer did: afterwards everything is as it was before."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from heedful.memory.history import retract_event
from heedful.model import Metadata, Retraction
from heedful.review import retraction as retracting
from heedful.review import teaching
from heedful.review.items import refold
from heedful.sql.space import ExecutionSpace
from heedful.storage import ledger
from heedful.storage.executions import golden, opinions
from heedful.storage.ledger import REVIEW
from heedful.storage.review import actions, items
from heedful.storage.review.actions import Note
from heedful.storage.review.members import SESSION_TARGETS
from heedful.storage.rows import AnyRow


class UndoResult(NamedTuple):
    """An action that was undone."""

    retraction_id: str
    facts: list[str]
    """Facts that changed with it."""


def retract(space: ExecutionSpace, event_id: str, author: str | None) -> Retraction | None:
    """The retraction of what a reviewer did; None if there is no such event."""
    undone = undo(space, event_id, author)
    if undone is None:
        return None
    return Retraction(event_id=undone.retraction_id, retracted=event_id, updated_facts=undone.facts)


def undo(space: ExecutionSpace, event_id: str, author: str | None) -> UndoResult | None:
    """Undoes an action; None if no action has this id. Doing it again changes nothing."""
    with space.workspace.read() as connection:
        event = ledger.get(connection, space.workspace.project, event_id)
        if event is None or event.kind != REVIEW:
            return None
        earlier = ledger.retraction_of(connection, event.project_id, event_id)
        kept = actions.read(connection, event.project_id, [event_id]).get(event_id, Note()).kept
    if earlier is not None:
        return UndoResult(earlier, [])
    if event.value == "retract" and event.body["target_type"] in SESSION_TARGETS:
        # It may be in another database; a second attempt finds it done.
        retracting.restore_feedback(space, event_id, kept)
    with space.workspace.write() as connection:
        earlier = ledger.retraction_of(connection, event.project_id, event_id)
        if earlier is not None:
            return UndoResult(earlier, [])
        changed = _undo(space, connection, event, kept, author)
        retraction = ledger.retraction(event.project_id, event_id, author, space.now())
        ledger.append(connection, [retraction])
        item = items.get(connection, event.project_id, event.target_id)
        if item is not None:
            refold(connection, event.project_id, [item.seq])
            items.touch(connection, item.seq, space.now())
        return UndoResult(retraction.id, changed)


def _undo(
    space: ExecutionSpace, connection: Connection, event: AnyRow, kept: Metadata | None, author: str | None
) -> list[str]:
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
        _retract_own_opinion(space, connection, event, kept, author)
    return []


def _retract_own_opinion(
    space: ExecutionSpace, connection: Connection, event: AnyRow, kept: Metadata | None, author: str | None
) -> None:
    """Retracts the reviewer's own opinion, and restores the one that it replaced. What was said since stays."""
    row = opinions.get(connection, event.project_id, event.body["event_id"])
    if row is not None and row.event_id == event.body["event_id"]:
        opinions.withdraw(connection, event.project_id, row, author, space.now())
        if kept is not None:
            opinions.restore(connection, event.project_id, kept, space.now())
