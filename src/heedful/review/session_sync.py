"""Follows sessions that are in a database of their own, whose events are not in the ledger of the store.

Negative opinions and their retractions stand there in partitions, and the queue keeps the place up to which it has seen
each. What older versions write is in no partition, and a database may be restored from a backup: so now and then
all active opinions are compared with those that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from heedful.clock import DAY
from heedful.review import membership
from heedful.review.items import place_opinions, refold
from heedful.sql.space import NO_PROJECT, ExecutionSpace
from heedful.storage.review import members, watermarks
from heedful.storage.review.members import SESSION_TARGETS, NewMember
from heedful.storage.sessions.base import Change, RemoteTransaction

FULL_COMPARISON_INTERVAL = DAY
"""The interval between full comparisons."""


def follow_sessions(space: ExecutionSpace, go_on: Callable[[], bool]) -> bool:
    """Handles new opinions and retractions; False if there are none."""
    newest = space.sessions.store.read(_newest)
    with space.workspace.read() as connection:
        project = space.project(connection)
        positions = watermarks.get_partitions(connection, project)
    if any(newest.get(partition, 0) < position for partition, position in positions.items()):
        # The database was restored from a backup: read everything again, and let a worker compare all.
        with space.workspace.write() as connection:
            watermarks.set_partitions(connection, project, {})
            watermarks.set_watermark(connection, project, watermarks.FULL_COMPARISON, 0)
        positions = {}
    changed = False
    for partition, position in newest.items():
        while position > positions.get(partition, 0) and _follow_partition(space, partition):
            changed = True
            if not go_on():
                return True
    return changed


def compare_when_due(space: ExecutionSpace) -> None:
    """Compares all opinions with the known ones, once a day. Reads all of them."""
    with space.workspace.read() as connection:
        compared_at = watermarks.get_watermark(connection, space.project(connection), watermarks.FULL_COMPARISON)
    if not compared_at <= space.now() < compared_at + FULL_COMPARISON_INTERVAL:
        _compare_all(space)


def _follow_partition(space: ExecutionSpace, partition: int) -> bool:
    """Handles the next batch of changes of a partition; False if there are none."""
    name = f"{watermarks.PARTITION_PREFIX}{partition}"
    with space.workspace.read() as connection:
        project = space.project(connection)
        start = watermarks.get_watermark(connection, project, name)
    changes = space.sessions.store.read(partial(_changes_after, partition=partition, position=start))
    if not changes:
        return False
    retracted_ids = {change.feedback_id for change in changes if not change.added}
    with space.workspace.read() as connection:
        retracted = list(members.by_event(connection, project, retracted_ids).values())
    deleted = membership.deleted_opinions(space, retracted)
    places = place_opinions(
        space,
        membership.active_negatives(space, _new_members([change.feedback_id for change in changes], retracted_ids)),
    )
    with space.workspace.write() as connection:
        project = space.own_project(connection)
        if watermarks.get_watermark(connection, project, name) != start or not membership.all_exist(connection, places):
            # Another process was faster: start again.
            return True
        changed_items = membership.add_members(space, connection, project, places)
        changed_items |= membership.retract_members(connection, retracted, deleted)
        refold(connection, project, changed_items)
        watermarks.set_watermark(connection, project, name, changes[-1].place)
    return True


def _compare_all(space: ExecutionSpace) -> bool:
    """Compares all active opinions with the known ones; False if nothing differs."""
    # Read first: later changes have higher positions, and are handled afterwards.
    positions = space.sessions.store.read(_current_positions)
    active: set[str] = set()
    changed = False
    while ids := space.sessions.store.read(partial(_negatives, after=max(active, default=None))):
        active.update(ids)
        with space.workspace.read() as connection:
            existing = members.by_event(connection, space.project(connection), ids)
        changed = _join(space, [event_id for event_id in ids if event_id not in existing]) or changed
    with space.workspace.read() as connection:
        project = space.project(connection)
        missing = [
            event_id for event_id in members.of_sessions(connection, project, active=True) if event_id not in active
        ]
        rows = members.by_event(connection, project, missing)
    # Some may have been added after their batch was read.
    still_known = membership.active_by_id(space, list(rows))
    retracted = [row for event_id, row in rows.items() if not still_known.get(event_id)]
    if project != NO_PROJECT or changed:
        with space.workspace.write() as connection:
            project = space.own_project(connection)
            deleted = {row.event_id for row in retracted if row.event_id not in still_known}
            refold(connection, project, membership.retract_members(connection, retracted, deleted))
            watermarks.set_partitions(connection, project, positions)
            watermarks.set_watermark(connection, project, watermarks.FULL_COMPARISON, space.now())
    return changed or bool(retracted)


def _join(space: ExecutionSpace, ids: Sequence[str]) -> bool:
    """Adds opinions of sessions by their ids."""
    if not ids:
        return False
    while True:
        places = place_opinions(space, membership.active_negatives(space, _new_members(ids)))
        with space.workspace.write() as connection:
            project = space.own_project(connection)
            if membership.all_exist(connection, places):
                refold(connection, project, membership.add_members(space, connection, project, places))
                return True


def _new_members(ids: Sequence[str], without: AbstractSet[str] = frozenset()) -> list[NewMember]:
    # The id alone identifies an opinion of either kind.
    return [NewMember(event_id, kind, "", 0) for event_id in ids if event_id not in without for kind in SESSION_TARGETS]


def _newest(tx: RemoteTransaction) -> dict[int, int]:
    return tx.changes.newest()


def _current_positions(tx: RemoteTransaction) -> dict[int, int]:
    return tx.changes.positions()


def _changes_after(tx: RemoteTransaction, partition: int, position: int) -> list[Change]:
    return tx.changes.changes_after(partition, position, membership.BATCH_SIZE)


def _negatives(tx: RemoteTransaction, after: str | None) -> list[str]:
    return tx.feedbacks.negatives(after, membership.BATCH_SIZE)
