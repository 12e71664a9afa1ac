"""The contract of a session store, on any database. One test suite runs over every implementation.

Times are integers (see `heedful.clock`). Lists are read in pages: `after` is the number of the last item that was seen.
Numbers grow within a list; those of different sessions can't be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection

from heedful.errors import Conflict
from heedful.model import AuthorKind, Metadata, OpinionTarget, Rating
from heedful.storage.erasure import Erased
from heedful.storage.exports import ExportQuery, Rows
from heedful.storage.external_ids import WaitingRow
from heedful.storage.requests import idempotency_key_of
from heedful.storage.tallies import TallyCounts, TallyQuery

Result = TypeVar("Result")

Uses = list[tuple[str, float, list[str]]]
"""The facts of an answer: id, share, and the links by which it was found."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; `number` is its position in the list."""

    number: int
    session_id: str
    metadata: Metadata
    created_at: int
    updated_at: int
    revision: int = 0
    """Changes with the metadata, where the store needs that."""


@dataclass(frozen=True, slots=True)
class MessageRow:
    id: str
    role: str
    content: str
    at: int
    number: int = 0


@dataclass(frozen=True, slots=True)
class EntryRow:
    id: str
    session_id: str
    question: str
    answer: str
    context: str | None
    at: int
    dataset: str | None
    recall_id: str | None
    used: Uses | None
    model: str | None
    usage: Metadata | None
    external_id: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class FeedbackRow:
    """One version of an opinion."""

    id: str
    """The id for callers. A replacement of an opinion about an execution or a message keeps it."""
    event_id: str
    session_id: str
    """Empty for an opinion about an execution or a message, which outlasts the session."""
    target_type: OpinionTarget
    target_id: str
    author: str | None
    rating: Rating | None
    score: int | None
    comment: str | None
    extra: Metadata
    at: int
    """The time of its first version."""
    updated_at: int
    author_kind: AuthorKind = "visitor"
    message_id: str | None = None
    active: bool = True
    number: int = 0

    @property
    def target(self) -> tuple[OpinionTarget, str]:
        return self.target_type, self.target_id

    def says(self) -> tuple[Any, ...]:
        """The content that makes two opinions equal."""
        return (self.rating, self.score, self.comment)


@dataclass(frozen=True, slots=True)
class AlertRow:
    id: str
    channel: str
    payload: Metadata
    created_at: int
    attempts: int = 0
    next_at: int | None = None
    delivered_at: int | None = None
    error: str | None = None
    number: int = 0


class Removed(NamedTuple):
    """What one transaction deleted of a session."""

    messages: int
    entries: int
    feedbacks: list[FeedbackRow]
    """The active ones."""
    is_last: bool
    """Whether the session itself was deleted."""


OPINION_ROWS = 20
"""How many rows an opinion counts for when its session is deleted: its retraction is written, and what was derived from
it is removed."""


class Counts(NamedTuple):
    """Counts of active feedback."""

    up: int
    down: int
    neutral: int
    scores: int
    """The number of scores."""
    score_sum: int
    characters: int
    """The total length of all comments."""


class Conversations(Protocol):
    """Sessions, messages and entries."""

    def session(self, session_id: str) -> SessionRow | None: ...

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        """Creates a session; False if it exists already, unchanged."""
        ...

    def touch(self, session_id: str, at: int) -> bool:
        """Updates the time of a session; False if there is no such session."""
        ...

    def sessions(self, after: int | None, limit: int, where: Metadata | None) -> list[SessionRow]:
        """The newest first; `where` compares metadata."""
        ...

    def set_metadata(self, current: SessionRow, metadata: Metadata, at: int) -> bool:
        """Replaces the metadata; False if somebody else changed them since `current` was read in this transaction."""
        ...

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None: ...

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]: ...

    def message(self, message_id: str, session_id: str | None = None) -> MessageRow | None:
        """One message of a session, or of any."""
        ...

    def set_content(self, message_id: str, content: str) -> None:
        """Changes what a message of the project says."""
        ...

    def delete_message(self, message_id: str) -> None: ...

    def add_entry(self, new: EntryRow) -> bool:
        """Stores an entry; False if there is no such session. Its external id must be free."""
        ...

    def entry_id(self, session_id: str, qa_id: str) -> str | None:
        """The id of an entry of a session, given that id or its external id; None if there is none."""
        ...

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        """An entry of a session, by its id or its external id."""
        ...

    def external_entry(self, external_id: str) -> EntryRow | None:
        """The entry of any session with this external id."""
        ...

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]: ...

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        """All entries of these sessions, or of all; those of one session in their order."""
        ...

    def set_used(self, qa_id: str, used: Uses) -> None: ...

    def delete(self, session_id: str, at: int) -> Removed | None:
        """Removes up to `MAX_ROWS` rows of a session's content, and with the last of them the session; None if there is
        no such session. Its opinions go first: they are retracted in the ledger, which has no text."""
        ...


class Feedbacks(Protocol):
    """Opinions: an event in the ledger for each version, and what was said in words beside it. Nothing is overwritten:
    an opinion that is replaced or retracted stays, and is no longer active."""

    def add(self, new: FeedbackRow, key: str, recorded_at: int) -> bool:
        """Appends the event and stores the text; False if there is no such session. `key` identifies a retry."""
        ...

    def with_key(self, key: str) -> FeedbackRow | None:
        """The opinion with this key; `Conflict` if its text was deleted with its session."""
        ...

    def get(self, feedback_id: str) -> FeedbackRow | None:
        """The active version of an opinion, or else the last; by its id or by that of an event."""
        ...

    def by_event_ids(self, event_ids: Sequence[str]) -> list[FeedbackRow]:
        """The versions with these events, active or not, if their text still exists."""
        ...

    def negatives(self, after: str | None, limit: int) -> list[str]:
        """The ids of active negative opinions, in order; `after` is the last that was seen."""
        ...

    def active(self, target_type: OpinionTarget, target_ids: Sequence[str]) -> list[FeedbackRow]:
        """The active opinions about these targets; those of one session oldest first."""
        ...

    def active_by(self, author: str | None, target_type: OpinionTarget, target_id: str) -> list[FeedbackRow]:
        """The active opinions of one author about a target, oldest first; None means no author."""
        ...

    def withdraw(self, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        """Retracts opinions; returns the ids of the retractions."""
        ...

    def retracted(self, session_ids: Sequence[str]) -> list[str]:
        """Opinions about these sessions that were retracted, unless what was derived from them went in the same
        transaction."""
        ...

    def unprocessed(self, session_ids: Sequence[str] | None, limit: int | None = None) -> dict[str, str]:
        """The sessions, of these or of all up to `limit`, with opinions given or retracted that `improve` has not seen,
        and the newest such event of each."""
        ...

    def set_processed(self, events: Mapping[str, str]) -> None:
        """`improve` has seen these events, by session; what is newer stays unprocessed."""
        ...

    def wait(self, new: WaitingRow, until: int | None) -> None:
        """Stores a rating until its entry comes, in place of an earlier one of the same author. A store that removes
        old ones by itself does so after `until`."""
        ...

    def waiting(self, external_id: str, at: int) -> list[WaitingRow]:
        """The ratings that wait for the entry which this transaction adds, at this time, the oldest first. Excludes
        others that add one at the same time."""
        ...

    def stop_waiting(self, external_id: str, author: str | None) -> int:
        """Removes the rating of one author that waits for an entry; returns how many that were."""
        ...

    def waiting_since(self, at: int, limit: int) -> list[str]:
        """The external ids for which ratings have waited since before a time."""
        ...

    def end_waiting(self, external_id: str, ids: Sequence[str]) -> None:
        """Removes ratings that wait no longer."""
        ...

    def retraction_of(self, event_id: str) -> str | None:
        """The event that retracted an opinion, if one did."""
        ...

    def of_session(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[FeedbackRow]:
        """The active opinions about a session as a whole."""
        ...

    def of_sessions(self, session_ids: Sequence[str] | None) -> Iterable[FeedbackRow]:
        """All active opinions, about these sessions and their entries, or about all."""
        ...

    def counts(self) -> Counts: ...

    def tallies(self, query: TallyQuery) -> list[TallyCounts]:
        """Counts of active opinions; a value and a bucket may have several rows, to be added up.

        On SQL, these include opinions about executions, messages and facts.
        """
        ...

    def negative_comments(
        self, dataset: str | None, since: int | None, until: int | None, limit: int
    ) -> list[tuple[str, str, int]]:
        """(id, comment, at) of active negative opinions that have a comment, the newest first."""
        ...

    def values(self, key: str) -> dict[str, int]:
        """How many sessions have each value of a (dotted) metadata key, as tags."""
        ...

    def keys(self, limit: int) -> list[str]:
        """The (dotted) metadata keys that sessions have, in order."""
        ...

    def variants(self, key: str, limit: int) -> list[str]:
        """Up to `limit` values of a (dotted) metadata key of sessions, as tags, in order."""
        ...


class Outbox(Protocol):
    """Alerts that wait for delivery."""

    def add(self, session_id: str | None, new: Sequence[AlertRow]) -> None:
        """Stores alerts, which are deleted with their session, if they have one."""
        ...

    def claim(self, channels: Sequence[str], now: int, until: int, limit: int) -> list[AlertRow]:
        """Claims the due alerts of these channels until `until`."""
        ...

    def settle(
        self, alert_id: str, attempts: int, next_at: int | None, delivered_at: int | None, error: str | None
    ) -> None: ...

    def due_at(self, channels: Sequence[str]) -> int | None:
        """When the next alert of these channels is due."""
        ...

    def list(self, after: int | None, limit: int, pending: bool) -> list[AlertRow]:
        """The newest first; with `pending`, those that are still to be delivered."""
        ...

    def get(self, alert_id: str) -> AlertRow | None: ...


class Exports(Protocol):
    """Exports rows."""

    def page(self, table: str, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        """The next rows of `sessions`, `messages`, `entries`, `feedback` or `events`, and where to go on: None at the
        end. With a dataset, there may be fewer than `limit` before it."""
        ...


@dataclass(frozen=True, slots=True)
class PersonRecords:
    """The records of an erased person in sessions."""

    opinions: list[str] = field(default_factory=list)
    """The ids of their feedback, inactive ones too."""
    rated: list[tuple[str, str]] = field(default_factory=list)
    """(session, entry) of the answers that it is about."""
    sessions: list[str] = field(default_factory=list)
    """Sessions whose metadata name them."""
    entries: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    recalls: list[str] = field(default_factory=list)
    """The recalls behind the entries of these sessions."""
    alerts: int = 0
    events: int = 0
    """Their events in a ledger that is not the store's."""


class Erasure(Protocol):
    """Removes a person's name and words."""

    def is_known(self, name: str) -> bool:
        """Whether any record has this name."""
        ...

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        """Puts the pseudonym in place of the name, and clears the words. Doing it again finishes what was begun, and
        returns the same."""
        ...


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
        ...

    def positions(self) -> dict[int, int]:
        """The last position with a visible change, by partition."""
        ...

    def changes_after(self, partition: int, position: int, limit: int) -> list[Change]:
        """The changes after a position in a partition, in order."""
        ...


class Transaction(Protocol):
    """One consistent snapshot, or one atomic change."""

    @property
    def connection(self) -> Connection | None:
        """The open transaction of the store of facts, if this is part of it; None in a database of its own."""
        ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def feedbacks(self) -> Feedbacks: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def exports(self) -> Exports: ...

    @property
    def erasure(self) -> Erasure: ...


class RemoteTransaction(Transaction, Protocol):
    """A transaction of a separate database, whose events are not in the store's ledger."""

    @property
    def changes(self) -> Changes: ...


class SessionStore(Protocol):
    """The sessions of one project."""

    name: str
    """Where it is, without secrets."""
    remote: bool
    """Whether it is a database of its own: no transaction spans it and the store of facts, whose ledger does not have
    its events. Its transactions are `RemoteTransaction`."""

    def read(self, body: Callable[[Any], Result]) -> Result:
        """Runs `body` in a read transaction."""
        ...

    def write(self, body: Callable[[Any], Result]) -> Result:
        """Runs `body` in a transaction and commits it. A retry may call it again."""
        ...

    def check(self) -> str:
        """ "ok", or what is wrong."""
        ...

    def repair(self) -> str:
        """Fixes what `check` finds; returns a description, or ""."""
        ...

    def close(self) -> None: ...


def deleted_key_error(key: str) -> Conflict:
    """The error for an idempotency key whose opinion was deleted with its session."""
    return Conflict(
        f"idempotency_key {idempotency_key_of(key)!r} was used for feedback that was deleted with its session",
        code="idempotency_key_reused",
        field="idempotency_key",
        value=key.partition("/")[2],
        remedy="Use a new key",
    )
