"""Undoing an event of any kind: everything becomes as if it had never been."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from heedful.errors import Conflict, NotFound
from heedful.ledger import events, ranking_policy, scores, supersessions, tallies
from heedful.ledger.events import CONFLICT, IMPROVE, LINK_SIGNAL, POLICY, REVIEW, SIGNAL, SUPERSESSION, Event
from heedful.model import FIXES, Retraction, Scope
from heedful.storage import facts
from heedful.storage.rows import AnyRow, Direct, batches
from heedful.workspace import Workspace

_OWN_KINDS = (SIGNAL, LINK_SIGNAL, SUPERSESSION, POLICY, CONFLICT)


@dataclass(slots=True)
class Undoing:
    """An event that is being undone, in an open transaction."""

    workspace: Workspace
    direct: Direct
    event: AnyRow
    author: str | None
    prepared: Any = None
    """The result of `UndoHandler.prepare`."""
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    """Called after the commit."""

    @property
    def connection(self) -> Connection:
        return self.direct.connection


@dataclass(frozen=True, slots=True)
class UndoHandler:
    """How another wing undoes its kind of event."""

    undo: Callable[[Undoing], Retraction]
    """Undoes it in the transaction. Idempotent."""
    prepare: Callable[[AnyRow], Any] | None = None
    """Prepares another database before the transaction. Idempotent: if the process dies between the two, a second
    attempt does the rest."""
    elsewhere: Callable[[str, str | None], Retraction | None] | None = None
    """Undoes an event that is kept in another database, by its id and for an author; None if there is none."""


def retract(workspace: Workspace, event_id: str, author: str | None, handlers: Mapping[str, UndoHandler]) -> Retraction:
    """Undoes an event of any kind, wherever it is kept. Idempotent."""
    retraction = undo_event(workspace, event_id, author, handlers)
    for handler in handlers.values():
        if retraction is None and handler.elsewhere is not None:
            retraction = handler.elsewhere(event_id, author)
    if retraction is None:
        remedy = "Use the event_id of a signal or a supersession, or a feedback_id"
        raise NotFound.in_project(workspace.project, "event", event_id, "event_id", remedy)
    return retraction


def undo_event(
    workspace: Workspace,
    event_id: str,
    author: str | None,
    handlers: Mapping[str, UndoHandler],
    kinds: Sequence[str] | None = None,
) -> Retraction | None:
    """Undoes an event, if it is of one of these kinds, in one transaction; None if there is none. Idempotent.

    Signals, supersessions, policies and conflicts are the ledger's own; for others there are handlers, by kind.
    """
    prepared = _prepare(workspace, event_id, handlers)
    with workspace.direct(write=True) as direct:
        event = events.get(direct.connection, event_id)
        if event is None or (kinds is not None and event.kind not in kinds):
            return None
        undoing = Undoing(workspace, direct, event, author, prepared)
        if event.kind in handlers:
            retraction = handlers[event.kind].undo(undoing)
        elif event.kind in _OWN_KINDS:
            retraction = retract_event(workspace, direct.connection, event, author)
        else:
            raise irreversible(event)
    for action in undoing.afterwards:
        action()
    return retraction


def _prepare(workspace: Workspace, event_id: str, handlers: Mapping[str, UndoHandler]) -> Any:
    prepare = {kind: handler.prepare for kind, handler in handlers.items() if handler.prepare is not None}
    if not prepare:
        return None
    with workspace.read() as connection:
        event = events.get(connection, event_id)
        if event is None or event.kind not in prepare:
            return None
        if events.retraction_of(connection, event.id) is not None:
            return None
    return prepare[event.kind](event)


def irreversible(event: AnyRow) -> Conflict:
    message = f"event {event.id} is a {event.kind}, which can't be retracted"
    return Conflict(message, field="event_id", value=event.id, remedy="Give the opinion again")


def scope_of(connection: Connection, event_id: str) -> Scope:
    """The scope that making an event takes, and so undoing it: `write` for a correction or a conflict of facts, for a
    policy, for a change by a reviewer and for a signal by `improve`; else `feedback`."""
    event = events.get(connection, event_id)
    if event is None:
        return "feedback"
    changes = event.kind in (SUPERSESSION, POLICY, CONFLICT) or (event.kind == REVIEW and event.value in FIXES)
    return "write" if changes or event.source == IMPROVE else "feedback"


def retract_event(workspace: Workspace, connection: Connection, event: AnyRow, author: str | None) -> Retraction:
    """Undoes a signal, supersession, policy or conflict in an open transaction; doing it again changes nothing."""
    earlier = events.retraction_of(connection, event.id)
    if earlier is not None:
        return Retraction(event_id=earlier, retracted=event.id, updated_facts=[])
    undone = _retraction(event, author, workspace.now())
    with tallies.changing(connection, event.project_id, events=[event.id]):
        events.append(connection, [undone])
    updated = _refold_without(workspace, connection, event)
    return Retraction(event_id=undone.id, retracted=event.id, updated_facts=updated)


def retract_events(
    workspace: Workspace, connection: Connection, active: Sequence[AnyRow], author: str | None
) -> list[str]:
    """Undoes many active signals in a transaction that is open already; returns the facts that changed."""
    now = workspace.now()
    for run in batches(active):
        with tallies.changing(connection, run[0].project_id, events=[event.id for event in run]):
            events.append(connection, [_retraction(event, author, now) for event in run])
    return _refold_signals(workspace, connection, active)[0]


def _retraction(event: AnyRow, author: str | None, now: int) -> Event:
    return events.retraction(
        event.project_id, event.id, author, now, dataset_id=event.dataset_id, query_id=event.query_id
    )


def _refold_without(workspace: Workspace, connection: Connection, event: AnyRow) -> list[str]:
    """Folds again without an event that is retracted; returns the facts that changed."""
    if event.kind == SUPERSESSION:
        return supersessions.judge_superseded(connection, [event.target_id, event.value])
    if event.kind == POLICY:
        ranking_policy.refold_choice(connection, event.project_id, event.target_id)
    changed, with_links = _refold_signals(workspace, connection, [event])
    return [*changed, *with_links]


def _refold_signals(
    workspace: Workspace, connection: Connection, retracted: Sequence[AnyRow]
) -> tuple[list[str], list[str]]:
    """Folds facts and links again without signals about them; returns these facts, and those of the links."""
    about_facts = [event for event in retracted if event.kind == SIGNAL]
    places = facts.locate(connection, sorted({event.target_id for event in about_facts}))
    dataset_of = dict(places.values())
    queries = {event.query_id for event in about_facts}
    scores.refold(workspace.database, connection, dataset_of, dataset_of, queries)
    links = sorted({event.target_id for event in retracted if event.kind == LINK_SIGNAL})
    return list(places), scores.refold_named_links(connection, links)
