"""The parts that the ledger and the receipts are divided into on PostgreSQL: a quarter of a year, and a month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, text

from heedful.clock import from_stored, to_stored
from heedful.storage.locks import lock_exclusive

AHEAD = 2
"""How many parts are made before their time comes."""


@dataclass(frozen=True, slots=True)
class _Divided:
    table: str
    column: str
    months: int


_TABLES = (_Divided("events", "recorded_at", 3), _Divided("receipts", "at", 1))


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    start: int
    stop: int


def ensure(connection: Connection, now: int) -> list[str]:
    """Makes the parts of the present and the near future that are not there; returns their names."""
    return list(iter(lambda: ensure_next(connection, now), None))


def ensure_next(connection: Connection, now: int) -> str | None:
    """Makes the first of these that is not there, and returns its name; nothing, if all are there.

    What was written before its part was there, or by a clock that was wrong, is in the rest, and moves.
    """
    if connection.dialect.name != "postgresql" or _lacking(connection, now) is None:
        return None
    lock_exclusive(connection, "partitions")
    lacking = _lacking(connection, now)
    if lacking is None:
        return None
    _make(connection, *lacking)
    return lacking[1].name


def drop_receipts(connection: Connection, before: int) -> list[str]:
    """Drops the parts of the receipts in which all are older; returns their names."""
    if connection.dialect.name != "postgresql":
        return []
    divided = _TABLES[1]
    old = [
        name
        for name in _parts(connection)
        if name.startswith("receipts_2") and _starting(divided, *_numbers(name)).stop <= before
    ]
    for name in old:
        connection.exec_driver_sql(f"DROP TABLE {name}")
    return old


def _make(connection: Connection, each: _Divided, part: _Part) -> None:
    span = f"{each.column} >= {part.start} AND {each.column} < {part.stop}"
    # Before anything is moved: a row that somebody wrote into the rest after that would not fit any more.
    connection.exec_driver_sql(f"LOCK TABLE {each.table}_rest IN ACCESS EXCLUSIVE MODE")
    connection.exec_driver_sql(f"CREATE TABLE {part.name} (LIKE {each.table} INCLUDING DEFAULTS)")
    moved = f"WITH moved AS (DELETE FROM {each.table}_rest WHERE {span} RETURNING *)"
    connection.exec_driver_sql(f"{moved} INSERT INTO {part.name} SELECT * FROM moved")
    connection.exec_driver_sql(
        f"ALTER TABLE {each.table} ATTACH PARTITION {part.name} FOR VALUES FROM ({part.start}) TO ({part.stop})"
    )


def _lacking(connection: Connection, now: int) -> tuple[_Divided, _Part] | None:
    there = _parts(connection)
    lacking = ((each, part) for each in _TABLES for part in _coming(each, now) if part.name not in there)
    return next(lacking, None)


def _parts(connection: Connection) -> set[str]:
    rows = connection.execute(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "JOIN pg_class p ON p.oid = i.inhparent "
            "WHERE p.relnamespace = current_schema()::regnamespace AND p.relname IN ('events', 'receipts')"
        )
    )
    return set(rows.scalars())


def _coming(each: _Divided, now: int) -> list[_Part]:
    today = from_stored(now)
    parts = [_starting(each, today.year, (today.month - 1) // each.months * each.months + 1)]
    while len(parts) <= AHEAD:
        following = from_stored(parts[-1].stop)
        parts.append(_starting(each, following.year, following.month))
    return parts


def _starting(each: _Divided, year: int, month: int) -> _Part:
    start = datetime(year, month, 1, tzinfo=UTC)
    later = month - 1 + each.months
    stop = datetime(year + later // 12, later % 12 + 1, 1, tzinfo=UTC)
    return _Part(f"{each.table}_{year}_{month:02}", to_stored(start), to_stored(stop))


def _numbers(name: str) -> tuple[int, int]:
    _, year, month = name.rsplit("_", 2)
    return int(year), int(month)
