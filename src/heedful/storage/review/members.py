"""The opinions that items of the review queue are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, delete, exists, func, insert, select, update

from heedful.model import FeedbackTarget
from heedful.storage.ledger import CONFLICT, is_retracted
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import events, facts
from heedful.storage.schema_insight import review_items, review_members

SESSION_TARGETS: tuple[FeedbackTarget, ...] = ("session", "entry")
"""Targets of opinions that are deleted with their session."""


class NewMember(NamedTuple):
    """An opinion to add to an item."""

    event_id: str
    target_type: str
    target_id: str
    at: int


class ActiveCounts(NamedTuple):
    """How many of an item's opinions are active."""

    members: int
    opinions: int
    last_at: int | None


def of_targets(connection: Connection, project: int, targets: Iterable[str]) -> dict[tuple[str, str], int]:
    """The items that have an opinion about one of these targets, by type and id of the target."""
    return {
        (row.target_type, row.target_id): row.item_seq
        for run in batches(sorted(set(targets)))
        for row in connection.execute(
            select(review_members.c.target_type, review_members.c.target_id, review_members.c.item_seq).where(
                review_members.c.project_id == project, review_members.c.target_id.in_(run)
            )
        )
    }


def add(connection: Connection, project: int, new: Sequence[tuple[NewMember, int]]) -> None:
    """Adds active opinions, each with the number of its item."""
    if new:
        connection.execute(
            insert(review_members),
            [{**member._asdict(), "item_seq": seq, "project_id": project, "active": 1} for member, seq in new],
        )


def by_event(connection: Connection, project: int, event_ids: Iterable[str]) -> dict[str, AnyRow]:
    """The opinions of items with these events, by event."""
    return {
        row.event_id: row
        for run in batches(sorted(set(event_ids)))
        for row in connection.execute(
            select(review_members).where(review_members.c.project_id == project, review_members.c.event_id.in_(run))
        )
    }


def deactivate(connection: Connection, event_ids: Sequence[str]) -> None:
    """Marks opinions as inactive."""
    for run in batches(event_ids):
        connection.execute(update(review_members).where(review_members.c.event_id.in_(run)).values(active=0))


def remove(connection: Connection, event_ids: Sequence[str]) -> None:
    for run in batches(event_ids):
        connection.execute(delete(review_members).where(review_members.c.event_id.in_(run)))


def active_counts(connection: Connection, seqs: Iterable[int]) -> dict[int, ActiveCounts]:
    """Counts of active opinions, by item."""
    counts = {
        row.item_seq: ActiveCounts(int(row.members), int(row.opinions), row.last_at)
        for run in batches(sorted(set(seqs)))
        for row in connection.execute(
            select(
                review_members.c.item_seq,
                func.count().label("members"),
                func.sum(review_members.c.active).label("opinions"),
                func.max(review_members.c.at).filter(review_members.c.active == 1).label("last_at"),
            )
            .where(review_members.c.item_seq.in_(run))
            .group_by(review_members.c.item_seq)
        )
    }
    return {seq: counts.get(seq, ActiveCounts(0, 0, None)) for seq in seqs}


def newest(connection: Connection, seqs: Sequence[int], limit: int) -> dict[int, list[AnyRow]]:
    """Some opinions of each item: those that are active first, then the newest."""
    result: dict[int, list[AnyRow]] = {seq: [] for seq in seqs}
    for run in batches(seqs):
        rows = connection.execute(_newest(*review_members.c, seqs=run, limit=limit))
        for row in sorted(rows, key=lambda row: (row.active, row.at, row.event_id), reverse=True):
            result[row.item_seq].append(row)
    return result


def _newest(*columns: ColumnElement[Any], seqs: Sequence[int], limit: int) -> Select[Any]:
    """The statement of `newest`, which reads no more rows than needed."""
    same_item = review_members.alias("ours")
    order = (same_item.c.active.desc(), same_item.c.at.desc(), same_item.c.event_id.desc())
    chosen = (
        select(same_item.c.event_id).where(same_item.c.item_seq == review_items.c.seq).order_by(*order).limit(limit)
    )
    return (
        select(*columns)
        .select_from(review_items)
        .join(review_members, review_members.c.event_id.in_(chosen.correlate(review_items)))
        .where(review_items.c.seq.in_(seqs))
    )


def first_between(connection: Connection, seq: int, after: int, before: int | None) -> AnyRow | None:
    """The first active opinion of an item after one time and not after another."""
    conditions = [review_members.c.item_seq == seq, review_members.c.active == 1, review_members.c.at > after]
    if before is not None:
        conditions.append(review_members.c.at <= before)
    order = (review_members.c.at, review_members.c.event_id)
    return connection.execute(select(review_members).where(*conditions).order_by(*order).limit(1)).first()


def targets(connection: Connection, seqs: Sequence[int], limit: int) -> list[AnyRow]:
    """What the newest opinions of each item are about, as (item_seq, target_type, target_id)."""
    columns = (review_members.c.item_seq, review_members.c.target_type, review_members.c.target_id)
    return [
        row for run in batches(seqs) for row in connection.execute(_newest(*columns, seqs=run, limit=limit).distinct())
    ]


def of_sessions(connection: Connection, project: int, *, active: bool) -> list[str]:
    """The active or the inactive opinions about sessions and entries."""
    return list(
        connection.execute(
            select(review_members.c.event_id).where(
                review_members.c.project_id == project,
                review_members.c.target_type.in_(SESSION_TARGETS),
                review_members.c.active == int(active),
            )
        ).scalars()
    )


def has_facts(connection: Connection, project: int) -> bool:
    """Whether any opinion is about a fact."""
    rows = connection.execute(
        select(review_members.c.event_id)
        .where(review_members.c.project_id == project, review_members.c.target_type == "fact")
        .limit(1)
    )
    return rows.first() is not None


def orphaned(connection: Connection, project: int) -> list[str]:
    """The opinions about deleted facts."""
    return list(
        connection.execute(
            select(review_members.c.event_id).where(
                review_members.c.project_id == project,
                review_members.c.target_type == "fact",
                ~exists().where(facts.c.id == review_members.c.target_id),
            )
        ).scalars()
    )


def conflicts(connection: Connection, project: int) -> list[AnyRow]:
    """The members that are conflicts between facts: event, item, whether it is active, and (`body`, `fact_id`) what
    conflicts with what."""
    return list(
        connection.execute(
            select(
                review_members.c.event_id,
                review_members.c.item_seq,
                review_members.c.active,
                events.c.target_id,
                events.c.body,
                is_retracted().label("retracted"),
            )
            .join(events, events.c.id == review_members.c.event_id)
            .where(review_members.c.project_id == project, events.c.kind == CONFLICT)
        )
    )


def activate(connection: Connection, event_ids: Sequence[str]) -> None:
    """Marks opinions as active again."""
    for run in batches(event_ids):
        connection.execute(update(review_members).where(review_members.c.event_id.in_(run)).values(active=1))


def get_member(connection: Connection, seq: int, event_id: str) -> AnyRow | None:
    """One opinion of an item."""
    return connection.execute(
        select(review_members).where(review_members.c.item_seq == seq, review_members.c.event_id == event_id)
    ).first()
