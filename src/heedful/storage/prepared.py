"""Statements that run often, handed to the driver without the toolkit's work on every value.

Columns must hold what the driver takes (JSON as text), and come back as the driver gives them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, CursorResult
from sqlalchemy.sql.expression import ClauseElement


class Prepared:
    """One statement with named values, compiled once for each kind of database."""

    def __init__(self, statement: ClauseElement, columns: list[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[str, tuple[str, list[str] | None]] = {}

    def __call__(self, connection: Connection, /, **values: Any) -> CursorResult[Any]:
        kind = connection.dialect.name
        if kind not in self._compiled:
            compiled = self._statement.compile(dialect=connection.dialect, column_keys=self._columns)
            self._compiled[kind] = (str(compiled), getattr(compiled, "positiontup", None))
        sql, order = self._compiled[kind]
        # Drivers take values by place, or by name.
        given: Any = values if order is None else tuple(values[name] for name in order)
        return connection.exec_driver_sql(sql, given)
