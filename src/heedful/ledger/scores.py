"""The folds of the ledger, stored so that recall need not fold: the scores of facts, by query and overall, and those of
links. Derived: `refold` and `refold_links` recompute them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, or_, select, text, update

from heedful.ledger.events import EFFECTIVE_TIME, LINK_SIGNAL, is_retracted, of_voters, surviving
from heedful.ledger.usefulness import NO_SIGNALS, Documented, Opinion, Tally
from heedful.ledger.votes import counted_votes
from heedful.model import SIGNAL_TYPES
from heedful.model.base import NEUTRAL
from heedful.storage.database import Database
from heedful.storage.facts import active
from heedful.storage.rows import AnyRow, Direct, Prepared, batches, select_in
from heedful.storage.schema import events, facts, links, queries, scores

ALL_QUERIES = 0  # The query number under which a fact's score over all queries is kept.
Key = tuple[int, int]  # (fact number, query number), or (fact number, entity number) of a link.
BATCH_SIZE = 2000  # Facts or links that are folded at once.

_POLICY = Documented()
_TALLY = Tally.__slots__  # The columns of a score.


def _tally(row: AnyRow) -> Tally:
    return Tally(*(getattr(row, name) for name in _TALLY))


def _add(stored: Mapping[Key, Tally], signals: Mapping[Key, list[Opinion]]) -> tuple[dict[Key, Tally], set[Key]]:
    """The scores with new signals; and those to recompute, because a signal is older than their last one."""
    updated: dict[Key, Tally] = {}
    late: set[Key] = set()
    for key, new in signals.items():
        state = stored.get(key, NO_SIGNALS)
        new.sort(key=lambda signal: signal.at)
        if state.last_at is not None and new[0].at < state.last_at:
            late.add(key)
        else:
            updated[key] = _POLICY.fold(new, state)
    return updated, late


def read(connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int]) -> dict[Key, Tally]:
    """The tallies of these facts for these queries, where there are any."""
    rows = select_in(connection, select(scores).where(scores.c.query_id.in_(query_ids)), scores.c.fact_seq, fact_seqs)
    return {(row.fact_seq, row.query_id): _tally(row) for row in rows}


def observe(
    database: Database, connection: Connection, dataset_of: dict[int, int], signals: Iterable[Opinion]
) -> list[int]:
    """Adds new signals of the ledger to the scores; returns the facts that they count for.

    A late signal, older than the score's last one, makes that score be recomputed. So does
    a changed vote of an author.
    """
    counting, changed = _new_votes(connection, [signal for signal in signals if signal.author_kind != "visitor"])
    by_key: dict[Key, list[Opinion]] = defaultdict(list)
    for signal in counting:
        by_key[signal.fact, signal.query].append(signal)
        by_key[signal.fact, ALL_QUERIES].append(signal)
    updated, late = _add(_of_keys(connection, by_key), by_key)
    _write(database, connection, dataset_of, updated)
    late |= changed
    refold(database, connection, dataset_of, {fact for fact, _ in late}, {query for _, query in late})
    return sorted({signal.fact for signal in counting} | {fact for fact, _ in changed})


def _new_votes(connection: Connection, signals: Sequence[Opinion]) -> tuple[list[Opinion], set[Key]]:
    """The signals to add, and the facts and queries for which an author's vote has changed."""
    voters = [(signal.fact, signal.query, signal.author) for signal in signals if signal.author is not None]
    if not voters:
        return list(signals), set()
    author_signals = of_voters(connection, voters)
    new = {signal.id for signal in signals}
    before = {signal.id for signal in counted_votes(signal for signal in author_signals if signal.id not in new)}
    after = {signal.id for signal in counted_votes(author_signals)}
    changed = {(signal.fact, signal.query) for signal in author_signals if signal.id in before - after}
    # A fact that is recomputed gets its new signals by that, for other queries as well.
    recomputed = {fact for fact, _ in changed}
    changed |= {(signal.fact, signal.query) for signal in signals if signal.fact in recomputed}
    votes = (signal for signal in signals if signal.author is None or signal.id in after)
    return [signal for signal in votes if signal.fact not in recomputed], changed


def refold(
    database: Database,
    connection: Connection,
    dataset_of: dict[int, int],
    fact_seqs: Collection[int],
    query_ids: Collection[int] | None = None,
) -> None:
    """Recomputes scores of these facts from the active signals: all of them, or those for some queries and overall."""
    wanted = None if query_ids is None else {ALL_QUERIES, *query_ids}
    for run in batches(sorted(fact_seqs), BATCH_SIZE):
        recomputed = delete(scores).where(scores.c.fact_seq.in_(run))
        connection.execute(recomputed if wanted is None else recomputed.where(scores.c.query_id.in_(wanted)))
        _write(database, connection, dataset_of, folded(surviving(connection, run), wanted))


def folded(signals: Iterable[Opinion], query_ids: Collection[int] | None = None) -> dict[Key, Tally]:
    """Folds signals, which are in order, into scores: all, or those of some queries and overall."""
    by_key: dict[Key, list[Opinion]] = defaultdict(list)
    for signal in signals:
        if query_ids is None or signal.query in query_ids:
            by_key[signal.fact, signal.query].append(signal)
        by_key[signal.fact, ALL_QUERIES].append(signal)
    return {key: _POLICY.fold(own) for key, own in by_key.items()}


def all_of(connection: Connection, fact_seqs: Sequence[int]) -> dict[Key, Tally]:
    """Every tally of these facts."""
    rows = connection.execute(select(scores).where(scores.c.fact_seq.in_(fact_seqs)))
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
    """The number of queries that a fact has signals for."""
    own = select(func.count()).where(scores.c.fact_seq == fact_seq, scores.c.query_id != ALL_QUERIES)
    return int(connection.execute(own).scalar_one())


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
    runs = [scores.c.dataset_id == dataset]
    if fact_seqs is not None:
        runs = [scores.c.fact_seq.in_(run) for run in batches(fact_seqs)]
    rows = [row for condition in runs for row in connection.execute(_OVERALL.where(condition))]
    seqs, values, times = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(seqs, np.int64), np.array(values, np.float64), np.array(times, np.int64)


def signalled_queries(connection: Connection, dataset: int, at: int) -> int:
    """The number of different queries with signals about facts of a dataset that are active at a time."""
    own = select(func.count(func.distinct(scores.c.query_id))).join(facts, facts.c.seq == scores.c.fact_seq)
    own = own.where(scores.c.dataset_id == dataset, scores.c.query_id != ALL_QUERIES, active(at))
    return int(connection.execute(own).scalar_one())


_COLUMNS = ", ".join(("fact_seq", "query_id", *_TALLY))
# Neither database uses the primary key for a list of pairs, but SQLite does for a join, and PostgreSQL where it can't
# turn the order of the two: it takes a list for a hundred rows, and would read a large table whole instead.
_OF_KEYS = {
    "sqlite": Prepared(
        text(
            f"SELECT {_COLUMNS} FROM json_each(:keys) AS wanted CROSS JOIN scores "
            "ON fact_seq = json_extract(wanted.value, '$[0]') AND query_id = json_extract(wanted.value, '$[1]') "
            "AND project_id = :own_project"
        )
    ),
    "postgresql": Prepared(
        text(
            f"SELECT found.* FROM json_array_elements(CAST(:keys AS json)) AS wanted(value) CROSS JOIN LATERAL ("
            f"SELECT {_COLUMNS} FROM scores WHERE fact_seq = CAST(wanted.value ->> 0 AS bigint) "
            "AND query_id = CAST(wanted.value ->> 1 AS bigint) AND project_id = :own_project LIMIT 1) AS found"
        )
    ),
}


def _of_keys(connection: Connection, keys: Iterable[Key]) -> dict[Key, Tally]:
    """The tallies of exactly these keys: a fact may have signals for many other queries."""
    statement, wanted = _OF_KEYS[connection.dialect.name], orjson.dumps(list(keys)).decode()
    return {(fact, query): Tally(*tally) for fact, query, *tally in Direct.on(connection).run(statement, keys=wanted)}


def _write(database: Database, connection: Connection, dataset_of: dict[int, int], tallies: dict[Key, Tally]) -> None:
    rows = [
        {"fact_seq": fact, "query_id": query, "dataset_id": dataset_of[fact]}
        | {name: getattr(tally, name) for name in _TALLY}
        for (fact, query), tally in tallies.items()
    ]
    database.upsert(
        connection, scores, rows, keys=["fact_seq", "query_id", "project_id"], changed=["dataset_id", *_TALLY]
    )


def link_name(fact_id: str, entity: int) -> str:
    """How the ledger and receipts name a link."""
    return f"{fact_id}/{entity}"


def parse_link_name(name: str) -> tuple[str, int] | None:
    """Parses such a name: the fact's id and the entity's number; None if it is not one."""
    fact_id, _, entity = name.rpartition("/")
    return (fact_id, int(entity)) if fact_id and entity.isascii() and entity.isdigit() else None


_LINKS = select(links.c.fact_seq, links.c.entity_id, *(links.c[name] for name in _TALLY))
_NOT_NEW = or_(links.c.last_at.is_not(None), links.c.score != NEUTRAL, *(links.c[name] != 0 for name in SIGNAL_TYPES))


def rated_links(connection: Connection, fact_seqs: Sequence[int]) -> dict[Key, Tally]:
    """The tallies of these facts' links that have signals."""
    rows = select_in(connection, _LINKS.where(links.c.last_at.is_not(None)), links.c.fact_seq, fact_seqs)
    return {(row.fact_seq, row.entity_id): _tally(row) for row in rows}


def rated_links_in(connection: Connection, dataset: int) -> dict[Key, Tally]:
    """The same for a dataset: all links that differ from a new one."""
    rows = connection.execute(_LINKS.where(links.c.dataset_id == dataset, _NOT_NEW))
    return {(row.fact_seq, row.entity_id): _tally(row) for row in rows}


def links_of(connection: Connection, fact_seqs: Sequence[int]) -> set[Key]:
    """The links that these facts have."""
    own = select(links.c.fact_seq, links.c.entity_id)
    return {(fact, entity) for fact, entity in select_in(connection, own, links.c.fact_seq, fact_seqs)}


def observe_links(connection: Connection, ids: Mapping[int, str], signals: Mapping[Key, list[Opinion]]) -> None:
    """Adds new signals about links to their scores; `ids` are those of the facts, by number."""
    updated, late = _add(rated_links(connection, sorted({fact for fact, _ in signals})), signals)
    _write_links(connection, updated)
    refold_links(connection, {key: link_name(ids[key[0]], key[1]) for key in late})


def refold_links(connection: Connection, names: Mapping[Key, str]) -> None:
    """Recomputes the scores of these links, given with their names, from the active signals."""
    folded: dict[Key, Tally] = dict.fromkeys(names, NO_SIGNALS)
    for run in batches(list(names.values()), BATCH_SIZE):
        folded |= _folded_links(connection, events.c.target_id.in_(run))
    _write_links(connection, {key: folded[key] for key in names})


def refold_named_links(connection: Connection, names: Sequence[str]) -> list[str]:
    """Recomputes the scores of the links with these names; returns the facts whose links still exist."""
    keys = _keys_of_links(connection, names)
    refold_links(connection, {key: name for name, key in keys.items()})
    return [name.rpartition("/")[0] for name in keys]


def folded_links_in(connection: Connection, dataset: int) -> dict[Key, Tally]:
    """The tallies of a dataset's links, folded from the ledger."""
    return _folded_links(connection, events.c.dataset_id == dataset)


def _folded_links(connection: Connection, condition: ColumnElement[bool]) -> dict[Key, Tally]:
    rows = connection.execute(
        select(events.c.target_id, events.c.value, events.c.confidence, EFFECTIVE_TIME)
        .where(events.c.kind == LINK_SIGNAL, ~is_retracted(), condition)
        .order_by(EFFECTIVE_TIME, events.c.seq)
    )
    by_name: dict[str, list[Opinion]] = defaultdict(list)
    for name, kind, confidence, at in rows:
        by_name[name].append(Opinion(0, ALL_QUERIES, kind, confidence, at))
    keys = _keys_of_links(connection, list(by_name))
    return {key: _POLICY.fold(by_name[name]) for name, key in keys.items()}


def _keys_of_links(connection: Connection, names: Sequence[str]) -> dict[str, Key]:
    """The existing links with these names."""
    split = {name: pair for name in names if (pair := parse_link_name(name)) is not None}
    named = sorted({fact_id for fact_id, _ in split.values()})
    rows = select_in(connection, select(facts.c.id, facts.c.seq), facts.c.id, named)
    seqs = {row.id: row.seq for row in rows}
    existing = links_of(connection, list(seqs.values()))
    keys = {name: (seqs[fact_id], entity) for name, (fact_id, entity) in split.items() if fact_id in seqs}
    return {name: key for name, key in keys.items() if key in existing}


_UPDATE_LINK = (
    update(links)
    .where(links.c.fact_seq == bindparam("of_fact"), links.c.entity_id == bindparam("to_entity"))
    .values({name: bindparam(f"new_{name}") for name in _TALLY})
)


def _write_links(connection: Connection, tallies: Mapping[Key, Tally]) -> None:
    rows = [
        {"of_fact": fact, "to_entity": entity, **{f"new_{name}": getattr(tally, name) for name in _TALLY}}
        for (fact, entity), tally in tallies.items()
    ]
    if rows:
        connection.execute(_UPDATE_LINK, rows)
