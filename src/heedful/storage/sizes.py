"""What takes how much room in a store."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text

from heedful.model import TableSize
from heedful.storage.schema import metadata

# An index counts as part of its table. Page counts come from a virtual table that most builds of SQLite have.
_SQLITE = text(
    "SELECT coalesce(m.tbl_name, s.name) AS name, SUM(s.pgsize) AS bytes FROM dbstat s "
    "LEFT JOIN sqlite_master m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY 1"
)
_POSTGRESQL = text(
    "SELECT coalesce(p.relname, c.relname) AS name, SUM(pg_total_relation_size(c.oid))::bigint AS bytes "
    "FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent "
    "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY 1"
)


def table_sizes(connection: Connection) -> list[TableSize]:
    """All tables, the largest first."""
    found = connection.execute(_POSTGRESQL if connection.dialect.name == "postgresql" else _SQLITE)
    sizes = {row.name: int(row.bytes) for row in found}
    counted = {
        name: connection.execute(select(func.count()).select_from(metadata.tables[name])).scalar_one()
        for name in sizes
        if name in metadata.tables
    }
    found_sizes = [TableSize(table=name, rows=counted.get(name), bytes=size) for name, size in sizes.items()]
    return sorted(found_sizes, key=lambda each: -each.bytes)
