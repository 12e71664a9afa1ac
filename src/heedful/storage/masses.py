"""How much was said for and against the facts of a dataset, kept up by what the ledger adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from heedful.learning.evidence import POSITIVE, mass
from heedful.learning.signals import Opinion
from heedful.storage.ledger import RETRACTION, given_at
from heedful.storage.opinions import SIGNALS, counted_rows
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import events

Masses = tuple[float, float]
"""Positive and negative."""

Voter = tuple[str, int, str]
"""A fact, a query, and an author."""

_LATER = events.alias("later")
_NEVER = 2**63


def masses_after(connection: Connection, dataset: int, seq: int) -> Masses:
    """How much positive and negative mass the events behind a known one have added, less what they retracted and what
    authors replaced by another signal of theirs."""
    added = select(_mass("positive"), _mass("negative")).where(
        events.c.dataset_id == dataset, *SIGNALS, events.c.seq > seq
    )
    taken = select(_mass("positive"), _mass("negative")).join(_LATER, _is_taken_after(dataset, seq)).where(*SIGNALS)
    plus, minus = connection.execute(added).one(), connection.execute(taken).one()
    replaced = _replaced_after(connection, dataset, seq)
    positive, negative = (
        float((plus[side] or 0) - (minus[side] or 0)) - replaced[side] for side in range(len(replaced))
    )
    return positive, negative


def _is_taken_after(dataset: int, seq: int) -> ColumnElement[bool]:
    return and_(
        _LATER.c.target_id == events.c.id,
        _LATER.c.dataset_id == dataset,
        _LATER.c.kind == RETRACTION,
        _LATER.c.seq > seq,
    )


def _replaced_after(connection: Connection, dataset: int, seq: int) -> Masses:
    """How much more mass stands and does not count, since its author said something else, than at a known event."""
    voters = _voters_after(connection, dataset, seq)
    ended = (
        select(func.min(_LATER.c.seq)).where(_LATER.c.target_id == events.c.id, _LATER.c.kind == RETRACTION)
    ).scalar_subquery()
    positive = negative = 0.0
    for run in batches(sorted(voters)):
        rows = connection.execute(
            select(events, ended.label("ended"))
            .where(*SIGNALS, events.c.target_id.in_({fact for fact, _, _ in run}))
            .where(events.c.author.in_({author for _, _, author in run}))
            .order_by(given_at(), events.c.seq)
        )
        wanted = set(run)
        theirs = [row for row in rows if (row.target_id, row.query_id, row.author) in wanted]
        before = _replaced([row for row in theirs if row.seq <= seq < (row.ended or _NEVER)])
        after = _replaced([row for row in theirs if row.ended is None])
        positive, negative = positive + after[0] - before[0], negative + after[1] - before[1]
    return positive, negative


def _voters_after(connection: Connection, dataset: int, seq: int) -> set[Voter]:
    """Those who spoke, or took something back, behind a known event; from the beginning, those who spoke twice."""
    spoke = select(events.c.target_id, events.c.query_id, events.c.author).where(*SIGNALS, events.c.author.is_not(None))
    of_dataset = spoke.where(events.c.dataset_id == dataset)
    if not seq:
        twice = of_dataset.group_by(events.c.target_id, events.c.query_id, events.c.author).having(func.count() > 1)
        return _read(connection.execute(twice))
    taken = spoke.join(_LATER, _is_taken_after(dataset, seq))
    return _read(connection.execute(of_dataset.where(events.c.seq > seq))) | _read(connection.execute(taken))


def _read(rows: Iterable[AnyRow]) -> set[Voter]:
    return {(row.target_id, row.query_id, row.author) for row in rows}


def _replaced(rows: Sequence[AnyRow]) -> Masses:
    votes = {row.id for row in counted_rows(rows)}
    positive = negative = 0.0
    for row in rows:
        if row.id not in votes:
            weight = mass(Opinion(0, row.query_id, row.value, row.confidence, row.at, rank=row.rank))
            positive, negative = (
                (positive + weight, negative) if row.value in POSITIVE else (positive, negative + weight)
            )
    return positive, negative


def _mass(side: str) -> ColumnElement[float]:
    """The sum of what `learning.evidence.mass` gives, over events."""
    positive = events.c.value.in_(sorted(POSITIVE))
    each = case(
        ((events.c.value == "ignored") & events.c.rank.is_not(None), events.c.confidence / events.c.rank),
        else_=events.c.confidence,
    )
    return func.sum(case((positive if side == "positive" else ~positive, each), else_=0.0))
