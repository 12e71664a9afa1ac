"""The folds of the ledger, stored so that recall need not fold. Derived: `refold` recomputes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, func, select, text

from heedful.ranking.policies import Documented, Tally
from heedful.ranking.signals import Observation
from heedful.storage import ledger
from heedful.storage.database import Database
from heedful.storage.fact_expiry import active
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import facts, queries, scores

ALL_QUERIES = 0
"""The query number under which a fact's score over all queries is kept."""

Key = tuple[int, int]
"""(fact number, query number)."""

_COUNTS = ("used", "ignored", "helpful", "not_helpful")
_VALUES = ["dataset_id", "score", "last_at", *_COUNTS]
_POLICY = Documented()


_READ = select(scores).where(
    scores.c.fact_seq.in_(bindparam("facts", expanding=True)),
    scores.c.query_id.in_(bindparam("queries", expanding=True)),
)


def read(connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int]) -> dict[Key, Tally]:
    """The tallies of these facts for these queries, where there are any."""
    tallies: dict[Key, Tally] = {}
    for run in batches(fact_seqs, 5000):
        rows = connection.execute(_READ, {"facts": list(run), "queries": list(query_ids)})
        tallies.update({(row.fact_seq, row.query_id): _tally(row) for row in rows})
    return tallies


def observe(
    database: Database,
    connection: Connection,
    dataset_of: dict[int, int],
    signals: Iterable[ledger.Surviving],
) -> list[int]:
    """Adds new signals of the ledger to the scores; returns the facts that they count for.

    A late signal, older than the score's last one, makes that score be recomputed. So does
    a changed vote of an author.
    """
    counting, changed = _new_votes(connection, [signal for signal in signals if signal.author_kind != "visitor"])
    by_key: dict[Key, list[Observation]] = defaultdict(list)
    for signal in counting:
        by_key[signal.fact_seq, signal.query_id].append(signal.observation)
        by_key[signal.fact_seq, ALL_QUERIES].append(signal.observation)
    present = _of_keys(connection, by_key)
    updated: dict[Key, Tally] = {}
    late: set[Key] = set(changed)
    for key, observations in by_key.items():
        state = present.get(key, Tally())
        observations.sort(key=lambda observation: observation.at)
        if state.last_at is not None and observations[0].at < state.last_at:
            late.add(key)
            continue
        updated[key] = _POLICY.fold(observations, state)
    _write(database, connection, dataset_of, updated)
    refold(database, connection, dataset_of, {fact for fact, _ in late}, {query for _, query in late})
    return sorted({signal.fact_seq for signal in counting} | {fact for fact, _ in changed})


def _new_votes(connection: Connection, signals: Sequence[ledger.Surviving]) -> tuple[list[ledger.Surviving], set[Key]]:
    """The signals to add, and the facts and queries for which an author's vote has changed."""
    voters = [voter for signal in signals if (voter := ledger.voter_of(signal)) is not None]
    if not voters:
        return list(signals), set()
    author_signals = ledger.of_voters(connection, voters)
    new = {signal.id for signal in signals}
    before = {signal.id for signal in ledger.votes(signal for signal in author_signals if signal.id not in new)}
    after = {signal.id for signal in ledger.votes(author_signals)}
    replaced = before - after
    changed = {(signal.fact_seq, signal.query_id) for signal in author_signals if signal.id in replaced}
    # A fact that is recomputed gets its new signals by that, for other queries as well.
    recomputed = {fact for fact, _ in changed}
    changed |= {(signal.fact_seq, signal.query_id) for signal in signals if signal.fact_seq in recomputed}
    counting = [
        signal
        for signal in signals
        if (signal.author is None or signal.id in after) and signal.fact_seq not in recomputed
    ]
    return counting, changed


def refold(
    database: Database,
    connection: Connection,
    dataset_of: dict[int, int],
    fact_seqs: Collection[int],
    query_ids: Collection[int] | None = None,
) -> None:
    """Recomputes scores of these facts from the active signals: all of them, or those for some queries and overall."""
    wanted = None if query_ids is None else {ALL_QUERIES, *query_ids}
    for run in batches(sorted(fact_seqs), 2000):
        recomputed = delete(scores).where(scores.c.fact_seq.in_(run))
        connection.execute(recomputed if wanted is None else recomputed.where(scores.c.query_id.in_(wanted)))
        _write(database, connection, dataset_of, folded(ledger.surviving(connection, run), wanted))


def folded(signals: Iterable[ledger.Surviving], query_ids: Collection[int] | None = None) -> dict[Key, Tally]:
    """Folds signals, which are in order, into scores: all, or those of some queries and overall."""
    by_key: dict[Key, list[Observation]] = defaultdict(list)
    for signal in signals:
        if query_ids is None or signal.query_id in query_ids:
            by_key[signal.fact_seq, signal.query_id].append(signal.observation)
        by_key[signal.fact_seq, ALL_QUERIES].append(signal.observation)
    return {key: _POLICY.fold(observations) for key, observations in by_key.items()}


_ALL_OF = select(scores).where(scores.c.fact_seq.in_(bindparam("facts", expanding=True)))


def all_of(connection: Connection, fact_seqs: Sequence[int]) -> dict[Key, Tally]:
    """Every tally of these facts."""
    rows = connection.execute(_ALL_OF, {"facts": list(fact_seqs)})
    return {(row.fact_seq, row.query_id): _tally(row) for row in rows}


def strongest(connection: Connection, fact_seq: int, limit: int) -> dict[int, str]:
    """The words of a fact's queries by number, those with the most signals first, and among equals the newest."""
    count = scores.c.used + scores.c.ignored + scores.c.helpful + scores.c.not_helpful
    rows = connection.execute(
        select(queries.c.id, queries.c.text)
        .join(scores, scores.c.query_id == queries.c.id)
        .where(scores.c.fact_seq == fact_seq, scores.c.query_id != ALL_QUERIES)
        .order_by(count.desc(), scores.c.last_at.desc(), queries.c.id.desc())
        .limit(limit)
    )
    return {row.id: row.text for row in rows}


def count_queries(connection: Connection, fact_seq: int) -> int:
    """How many queries a fact has signals for."""
    found = select(func.count()).where(scores.c.fact_seq == fact_seq, scores.c.query_id != ALL_QUERIES)
    return int(connection.execute(found).scalar_one())


def facts_with(connection: Connection, dataset: int, query_ids: Sequence[int]) -> list[int]:
    """The facts of a dataset that have signals for one of these queries."""
    rows = connection.execute(
        select(scores.c.fact_seq).where(scores.c.dataset_id == dataset, scores.c.query_id.in_(query_ids)).distinct()
    )
    return [row.fact_seq for row in rows]


def overall(connection: Connection, dataset: int, at: int) -> dict[int, Tally]:
    """The tally over all queries of every fact of a dataset that has signals and is active at a time."""
    statement = select(scores).join(facts, facts.c.seq == scores.c.fact_seq)
    statement = statement.where(scores.c.dataset_id == dataset, scores.c.query_id == ALL_QUERIES, active(at))
    rows = connection.execute(statement.order_by(scores.c.fact_seq))
    return {row.fact_seq: _tally(row) for row in rows}


_OVERALL = select(scores.c.fact_seq, scores.c.score, scores.c.last_at).where(scores.c.query_id == ALL_QUERIES)


def overall_columns(
    connection: Connection, dataset: int, fact_seqs: Sequence[int] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The facts of a dataset that have signals, or those of these that do: facts, scores, and times of last signals."""
    rows: list[AnyRow] = []
    if fact_seqs is None:
        rows += connection.execute(_OVERALL.where(scores.c.dataset_id == dataset))
    else:
        for run in batches(fact_seqs):
            rows += connection.execute(_OVERALL.where(scores.c.fact_seq.in_(run)))
    return (
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.float64),
        np.array([row[2] for row in rows], np.int64),
    )


def signalled_queries(connection: Connection, dataset: int, at: int) -> int:
    """How many different queries have signals about facts of a dataset that are active at a time."""
    return int(
        connection.execute(
            select(func.count(func.distinct(scores.c.query_id)))
            .join(facts, facts.c.seq == scores.c.fact_seq)
            .where(scores.c.dataset_id == dataset, scores.c.query_id != ALL_QUERIES, active(at))
        ).scalar_one()
    )


# Neither database uses the primary key for a list of pairs, but both do for a join.
_OF_KEYS = {
    "sqlite": text(
        "SELECT scores.* FROM json_each(:keys) AS wanted CROSS JOIN scores "
        "ON fact_seq = json_extract(wanted.value, '$[0]') AND query_id = json_extract(wanted.value, '$[1]')"
    ),
    "postgresql": text(
        "SELECT scores.* FROM json_array_elements(CAST(:keys AS json)) AS wanted(value) JOIN scores "
        "ON fact_seq = CAST(wanted.value ->> 0 AS bigint) AND query_id = CAST(wanted.value ->> 1 AS bigint)"
    ),
}


def _of_keys(connection: Connection, keys: Iterable[Key]) -> dict[Key, Tally]:
    """The tallies of exactly these keys: a fact may have signals for many other queries."""
    rows = connection.execute(_OF_KEYS[connection.dialect.name], {"keys": orjson.dumps(list(keys)).decode()})
    return {(row.fact_seq, row.query_id): _tally(row) for row in rows}


def _write(database: Database, connection: Connection, dataset_of: dict[int, int], tallies: dict[Key, Tally]) -> None:
    rows = [
        {
            "fact_seq": fact,
            "query_id": query,
            "dataset_id": dataset_of[fact],
            "score": tally.score,
            "last_at": tally.last_at,
            "used": tally.used,
            "ignored": tally.ignored,
            "helpful": tally.helpful,
            "not_helpful": tally.not_helpful,
        }
        for (fact, query), tally in tallies.items()
    ]
    database.upsert(connection, scores, rows, keys=["fact_seq", "query_id"], changed=_VALUES)


def _tally(row: AnyRow) -> Tally:
    return Tally(row.score, row.last_at, *(getattr(row, name) for name in _COUNTS))
