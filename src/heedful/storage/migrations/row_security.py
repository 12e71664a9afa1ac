"""What keeps projects apart inside PostgreSQL, whatever a query forgets to ask: row-level security.

A transaction names its project in the setting `heedful.project`, or sets `heedful.everything` to `on`. One that does
neither sees no row.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

_EVERYTHING = "current_setting('heedful.everything', true) = 'on'"
_PROJECT = "(SELECT id FROM projects WHERE name = current_setting('heedful.project', true))"
_BY_COLUMN = (
    ("project_id", f"project_id = {_PROJECT}"),
    # Named here, though `datasets` has a policy itself: only so its index is used, and not all datasets are looked at.
    ("dataset_id", f"dataset_id IN (SELECT id FROM datasets WHERE project_id = {_PROJECT})"),
    ("session_seq", "EXISTS (SELECT 1 FROM sessions WHERE sessions.seq = session_seq)"),
    ("fact_seq", "EXISTS (SELECT 1 FROM facts WHERE facts.seq = fact_seq)"),
)
"""How a table tells whose its rows are, by the first of these columns that it has. The tables that are asked have
policies themselves."""

SHARED_TABLES = frozenset({"logins", "signing"})
"""Tables that belong to no project: only who may see everything sees them."""

UNSECURED_TABLES = frozenset({"alembic_version", "models", "words"})
"""Tables without secrets that belong to no project; and the terms of the words of facts, which are hashes: an index
can't be searched by them under row-level security, and what is found is looked up in `facts`, which has a policy."""


def secure_all_tables(connection: Connection) -> None:
    """Row-level security in all existing tables."""
    rows = connection.execute(
        text(
            "SELECT c.relname, array_agg(a.attname::text) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.relname"
        )
    )
    for table, columns in rows.all():
        if table not in UNSECURED_TABLES:
            secure_table(connection, table, columns)


def secure_table(connection: Connection, table: str, columns: list[str]) -> None:
    """Row-level security in one table, which also applies to the owner of the table."""
    visible = _EVERYTHING
    if table == "projects":
        visible += " OR name = current_setting('heedful.project', true)"
    elif table not in SHARED_TABLES:
        visible += " OR " + next(condition for column, condition in _BY_COLUMN if column in columns)
    connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    connection.exec_driver_sql(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    connection.exec_driver_sql(f"CREATE POLICY project_isolation ON {table} USING ({visible})")
