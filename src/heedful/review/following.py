"""Makes items of what people said since somebody last looked; in batches, so that no other writer waits long."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from heedful.executions.space import NOBODY, ExecutionSpace
from heedful.review import taking
from heedful.review.elsewhere import compare_when_due, follow_sessions
from heedful.review.grouping import placed
from heedful.review.keeping import refold
from heedful.storage.ledger import RETRACTION
from heedful.storage.review import actions, members, tail
from heedful.storage.review.members import NewMember
from heedful.storage.sessions import SqlSessionStore

FAR = 10_000
"""Events that nothing is to be made of, and that are gone through each time before the mark moves over them."""


CATCH_UP_SECONDS = 3.0
"""How long somebody who looks at the queue waits for what is new; a worker does the rest."""


def follow(space: ExecutionSpace) -> None:
    """Brings the queue up to the present, however long that takes; a store that can't be written is left as it is."""
    _follow(space, lambda: True)
    if not space.workspace.database.read_only and not isinstance(space.sessions.store, SqlSessionStore):
        compare_when_due(space)


def catch_up(space: ExecutionSpace) -> None:
    """The same for somebody who waits: what was said since the last time, as far as it is done soon."""
    until = monotonic() + CATCH_UP_SECONDS
    _follow(space, lambda: monotonic() < until)


def _follow(space: ExecutionSpace, go_on: Callable[[], bool]) -> None:
    if space.workspace.database.read_only:
        return
    moved = False
    while _follow_ledger(space):
        moved = True
        if not go_on():
            break
    if not isinstance(space.sessions.store, SqlSessionStore):
        moved = follow_sessions(space, go_on) or moved
    _prune(space, moved)


def _follow_ledger(space: ExecutionSpace) -> bool:
    """Takes in the next events; False if there are none."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        start = tail.mark(connection, project, tail.EVENTS)
        rows = tail.behind(connection, project, start, taking.TOGETHER)
        newest = tail.newest(connection)
        known = members.named(connection, project, [row.target_id for row in rows if row.kind == RETRACTION])
    if not rows:
        if newest - start > FAR and project != NOBODY:
            _skip(space, project, start)
        return False
    fallen = list(known.values())
    gone = taking.gone(space, fallen)
    said = [NewMember(row.id, row.target_type, row.target_id, row.at) for row in rows if row.kind != RETRACTION]
    places = placed(space, taking.negative(space, said))
    with space.workspace.write() as connection:
        if tail.mark(connection, project, tail.EVENTS) != start or not taking.are_there(connection, places):
            # Somebody else was here: look again.
            return True
        touched = taking.put(space, connection, project, places)
        touched |= taking.take_back(connection, fallen, gone)
        refold(connection, project, touched)
        tail.set_mark(connection, project, tail.EVENTS, rows[-1].seq)
    return True


def _skip(space: ExecutionSpace, project: int, start: int) -> None:
    """Moves the mark over events of others; no writer of the project is under way meanwhile."""
    with space.workspace.write() as connection:
        if tail.mark(connection, project, tail.EVENTS) == start and not tail.behind(connection, project, start, 1):
            tail.set_mark(connection, project, tail.EVENTS, tail.newest(connection))


def _prune(space: ExecutionSpace, moved: bool) -> None:
    """Removes what is about facts and sessions that are no more."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        changed = tail.newest_change(connection) != tail.mark(connection, project, tail.FACTS)
        changed = changed and members.has_facts(connection, project)
        fallen = members.of_sessions(connection, project, standing=False) if moved else []
        notes = actions.with_words(connection, project)
    gone = sorted(set(fallen) - taking.words(space, fallen).keys())
    lost = {event_id: each for event_id, each in notes.items() if _is_of_no_session(space, each)}
    if gone or lost or changed:
        with space.workspace.write() as connection:
            # Only here nobody is about to forget a fact.
            gone += members.about_nothing(connection, project) if changed else []
            known = members.named(connection, project, gone)
            members.remove(connection, gone)
            refold(connection, project, {row.item_seq for row in known.values()})
            actions.forget_words(connection, lost)
            if changed:
                tail.set_mark(connection, project, tail.FACTS, tail.newest_change(connection))


def _is_of_no_session(space: ExecutionSpace, note: actions.Note) -> bool:
    session_id = (note.kept or {}).get("session_id")
    return session_id is not None and space.sessions.store.read(lambda tx: tx.conversations.session(session_id)) is None
