"""Counts of opinions by day: folds that follow the tables, so that a million opinions are summed in a moment.

The stored counts cover all rows up to a watermark. Rows after it are counted on demand, and folded in when there are
many. Whoever changes rows before the watermark subtracts them first and adds them again: see `changing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    and_,
    bindparam,
    delete,
    func,
    literal,
    select,
    union,
    union_all,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.types import BigInteger, Text

from heedful.clock import DAY
from heedful.model import Facet, OpinionTarget, Over
from heedful.storage.contributions import DIMENSIONS, MEASURES, parts
from heedful.storage.dialects import Dialect, dialect_of
from heedful.storage.rows import between
from heedful.storage.schema import feedbacks, projects
from heedful.storage.schema_insight import tallies, watermarks

FOLD_AFTER = 5_000
"""How many rows may follow the watermark before they are folded in."""


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
    sources: list[Select[Any]] = [_folded_rows(project, key, first, last)]
    ends = _ends(connection, key)
    for part in parts(key):
        mark = known_watermarks.get(part.name, 0)
        if ends[part.name] > mark:
            sources.append(part.rows(project).where(part.seq > mark, *between(part.at, query.since, query.until)))
        # Coverage is only reported for whole days.
        for start, stop in _edges(query, first, last) if part.has_opinions else ():
            edge = part.rows(project, by_number=False)
            sources.append(edge.where(part.seq <= mark, *between(part.at, start, stop)))
    union = union_all(*sources).subquery()
    conditions: list[ColumnElement[bool]] = []
    if query.dataset is not None:
        conditions.append(union.c.dataset == query.dataset)
    if query.target_types:
        conditions.append(union.c.target_type.in_(query.target_types))
    if query.without_sources:
        conditions.append(union.c.source.not_in(query.without_sources))
    if query.key is not None:
        value: ColumnElement[Any] = union.c.value
    elif query.by is not None:
        value = union.c[query.by]
    else:
        value = sql_cast(literal(None), Text)
    # 1970 began on a Thursday: weeks begin on Mondays.
    days = {None: sql_cast(literal(None), BigInteger), "day": union.c.day, "week": (union.c.day + 3) // 7 * 7 - 3}
    start_day = days[query.over]
    grouped = [
        column for column, is_requested in ((value, query.key or query.by), (start_day, query.over)) if is_requested
    ]
    measures = [sql_cast(func.coalesce(func.sum(union.c[name]), 0), BigInteger) for name in MEASURES]
    statement = select(value, start_day, *measures).where(*conditions)
    if grouped:
        statement = statement.group_by(*grouped)
    rows = [TallyCounts(*row) for row in connection.execute(statement)]
    return [row for row in rows if any(row[2:])]


def needs_fold(connection: Connection, project: int, key: str) -> bool:
    """Whether enough rows follow the watermarks to fold them in."""
    watermarks_by_part = _watermarks(connection, project, key)
    return any(end - watermarks_by_part.get(name, 0) > FOLD_AFTER for name, end in _ends(connection, key).items())


def fold(connection: Connection, project: int, key: str) -> None:
    """Moves the watermarks to the end, in an exclusive transaction of the project."""
    watermarks_by_part = _watermarks(connection, project, key)
    ends = _ends(connection, key)
    for part in parts(key):
        new_rows = part.seq > watermarks_by_part.get(part.name, 0), part.seq <= ends[part.name]
        adding = _add_rows(dialect_of(connection), key, part.rows(project).where(*new_rows))
        connection.execute(adding, {"owned": project, "sign": 1})
    connection.execute(
        delete(watermarks).where(
            watermarks.c.project_id == project, watermarks.c.key == key, watermarks.c.name.in_(ends)
        )
    )
    connection.execute(
        watermarks.insert(),
        [{"project_id": project, "key": key, "name": name, "seq": end} for name, end in ends.items()],
    )


def due(connection: Connection) -> list[tuple[str, int, str]]:
    """(project, its number, key) of all counts to fold now, including projects never counted before."""
    with_watermarks = select(watermarks.c.project_id, watermarks.c.key).distinct()
    with_many_rows = (
        select(feedbacks.c.project_id, literal("", Text))
        .group_by(feedbacks.c.project_id)
        .having(func.count() > FOLD_AFTER)
    )
    candidates = union(with_watermarks, with_many_rows).subquery()
    with_names = select(projects.c.name, *candidates.c).join(projects, projects.c.id == candidates.c.project_id)
    return [
        (name, number, key)
        for name, number, key in connection.execute(with_names)
        if needs_fold(connection, number, key)
    ]


def folded_keys(connection: Connection, project: int) -> list[str]:
    """The keys with stored counts; "" for all opinions."""
    return list(
        connection.execute(select(watermarks.c.key).where(watermarks.c.project_id == project).distinct()).scalars()
    )


def changing_folded(
    connection: Connection, project: int, rows: Sequence[tuple[str, int]]
) -> AbstractContextManager[None]:
    """The same for opinions, given as (target, number): those behind the mark are in no count yet."""
    furthest = _last_counted(connection, project)
    return changing(connection, project, targets=sorted({target for target, number in rows if number <= furthest}))


@contextmanager
def changing(
    connection: Connection,
    project: int,
    *,
    sessions: Sequence[int] = (),
    targets: Sequence[str] = (),
    events: Sequence[str] = (),
    datasets: Sequence[int] = (),
) -> Iterator[None]:
    """Inside, the opinions of these sessions, about these targets, by these events, or about the facts of these
    datasets may be changed or removed."""
    scopes = {"sessions": sessions, "targets": targets, "events": events, "datasets": datasets}
    if not any(scopes.values()):
        yield
        return
    watermarks_by_key: dict[str, dict[str, int]] = {}
    for row in connection.execute(select(watermarks).where(watermarks.c.project_id == project)):
        watermarks_by_key.setdefault(row.key, {})[row.name] = row.seq

    def move(sign: int) -> None:
        for key, ends in watermarks_by_key.items():
            for index, part in enumerate(parts(key)):
                for scope, ids in scopes.items():
                    if ids and scope in part.scopes and part.name in ends:
                        statement = _add_selected(dialect_of(connection), key, index, scope)
                        parameters = {"named": list(ids), "last": ends[part.name]}
                        connection.execute(statement, {"owned": project, "sign": sign, **parameters})

    move(-1)
    yield
    move(+1)
    if watermarks_by_key and sessions:
        # The value of a deleted session must not remain.
        empty = and_(*(tallies.c[name] == 0 for name in MEASURES))
        connection.execute(delete(tallies).where(tallies.c.project_id == project, empty))


@lru_cache(maxsize=500)
def _add_selected(dialect: Dialect, key: str, index: int, scope: str) -> Insert:
    """Adds the rows of a part that a change selects, up to its watermark."""
    # Cached, because building it takes longer than running it.
    part = parts(key)[index]
    rows = part.rows(bindparam("owned", type_=BigInteger))
    condition = part.scopes[scope](bindparam("named", expanding=True))
    # By expressions, so that SQLite looks up the selected rows instead of scanning a whole project.
    return _add_rows(dialect, key, rows.where(condition, part.seq + 0 <= bindparam("last", type_=BigInteger)))


def _add_rows(dialect: Dialect, key: str, rows: Select[Any]) -> Insert:
    """Adds rows to the counts of the project `owned`, `sign` times."""
    source = rows.subquery()
    adding: Any = dialect.insert(tallies)
    sign = bindparam("sign", type_=BigInteger)
    adding = adding.from_select(
        ["project_id", "key", *DIMENSIONS, *MEASURES],
        select(
            bindparam("owned", type_=BigInteger),
            literal(key, Text),
            *(source.c[name] for name in DIMENSIONS),
            *(sql_cast(func.sum(source.c[name]), BigInteger) * sign for name in MEASURES),
        )
        .where(literal(1) == 1)
        .group_by(*(source.c[name] for name in DIMENSIONS)),
    )
    upsert: Insert = adding.on_conflict_do_update(
        index_elements=["project_id", "key", *DIMENSIONS],
        set_={name: tallies.c[name] + adding.excluded[name] for name in MEASURES},
    )
    return upsert


def _folded_rows(project: int, key: str, first: int | None, last: int | None) -> Select[Any]:
    conditions = [tallies.c.project_id == project, tallies.c.key == key]
    if first is not None:
        conditions.append(tallies.c.day >= first)
    if last is not None:
        conditions.append(tallies.c.day < last)
    return select(*(tallies.c[name] for name in (*DIMENSIONS, *MEASURES))).where(*conditions)


def _ends(connection: Connection, key: str) -> dict[str, int]:
    """The greatest number in each table that is counted."""
    return {name: part.newest(connection) for name, part in {part.name: part for part in parts(key)}.items()}


def _watermarks(connection: Connection, project: int, key: str) -> dict[str, int]:
    rows = connection.execute(
        select(watermarks.c.name, watermarks.c.seq).where(watermarks.c.project_id == project, watermarks.c.key == key)
    )
    return {row.name: row.seq for row in rows}


def _last_counted(connection: Connection, project: int) -> int:
    """The number of the last opinion in any count."""
    seq = connection.execute(
        select(func.max(watermarks.c.seq)).where(watermarks.c.project_id == project, watermarks.c.name == "feedbacks")
    ).scalar()
    return int(seq or 0)


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
    if first is not None and query.since is not None and query.since < first * DAY:
        edges.append((query.since, first * DAY))
    if last is not None and query.until is not None and last * DAY < query.until:
        edges.append((last * DAY, query.until))
    return edges


def differences(connection: Connection, project: int) -> list[str]:
    """The keys whose counts differ from a full fold."""
    wrong = []
    for key in folded_keys(connection, project):
        watermarks_by_part = _watermarks(connection, project, key)
        folded = union_all(
            *(part.rows(project).where(part.seq <= watermarks_by_part.get(part.name, 0)) for part in parts(key))
        ).subquery()
        recomputed = select(
            *(folded.c[name] for name in DIMENSIONS),
            *(sql_cast(func.sum(folded.c[name]), BigInteger) for name in MEASURES),
        ).group_by(*(folded.c[name] for name in DIMENSIONS))
        if _lines(connection.execute(recomputed)) != _lines(connection.execute(_folded_rows(project, key, None, None))):
            wrong.append(key)
    return wrong


def refold(connection: Connection, project: int, key: str) -> None:
    """Recomputes the counts of a key."""
    for table in (tallies, watermarks):
        connection.execute(delete(table).where(table.c.project_id == project, table.c.key == key))
    fold(connection, project, key)


def _lines(rows: Iterable[Sequence[Any]]) -> set[tuple[Any, ...]]:
    width = len(DIMENSIONS)
    return {tuple(row) for row in rows if any(row[width:])}
