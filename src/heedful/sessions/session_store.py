"""The contract of a session store, on any database. One test suite runs over every implementation.

Times are integers (see `heedful.clock`). Lists are read in pages: `after` is the number of the last item that was seen.
Numbers grow within a list; those of different sessions can't be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection

from heedful.ledger.erasure import Erased, PersonRecords
from heedful.ledger.opinions import FeedbackRow, Feedbacks
from heedful.ledger.rating_signals import EntryRow, Uses
from heedful.model import Metadata, Page
from heedful.notifications.outbox import Outbox, OutboxStore

Row = TypeVar("Row")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; `number` is its position in the list."""

    number: int
    session_id: str
    metadata: Metadata
    created_at: int
    updated_at: int
    revision: int = 0  # Changes with the metadata, where the store needs that.


@dataclass(frozen=True, slots=True)
class MessageRow:
    id: str
    role: str
    content: str
    at: int
    number: int = 0


class Removed(NamedTuple):
    """The content of a session that one transaction deleted."""

    messages: int
    entries: int
    feedbacks: list[FeedbackRow]  # The active ones.
    is_last: bool  # Whether the session itself was deleted.


OPINION_ROWS = 20
"""How many rows an opinion counts for when its session is deleted: its retraction is written, and what was derived from
it is removed."""


Rows = Sequence[Sequence[Any]]
"""Exported rows: values in the order of the columns, perhaps followed by others. Times are integers, JSON is text."""


@dataclass(frozen=True, slots=True)
class ExportQuery:
    now: int
    since: int | None = None
    until: int | None = None  # Exclusive.
    dataset: str | None = None


class Conversations(Protocol):
    """Sessions, messages and entries."""

    def session(self, session_id: str) -> SessionRow | None: ...

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        """Creates a session; False if it exists already, unchanged."""

    def touch(self, session_id: str, at: int) -> bool:
        """Updates the time of a session; False if there is no such session."""

    def sessions(self, after: int | None, limit: int, where: Metadata | None) -> list[SessionRow]:
        """The newest first; `where` compares metadata."""

    def set_metadata(self, current: SessionRow, metadata: Metadata, at: int) -> bool:
        """Replaces the metadata; False if somebody else changed them since `current` was read in this transaction."""

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None: ...

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]: ...

    def message(self, message_id: str, session_id: str | None = None) -> MessageRow | None:
        """One message of a session, or of any."""

    def set_content(self, message_id: str, content: str) -> None:
        """Changes the text of a message of the project."""

    def delete_message(self, message_id: str) -> None: ...

    def add_entry(self, new: EntryRow) -> bool:
        """Stores an entry; False if there is no such session. Its external id must be free."""

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        """An entry of a session, by its id or its external id."""

    def external_entry(self, external_id: str, *, or_id: bool = False) -> EntryRow | None:
        """The entry of any session with this external id; with `or_id`, also the one with this id of its own."""

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]: ...

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        """All entries of these sessions, or of all; those of one session in their order."""

    def set_used(self, qa_id: str, used: Uses) -> None: ...

    def delete(self, session_id: str, at: int) -> Removed | None:
        """Removes up to `MAX_ROWS` rows of a session's content, and with the last of them the session; None if there is
        no such session. Its opinions go first: they are retracted in the ledger, which has no text."""


class Erasure(Protocol):
    """Removes a person's name and words."""

    def is_known(self, name: str) -> bool:
        """Whether any record has this name."""

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        """Puts the pseudonym in place of the name, and clears the words. Doing it again finishes what was begun, and
        returns the same."""


class Change(NamedTuple):
    """A negative opinion that was added or retracted."""

    place: int
    feedback_id: str
    added: bool


class Changes(Protocol):
    """Which negative opinions were given and retracted, in partitions. Within one, they are seen in the order of their
    places, whoever wrote them. What versions wrote that knew no partitions is in none."""

    def newest(self) -> dict[int, int]:
        """The position that was assigned last, by partition; its change may not be visible yet."""

    def positions(self) -> dict[int, int]:
        """The last position with a visible change, by partition."""

    def changes_after(self, partition: int, position: int, limit: int) -> list[Change]:
        """The changes after a position in a partition, in order."""


class Transaction(Protocol):
    """One consistent snapshot, or one atomic change."""

    @property
    def connection(self) -> Connection | None:
        """The open transaction of the store of facts, if this is part of it; None in a database of its own."""

    @property
    def conversations(self) -> Conversations: ...

    @property
    def feedbacks(self) -> Feedbacks: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def erasure(self) -> Erasure: ...


class RemoteTransaction(Transaction, Protocol):
    """A transaction of a separate database, whose events are not in the store's ledger."""

    @property
    def changes(self) -> Changes: ...

    def exported(self, table: str, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        """The next rows of `sessions`, `messages`, `entries`, `feedback` or `events` for an export, and where to go on:
        None at the end. With a dataset, there may be fewer than `limit` before it."""


class SessionStore(OutboxStore, Protocol):
    """The sessions of one project; `name` says where they are, without secrets."""

    remote: bool
    """Whether it is a database of its own: no transaction spans it and the store of facts, whose ledger does not have
    its events. Its transactions are `RemoteTransaction`."""

    def check(self) -> str:
        """ "ok", or what is wrong."""

    def repair(self) -> str:
        """Fixes what `check` finds; returns a description, or ""."""

    def close(self) -> None: ...


def page(read: Callable[[int], Sequence[Row]], limit: int, to_item: Callable[[Row], Item]) -> Page[Item]:
    """A page of numbered rows; reads one more, to know whether there is a next page."""
    rows = read(limit + 1)
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(
        items=[to_item(row) for row in rows[:limit]],
        next_cursor=None if last is None else str(last.number),  # type: ignore[attr-defined]
    )
