"""Makes items of what people said since somebody last looked; in batches, so that no other writer waits long."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from heedful.executions.space import NOBODY, ExecutionSpace
from heedful.review.grouping import Placed, placed
from heedful.review.keeping import refold
from heedful.review.opinions import Opinion, read
from heedful.storage.ledger import RETRACTION
from heedful.storage.review import actions, items, tail
from heedful.storage.review.items import OF_SESSIONS, NewItem, NewMember
from heedful.storage.rows import AnyRow, batches
from heedful.storage.sessions import SqlSessionStore, Transaction
from heedful.storage.sessions.base import FeedbackRow

TOGETHER = 2_000
"""Opinions that are taken in one transaction."""

FAR = 10_000
"""Events that nothing is to be made of, and that are gone through each time before the mark moves over them."""


def follow(space: ExecutionSpace) -> None:
    """Brings the queue up to the present; a store that can't be written is left as it is."""
    if space.workspace.database.read_only:
        return
    moved = False
    while _follow_ledger(space):
        moved = True
    if not isinstance(space.sessions.store, SqlSessionStore):
        moved = _follow_sessions(space) or moved
    _prune(space, moved)


def _follow_ledger(space: ExecutionSpace) -> bool:
    """Takes in the next events; False if there are none."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        start = tail.mark(connection, project, tail.EVENTS)
        rows = tail.behind(connection, project, start, TOGETHER)
        newest = tail.newest(connection)
        known = items.members(connection, project, [row.target_id for row in rows if row.kind == RETRACTION])
    if not rows:
        if newest - start > FAR and project != NOBODY:
            _skip(space, project, start)
        return False
    fallen = list(known.values())
    gone = _gone(space, fallen)
    said = [NewMember(row.id, row.target_type, row.target_id, row.at) for row in rows if row.kind != RETRACTION]
    places = placed(space, _negative(space, said))
    with space.workspace.write() as connection:
        if tail.mark(connection, project, tail.EVENTS) != start or not _are_there(connection, places):
            # Somebody else was here: look again.
            return True
        touched = _put(space, connection, project, places)
        touched |= _take_back(connection, fallen, gone)
        refold(connection, project, touched)
        tail.set_mark(connection, project, tail.EVENTS, rows[-1].seq)
    return True


def _skip(space: ExecutionSpace, project: int, start: int) -> None:
    """Moves the mark over events of others; no writer of the project is under way meanwhile."""
    with space.workspace.write() as connection:
        if tail.mark(connection, project, tail.EVENTS) == start and not tail.behind(connection, project, start, 1):
            tail.set_mark(connection, project, tail.EVENTS, tail.newest(connection))


def _follow_sessions(space: ExecutionSpace) -> bool:
    """Compares the opinions that sessions elsewhere have with those that are known; False if nothing differs."""
    stand: set[str] = set()
    moved = False
    while True:
        ids = space.sessions.store.read(partial(_negatives, after=max(stand, default=None)))
        if not ids:
            break
        stand.update(ids)
        with space.workspace.read() as connection:
            known = items.members(connection, space.project(connection), ids)
        moved = _join(space, [each for each in ids if each not in known]) or moved
    with space.workspace.read() as connection:
        project = space.project(connection)
        known_ids = items.of_sessions(connection, project, standing=True)
        fallen = list(items.members(connection, project, [each for each in known_ids if each not in stand]).values())
    if fallen:
        gone = _gone(space, fallen)
        with space.workspace.write() as connection:
            refold(connection, project, _take_back(connection, fallen, gone))
    return moved or bool(fallen)


def _join(space: ExecutionSpace, ids: Sequence[str]) -> bool:
    """Takes in opinions of sessions by their ids."""
    if not ids:
        return False
    # Both kinds are looked up by their ids alone.
    said = read(space, [NewMember(each, kind, "", 0) for each in ids for kind in OF_SESSIONS])
    places = placed(space, [each for each in said.values() if each.standing and not each.positive])
    with space.workspace.write() as connection:
        project = space.own_project(connection)
        if _are_there(connection, places):
            refold(connection, project, _put(space, connection, project, places))
    return True


def _negative(space: ExecutionSpace, said: Sequence[NewMember]) -> list[Opinion]:
    """Those that stand and whose words are there, in order."""
    found = read(space, said)
    known = [found[each.event_id] for each in said if each.event_id in found]
    return [each for each in known if each.standing and not each.positive]


def _gone(space: ExecutionSpace, fallen: Sequence[AnyRow]) -> set[str]:
    """Opinions about sessions and entries that went with their session."""
    ids = [row.event_id for row in fallen if row.target_type in OF_SESSIONS]
    return set(ids) - _with_words(space, ids)


def _with_words(space: ExecutionSpace, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for run in batches(ids, TOGETHER):
        found.update(row.id for row in space.sessions.store.read(partial(_named, ids=run)))
    return found


def _negatives(tx: Transaction, after: str | None) -> list[str]:
    return tx.feedbacks.negatives(after, TOGETHER)


def _named(tx: Transaction, ids: Sequence[str]) -> list[FeedbackRow]:
    return tx.feedbacks.named(ids)


def _are_there(connection: Connection, places: Sequence[Placed]) -> bool:
    wanted = {each.item for each in places if isinstance(each.item, int)}
    return wanted == set(items.by_seq(connection, wanted))


def _put(space: ExecutionSpace, connection: Connection, project: int, places: Sequence[Placed]) -> set[int]:
    """Adds opinions to their items, which are made where they must be; returns the items."""
    known = items.members(connection, project, [each.member.event_id for each in places])
    new = [each for each in places if each.member.event_id not in known]
    wanted = {each.item.digest: each.item for each in new if isinstance(each.item, NewItem)}
    made = items.with_digests(connection, project, wanted)
    lacking = [item for digest, item in wanted.items() if digest not in made]
    vector = next((item.vector for item in lacking if item.vector is not None), None)
    made |= items.add(connection, project, lacking, space.embedded(connection, vector))
    joined = [(each.member, each.item if isinstance(each.item, int) else made[each.item.digest]) for each in new]
    items.add_members(connection, project, joined)
    return {seq for _, seq in joined}


def _take_back(connection: Connection, fallen: Sequence[AnyRow], gone: set[str]) -> set[int]:
    items.fall(connection, [row.event_id for row in fallen if row.event_id not in gone])
    items.remove_members(connection, sorted(gone))
    return {row.item_seq for row in fallen}


def _prune(space: ExecutionSpace, moved: bool) -> None:
    """Removes what is about facts and sessions that are no more."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        changed = tail.newest_change(connection) != tail.mark(connection, project, tail.FACTS)
        changed = changed and items.has_facts(connection, project)
        fallen = items.of_sessions(connection, project, standing=False) if moved else []
        notes = actions.with_words(connection, project)
    gone = sorted(set(fallen) - _with_words(space, fallen))
    lost = {event_id: each for event_id, each in notes.items() if _is_of_no_session(space, each)}
    if gone or lost or changed:
        with space.workspace.write() as connection:
            # Only here nobody is about to forget a fact.
            gone += items.about_nothing(connection, project) if changed else []
            known = items.members(connection, project, gone)
            items.remove_members(connection, gone)
            refold(connection, project, {row.item_seq for row in known.values()})
            actions.forget_words(connection, lost)
            if changed:
                tail.set_mark(connection, project, tail.FACTS, tail.newest_change(connection))


def _is_of_no_session(space: ExecutionSpace, note: actions.Note) -> bool:
    session_id = (note.kept or {}).get("session_id")
    return session_id is not None and space.sessions.store.read(lambda tx: tx.conversations.session(session_id)) is None
