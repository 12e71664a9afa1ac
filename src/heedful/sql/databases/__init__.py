"""Databases that queries run against, each opened for reading only."""

from __future__ import annotations

from heedful.errors import Invalid
from heedful.results import Result
from heedful.sql.databases.contract import Database, Limits, Parameters, Session
from heedful.sql.databases.duckdb import DuckDB
from heedful.sql.databases.kinds import check_url
from heedful.sql.databases.mysql import MySQL
from heedful.sql.databases.postgresql import PostgreSQL
from heedful.sql.databases.schema import ForeignKey, Schema, SchemaColumn, Table, fingerprint
from heedful.sql.databases.sqlite import SQLite
from heedful.sql.databases.values import TextValues, stream_values, text_values
from heedful.sql.guard import CheckedStatement, check_statement
from heedful.sql.secrets import parse_url

__all__ = [
    "Database",
    "ForeignKey",
    "Limits",
    "Schema",
    "SchemaColumn",
    "Session",
    "Table",
    "TextValues",
    "fingerprint",
    "open_database",
    "run",
    "stream_values",
    "text_values",
]


def open_database(url: str, *, role: str | None = None, memory: int = 512, disk: int = 1_024) -> Database:
    """The database behind a SQLAlchemy URL (`secrets.decode_url` resolves what is stored); nothing is connected yet.

    `role` is a role of a PostgreSQL server that queries run as. `memory` and `disk` are the megabytes that a database
    which runs in this process may use, as far as the database has such limits.
    """
    address = parse_url(url)
    kind = check_url(address)
    if kind.name == "postgresql":
        return PostgreSQL(address, role)
    if role is not None:
        raise Invalid(f"{kind.name} has no roles to run as", field="role", value=role, remedy="Leave role out")
    if kind.name == "sqlite":
        return SQLite(address)
    if kind.name == "duckdb":
        return DuckDB(address, memory, disk)
    return MySQL(address)


def run(
    database: Database,
    query: CheckedStatement | str,
    parameters: Parameters | None = None,
    limits: Limits | None = None,
) -> Result:
    """Runs one read-only statement on its own connection; a text passes the guard first."""
    checked = query if isinstance(query, CheckedStatement) else check_statement(query, database.dialect)
    with database.session() as session:
        return session.run(checked, parameters or {}, limits or Limits())
