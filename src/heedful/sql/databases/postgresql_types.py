"""PostgreSQL values that Python can't represent become the text that PostgreSQL prints."""

from __future__ import annotations

from typing import Any

from psycopg import Connection, DataError
from psycopg.adapt import Loader
from psycopg.types import datetime as moments


def register(connection: Connection[Any]) -> None:
    """Returns infinite and far dates as text, instead of failing the query."""
    for name, loader in _LOADERS.items():
        connection.adapters.register_loader(name, loader)


def _lenient(strict: type[Loader]) -> type[Loader]:
    class Lenient(strict):  # type: ignore[valid-type,misc]
        def load(self, data: Any) -> Any:
            try:
                return super().load(data)
            except DataError:
                return bytes(data).decode()

    return Lenient


_LOADERS = {
    "date": _lenient(moments.DateLoader),
    "time": _lenient(moments.TimeLoader),
    "timetz": _lenient(moments.TimetzLoader),
    "timestamp": _lenient(moments.TimestampLoader),
    "timestamptz": _lenient(moments.TimestamptzLoader),
    "interval": _lenient(moments.IntervalLoader),
}
