"""Statements that run often, handed to the driver without the toolkit's work on each of them.

Columns must hold what the driver takes (JSON as text), and rows come back as the driver gives them.
"""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import Connection, Engine, PoolProxiedConnection
from sqlalchemy.sql.expression import ClauseElement


class Prepared:
    """One statement with named values, compiled once for each kind of database."""

    def __init__(self, statement: ClauseElement, columns: list[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[str, tuple[str, list[str] | None, dict[str, Any]]] = {}

    def compiled(self, engine: Engine) -> tuple[str, list[str] | None, dict[str, Any]]:
        """The words of the statement, the order of its values (None for a driver that takes them by name), and those
        values that are part of the statement."""
        found = self._compiled.get(engine.dialect.name)
        if found is None:
            made = self._statement.compile(dialect=engine.dialect, column_keys=self._columns)
            binds = getattr(made, "binds", {})
            fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
            found = (str(made), getattr(made, "positiontup", None), fixed)
            self._compiled[engine.dialect.name] = found
        return found


class Direct:
    """An open transaction, straight on the driver; for all that is not prepared, there is `connection`."""

    def __init__(self, engine: Engine, borrowed: PoolProxiedConnection) -> None:
        self._engine = engine
        self._borrowed = borrowed
        self._driver: Any = borrowed.dbapi_connection
        self._connection: Connection | None = None

    def run(self, statement: Prepared, **values: Any) -> list[tuple[Any, ...]]:
        """The rows that a prepared statement gives."""
        sql, order, fixed = statement.compiled(self._engine)
        named = fixed | values
        given: Any = named if order is None else [named[name] for name in order]
        cursor = self._driver.execute(sql, given)
        return cast(list[tuple[Any, ...]], cursor.fetchall()) if cursor.description else []

    @property
    def connection(self) -> Connection:
        """The same transaction for the toolkit, which neither begins nor ends it."""
        if self._connection is None:
            made = Connection(self._engine, connection=self._borrowed)
            self._connection = made.execution_options(begun=True)
        return self._connection
