"""What a store runs, whether by SQLAlchemy or directly on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Connection, Engine, event

from heedful.storage.rows import Direct, Prepared


@contextmanager
def watched(note: Callable[[str, int], None]) -> Iterator[None]:
    """Calls `note` with each statement, and the number of rows that it wrote or that it was run for."""
    run, run_many = Direct.run, Direct.run_many

    def executed(_: Connection, cursor: Any, statement: str, *rest: Any) -> None:
        note(statement, max(cursor.rowcount, 0))

    def direct(self: Direct, statement: Prepared, **values: Any) -> list[tuple[Any, ...]]:
        found = run(self, statement, **values)
        note(statement.compiled(self._engine)[0], 1)
        return found

    def directly_many(self: Direct, sql: str, rows: list[Any]) -> None:
        run_many(self, sql, rows)
        note(sql, len(rows))

    event.listen(Engine, "after_cursor_execute", executed)
    try:
        with patch.object(Direct, "run", direct), patch.object(Direct, "run_many", directly_many):
            yield
    finally:
        event.remove(Engine, "after_cursor_execute", executed)
