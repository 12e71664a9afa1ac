"""Takes opinions into the queue, and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from heedful.review.items import Opinion, PlacedOpinion, read_opinions
from heedful.sql.space import ExecutionSpace
from heedful.storage.review import items, members
from heedful.storage.review.items import NewItem
from heedful.storage.review.members import SESSION_TARGETS, NewMember
from heedful.storage.rows import AnyRow, batches
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import FeedbackRow

BATCH_SIZE = 2_000
"""Opinions that are taken in one transaction."""


def active_negatives(space: ExecutionSpace, said: Sequence[NewMember]) -> list[Opinion]:
    """The active ones whose text is there, in order."""
    found = read_opinions(space, said)
    known = [found[each] for each in dict.fromkeys(each.event_id for each in said) if each in found]
    return [each for each in known if each.active and not each.positive]


def active_by_id(space: ExecutionSpace, ids: Sequence[str]) -> dict[str, bool]:
    """The opinions about sessions and entries whose words are there, and whether they are active."""
    found: dict[str, bool] = {}
    for run in batches(ids, BATCH_SIZE):
        found |= {row.id: row.active for row in space.sessions.store.read(partial(_rows_by_id, ids=run))}
    return found


def deleted_opinions(space: ExecutionSpace, retracted: Sequence[AnyRow]) -> set[str]:
    """Opinions about sessions and entries that went with their session."""
    ids = [row.event_id for row in retracted if row.target_type in SESSION_TARGETS]
    return set(ids) - active_by_id(space, ids).keys()


def all_exist(connection: Connection, places: Sequence[PlacedOpinion]) -> bool:
    wanted = {each.item for each in places if isinstance(each.item, int)}
    return wanted == set(items.by_seq(connection, wanted))


def add_members(
    space: ExecutionSpace, connection: Connection, project: int, places: Sequence[PlacedOpinion]
) -> set[int]:
    """Adds opinions to their items, which are made where they must be; returns the items."""
    known = members.by_event(connection, project, [each.member.event_id for each in places])
    new = [each for each in places if each.member.event_id not in known]
    wanted = {each.item.digest: each.item for each in new if isinstance(each.item, NewItem)}
    made = items.with_digests(connection, project, wanted)
    lacking = [item for digest, item in wanted.items() if digest not in made]
    vector = next((item.vector for item in lacking if item.vector is not None), None)
    made |= items.add(connection, project, lacking, space.embedded(connection, vector))
    joined = [(each.member, each.item if isinstance(each.item, int) else made[each.item.digest]) for each in new]
    members.add(connection, project, joined)
    return {seq for _, seq in joined}


def retract_members(connection: Connection, retracted: Sequence[AnyRow], gone: set[str]) -> set[int]:
    """Notes that opinions fell, and removes those that are gone; returns the items."""
    members.deactivate(connection, [row.event_id for row in retracted if row.event_id not in gone])
    members.remove(connection, sorted(gone))
    return {row.item_seq for row in retracted}


def _rows_by_id(tx: Transaction, ids: Sequence[str]) -> list[FeedbackRow]:
    return tx.feedbacks.named(ids)
