"""Which database a URL names."""

from __future__ import annotations

from heedful.errors import Invalid
from heedful.sql.databases.any_database import Database
from heedful.sql.databases.duckdb_connector import DuckDB
from heedful.sql.databases.mysql_connector import MySQL
from heedful.sql.databases.postgresql_connector import PostgreSQL
from heedful.sql.databases.sqlite_connector import SQLite
from heedful.sql.secrets import check_url, parse_url


def open_database(url: str, *, role: str | None = None, memory: int = 512, disk: int = 1_024) -> Database:
    """The database behind a SQLAlchemy URL without references; nothing is connected yet.

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
