"""The signals of the ledger that stand, as folds, policies and reports need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from heedful.learning.evidence import POSITIVE
from heedful.learning.signals import Observation, Opinion
from heedful.model import SignalType
from heedful.storage.ledger import RETRACTION, SIGNAL, given_at, is_retracted
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import events, facts


@dataclass(frozen=True, slots=True)
class Surviving:
    """A signal that was not retracted, as folds and explanations need it."""

    id: str
    fact_seq: int
    query_id: int
    observation: Observation
    author: str | None


def surviving(
    connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int] | None = None
) -> list[Surviving]:
    """The signals about these facts (for these queries) that still count, in folding order."""
    found: list[Surviving] = []
    for run in batches(fact_seqs, 2000):
        statement = _standing(facts.c.seq.in_(run))
        if query_ids is not None:
            statement = statement.where(events.c.query_id.in_(query_ids))
        for row in connection.execute(statement):
            observation = Observation(cast(SignalType, row.value), row.confidence, row.given)
            found.append(Surviving(row.id, row.fact, row.query_id, observation, row.author))
    return found


def of_queries(connection: Connection, query_ids: Sequence[int]) -> dict[int, list[Opinion]]:
    """The signals for these queries that still count, by query, in the order they were given."""
    found: dict[int, list[Opinion]] = {query: [] for query in query_ids}
    for run in batches(query_ids):
        for row in connection.execute(_standing(events.c.query_id.in_(run))):
            found[row.query_id].append(_opinion(row))
    return found


def recorded(connection: Connection, dataset: int) -> list[tuple[int, Opinion]]:
    """All signals of a dataset that still count, as (when it was recorded, opinion), in that order."""
    statement = _standing(events.c.dataset_id == dataset).order_by(None)
    rows = connection.execute(statement.order_by(events.c.recorded_at, events.c.seq))
    return [(row.recorded_at, _opinion(row)) for row in rows]


def ratings(connection: Connection, dataset: int) -> list[AnyRow]:
    """The explicit opinions of a dataset that name a receipt and still count, in the order they were given."""
    statement = _standing(
        events.c.dataset_id == dataset,
        events.c.value.in_(("helpful", "not_helpful")),
        events.c.receipt_id.is_not(None),
    )
    return list(connection.execute(statement))


def masses_after(connection: Connection, dataset: int, seq: int) -> tuple[float, float]:
    """How much positive and negative mass the events behind a known one have added, less what they retracted."""
    retraction = events.alias("retraction")
    added = select(_mass("positive"), _mass("negative")).where(
        events.c.dataset_id == dataset, events.c.kind == SIGNAL, events.c.seq > seq
    )
    taken = (
        select(_mass("positive"), _mass("negative"))
        .join(retraction, retraction.c.target_id == events.c.id)
        .where(
            retraction.c.dataset_id == dataset,
            retraction.c.kind == RETRACTION,
            retraction.c.seq > seq,
            events.c.kind == SIGNAL,
        )
    )
    plus, minus = connection.execute(added).one(), connection.execute(taken).one()
    return float((plus[0] or 0) - (minus[0] or 0)), float((plus[1] or 0) - (minus[1] or 0))


def _standing(*conditions: ColumnElement[bool]) -> Select[*tuple[object, ...]]:
    """Signals that stand, of facts that are there, in the order they were given."""
    return (
        select(events, facts.c.seq.label("fact"), given_at().label("given"))
        .join(facts, facts.c.id == events.c.target_id)
        .where(events.c.kind == SIGNAL, ~is_retracted(), *conditions)
        .order_by(given_at(), events.c.seq)
    )


def _opinion(row: AnyRow) -> Opinion:
    return Opinion(row.fact, row.query_id, row.value, row.confidence, row.given, rank=row.rank, author=row.author)


def _mass(side: str) -> ColumnElement[float]:
    """The sum of what `learning.evidence.mass` gives, over events."""
    positive = events.c.value.in_(sorted(POSITIVE))
    each = case(
        ((events.c.value == "ignored") & events.c.rank.is_not(None), events.c.confidence / events.c.rank),
        else_=events.c.confidence,
    )
    return func.sum(case((positive if side == "positive" else ~positive, each), else_=0.0))
