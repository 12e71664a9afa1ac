"""The append-only record of all feedback. There is no update and no delete here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, case, exists, func, insert, select

from heedful.ids import new_id
from heedful.learning.evidence import POSITIVE
from heedful.learning.signals import Observation, Opinion
from heedful.model import Metadata, SignalType
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import events, facts, notes, projects, queries

SIGNAL = "signal"
RETRACTION = "retraction"
SUPERSESSION = "supersession"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the ledger."""

    project_id: int
    kind: str
    target_type: str
    target_id: str
    source: str
    at: int
    recorded_at: int
    dataset_id: int | None = None
    author: str | None = None
    query_id: int | None = None
    value: str | None = None
    confidence: float | None = None
    receipt_id: str | None = None
    rank: int | None = None
    body: Metadata | None = None
    idempotency_key: str = ""
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Surviving:
    """A signal that was not retracted, as folds and explanations need it."""

    id: str
    fact_seq: int
    query_id: int
    observation: Observation
    author: str | None


def append(connection: Connection, new: Sequence[Event]) -> None:
    """Adds events; each is its own idempotency key unless it has one."""
    if new:
        connection.execute(insert(events), [_row(event) for event in new])


def annotate(connection: Connection, written: Sequence[tuple[str, int, str]]) -> None:
    """Keeps what people wrote with events, as (event, fact number, text)."""
    if written:
        connection.execute(
            insert(notes), [{"event_id": event, "fact_seq": fact, "text": text} for event, fact, text in written]
        )


def with_keys(connection: Connection, project: int, keys: Sequence[str]) -> dict[str, AnyRow | Event]:
    """The events that carry one of these idempotency keys."""
    found: dict[str, AnyRow | Event] = {}
    for run in batches(keys):
        rows = connection.execute(
            select(events).where(events.c.project_id == project, events.c.idempotency_key.in_(run))
        )
        found.update({row.idempotency_key: row for row in rows})
    return found


def of_receipt(connection: Connection, receipt_id: str) -> list[AnyRow]:
    """The signals under one receipt that still count."""
    statement = select(events).where(events.c.receipt_id == receipt_id, events.c.kind == SIGNAL, ~_is_retracted())
    return list(connection.execute(statement))


def get(connection: Connection, project: str, event_id: str) -> AnyRow | None:
    """One event of a project."""
    return connection.execute(
        select(events)
        .join(projects, projects.c.id == events.c.project_id)
        .where(projects.c.name == project, events.c.id == event_id)
    ).first()


def retraction_of(connection: Connection, project: int, event_id: str) -> str | None:
    """The id of the event that retracted this one, if any did."""
    return connection.execute(
        select(events.c.id).where(
            events.c.project_id == project, events.c.kind == RETRACTION, events.c.target_id == event_id
        )
    ).scalar()


def is_superseded(connection: Connection, fact_id: str) -> bool:
    """Whether a supersession of this fact stands."""
    found = connection.execute(
        select(events.c.id).where(events.c.target_id == fact_id, events.c.kind == SUPERSESSION, ~_is_retracted())
    )
    return found.first() is not None


def surviving(
    connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int] | None = None
) -> list[Surviving]:
    """The signals about these facts (for these queries) that still count, in folding order."""
    found: list[Surviving] = []
    for run in batches(fact_seqs, 2000):
        conditions: list[ColumnElement[bool]] = [facts.c.seq.in_(run), events.c.kind == SIGNAL, ~_is_retracted()]
        if query_ids is not None:
            conditions.append(events.c.query_id.in_(query_ids))
        rows = connection.execute(
            select(
                events.c.id,
                facts.c.seq.label("fact_seq"),
                events.c.query_id,
                events.c.value,
                events.c.confidence,
                events.c.at,
                events.c.author,
            )
            .join(facts, facts.c.id == events.c.target_id)
            .where(*conditions)
            .order_by(events.c.at, events.c.seq)
        )
        for row in rows:
            observation = Observation(cast(SignalType, row.value), row.confidence, row.at)
            found.append(Surviving(row.id, row.fact_seq, row.query_id, observation, row.author))
    return found


def last_event(connection: Connection, dataset: int) -> int:
    """The number of the newest event of a dataset; 0 if there is none."""
    newest = connection.execute(select(func.max(events.c.seq)).where(events.c.dataset_id == dataset))
    return int(newest.scalar() or 0)


def queries_after(connection: Connection, dataset: int, seq: int) -> list[int]:
    """The queries whose signals were given or retracted behind a known event."""
    rows = connection.execute(
        select(events.c.query_id)
        .where(events.c.dataset_id == dataset, events.c.seq > seq, events.c.query_id.is_not(None))
        .distinct()
    )
    return [row.query_id for row in rows]


def opinions(connection: Connection, query_ids: Sequence[int]) -> dict[int, list[Opinion]]:
    """The signals for these queries that still count, by query, in the order they were given."""
    found: dict[int, list[Opinion]] = {query: [] for query in query_ids}
    for run in batches(query_ids):
        rows = connection.execute(
            select(
                facts.c.seq.label("fact"),
                events.c.query_id,
                events.c.value,
                events.c.confidence,
                events.c.at,
                events.c.recorded_at,
                events.c.rank,
                events.c.author,
            )
            .join(facts, facts.c.id == events.c.target_id)
            .where(events.c.query_id.in_(run), events.c.kind == SIGNAL, ~_is_retracted())
            .order_by(events.c.at, events.c.seq)
        )
        for row in rows:
            found[row.query_id].append(_opinion(row))
    return found


def recorded(connection: Connection, dataset: int) -> list[tuple[int, Opinion]]:
    """All signals of a dataset that still count, as (when it was recorded, opinion), in that order."""
    rows = connection.execute(
        select(
            facts.c.seq.label("fact"),
            events.c.query_id,
            events.c.value,
            events.c.confidence,
            events.c.at,
            events.c.recorded_at,
            events.c.rank,
            events.c.author,
        )
        .join(facts, facts.c.id == events.c.target_id)
        .where(events.c.dataset_id == dataset, events.c.kind == SIGNAL, ~_is_retracted())
        .order_by(events.c.recorded_at, events.c.seq)
    )
    return [(row.recorded_at, _opinion(row)) for row in rows]


def ratings(connection: Connection, dataset: int) -> list[AnyRow]:
    """The explicit opinions of a dataset that name a receipt and still count, in the order they were given:
    receipt_id, fact (its number), author, value, confidence."""
    rows = connection.execute(
        select(
            events.c.receipt_id,
            facts.c.seq.label("fact"),
            events.c.author,
            events.c.value,
            events.c.confidence,
        )
        .join(facts, facts.c.id == events.c.target_id)
        .where(
            events.c.dataset_id == dataset,
            events.c.kind == SIGNAL,
            events.c.value.in_(("helpful", "not_helpful")),
            events.c.receipt_id.is_not(None),
            ~_is_retracted(),
        )
        .order_by(events.c.at, events.c.seq)
    )
    return list(rows)


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


def _mass(side: str) -> ColumnElement[float]:
    """The sum of what `learning.evidence.mass` gives, over events."""
    positive = events.c.value.in_(sorted(POSITIVE))
    each = case(
        ((events.c.value == "ignored") & events.c.rank.is_not(None), events.c.confidence / events.c.rank),
        else_=events.c.confidence,
    )
    return func.sum(case((positive if side == "positive" else ~positive, each), else_=0.0))


def query_texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The words of queries, by number."""
    rows = connection.execute(select(queries.c.id, queries.c.text).where(queries.c.id.in_(ids)))
    return {row.id: row.text for row in rows}


def _row(event: Event) -> dict[str, Any]:
    row = {name: getattr(event, name) for name in Event.__slots__}
    row["idempotency_key"] = event.idempotency_key or event.id
    return row


def _opinion(row: AnyRow) -> Opinion:
    # A signal dated ahead of its arrival must not outweigh those that can still come.
    given = min(row.at, row.recorded_at)
    return Opinion(row.fact, row.query_id, row.value, row.confidence, given, rank=row.rank, author=row.author)


def _is_retracted() -> ColumnElement[bool]:
    later = events.alias("later")
    return exists().where(later.c.target_id == events.c.id, later.c.kind == RETRACTION)
