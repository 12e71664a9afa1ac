"""What all kinds of database share: limits, collecting rows within them, and stopping what takes too long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Any, Protocol

from heedful.errors import Invalid, Unavailable, quoted
from heedful.results import Column, Result, normalize, row_size
from heedful.sql.databases.schema import Schema
from heedful.sql.guard import CheckedStatement

CONNECT_SECONDS = 10
_FIRST_BATCH = 1
"""Small, because the size of a row is unknown until one is read."""
_LARGEST_BATCH = 1_000
_AGAIN_SECONDS = 0.1

Parameters = Mapping[str, Any]
Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a query may take, and how much of its result is kept (`bytes` as JSON)."""

    seconds: float = 30.0
    rows: int = 10_000
    bytes: int = 10_000_000
    take: Callable[[Sequence[Row]], None] | None = None
    """Takes the rows as they come, so that no more than a batch is in memory; the result has none then."""

    def __post_init__(self) -> None:
        for name in ("seconds", "rows", "bytes"):
            value = getattr(self, name)
            if not (0 < value < math.inf):
                raise Invalid(f"{name} must be above 0, got {quoted(value)}", field=name, value=value)


class Session(Protocol):
    """One connection that only reads."""

    def run(self, query: CheckedStatement, parameters: Parameters, limits: Limits) -> Result:
        """Runs one statement without side effects."""


class Database(Protocol):
    """A database that queries run against."""

    @property
    def dialect(self) -> str:
        """The dialect that its SQL is guarded in."""

    @property
    def address(self) -> str:
        """Its address without secrets."""

    def session(self) -> AbstractContextManager[Session]:
        """A fresh connection: nothing carries over from one query to the next."""

    def read_schema(self) -> Schema:
        """The tables and views, as the database describes them."""

    def check_rights(self) -> None:
        """Fails if its user may do more than read, as far as the database reports that."""

    def data_version(self) -> str | None:
        """A value that changes whenever data change; None if the database has none."""


class Watchdog:
    """Calls `stop` from another thread when the time is up, repeatedly until the work has ended."""

    def __init__(self, seconds: float, stop: Callable[[], object]) -> None:
        self.fired = False
        self._done = Event()
        self._stop = stop
        self._seconds = seconds
        self._thread = Thread(target=self._watch, name="heedful-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        wait = self._seconds
        # The first call is lost if the database has not started the query yet.
        while not self._done.wait(wait):
            self.fired = True
            self._stop()
            wait = _AGAIN_SECONDS


def collect(columns: Sequence[Column], fetch: Callable[[int], Sequence[Row]], limits: Limits, started: float) -> Result:
    """Fetches rows in batches with `fetch(count)` until a limit is reached."""
    rows: list[tuple[Any, ...]] = []
    size, truncated_by = 0, None
    if limits.take is not None:
        return Result(tuple(columns), (), *_passed_on(fetch, limits, limits.take), monotonic() - started)
    batch = min(_FIRST_BATCH, limits.rows + 1)
    while truncated_by is None:
        fetched = fetch(batch)
        for raw in fetched:
            row = tuple(normalize(value) for value in raw)
            size += row_size(row)
            truncated_by = "rows" if len(rows) == limits.rows else "bytes" if size > limits.bytes else None
            if truncated_by:
                break
            rows.append(row)
        if len(fetched) < batch:
            break
        room = (limits.bytes - size) * (len(rows) + 1) // max(size, 1)
        batch = max(1, min(_LARGEST_BATCH, limits.rows + 1 - len(rows), room))
    return Result(tuple(columns), tuple(rows), truncated_by is not None, truncated_by, monotonic() - started)


def _passed_on(
    fetch: Callable[[int], Sequence[Row]], limits: Limits, take: Callable[[Sequence[Row]], None]
) -> tuple[bool, str | None]:
    """Hands rows on, batch by batch; whether there were more than the limit, and which one."""
    remaining = limits.rows
    while fetched := fetch(min(_LARGEST_BATCH, remaining + 1)):
        take(fetched[:remaining])
        if len(fetched) > remaining:
            return True, "rows"
        remaining -= len(fetched)
    return False, None


def bound(query: CheckedStatement, parameters: Parameters) -> dict[str, Any]:
    """The values of the query's parameters; a missing or an extra one is an error."""
    missing, unknown = set(query.parameters) - set(parameters), set(parameters) - set(query.parameters)
    if missing or unknown:
        names = ", ".join(sorted(missing or unknown))
        raise Invalid(
            f"no value for the parameters {names}" if missing else f"the SQL has no parameters {names}",
            code="sql_parameter",
            field="parameters",
            value=sorted(missing or unknown),
            remedy="Give each :name of the SQL one value",
        )
    return dict(parameters)


def timed_out(limits: Limits) -> Unavailable:
    """The error for a query that was stopped."""
    return Unavailable(
        f"the query took longer than {limits.seconds:g} seconds and was stopped",
        code="query_timeout",
        field="seconds",
        value=limits.seconds,
        remedy="Ask for less, or add an index",
    )


@contextmanager
def closing(connection: Any) -> Iterator[Any]:
    """The connection, closed at the end."""
    try:
        yield connection
    finally:
        connection.close()
