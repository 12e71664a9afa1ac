"""Queries on a database that is at hand, without a process of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.results import Result
from heedful.sql.databases.any_database import Database, Limits
from heedful.sql.guard import CheckedStatement, check_statement


def run(
    database: Database,
    query: CheckedStatement | str,
    parameters: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Result:
    """Runs one read-only statement on its own connection; a text passes the guard first."""
    checked = query if isinstance(query, CheckedStatement) else check_statement(query, database.dialect)
    with database.session() as session:
        return session.run(checked, parameters or {}, limits or Limits())
