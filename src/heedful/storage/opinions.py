"""The signals of the ledger that count, as folds, policies and reports need them: those that stand, without those of
anonymous visitors, and one for each author (`learning.votes`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import ColumnElement, Connection, Select, select

from heedful.learning.signals import Observation, Opinion
from heedful.learning.votes import counted
from heedful.model import AuthorStanding, SignalType
from heedful.storage.ledger import SIGNAL, given_at, is_retracted
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
    author_standing: AuthorStanding
    seq: int = 0


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
            found.append(_surviving(row))
    return votes(found)


def votes(signals: Iterable[Surviving]) -> list[Surviving]:
    """The signals that count, of those given, which are in folding order."""
    return counted(signals, _voter, lambda each: (each.observation.signal_type, each.observation.confidence))


def of_queries(connection: Connection, query_ids: Sequence[int]) -> dict[int, list[Opinion]]:
    """The signals for these queries that still count, by query, in the order they were given."""
    found: dict[int, list[Opinion]] = {query: [] for query in query_ids}
    for run in batches(query_ids):
        for row in counted_rows(connection.execute(_standing(events.c.query_id.in_(run)))):
            found[row.query_id].append(_opinion(row))
    return found


def recorded(connection: Connection, dataset: int) -> list[tuple[int, Opinion]]:
    """All signals of a dataset that still count, as (when it was recorded, opinion), in that order."""
    rows = counted_rows(connection.execute(_standing(events.c.dataset_id == dataset)))
    return [(row.recorded_at, _opinion(row)) for row in sorted(rows, key=lambda row: (row.recorded_at, row.seq))]


def ratings(connection: Connection, dataset: int) -> list[AnyRow]:
    """The explicit opinions of a dataset that name a receipt and still count, in the order they were given."""
    statement = _standing(
        events.c.dataset_id == dataset,
        events.c.value.in_(("helpful", "not_helpful")),
        events.c.receipt_id.is_not(None),
    )
    return list(connection.execute(statement))


def of_authors(
    connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int], authors: Sequence[str]
) -> list[Surviving]:
    """The signals that these authors gave about these facts for these queries and that stand, in folding order; also
    those that another one of theirs replaces."""
    asked = [
        (facts.c.seq.in_(run), events.c.query_id.in_(queries), events.c.author.in_(some))
        for run in batches(fact_seqs)
        for queries in batches(query_ids)
        for some in batches(authors)
    ]
    found = [_surviving(row) for conditions in asked for row in connection.execute(_standing(*conditions))]
    return found if len(asked) == 1 else sorted(found, key=lambda each: (each.observation.at, each.seq))


_SIGNAL = (
    events.c.id,
    events.c.seq,
    events.c.target_id,
    events.c.query_id,
    events.c.value,
    events.c.confidence,
    events.c.author,
    events.c.author_standing,
    events.c.recorded_at,
    events.c.receipt_id,
    events.c.rank,
)
"""Without what no fold reads: recalls read many of these rows."""

SIGNALS = (events.c.kind == SIGNAL, events.c.author_standing != "anonymous")
"""What makes an event a signal that may count."""


def counted_rows(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """Rows of signals in the order they were given, without those that another one of their author replaces."""
    return counted(rows, _voter_of, _said)


def _voter(signal: Surviving) -> tuple[int, int, str] | None:
    return None if signal.author is None else (signal.fact_seq, signal.query_id, signal.author)


def _voter_of(row: AnyRow) -> tuple[str, int, str] | None:
    return None if row.author is None else (row.target_id, row.query_id, row.author)


def _said(row: AnyRow) -> tuple[SignalType, float]:
    return row.value, row.confidence


def _standing(*conditions: ColumnElement[bool]) -> Select[*tuple[object, ...]]:
    """Signals that stand, of facts that are there, in the order they were given."""
    return (
        select(*_SIGNAL, facts.c.seq.label("fact"), given_at().label("given"))
        .join(facts, facts.c.id == events.c.target_id)
        .where(*SIGNALS, ~is_retracted(), *conditions)
        .order_by(given_at(), events.c.seq)
    )


def _surviving(row: AnyRow) -> Surviving:
    observation = Observation(cast(SignalType, row.value), row.confidence, row.given)
    return Surviving(row.id, row.fact, row.query_id, observation, row.author, row.author_standing, row.seq)


def _opinion(row: AnyRow) -> Opinion:
    return Opinion(row.fact, row.query_id, row.value, row.confidence, row.given, rank=row.rank, author=row.author)
