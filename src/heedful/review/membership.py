"""Adds opinions to the queue and removes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from heedful.review.items import Opinion, PlacedOpinion, read_opinions
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts
from heedful.storage.review import items, members
from heedful.storage.review.items import NewItem
from heedful.storage.review.members import SESSION_TARGETS, NewMember
from heedful.storage.rows import AnyRow, batches
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import FeedbackRow

BATCH_SIZE = 2_000
"""Opinions per transaction."""


def active_negatives(space: ExecutionSpace, new_members: Sequence[NewMember]) -> list[Opinion]:
    """The active negative opinions whose text exists, in order."""
    opinions = read_opinions(space, new_members)
    existing = [
        opinions[opinion]
        for opinion in dict.fromkeys(opinion.event_id for opinion in new_members)
        if opinion in opinions
    ]
    return [opinion for opinion in existing if opinion.active and not opinion.positive]


def active_by_id(space: ExecutionSpace, ids: Sequence[str]) -> dict[str, bool]:
    """The opinions about sessions and entries whose text exists, and whether they are active."""
    active: dict[str, bool] = {}
    for run in batches(ids, BATCH_SIZE):
        active |= {row.id: row.active for row in space.sessions.store.read(partial(_rows_by_id, ids=run))}
    return active


def deleted_opinions(space: ExecutionSpace, retracted: Sequence[AnyRow]) -> set[str]:
    """Opinions that were deleted with their session."""
    ids = [row.event_id for row in retracted if row.target_type in SESSION_TARGETS]
    return set(ids) - active_by_id(space, ids).keys()


def all_exist(connection: Connection, places: Sequence[PlacedOpinion]) -> bool:
    expected = {placed.item for placed in places if isinstance(placed.item, int)}
    return expected == set(items.by_seq(connection, expected))


def add_members(
    space: ExecutionSpace, connection: Connection, project: int, places: Sequence[PlacedOpinion]
) -> set[int]:
    """Adds opinions to their items, creating new ones; returns the numbers of the items."""
    existing = members.by_event(connection, project, [placed.member.event_id for placed in places])
    new = [placed for placed in places if placed.member.event_id not in existing]
    new_items = {placed.item.digest: placed.item for placed in new if isinstance(placed.item, NewItem)}
    numbers = items.with_digests(connection, project, new_items)
    missing = [item for digest, item in new_items.items() if digest not in numbers]
    vector = next((item.vector for item in missing if item.vector is not None), None)
    numbers |= items.add(connection, project, missing, space.embedded(connection, vector))
    joined = [
        (placed.member, placed.item if isinstance(placed.item, int) else numbers[placed.item.digest]) for placed in new
    ]
    members.add(connection, project, joined)
    return {seq for _, seq in joined}


def retract_members(connection: Connection, retracted: Sequence[AnyRow], deleted: set[str]) -> set[int]:
    """Marks opinions as retracted, and removes the deleted ones; returns the numbers of the items."""
    members.deactivate(connection, [row.event_id for row in retracted if row.event_id not in deleted])
    members.remove(connection, sorted(deleted))
    return {row.item_seq for row in retracted}


def update_conflicts(connection: Connection, project: int, now: int) -> set[int]:
    """A conflict is active while both facts can be recalled; returns the numbers of the items that changed."""
    rows = [row for row in members.conflicts(connection, project) if not row.retracted]
    recallable = facts.texts(
        connection,
        sorted({fact_id for row in rows for fact_id in (row.target_id, row.body["fact_id"])}),
        current=True,
        at=now,
    )
    wanted = {row.event_id: row.target_id in recallable and row.body["fact_id"] in recallable for row in rows}
    members.deactivate(connection, [row.event_id for row in rows if row.active and not wanted[row.event_id]])
    members.activate(connection, [row.event_id for row in rows if not row.active and wanted[row.event_id]])
    return {row.item_seq for row in rows if bool(row.active) != wanted[row.event_id]}


def _rows_by_id(tx: Transaction, ids: Sequence[str]) -> list[FeedbackRow]:
    return tx.feedbacks.by_event_ids(ids)
