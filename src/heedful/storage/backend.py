"""The contract of a database backend; `sqlite` and `postgresql` implement it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import Protocol

from sqlalchemy import Column, Connection, Engine

from heedful.errors import Invalid
from heedful.storage.rows import Direct

BUSY_SECONDS = 60
"""How long a writer waits for the others before it gives up."""

CHANGED = "changed"
"""The key in `Connection.info` that marks a transaction as changing facts."""


def unstorable(database: str) -> Invalid:
    """The error for a value that passed all checks, and that a database refuses nevertheless. It shows no value."""
    return Invalid(
        f"this holds a value that {database} can't store",
        code="unstorable",
        remedy="Use valid Unicode without NUL, whole numbers within 64 bits and less than 100 levels; "
        "nothing was stored",
    )


class Backend(Protocol):
    """One open database."""

    engine: Engine
    name: str
    """The name in error messages; contains no secret."""
    folder: Path | None
    """Where indexes are kept; None where the database searches itself."""

    many_writers: bool
    """Whether writers of different projects run concurrently."""

    read_only: bool
    """Whether it is a read-only replica."""

    def prepare(self) -> None:
        """Called once, before the first transaction."""

    def reserve(self) -> None:
        """Creates the file of a new store, readable by its owner only; nothing on a server."""

    def begin(
        self, project: str | None, *, write: bool, durable: bool, exclusive: bool
    ) -> AbstractContextManager[Connection]:
        """A transaction, committed at the end, or rolled back on an error. `exclusive` keeps other writers of the
        project away until it ends."""

    def direct(self, project: str, *, write: bool, durable: bool, exclusive: bool) -> AbstractContextManager[Direct]:
        """The same, directly on the driver."""

    def migrating(self, connection: Connection) -> None:
        """Locks out other migrations until the transaction ends."""

    def notices(self, stopped: Event) -> Iterator[str | None]:
        """Yields soon after others have changed facts, until `stopped`: the project, or None if it is unknown.
        Some changes may be missed, so it can only speed up what happens anyway."""

    def integrity(self, connection: Connection) -> str:
        """ "ok", or what is wrong."""

    def exists(self) -> bool:
        """Whether the store exists; creates nothing."""

    def last_number(self, connection: Connection, column: Column[int]) -> int:
        """The last number that a column generated, even if its row was deleted."""

    def set_last_number(self, connection: Connection, column: Column[int], number: int) -> None:
        """Makes a column continue after a number."""

    def after_fork(self) -> None:
        """In a forked child: drops the parent's connections without closing them."""

    def close(self) -> None:
        """Closes everything."""
