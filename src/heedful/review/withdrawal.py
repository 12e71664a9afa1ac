"""Takes opinions into the queue, and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from heedful.review.items import Opinion, Placed, read
from heedful.sql.space import ExecutionSpace
from heedful.storage.review import items, members
from heedful.storage.review.items import NewItem
from heedful.storage.review.members import OF_SESSIONS, NewMember
from heedful.storage.rows import AnyRow, batches
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import FeedbackRow

TOGETHER = 2_000
"""Opinions that are taken in one transaction."""


def negative(space: ExecutionSpace, said: Sequence[NewMember]) -> list[Opinion]:
    """Those that stand and whose words are there, in order."""
    found = read(space, said)
    known = [found[each] for each in dict.fromkeys(each.event_id for each in said) if each in found]
    return [each for each in known if each.standing and not each.positive]


def words(space: ExecutionSpace, ids: Sequence[str]) -> dict[str, bool]:
    """The opinions about sessions and entries whose words are there, and whether they stand."""
    found: dict[str, bool] = {}
    for run in batches(ids, TOGETHER):
        found |= {row.id: row.standing for row in space.sessions.store.read(partial(_named, ids=run))}
    return found


def gone(space: ExecutionSpace, fallen: Sequence[AnyRow]) -> set[str]:
    """Opinions about sessions and entries that went with their session."""
    ids = [row.event_id for row in fallen if row.target_type in OF_SESSIONS]
    return set(ids) - words(space, ids).keys()


def are_there(connection: Connection, places: Sequence[Placed]) -> bool:
    wanted = {each.item for each in places if isinstance(each.item, int)}
    return wanted == set(items.by_seq(connection, wanted))


def put(space: ExecutionSpace, connection: Connection, project: int, places: Sequence[Placed]) -> set[int]:
    """Adds opinions to their items, which are made where they must be; returns the items."""
    known = members.named(connection, project, [each.member.event_id for each in places])
    new = [each for each in places if each.member.event_id not in known]
    wanted = {each.item.digest: each.item for each in new if isinstance(each.item, NewItem)}
    made = items.with_digests(connection, project, wanted)
    lacking = [item for digest, item in wanted.items() if digest not in made]
    vector = next((item.vector for item in lacking if item.vector is not None), None)
    made |= items.add(connection, project, lacking, space.embedded(connection, vector))
    joined = [(each.member, each.item if isinstance(each.item, int) else made[each.item.digest]) for each in new]
    members.add(connection, project, joined)
    return {seq for _, seq in joined}


def take_back(connection: Connection, fallen: Sequence[AnyRow], gone: set[str]) -> set[int]:
    """Notes that opinions fell, and removes those that are gone; returns the items."""
    members.fall(connection, [row.event_id for row in fallen if row.event_id not in gone])
    members.remove(connection, sorted(gone))
    return {row.item_seq for row in fallen}


def _named(tx: Transaction, ids: Sequence[str]) -> list[FeedbackRow]:
    return tx.feedbacks.named(ids)
