"""The tables on PostgreSQL: texts in byte order, partitions, the tables of searches, and row-level security, which
keeps projects apart whatever a query forgets to ask.

A transaction gives the number of its project in the setting `heedful.project_id`, or sets `heedful.everything` to `on`.
One that does neither sees no row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import (
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from heedful.clock import from_stored, to_stored
from heedful.storage.postgresql.word_index import inside, saved_indexes
from heedful.storage.rows import lock_exclusive
from heedful.storage.schema import Label, metadata, project_column

_EVERYTHING = "current_setting('heedful.everything', true) = 'on'"
_PROJECT = "NULLIF(current_setting('heedful.project_id', true), '')::bigint"

SHARED_TABLES = frozenset({"logins", "signing"})
"""Tables that belong to no project: only who may see everything sees them."""

UNSECURED_TABLES = frozenset({"alembic_version", "models", "words"})
"""Tables without secrets that belong to no project; and the terms of the words of facts, which are hashes: an index
can't be searched by them under row-level security, and what is found is looked up in `facts`, which has a policy."""


project_locks = Table("project_locks", inside, project_column(primary_key=True), Column("held", SmallInteger))
"""Writers of a project wait for its row here. An advisory lock would hold on one node of a cluster only."""


def lock_project(number: int) -> str:
    """The statement by which a transaction waits for the other writers of a project."""
    lock = "ON CONFLICT (project_id) DO UPDATE SET held = NULL WHERE false"
    return f"INSERT INTO project_locks (project_id) VALUES ({number:d}) {lock}"


def all_tables() -> MetaData:
    """The tables as PostgreSQL has them."""
    tables = MetaData(naming_convention=metadata.naming_convention)
    for table in (*metadata.sorted_tables, *inside.sorted_tables):
        for column in table.to_metadata(tables).columns:
            if isinstance(column.type, String):
                column.type = _in_byte_order(column.type)
    for table in tables.tables.values():
        if belongs_to_project(table):
            _begin_keys_with_project(table)
    _partition(tables)
    return tables


def create_tables(connection: Connection) -> None:
    """Creates all tables in an empty schema."""
    tables = all_tables()
    tables.create_all(connection, checkfirst=False)
    # Compressing it would take longer than reading it.
    connection.exec_driver_sql(f"ALTER TABLE {saved_indexes.name} ALTER COLUMN content SET STORAGE EXTERNAL")
    partitioned = {divided.table for divided in _TABLES}
    for name in tables.tables:
        if name not in UNSECURED_TABLES:
            _secure_table(connection, name)
        if name not in partitioned:
            _count_often(connection, name)
    # For rows that no other partition takes.
    for divided in _TABLES:
        connection.exec_driver_sql(f"CREATE TABLE {divided.table}_rest PARTITION OF {divided.table} DEFAULT")
        _secure_table(connection, f"{divided.table}_rest")
        _count_often(connection, f"{divided.table}_rest")


def belongs_to_project(table: Table) -> bool:
    """Whether each row of a table belongs to a project."""
    project = table.columns.get("project_id")
    return project is not None and not project.nullable


def _begin_keys_with_project(table: Table) -> None:
    """Puts the project first in the keys and indexes of a table, so that it can be distributed by project."""

    def with_project(names: Iterable[str]) -> list[str]:
        return ["project_id", *(name for name in names if name != "project_id")]

    table.columns["project_id"].primary_key = True
    table.append_constraint(PrimaryKeyConstraint(*with_project(table.primary_key.columns.keys())))
    for unique in [one for one in table.constraints if isinstance(one, UniqueConstraint)]:
        table.constraints.remove(unique)
        table.append_constraint(UniqueConstraint(*with_project(unique.columns.keys()), name=unique.name))
    for reference in list(table.foreign_key_constraints):
        (element,) = reference.elements
        if belongs_to_project(element.column.table):
            table.constraints.remove(reference)
            table.foreign_keys.remove(element)
            element.parent.foreign_keys.remove(element)
            target = element.column.table.name
            referred = [f"{target}.{name}" for name in ("project_id", element.column.name)]
            own = with_project(reference.column_keys)
            table.append_constraint(ForeignKeyConstraint(own, referred, reference.name, ondelete=reference.ondelete))
    for index in list(table.indexes):
        # Otherwise the planner, while it has no statistics, may take the primary key and read the whole project.
        table.indexes.remove(index)
        columns = [table.columns[name] for name in with_project(index.columns.keys())]
        Index(index.name, *columns, unique=index.unique, **index.dialect_kwargs)


def _in_byte_order(kind: String) -> String:
    """A text that is ordered by its bytes, as in SQLite, whatever the database's own collation is."""
    return Text(collation="C") if isinstance(kind, Text | Label) else String(kind.length, collation="C")


def _secure_table(connection: Connection, table: str) -> None:
    """Row-level security in one table, which also applies to the owner of the table."""
    own = "false" if table in SHARED_TABLES else f"{'id' if table == 'projects' else 'project_id'} = {_PROJECT}"
    # The planner takes a comparison for a condition that few rows meet, and all rows of a statement meet this one. Of a
    # CASE it knows nothing.
    visible = f"CASE WHEN {own} THEN true ELSE {_EVERYTHING} END"
    for security in ("ENABLE", "FORCE"):
        connection.exec_driver_sql(f"ALTER TABLE {table} {security} ROW LEVEL SECURITY")
    connection.exec_driver_sql(f"CREATE POLICY project_isolation ON {table} USING ({visible})")


def _count_often(connection: Connection, table: str) -> None:
    """Has the server count a table after some thousand changes: by default, a new project would have to be a tenth of
    it before the planner knows of it."""
    parameters = f"autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = {MAX_UNCOUNTED}"
    connection.exec_driver_sql(f"ALTER TABLE {table} SET ({parameters})")


MAX_UNCOUNTED = 5_000
"""Changed rows of a table after which the server counts it again, at most once a minute."""

AHEAD = 2
"""Future partitions that are created in advance."""


@dataclass(frozen=True, slots=True)
class _PartitionedTable:
    table: str
    column: str
    months: int


_TABLES = (_PartitionedTable("events", "recorded_at", 3), _PartitionedTable("receipts", "at", 1))


@dataclass(frozen=True, slots=True)
class _Partition:
    name: str
    start: int
    stop: int


def _partition(tables: MetaData) -> None:
    """Defines the partitioned tables by time, which has to be part of their keys then."""
    for divided in _TABLES:
        table = tables.tables[divided.table]
        table.dialect_options["postgresql"]["partition_by"] = f"RANGE ({divided.column})"
        table.columns[divided.column].primary_key = True
        table.append_constraint(PrimaryKeyConstraint(*table.primary_key.columns.keys(), divided.column))
        for unique in [one for one in table.constraints if isinstance(one, UniqueConstraint)]:
            table.constraints.remove(unique)
            table.append_constraint(UniqueConstraint(*unique.columns.keys(), divided.column, name=unique.name))


def ensure_partitions(connection: Connection, now: int) -> list[str]:
    """Creates missing partitions for the present and the near future; returns their names."""
    return list(iter(lambda: ensure_next_partition(connection, now), None))


def ensure_next_partition(connection: Connection, now: int) -> str | None:
    """Creates the first missing partition and returns its name; None if none is missing.

    Rows in the default partition that belong to it are moved.
    """
    if connection.dialect.name != "postgresql" or _missing(connection, now) is None:
        return None
    lock_exclusive(connection, "partitions")
    missing = _missing(connection, now)
    if missing is not None:
        _make(connection, *missing)
    return missing and missing[1].name


def drop_receipts(connection: Connection, before: int) -> list[str]:
    """Drops the partitions of receipts that are entirely older; returns their names."""
    if connection.dialect.name != "postgresql":
        return []
    old = []
    for name in _parts(connection):
        if name.startswith("receipts_2"):
            _, year, month = name.split("_")
            if _starting(_TABLES[1], int(year), int(month)).stop <= before:
                old.append(name)
                connection.exec_driver_sql(f"DROP TABLE {name}")
    return old


def _make(connection: Connection, divided: _PartitionedTable, part: _Partition) -> None:
    table, column = divided.table, divided.column
    # Before anything is moved: a row written to the default partition afterwards would violate its bounds. And a
    # statement that waited for that partition alone would look for its rows there, and not in the new one.
    for name in (f"ONLY {table}", f"{table}_rest"):
        connection.exec_driver_sql(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
    connection.exec_driver_sql(f"CREATE TABLE {part.name} (LIKE {table} INCLUDING DEFAULTS)")
    span = f"{column} >= {part.start} AND {column} < {part.stop}"
    move_rows = f"WITH moved AS (DELETE FROM {table}_rest WHERE {span} RETURNING *)"
    connection.exec_driver_sql(f"{move_rows} INSERT INTO {part.name} SELECT * FROM moved")
    bounds = f"FROM ({part.start}) TO ({part.stop})"
    connection.exec_driver_sql(f"ALTER TABLE {table} ATTACH PARTITION {part.name} FOR VALUES {bounds}")
    # The policy of the whole table does not apply to who reads a partition by its name.
    _secure_table(connection, part.name)
    _count_often(connection, part.name)


def _missing(connection: Connection, now: int) -> tuple[_PartitionedTable, _Partition] | None:
    existing = _parts(connection)
    missing = ((divided, part) for divided in _TABLES for part in _upcoming(divided, now) if part.name not in existing)
    return next(missing, None)


def _parts(connection: Connection) -> set[str]:
    return set(connection.execute(_PARTITIONS).scalars())


_PARTITIONS = text(
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent "
    "WHERE p.relnamespace = current_schema()::regnamespace AND p.relname IN ('events', 'receipts')"
)


def _upcoming(divided: _PartitionedTable, now: int) -> list[_Partition]:
    today = from_stored(now)
    parts = [_starting(divided, today.year, (today.month - 1) // divided.months * divided.months + 1)]
    while len(parts) <= AHEAD:
        following = from_stored(parts[-1].stop)
        parts.append(_starting(divided, following.year, following.month))
    return parts


def _starting(divided: _PartitionedTable, year: int, month: int) -> _Partition:
    later = month - 1 + divided.months
    start, stop = datetime(year, month, 1, tzinfo=UTC), datetime(year + later // 12, later % 12 + 1, 1, tzinfo=UTC)
    return _Partition(f"{divided.table}_{year}_{month:02}", to_stored(start), to_stored(stop))
