"""How many bytes a call stores, counted where rows and documents are written; indexes of the database are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, event

ROW_BYTES = 24
"""The size of a row besides its values."""

NUMBER_BYTES = 8
"""The size of a value that is neither text nor bytes."""


@dataclass(slots=True)
class StoredBytes:
    """Bytes written so far, even if they were rolled back later."""

    total: int = 0


_COUNTED: ContextVar[StoredBytes | None] = ContextVar("heedful_stored_bytes", default=None)


@contextmanager
def counting() -> Iterator[StoredBytes]:
    """Counts what this thread or task writes inside the block."""
    counted = StoredBytes()
    token = _COUNTED.set(counted)
    try:
        yield counted
    finally:
        _COUNTED.reset(token)


def count_statement(sql: str, rows: Sequence[Any]) -> None:
    """Counts the values of a statement that inserts or updates rows."""
    counted = _COUNTED.get()
    if counted is not None and sql.startswith(("INSERT", "UPDATE")):
        counted.total += sum(map(_row_bytes, rows))


def count_with(size: Callable[[], int]) -> None:
    """Counts what is written otherwise; `size` is called only if somebody counts."""
    counted = _COUNTED.get()
    if counted is not None:
        counted.total += size()


def count_on(engine: Engine) -> None:
    """Has all statements counted that SQLAlchemy runs."""
    event.listen(engine, "before_cursor_execute", _before_execute)


def _before_execute(
    connection: Connection, cursor: Any, sql: str, arguments: Any, context: Any, executemany: bool
) -> None:
    count_statement(sql, arguments if executemany else (arguments,))


def _row_bytes(row: dict[str, Any] | Sequence[Any]) -> int:
    return ROW_BYTES + sum(map(_value_bytes, row.values() if isinstance(row, dict) else row))


def _value_bytes(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))
    if value is None or isinstance(value, int | float):
        return NUMBER_BYTES
    if isinstance(value, bytes | memoryview):
        return len(value)
    if isinstance(value, list | dict):
        return len(orjson.dumps(value, default=str))
    # PostgreSQL's driver wraps bytes and JSON.
    return _value_bytes(value.obj) if hasattr(value, "obj") else NUMBER_BYTES
