"""Many rows in one statement, without the toolkit's work on every value: columns must hold what the driver takes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.sql.dml import Insert

_COMPILED: dict[tuple[str, str, tuple[str, ...], str], tuple[str, list[str] | None]] = {}


def insert_many(
    connection: Connection, table: Table, statement: Insert, rows: Sequence[dict[str, Any]], kind: str = "insert"
) -> None:
    """Runs an insert of `table` for all rows, which have the same columns; `kind` tells its statements apart."""
    if not rows:
        return
    names = tuple(rows[0])
    key = (connection.dialect.name, table.name, names, kind)
    if key not in _COMPILED:
        compiled = statement.compile(dialect=connection.dialect, column_keys=list(names))
        _COMPILED[key] = (str(compiled), compiled.positiontup)
    sql, order = _COMPILED[key]
    # Drivers take values by place, or by name.
    given: Any = list(rows) if order is None else list(map(itemgetter(*order), rows))
    connection.exec_driver_sql(sql, given)
