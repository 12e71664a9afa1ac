"""Expiry of facts: from that time on they are not found, even if they are still stored."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, func, select, update

from heedful.storage.rows import batches
from heedful.storage.schema import facts


def unexpired(at: int) -> ColumnElement[bool]:
    """The condition that a fact has not expired."""
    return facts.c.expires_at.is_(None) | (facts.c.expires_at > at)


def active(at: int) -> ColumnElement[bool]:
    """The condition that a fact can be recalled: it is neither superseded nor expired."""
    return (facts.c.hidden == 0) & unexpired(at)


def expired(connection: Connection, dataset: int, at: int) -> list[int]:
    """The numbers of the facts of a dataset that have expired and are still stored."""
    statement = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.expires_at <= at)
    return list(connection.execute(statement).scalars())


def change(connection: Connection, ids: Sequence[str], expires_at: int | None) -> list[str]:
    """Sets or removes the expiry of facts; returns those that had another one."""
    other = update(facts).where(facts.c.expires_at.is_distinct_from(expires_at)).values(expires_at=expires_at)
    return [
        fact_id
        for run in batches(ids)
        for fact_id in connection.execute(other.where(facts.c.id.in_(run)).returning(facts.c.id)).scalars()
    ]


def earliest(connection: Connection, ids: Sequence[str]) -> int | None:
    """When the first of these facts expires; None if none of them does."""
    ends = [
        connection.execute(select(func.min(facts.c.expires_at)).where(facts.c.id.in_(run))).scalar()
        for run in batches(ids)
    ]
    return min((end for end in ends if end is not None), default=None)
