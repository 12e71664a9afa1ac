"""Counts of opinions by day: folds that follow the tables, so that a million opinions are summed in a moment.

The stored counts cover all rows up to a watermark. Rows after it are counted on demand, and folded in when there are
many. Whoever changes rows before the watermark subtracts them first and adds them again: see `changing`.

No transaction reads more than `MAX_READ` rows for them, because other writers wait: a fold takes several, and counts
that a larger change concerns are discarded, and made again by whoever asks next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    bindparam,
    delete,
    func,
    literal,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.types import BigInteger, Text

from heedful.clock import DAY
from heedful.ledger.tally_sources import DIMENSIONS, MEASURES, TallySource, sources_of
from heedful.model import Facet, OpinionTarget, Over
from heedful.storage.rows import MAX_ROWS, Dialect, between, dialect_of
from heedful.storage.schema import IS_EMPTY, feedbacks, projects, tallies, watermarks

FOLD_AFTER = 5_000  # How many rows may follow the watermark before they are folded in.
MAX_READ = 20_000  # How many rows of each table a transaction reads for the counts.

MAX_KEYS = 20
"""How many metadata keys of a project have stored counts. Others are counted on demand, until one of these was not
asked for while `FOLD_AFTER` rows came."""

DISCARDED = -1
"""The watermark of counts that are to be removed, a run of rows at a time; until then, nobody reads them."""

_NAMES = {source.name for source in sources_of("")}
"""The watermarks of counts: others of a project are kept in the same table."""


@dataclass(frozen=True, slots=True)
class TallyQuery:
    """Which opinions to count, and how to group them."""

    by: Facet | None = None
    key: str | None = None
    """A key of the sessions' metadata, to group by its values."""
    over: Over | None = None
    since: int | None = None
    until: int | None = None
    """Exclusive."""
    dataset: str | None = None
    target_types: tuple[OpinionTarget, ...] = ()
    """All, if none is named."""
    without_sources: tuple[str, ...] = ()


class TallyCounts(NamedTuple):
    """Counts of opinions in one group."""

    value: str | None
    """The value that they share; "" for none, None if not grouped."""
    start: int | None
    """The first day of the bucket."""
    up: int
    down: int
    neutral: int
    scores: int
    score_sum: int
    rated: int
    shown: int


def counts(connection: Connection, project: int, query: TallyQuery) -> list[TallyCounts]:
    """Counts opinions, from the stored counts and from the rows after the watermarks."""
    key = query.key or ""
    known_watermarks = _watermarks(connection, project, key)
    first, last = _whole_days(query)
    selects: list[Select[Any]] = []
    if DISCARDED not in known_watermarks.values():
        selects.append(_folded_rows(project, key, first, last))
    ends = _ends(connection, key)
    for source in sources_of(key):
        mark = known_watermarks.get(source.name, 0)
        own = source.key == key
        if ends[source.name] > mark:
            selects.append(source.rows(project, own, source.seq > mark, *between(source.at, query.since, query.until)))
        # Coverage is only reported for whole days.
        for start, stop in _edges(query, first, last) if source.has_opinions else ():
            edge = source.rows(project, own, source.seq <= mark, *between(source.at, start, stop), by_number=False)
            selects.append(edge)
    union = union_all(*selects).subquery()
    conditions: list[ColumnElement[bool]] = []
    if query.dataset is not None:
        conditions.append(union.c.dataset == query.dataset)
    if query.target_types:
        conditions.append(union.c.target_type.in_(query.target_types))
    if query.without_sources:
        conditions.append(union.c.source.not_in(query.without_sources))
    by = "value" if query.key is not None else query.by
    value: ColumnElement[Any] | None = None if by is None else union.c[by]
    # 1970 began on a Thursday: weeks begin on Mondays.
    days = {"day": union.c.day, "week": (union.c.day + 3) // 7 * 7 - 3}
    start_day: ColumnElement[Any] | None = None if query.over is None else days[query.over]
    columns: list[ColumnElement[Any]] = [
        sql_cast(literal(None), Text) if value is None else value,
        sql_cast(literal(None), BigInteger) if start_day is None else start_day,
        *(sql_cast(func.coalesce(func.sum(union.c[name]), 0), BigInteger) for name in MEASURES),
    ]
    grouped = [column for column in (value, start_day) if column is not None]
    statement = select(*columns).where(*conditions).group_by(*grouped)
    rows = [TallyCounts(*row) for row in connection.execute(statement)]
    return [row for row in rows if any(row[2:])]


def needs_fold(connection: Connection, project: int, key: str) -> bool:
    """Whether enough rows follow the watermarks to fold them in, and there is room for the counts."""
    marks = _watermarks(connection, project, key)
    if DISCARDED in marks.values():
        return True
    oldest = None if marks else _oldest_key(connection, project, key)
    if oldest is not None and not needs_fold(connection, project, oldest):
        return False
    return any(end - marks.get(name, 0) > FOLD_AFTER for name, end in _ends(connection, key).items())


def fold_in_runs(writing: Callable[[], AbstractContextManager[Connection]], project: int, key: str) -> None:
    """Moves the watermarks to the end, in exclusive transactions of the project."""
    is_done = False
    while not is_done:
        with writing() as connection:
            is_done = fold(connection, project, key)


def fold(connection: Connection, project: int, key: str) -> bool:
    """Does the next part of a fold, in an exclusive transaction of the project; returns whether that was the last.

    First it removes discarded counts, and makes room if the key is new.
    """
    discarded = _first_key(connection, project, watermarks.c.seq == DISCARDED)
    if discarded is not None:
        _remove(connection, project, discarded)
        return False
    marks = _watermarks(connection, project, key)
    oldest = None if marks else _oldest_key(connection, project, key)
    if oldest is not None:
        has_room = needs_fold(connection, project, oldest)
        if has_room:
            refold(connection, project, oldest)
        return not has_room
    ends = _ends(connection, key)
    reached = {name: min(end, marks.get(name, 0) + MAX_READ) for name, end in ends.items()}
    for source in sources_of(key):
        new_rows = source.seq > marks.get(source.name, 0), source.seq <= reached[source.name]
        adding = _add_rows(dialect_of(connection), source.rows(project, source.key == key, *new_rows))
        connection.execute(adding, {"owned": project, "sign": 1})
    connection.execute(delete(watermarks).where(*_of_key(project, key)))
    connection.execute(
        watermarks.insert(),
        [{"project_id": project, "key": key, "name": name, "seq": seq} for name, seq in reached.items()],
    )
    return reached == ends


def due(connection: Connection) -> list[tuple[str, int]]:
    """The name and the number of each project whose opinions are to be counted now, or with counts to remove."""
    with_many_rows = select(feedbacks.c.project_id).group_by(feedbacks.c.project_id).having(func.count() > FOLD_AFTER)
    with_watermarks = select(watermarks.c.project_id).where(watermarks.c.name.in_(_NAMES))
    rows = connection.execute(
        select(projects.c.name, projects.c.id).where(
            projects.c.id.in_(with_many_rows) | projects.c.id.in_(with_watermarks)
        )
    )
    return [
        (name, number)
        for name, number in rows
        if needs_fold(connection, number, "")
        or _first_key(connection, number, watermarks.c.seq == DISCARDED) is not None
    ]


def folded_keys(connection: Connection, project: int) -> list[str]:
    """The keys with stored counts; "" for all opinions."""
    conditions = watermarks.c.project_id == project, watermarks.c.name.in_(_NAMES), watermarks.c.seq != DISCARDED
    return list(connection.execute(select(watermarks.c.key).where(*conditions).distinct()).scalars())


def changing_folded(
    connection: Connection, project: int, rows: Sequence[tuple[str, int]]
) -> AbstractContextManager[None]:
    """The same for opinions, given as (target, number): those behind the mark are in no count yet."""
    counted = (watermarks.c.project_id == project, watermarks.c.name == "feedbacks")
    furthest = connection.execute(select(func.max(watermarks.c.seq)).where(*counted)).scalar() or 0
    return changing(connection, project, targets=sorted({target for target, number in rows if number <= furthest}))


@contextmanager
def changing(
    connection: Connection,
    project: int,
    *,
    sessions: Sequence[int] = (),
    entries: Sequence[int] = (),
    targets: Sequence[str] = (),
    events: Sequence[str] = (),
    datasets: Sequence[int] = (),
    only_by: Collection[str] | None = None,
) -> Iterator[None]:
    """Inside, the opinions of these sessions, about these targets, by these events, or about the facts of these
    datasets may be changed or removed, and these entries, if nobody has an opinion about them. `only_by` are metadata
    keys, if nothing but their values changes."""
    scopes = {"sessions": sessions, "entries": entries, "targets": targets, "events": events, "datasets": datasets}
    named = {scope: list(ids) for scope, ids in scopes.items() if ids}
    folded = folded_keys(connection, project) if named else []
    keys = [key for key in folded if only_by is None or key in only_by]
    changes = [
        (source, scope, {"owned": project, "keys": together, "named": ids})
        for together in ([key for key in keys if key], [key for key in keys if not key])
        for source in (sources_of(together[0]) if together else ())
        for scope, ids in named.items()
        if scope in source.scopes
    ]

    def move(sign: int) -> None:
        for source, scope, values in changes:
            while sum((touched := _touched(connection, source, scope, values)).values()) > MAX_READ:
                for key in touched:
                    refold(connection, project, key)
            if touched:
                connection.execute(_add_selected(dialect_of(connection), source, scope), {**values, "sign": sign})

    move(-1)
    yield
    move(+1)
    if changes:
        # The value of a deleted session must not remain.
        connection.execute(delete(tallies).where(text(IS_EMPTY)))


def _touched(connection: Connection, source: TallySource, scope: str, values: dict[str, Any]) -> dict[str, int]:
    """How many rows of a part a change selects for each key; of all, not more than one above the limit."""
    return {
        row.key: row.rows
        for row in connection.execute(_count_selected(source, scope), {**values, "most": MAX_READ + 1})
    }


@cache
def _count_selected(source: TallySource, scope: str) -> Select[Any]:
    most = bindparam("most", type_=BigInteger)
    rows = source.touched(bindparam("owned", type_=BigInteger), *_selected(source, scope)).limit(most).subquery()
    return select(rows.c.key, func.count().label("rows")).group_by(rows.c.key)


@cache
def _add_selected(dialect: Dialect, source: TallySource, scope: str) -> Insert:
    """Adds the rows of a source that a change selects."""
    # Cached, because building it takes longer than running it.
    return _add_rows(dialect, source.rows(bindparam("owned", type_=BigInteger), *_selected(source, scope)))


def _selected(source: TallySource, scope: str) -> tuple[ColumnElement[bool], ...]:
    """The rows of a source that a change selects, up to the watermarks of their keys."""
    return (
        source.scopes[scope](bindparam("named", expanding=True)),
        source.key.in_(bindparam("keys", expanding=True)),
        watermarks.c.project_id == bindparam("owned", type_=BigInteger),
        watermarks.c.key == source.key,
        watermarks.c.name == source.name,
        # An expression, so that SQLite looks up the selected rows instead of scanning a whole project.
        source.seq + 0 <= watermarks.c.seq,
    )


def _add_rows(dialect: Dialect, rows: Select[Any]) -> Insert:
    """Adds rows to the counts of the project `owned`, `sign` times."""
    source = rows.subquery()
    adding: Any = dialect.insert(tallies)
    sign = bindparam("sign", type_=BigInteger)
    adding = adding.from_select(
        ["project_id", *DIMENSIONS, *MEASURES],
        select(
            bindparam("owned", type_=BigInteger),
            *(source.c[name] for name in DIMENSIONS),
            *(sql_cast(func.sum(source.c[name]), BigInteger) * sign for name in MEASURES),
        )
        .where(literal(1) == 1)
        .group_by(*(source.c[name] for name in DIMENSIONS)),
    )
    upsert: Insert = adding.on_conflict_do_update(
        index_elements=["project_id", *DIMENSIONS],
        set_={name: tallies.c[name] + adding.excluded[name] for name in MEASURES},
    )
    return upsert


def refold(connection: Connection, project: int, key: str) -> None:
    """Has the counts of a key made again, by whoever asks next or by maintenance."""
    connection.execute(update(watermarks).where(*_of_key(project, key)).values(seq=DISCARDED))


def _remove(connection: Connection, project: int, key: str) -> None:
    """Removes discarded counts: some of them, and at last the watermarks."""
    own = tallies.c.project_id == project, tallies.c.key == key
    some = connection.execute(select(*(tallies.c[name] for name in DIMENSIONS)).where(*own).limit(MAX_ROWS)).mappings()
    rows = [dict(row) for row in some]
    if rows:
        this = (tallies.c[name] == bindparam(name) for name in DIMENSIONS)
        connection.execute(delete(tallies).where(tallies.c.project_id == project, *this), rows)
    if len(rows) < MAX_ROWS:
        connection.execute(delete(watermarks).where(*_of_key(project, key)))


def _of_key(project: int, key: str) -> tuple[ColumnElement[bool], ...]:
    """The watermarks of the counts of a key."""
    return watermarks.c.project_id == project, watermarks.c.key == key, watermarks.c.name.in_(_NAMES)


def _first_key(connection: Connection, project: int, condition: ColumnElement[bool]) -> str | None:
    rows = select(watermarks.c.key).where(watermarks.c.project_id == project, watermarks.c.name.in_(_NAMES), condition)
    return connection.execute(rows.limit(1)).scalar()


def _oldest_key(connection: Connection, project: int, key: str) -> str | None:
    """The metadata key that must make room for the counts of another one, if there is none: the one that was folded
    longest ago."""
    if not key:
        return None
    counted = select(watermarks.c.key).where(watermarks.c.project_id == project, watermarks.c.key != "")
    oldest_first = counted.group_by(watermarks.c.key).order_by(func.sum(watermarks.c.seq), watermarks.c.key)
    keys = connection.execute(oldest_first).scalars().all()
    return keys[0] if len(keys) >= MAX_KEYS else None


def _folded_rows(project: int, key: str, first: int | None, last: int | None) -> Select[Any]:
    conditions = (tallies.c.project_id == project, tallies.c.key == key, *between(tallies.c.day, first, last))
    return select(*(tallies.c[name] for name in (*DIMENSIONS, *MEASURES))).where(*conditions)


def _ends(connection: Connection, key: str) -> dict[str, int]:
    """The greatest number in each table that is counted."""
    return {
        name: source.newest(connection) for name, source in {source.name: source for source in sources_of(key)}.items()
    }


def _watermarks(connection: Connection, project: int, key: str) -> dict[str, int]:
    rows = connection.execute(select(watermarks.c.name, watermarks.c.seq).where(*_of_key(project, key)))
    return {row.name: row.seq for row in rows}


def _whole_days(query: TallyQuery) -> tuple[int | None, int | None]:
    """The full days of a query: the first, and the one after the last."""
    first = None if query.since is None else -(-query.since // DAY)
    last = None if query.until is None else query.until // DAY
    return first, last


def _edges(query: TallyQuery, first: int | None, last: int | None) -> list[tuple[int, int]]:
    """The parts of days at both ends."""
    if first is not None and last is not None and first > last:
        assert query.since is not None
        assert query.until is not None
        return [(query.since, query.until)]
    edges = []
    if first is not None and query.since is not None:
        edges.append((query.since, first * DAY))
    if last is not None and query.until is not None:
        edges.append((last * DAY, query.until))
    return [(start, end) for start, end in edges if start < end]


def differences(connection: Connection, project: int) -> list[str]:
    """The keys whose counts differ from a full fold."""
    wrong = []
    for key in folded_keys(connection, project):
        marks = _watermarks(connection, project, key)
        folded = union_all(
            *(
                source.rows(project, source.key == key, source.seq <= marks.get(source.name, 0))
                for source in sources_of(key)
            )
        ).subquery()
        recomputed = select(
            *(folded.c[name] for name in DIMENSIONS),
            *(sql_cast(func.sum(folded.c[name]), BigInteger) for name in MEASURES),
        ).group_by(*(folded.c[name] for name in DIMENSIONS))
        if _lines(connection.execute(recomputed)) != _lines(connection.execute(_folded_rows(project, key, None, None))):
            wrong.append(key)
    return wrong


def _lines(rows: Iterable[Sequence[Any]]) -> set[tuple[Any, ...]]:
    width = len(DIMENSIONS)
    return {tuple(row) for row in rows if any(row[width:])}
