"""Items of the review queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, select, tuple_, update

from heedful.ids import new_id
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema_insight import review_items, review_members, review_notes

Place = tuple[int, int, int]
"""The position of an item in the list: its opinions, the time of the newest, and its number."""


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item about to be stored."""

    target_type: str
    dataset: str | None
    digest: bytes
    vector: bytes | None
    at: int
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items to list."""

    status: str | None = None
    assignee: str | None = None
    dataset: str | None = None
    target_type: str | None = None


def get(connection: Connection, project: int, item_id: str) -> AnyRow | None:
    return connection.execute(
        select(review_items).where(review_items.c.project_id == project, review_items.c.id == item_id)
    ).first()


def list_items(
    connection: Connection, project: int, filters: ItemFilter, after: Place | None, limit: int
) -> list[AnyRow]:
    """Those with the most opinions first, then the newest. An item is open only while an opinion of it is active."""
    order = (review_items.c.opinions, review_items.c.last_at, review_items.c.seq)
    conditions: list[ColumnElement[bool]] = [review_items.c.project_id == project]
    for name in ItemFilter.__slots__:
        value = getattr(filters, name)
        if value is not None:
            conditions.append(review_items.c[name] == value)
    if filters.status == "open":
        conditions.append(review_items.c.opinions > 0)
    if after is not None:
        conditions.append(tuple_(*order) < after)
    statement = select(review_items).where(*conditions).order_by(*(column.desc() for column in order))
    return list(connection.execute(statement.limit(limit)))


def by_seq(connection: Connection, seqs: Iterable[int]) -> dict[int, AnyRow]:
    return {
        row.seq: row
        for run in batches(sorted(set(seqs)))
        for row in connection.execute(select(review_items).where(review_items.c.seq.in_(run)))
    }


def with_digests(connection: Connection, project: int, digests: Iterable[bytes]) -> dict[bytes, int]:
    """The numbers of existing items, by digest."""
    return {
        row.digest: row.seq
        for run in batches(sorted(set(digests)))
        for row in connection.execute(
            select(review_items.c.digest, review_items.c.seq).where(
                review_items.c.project_id == project, review_items.c.digest.in_(run)
            )
        )
    }


def open_vectors(
    connection: Connection, project: int, target_type: str, dataset: str | None, model: int, limit: int
) -> list[tuple[int, bytes]]:
    """The questions of the newest open items, as (number, vector)."""
    rows = connection.execute(
        select(review_items.c.seq, review_items.c.vector)
        .where(
            review_items.c.project_id == project,
            review_items.c.status == "open",
            review_items.c.target_type == target_type,
            review_items.c.dataset.is_not_distinct_from(dataset),
            review_items.c.model_id == model,
            review_items.c.opinions > 0,
        )
        .order_by(review_items.c.seq.desc())
        .limit(limit)
    )
    return [(row.seq, row.vector) for row in rows]


def add(connection: Connection, project: int, new: Sequence[NewItem], model: int | None) -> dict[bytes, int]:
    """Stores items that are open and have no opinions yet; returns their numbers, by digest."""
    rows = [
        {
            "id": item.id,
            "project_id": project,
            "target_type": item.target_type,
            "dataset": item.dataset,
            "digest": item.digest,
            "model_id": None if item.vector is None else model,
            "vector": item.vector,
            "status": "open",
            "assignee": None,
            "opinions": 0,
            "opened_at": item.at,
            "last_at": item.at,
            "changed_at": item.at,
        }
        for item in new
    ]
    if rows:
        connection.execute(insert(review_items), rows)
    return with_digests(connection, project, [item.digest for item in new])


class Fold(NamedTuple):
    """The folded state of an item."""

    seq: int
    status: str
    assignee: str | None
    opinions: int
    last_at: int


_FOLD = (
    update(review_items)
    .where(review_items.c.seq == bindparam("named"))
    .values({name: bindparam(name) for name in Fold._fields if name != "seq"})
)


def set_folds(connection: Connection, folds: Sequence[Fold]) -> None:
    if folds:
        rows = [{"named" if name == "seq" else name: value for name, value in fold._asdict().items()} for fold in folds]
        connection.execute(_FOLD, rows)


def touch(connection: Connection, seq: int, at: int) -> None:
    """Updates the time of an item's last action."""
    connection.execute(update(review_items).where(review_items.c.seq == seq).values(changed_at=at))


def remove(connection: Connection, seqs: Sequence[int]) -> None:
    """Removes items with their opinions and notes."""
    for run in batches(seqs):
        for table in (review_members, review_notes):
            connection.execute(delete(table).where(table.c.item_seq.in_(run)))
        connection.execute(delete(review_items).where(review_items.c.seq.in_(run)))
