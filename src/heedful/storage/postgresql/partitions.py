"""Partitions of the ledger (by quarter) and of the receipts (by month) on PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, text

from heedful.clock import from_stored, to_stored
from heedful.storage.locks import lock_exclusive

AHEAD = 2
"""How many future partitions are created in advance."""


@dataclass(frozen=True, slots=True)
class _PartitionedTable:
    table: str
    column: str
    months: int


_TABLES = (_PartitionedTable("events", "recorded_at", 3), _PartitionedTable("receipts", "at", 1))


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    start: int
    stop: int


def ensure(connection: Connection, now: int) -> list[str]:
    """Creates missing partitions for the present and the near future; returns their names."""
    return list(iter(lambda: ensure_next(connection, now), None))


def ensure_next(connection: Connection, now: int) -> str | None:
    """Creates the first missing partition and returns its name; None if none is missing.

    Rows in the default partition that belong to it are moved.
    """
    if connection.dialect.name != "postgresql" or _missing(connection, now) is None:
        return None
    lock_exclusive(connection, "partitions")
    missing = _missing(connection, now)
    if missing is None:
        return None
    _make(connection, *missing)
    return missing[1].name


def drop_receipts(connection: Connection, before: int) -> list[str]:
    """Drops the partitions of receipts that are entirely older; returns their names."""
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


def _make(connection: Connection, divided: _PartitionedTable, part: _Part) -> None:
    span = f"{divided.column} >= {part.start} AND {divided.column} < {part.stop}"
    # Before anything is moved: a row written to the default partition afterwards would violate its bounds. And a
    # statement that waited for that partition alone would look for its rows there, and not in the new one.
    for table in (f"ONLY {divided.table}", f"{divided.table}_rest"):
        connection.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    connection.exec_driver_sql(f"CREATE TABLE {part.name} (LIKE {divided.table} INCLUDING DEFAULTS)")
    move_rows = f"WITH moved AS (DELETE FROM {divided.table}_rest WHERE {span} RETURNING *)"
    connection.exec_driver_sql(f"{move_rows} INSERT INTO {part.name} SELECT * FROM moved")
    connection.exec_driver_sql(
        f"ALTER TABLE {divided.table} ATTACH PARTITION {part.name} FOR VALUES FROM ({part.start}) TO ({part.stop})"
    )


def _missing(connection: Connection, now: int) -> tuple[_PartitionedTable, _Part] | None:
    existing = _parts(connection)
    missing = ((divided, part) for divided in _TABLES for part in _upcoming(divided, now) if part.name not in existing)
    return next(missing, None)


def _parts(connection: Connection) -> set[str]:
    rows = connection.execute(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "JOIN pg_class p ON p.oid = i.inhparent "
            "WHERE p.relnamespace = current_schema()::regnamespace AND p.relname IN ('events', 'receipts')"
        )
    )
    return set(rows.scalars())


def _upcoming(divided: _PartitionedTable, now: int) -> list[_Part]:
    today = from_stored(now)
    parts = [_starting(divided, today.year, (today.month - 1) // divided.months * divided.months + 1)]
    while len(parts) <= AHEAD:
        following = from_stored(parts[-1].stop)
        parts.append(_starting(divided, following.year, following.month))
    return parts


def _starting(divided: _PartitionedTable, year: int, month: int) -> _Part:
    start = datetime(year, month, 1, tzinfo=UTC)
    later = month - 1 + divided.months
    stop = datetime(year + later // 12, later % 12 + 1, 1, tzinfo=UTC)
    return _Part(f"{divided.table}_{year}_{month:02}", to_stored(start), to_stored(stop))


def _numbers(name: str) -> tuple[int, int]:
    _, year, month = name.rsplit("_", 2)
    return int(year), int(month)
