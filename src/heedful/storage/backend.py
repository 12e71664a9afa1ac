"""What a kind of database has to know; one for each is in `sqlite` and `postgresql`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import Protocol

from sqlalchemy import Column, Connection, Engine

from heedful.storage.rows import Direct

CHANGED = "changed"
"""The note in `Connection.info` by which a transaction says that it changes facts."""


class Backend(Protocol):
    """One open database."""

    engine: Engine
    name: str
    """What errors call it; holds no secret."""
    folder: Path | None
    """Where indexes are kept; None where the database searches itself."""

    many_writers: bool
    """Whether those who write to different projects need not wait for each other."""

    read_only: bool
    """Whether it is a copy of another one that nobody can write to."""

    def prepare(self) -> None:
        """What is done once, before the first transaction."""

    def reserve(self) -> None:
        """Makes the file of a new store, for its owner alone; a server needs nothing of the kind."""

    def begin(
        self, project: str | None, *, write: bool, durable: bool, exclusive: bool
    ) -> AbstractContextManager[Connection]:
        """A transaction, committed at the end, or rolled back on an error. `exclusive` keeps other writers of the
        project away until it ends."""

    def direct(self, project: str, *, write: bool, durable: bool, exclusive: bool) -> AbstractContextManager[Direct]:
        """The same, straight on the driver."""

    def migrating(self, connection: Connection) -> None:
        """Keeps others from migrating at the same time, until the transaction ends."""

    def notices(self, stopped: Event) -> Iterator[str | None]:
        """Tells soon after others have changed facts, until `stopped`: the project, or None if it isn't known which.
        Some changes may go untold, so it is good for doing early what is done anyway."""

    def integrity(self, connection: Connection) -> str:
        """ "ok", or what is wrong."""

    def is_there(self) -> bool:
        """Whether there is anything at the address; looking creates nothing."""

    def last_number(self, connection: Connection, column: Column[int]) -> int:
        """The last number that a column gave by itself, whether its row is still there or not."""

    def set_last_number(self, connection: Connection, column: Column[int], number: int) -> None:
        """Lets a column go on behind a number."""

    def after_fork(self) -> None:
        """In a forked child: lets go of the parent's connections without closing them."""

    def close(self) -> None:
        """Closes everything."""
