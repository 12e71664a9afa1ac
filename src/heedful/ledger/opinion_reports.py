"""Aggregates for reports, computed by the database."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.types import Float, Integer

from heedful.ledger.scores import ALL_QUERIES
from heedful.ledger.usefulness import KEPT_PER_WEEK, WEEK
from heedful.model import SIGNAL_TYPES, SignalType
from heedful.model.base import NEUTRAL
from heedful.storage.facts import active
from heedful.storage.rows import AnyRow, between
from heedful.storage.schema import datasets, decisions, entries, facts, feedbacks, receipts, review_items, scores

BINS = 10

_SIGNALS = scores.c.used + scores.c.ignored + scores.c.helpful + scores.c.not_helpful


def recalls(connection: Connection, project: int, dataset: int | None, since: int | None, until: int | None) -> int:
    """The number of recalls with stored receipts."""
    # By literal numbers: with a subquery, PostgreSQL would scan all receipts.
    dataset_ids = connection.execute(select(datasets.c.id).where(datasets.c.project_id == project)).scalars().all()
    conditions: list[ColumnElement[bool]] = [receipts.c.dataset_id.in_(dataset_ids if dataset is None else [dataset])]
    conditions += between(receipts.c.at, since, until)
    return int(connection.execute(select(func.count()).select_from(receipts).where(*conditions)).scalar_one())


def decided(connection: Connection, project: int, since: int | None, until: int | None) -> list[AnyRow]:
    """(decision, gate, times), the most frequent first."""
    times, by = func.count().label("times"), (decisions.c.decision, decisions.c.gate)
    grouped = select(*by, times).where(*_decisions(project, since, until)).group_by(*by)
    return list(connection.execute(grouped.order_by(times.desc(), *by)))


def newest_decisions(
    connection: Connection, project: int, since: int | None, until: int | None, limit: int
) -> list[AnyRow]:
    newest = select(decisions).where(*_decisions(project, since, until))
    return list(connection.execute(newest.order_by(decisions.c.at.desc(), decisions.c.seq.desc()).limit(limit)))


def usefulness(connection: Connection, dataset: int, now: int) -> tuple[Counter[int], float, Counter[SignalType]]:
    """Statistics of the active facts with signals: counts per bin, mean usefulness, and numbers of signals."""
    score = decayed(now)
    # Rounded, so that a score of 0.6 stays in its bin after a second of decay.
    bin_index = sql_cast(func.floor(func.round(sql_cast(score * 10_000, Float)) / (10_000 / BINS)), Integer)
    per_fact = select(bin_index.label("place"), score.label("score"), *(scores.c[kind] for kind in SIGNAL_TYPES))
    binned = per_fact.join(facts, facts.c.seq == scores.c.fact_seq).where(*_overall(dataset, now)).subquery()
    kinds = (func.sum(binned.c[kind]) for kind in SIGNAL_TYPES)
    sums = select(binned.c.place, func.count(), func.sum(binned.c.score), *kinds).group_by(binned.c.place)
    bins: Counter[int] = Counter()
    signals: Counter[SignalType] = Counter(dict.fromkeys(SIGNAL_TYPES, 0))
    score_sum = 0.0
    for place, count, scores_in_bin, *signals_in_bin in connection.execute(sums):
        bins[min(BINS - 1, int(place))] += int(count)
        score_sum += float(scores_in_bin)
        signals.update({kind: int(number) for kind, number in zip(SIGNAL_TYPES, signals_in_bin, strict=True)})
    return bins, score_sum / bins.total() if bins else NEUTRAL, signals


def ranked(connection: Connection, dataset: int, now: int, limit: int, *, best: bool) -> list[AnyRow]:
    """(fact_seq, id, text, score, signals) of the active facts at one end."""
    score = decayed(now).label("score")
    rows = select(facts.c.seq, facts.c.id, facts.c.text, score, _SIGNALS.label("signals"))
    rows = rows.join(facts, facts.c.seq == scores.c.fact_seq).where(*_overall(dataset, now))
    return list(connection.execute(rows.order_by(score.desc() if best else score, facts.c.seq).limit(limit)))


def mixed(connection: Connection, dataset: int, now: int, low: float, high: float, limit: int) -> list[str]:
    """Active facts that are useful for one query and not for another, the most divided first."""
    spread = func.max(scores.c.score) - func.min(scores.c.score)
    by_query = select(facts.c.id).select_from(scores).join(facts, facts.c.seq == scores.c.fact_seq)
    by_query = by_query.where(scores.c.dataset_id == dataset, scores.c.query_id != ALL_QUERIES, active(now))
    divided = by_query.group_by(facts.c.id).having(func.min(scores.c.score) <= low, func.max(scores.c.score) >= high)
    return list(connection.execute(divided.order_by(spread.desc(), facts.c.id).limit(limit)).scalars())


def negative_comments(
    connection: Connection, project: int, dataset: str | None, since: int | None, until: int | None, limit: int
) -> list[tuple[str, str, int]]:
    """(id, comment, at) of active negative opinions that have a comment, the newest first."""
    statement = select(feedbacks.c.id, feedbacks.c.comment, feedbacks.c.at).where(
        feedbacks.c.project_id == project,
        feedbacks.c.active == 1,
        feedbacks.c.rating == "down",
        feedbacks.c.comment.is_not(None),
    )
    if dataset is not None:
        statement = statement.join(entries, entries.c.id == feedbacks.c.target_id).where(entries.c.dataset == dataset)
    statement = statement.where(*between(feedbacks.c.at, since, until))
    rows = connection.execute(statement.order_by(feedbacks.c.at.desc(), feedbacks.c.seq.desc()).limit(limit))
    return [(row.id, row.comment, row.at) for row in rows]


def open_items(connection: Connection, project: int) -> int:
    """The number of open items of the review queue with an opinion that is still active."""
    statement = select(func.count()).where(
        review_items.c.project_id == project, review_items.c.status == "open", review_items.c.opinions > 0
    )
    return int(connection.execute(statement).scalar_one())


def _decisions(project: int, since: int | None, until: int | None) -> list[ColumnElement[bool]]:
    return [decisions.c.project_id == project, *between(decisions.c.at, since, until)]


def _overall(dataset: int, now: int) -> list[ColumnElement[bool]]:
    """The scores of active facts over all queries; needs `facts` joined."""
    return [scores.c.dataset_id == dataset, scores.c.query_id == ALL_QUERIES, active(now)]


def decayed(now: int) -> ColumnElement[Any]:
    """`usefulness.decayed`, computed by the database."""
    weeks = sql_cast(now - scores.c.last_at, Float) / WEEK
    remaining = func.pow(KEPT_PER_WEEK, case((weeks > 0, weeks), else_=0.0))
    return NEUTRAL + (scores.c.score - NEUTRAL) * remaining
