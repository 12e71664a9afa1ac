"""Opinions about sessions, answers, executions and messages in SQL tables: an event of the ledger for each version, and
the words beside it.

Nothing is overwritten: an opinion that is replaced or retracted stays as a row that is no longer active.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import orjson
from sqlalchemy import Column, ColumnElement, Connection, Select, and_, bindparam, case, func, insert, select, update

from heedful.errors import Conflict
from heedful.ledger import events as ledger
from heedful.ledger import opinion_reports, proven_sql, tallies
from heedful.ledger.events import FEEDBACK, Event
from heedful.ledger.proven_sql import RETAINED_SQL, TARGETS, active_opinions
from heedful.ledger.tallies import TallyCounts, TallyQuery
from heedful.ledger.votes import suffices
from heedful.model import AuthorKind, Metadata, OpinionTarget, Rating
from heedful.storage import external_ids
from heedful.storage.external_ids import WaitingRow
from heedful.storage.rows import Direct, OneOf, Prepared, select_in, unpacked
from heedful.storage.schema import feedbacks, projects, session_tags, sessions

# In the order of the fields of `FeedbackRow`.
_ROWS = select(
    *(feedbacks.c.id, feedbacks.c.event_id, sessions.c.id.label("session_id"), feedbacks.c.target_type),
    *(feedbacks.c.target_id, feedbacks.c.author, feedbacks.c.rating, feedbacks.c.score, feedbacks.c.comment),
    *(feedbacks.c.extra, feedbacks.c.at, feedbacks.c.updated_at, feedbacks.c.author_kind, feedbacks.c.message_id),
    *(feedbacks.c.active, feedbacks.c.seq.label("number")),
).outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq)

_ACTIVE = _ROWS.where(
    feedbacks.c.project_id == bindparam("project"),
    feedbacks.c.active == 1,
    feedbacks.c.target_type == bindparam("type"),
    feedbacks.c.target_id == bindparam("target"),
).order_by(feedbacks.c.seq)
_ABOUT = Prepared(_ACTIVE)
_BY = Prepared(_ACTIVE.where(feedbacks.c.author.is_not_distinct_from(bindparam("by"))))
_COUNTING = Prepared(
    _ROWS.add_columns(feedbacks.c.about_id)
    .where(
        feedbacks.c.project_id == bindparam("project"),
        *active_opinions("execution"),
        OneOf(feedbacks.c.about_id),
        feedbacks.c.rating.in_([bindparam("up", "up"), bindparam("down", "down")]),
    )
    .order_by(feedbacks.c.seq)
)
_DEACTIVATE = Prepared(update(feedbacks).where(feedbacks.c.event_id == bindparam("event")).values(active=0))
_ADD = Prepared(insert(feedbacks), [column.name for column in feedbacks.c if column.name != "seq"])


class SqlFeedbacks:
    """See `Feedbacks`. It has the opinions about executions and messages, too, wherever sessions are."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    @classmethod
    def on(cls, connection: Connection, project: int) -> Self:
        """In the transaction of a connection."""
        return cls(Direct.on(connection), project)

    @property
    def _connection(self) -> Connection:
        return self._direct.connection

    def add(self, new: FeedbackRow, key: str, recorded_at: int) -> bool:
        session = None
        if new.session_id:
            values = {"project": self._project, "session": new.session_id, "now": new.at, "event": new.event_id}
            session = _number(self._direct.run(_RATE_SESSION, **values))
            if session is None:
                return False
        is_about_sql = new.target_type in TARGETS
        event = Event(
            id=new.event_id,
            project_id=self._project,
            kind=FEEDBACK,
            target_type=new.target_type,
            target_id=new.target_id,
            source="feedback" if is_about_sql else "add_feedback",
            at=new.updated_at,
            recorded_at=recorded_at,
            author=new.author,
            author_kind=new.author_kind,
            value=str(new.score) if new.score is not None else new.rating,
            idempotency_key=key,
        )
        ledger.append_one(self._direct, event)
        counted = proven_sql.counted_target
        about = counted(self._connection, new.target_type, new.target_id) if is_about_sql else None
        self._direct.run(
            _ADD,
            project_id=self._project,
            session_seq=session,
            about_id=about,
            extra=orjson.dumps(new.extra).decode(),
            active=1,
            **{name: getattr(new, name) for name in _STORED},
        )
        self._follow(new)
        return True

    def with_key(self, key: str) -> FeedbackRow | None:
        event_id = ledger.with_key(self._direct, self._project, key)
        if event_id is None:
            return None
        if rows := self.by_event_ids([event_id]):
            return rows[0]
        raise deleted_key_error(key)

    def get(self, feedback_id: str) -> FeedbackRow | None:
        condition = (feedbacks.c.id == feedback_id) | (feedbacks.c.event_id == feedback_id)
        latest = self._rows(condition).order_by(feedbacks.c.active.desc(), feedbacks.c.seq.desc()).limit(1)
        return next(self._read(latest), None)

    def by_event_ids(self, event_ids: Sequence[str]) -> list[FeedbackRow]:
        return list(map(_feedback, select_in(self._connection, self._rows(), feedbacks.c.event_id, event_ids)))

    def before(self, row: FeedbackRow) -> FeedbackRow | None:
        """The version that this one replaced."""
        earlier = self._rows(feedbacks.c.id == row.id, feedbacks.c.seq < row.number)
        return next(self._read(earlier.order_by(feedbacks.c.seq.desc()).limit(1)), None)

    def negatives(self, after: str | None, limit: int) -> list[str]:
        statement = select(feedbacks.c.id).where(self._of_sessions(), feedbacks.c.rating == "down")
        if after is not None:
            statement = statement.where(feedbacks.c.id > after)
        return list(self._connection.execute(statement.order_by(feedbacks.c.id).limit(limit)).scalars())

    def active(self, target_type: OpinionTarget, target_ids: Sequence[str]) -> list[FeedbackRow]:
        if len(target_ids) == 1:
            rows = self._direct.run(_ABOUT, project=self._project, type=target_type, target=target_ids[0])
            return [_feedback(row) for row in rows]
        active = self._rows(feedbacks.c.active == 1, feedbacks.c.target_type == target_type).order_by(feedbacks.c.seq)
        return list(map(_feedback, select_in(self._connection, active, feedbacks.c.target_id, target_ids)))

    def active_by(self, author: str | None, target_type: OpinionTarget, target_id: str) -> list[FeedbackRow]:
        rows = self._direct.run(_BY, project=self._project, type=target_type, target=target_id, by=author)
        return [_feedback(row) for row in rows]

    def withdraw(self, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        retractions = [ledger.retraction(self._project, row.event_id, author, at) for row in rows]
        with tallies.changing_folded(self._connection, self._project, [(row.target_id, row.number) for row in rows]):
            for row, event in zip(rows, retractions, strict=True):
                ledger.append_one(self._direct, event)
                self._direct.run(_DEACTIVATE, event=row.event_id)
        events = {row.session_id: event.id for row, event in zip(rows, retractions, strict=True) if row.session_id}
        for session_id, event_id in events.items():
            self._direct.run(_MARK_SESSION, project=self._project, session=session_id, event=event_id)
        for row in rows:
            self._follow(row)
        return [event.id for event in retractions]

    def retracted(self, session_ids: Sequence[str]) -> list[str]:
        return []

    def unprocessed(self, session_ids: Sequence[str] | None, limit: int | None = None) -> dict[str, str]:
        statement = select(sessions.c.id, sessions.c.unprocessed_event).where(
            sessions.c.project_id == self._project, sessions.c.unprocessed_event.is_not(None)
        )
        if session_ids is not None:
            return {row[0]: row[1] for row in select_in(self._connection, statement, sessions.c.id, session_ids)}
        oldest = statement.order_by(sessions.c.seq).limit(limit)
        return {row[0]: row[1] for row in self._connection.execute(oldest)}

    def set_processed(self, events: Mapping[str, str]) -> None:
        for session_id, event_id in events.items():
            self._direct.run(_CLEAR_SESSION, project=self._project, session=session_id, event=event_id)

    def clear_words(self, feedback_id: str) -> None:
        """Removes the comments of all versions of an opinion."""
        about = select(feedbacks.c.target_type, feedbacks.c.target_id).where(feedbacks.c.id == feedback_id).distinct()
        self._connection.execute(update(feedbacks).where(feedbacks.c.id == feedback_id).values(comment=None))
        for row in self._connection.execute(about).all():
            if row.target_type in TARGETS:
                # The comments are in memory, where lookups run.
                proven_sql.mark_rated(self._connection, row.target_type, row.target_id)

    def wait(self, new: WaitingRow, until: int | None) -> None:
        external_ids.wait(self._connection, self._project, new)

    def waiting(self, external_id: str, at: int) -> list[WaitingRow]:
        return external_ids.waiting(self._connection, self._project, external_id)

    def stop_waiting(self, external_id: str, author: str | None) -> int:
        return external_ids.stop_waiting(self._connection, self._project, external_id, author)

    def waiting_since(self, at: int, limit: int) -> list[str]:
        return external_ids.waiting_since(self._connection, self._project, at, limit)

    def end_waiting(self, external_id: str, ids: Sequence[str]) -> None:
        external_ids.end_waiting(self._connection, self._project, ids)

    def retraction_of(self, event_id: str) -> str | None:
        return ledger.retraction_of(self._connection, event_id)

    def page_about_sql(
        self, skip: int, limit: int, *, search: str | None, rating: Rating | None, message_id: str | None
    ) -> tuple[list[FeedbackRow], int]:
        """The active opinions about executions and messages, the newest first, and how many there are in all."""
        conditions = [
            feedbacks.c.project_id == self._project,
            feedbacks.c.about_id.is_not(None),
            feedbacks.c.active == 1,
            feedbacks.c.target_type.in_(TARGETS),
        ]
        if search is not None:
            conditions.append(feedbacks.c.comment.icontains(search, autoescape=True))
        if rating is not None:
            conditions.append(feedbacks.c.rating == rating)
        if message_id is not None:
            conditions.append(feedbacks.c.message_id == message_id)
        total = self._connection.execute(select(func.count()).select_from(feedbacks).where(*conditions)).scalar_one()
        page = _ROWS.where(*conditions).order_by(feedbacks.c.at.desc(), feedbacks.c.seq.desc())
        return list(self._read(page.offset(skip).limit(limit))), int(total)

    def counting_for(self, execution_ids: Sequence[str]) -> dict[str, list[FeedbackRow]]:
        """The opinions that count for these executions, also those about their hits, by execution, oldest first."""
        result: dict[str, list[FeedbackRow]] = {}
        for *row, execution_id in Direct.on(self._connection).run_for(_COUNTING, execution_ids, project=self._project):
            result.setdefault(execution_id, []).append(_feedback(row))
        return result

    def of_session(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[FeedbackRow]:
        # By its number, so that the index returns them in order.
        number = select(sessions.c.seq).where(sessions.c.project_id == self._project, sessions.c.id == session_id)
        statement = self._rows(
            feedbacks.c.active == 1,
            feedbacks.c.target_type == "session",
            feedbacks.c.session_seq == number.scalar_subquery(),
        )
        if after is not None:
            statement = statement.where(feedbacks.c.seq < after if newest_first else feedbacks.c.seq > after)
        order = feedbacks.c.seq.desc() if newest_first else feedbacks.c.seq
        return list(self._read(statement.order_by(order).limit(limit)))

    def in_session(self, number: int, limit: int) -> list[FeedbackRow]:
        """The oldest opinions about a session and its entries, active or not."""
        statement = self._rows(feedbacks.c.session_seq == number).order_by(feedbacks.c.seq)
        return list(self._read(statement.limit(limit)))

    def of_sessions(self, session_ids: Sequence[str] | None) -> Iterable[FeedbackRow]:
        statement = _ROWS.where(self._of_sessions()).order_by(feedbacks.c.seq)
        if session_ids is None:
            # All of them may be more than fit into memory.
            return map(_feedback, self._connection.execute(statement, execution_options={"yield_per": READ_SIZE}))
        return map(_feedback, select_in(self._connection, statement, sessions.c.id, session_ids))

    def counts(self) -> Counts:
        def total(condition: ColumnElement[bool]) -> ColumnElement[int]:
            return func.sum(case((condition, 1), else_=0))

        # In the order of the fields of `Counts`.
        sums = (
            total(feedbacks.c.rating == "up"),
            total(feedbacks.c.rating == "down"),
            total(feedbacks.c.rating.is_(None)),
            func.count(feedbacks.c.score),
            func.sum(feedbacks.c.score),
            func.sum(func.length(feedbacks.c.comment)),
        )
        row = self._connection.execute(select(*sums).where(self._of_sessions())).one()
        return Counts(*(int(value or 0) for value in row))

    def tallies(self, query: TallyQuery) -> list[TallyCounts]:
        return tallies.counts(self._connection, self._project, query)

    def negative_comments(
        self, dataset: str | None, since: int | None, until: int | None, limit: int
    ) -> list[tuple[str, str, int]]:
        return opinion_reports.negative_comments(self._connection, self._project, dataset, since, until, limit)

    def values(self, key: str) -> dict[str, int]:
        rows = self._connection.execute(
            select(session_tags.c.value, func.count())
            .where(session_tags.c.project_id == self._project, session_tags.c.key == key)
            .group_by(session_tags.c.value)
        )
        return {row[0]: row[1] for row in rows}

    def keys(self, limit: int) -> list[str]:
        return self._distinct(session_tags.c.key, session_tags.c.project_id == self._project, limit)

    def variants(self, key: str, limit: int) -> list[str]:
        condition = and_(session_tags.c.project_id == self._project, session_tags.c.key == key)
        return self._distinct(session_tags.c.value, condition, limit)

    def _distinct(self, column: Column[str], condition: ColumnElement[bool], limit: int) -> list[str]:
        """Steps from each value of an indexed column to the next, independent of the number of rows."""
        values = select(func.min(column).label("value")).where(condition).cte("distinct_values", recursive=True)
        following = select(func.min(column)).where(condition, column > values.c.value).scalar_subquery()
        values = values.union_all(select(following).where(values.c.value.is_not(None)))
        rows = self._connection.execute(select(values.c.value).where(values.c.value.is_not(None)).limit(limit))
        return list(rows.scalars())

    def _of_sessions(self) -> ColumnElement[bool]:
        """The active ones about sessions and their entries."""
        return and_(
            feedbacks.c.project_id == self._project,
            feedbacks.c.active == 1,
            feedbacks.c.target_type.in_(("session", "entry")),
        )

    def _rows(self, *conditions: ColumnElement[bool]) -> Select[Any]:
        """A query by ids or numbers among the conditions."""
        return _ROWS.where(*conditions)

    def _read(self, statement: Select[Any]) -> Iterator[FeedbackRow]:
        return map(_feedback, self._connection.execute(statement))

    def _follow(self, row: FeedbackRow) -> None:
        """Invalidates proven SQL in caches, since an opinion has changed."""
        if row.target_type not in TARGETS:
            return
        if row.target_type == "execution":
            proven_sql.follow_ratings(self._connection, row.target_id)
        proven_sql.mark_rated(self._connection, row.target_type, row.target_id)
        proven_sql.bump_revisions(self._connection, {sql["connector_id"] for sql in row.extra.get(RETAINED_SQL, ())})


def counted_opinions(rows: Sequence[FeedbackRow], authors: int) -> tuple[list[FeedbackRow], list[FeedbackRow]]:
    """The opinions for and against an execution; complaints by too few authors don't count."""
    trusted = [row for row in rows if row.author_kind != "visitor"]
    negative = [row for row in trusted if row.rating == "down"]
    enough = suffices([(row.author_kind, row.author) for row in negative], authors)
    return [row for row in trusted if row.rating == "up"], negative if enough else []


READ_SIZE = 2_000  # Rows that are held while all opinions are read.

_STORED = (
    *("id", "event_id", "target_type", "target_id", "message_id", "author", "author_kind"),
    *("rating", "score", "comment", "at", "updated_at"),
)
"""The columns of an opinion that are stored as they are."""


def _feedback(row: Sequence[Any]) -> FeedbackRow:
    new = FeedbackRow(*row)
    return replace(new, session_id=new.session_id or "", extra=unpacked(new.extra), active=bool(new.active))


_SESSION = update(sessions).where(sessions.c.project_id == bindparam("project"), sessions.c.id == bindparam("session"))
_TOUCHED = _SESSION.values(updated_at=bindparam("now")).returning(sessions.c.seq)
_TOUCH_SESSION = Prepared(_TOUCHED)
_RATE_SESSION = Prepared(_TOUCHED.values(unprocessed_event=bindparam("event")))
_MARK_SESSION = Prepared(_SESSION.values(unprocessed_event=bindparam("event")))
_CLEAR_SESSION = Prepared(
    _SESSION.where(sessions.c.unprocessed_event == bindparam("event")).values(unprocessed_event=None)
)


def touch_session(direct: Direct, project: int, session_id: str, at: int) -> int | None:
    """Updates a session's time; returns its number, or None if there is no such session."""
    return _number(direct.run(_TOUCH_SESSION, project=project, session=session_id, now=at))


def _number(rows: Sequence[tuple[Any, ...]]) -> int | None:
    return rows[0][0] if rows else None


def unprocessed_projects(connection: Connection) -> list[str]:
    """The projects that have sessions with feedback which `improve` has not seen."""
    waiting = select(sessions.c.project_id).where(sessions.c.unprocessed_event.is_not(None))
    return list(connection.execute(select(projects.c.name).where(projects.c.id.in_(waiting))).scalars())


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


class Feedbacks(Protocol):
    """Opinions: an event in the ledger for each version, with its words stored beside it. Nothing is overwritten:
    an opinion that is replaced or retracted stays, and is no longer active."""

    def add(self, new: FeedbackRow, key: str, recorded_at: int) -> bool:
        """Appends the event and stores the text; False if there is no such session. `key` identifies a retry."""

    def with_key(self, key: str) -> FeedbackRow | None:
        """The opinion with this key; `Conflict` if its text was deleted with its session."""

    def get(self, feedback_id: str) -> FeedbackRow | None:
        """The active version of an opinion, or else the last; by its id or by that of an event."""

    def by_event_ids(self, event_ids: Sequence[str]) -> list[FeedbackRow]:
        """The versions with these events, active or not, if their text still exists."""

    def negatives(self, after: str | None, limit: int) -> list[str]:
        """The ids of active negative opinions, in order; `after` is the last that was seen."""

    def active(self, target_type: OpinionTarget, target_ids: Sequence[str]) -> list[FeedbackRow]:
        """The active opinions about these targets; those of one session oldest first."""

    def active_by(self, author: str | None, target_type: OpinionTarget, target_id: str) -> list[FeedbackRow]:
        """The active opinions of one author about a target, oldest first; None means no author."""

    def withdraw(self, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        """Retracts opinions; returns the ids of the retractions."""

    def retracted(self, session_ids: Sequence[str]) -> list[str]:
        """Opinions about these sessions that were retracted, unless what was derived from them went in the same
        transaction."""

    def unprocessed(self, session_ids: Sequence[str] | None, limit: int | None = None) -> dict[str, str]:
        """The sessions, of these or of all up to `limit`, with opinions given or retracted that `improve` has not seen,
        and the newest such event of each."""

    def set_processed(self, events: Mapping[str, str]) -> None:
        """`improve` has seen these events, by session; what is newer stays unprocessed."""

    def wait(self, new: WaitingRow, until: int | None) -> None:
        """Stores a rating until its entry comes, in place of an earlier one of the same author. A store that removes
        old ones by itself does so after `until`."""

    def waiting(self, external_id: str, at: int) -> list[WaitingRow]:
        """The ratings that wait for the entry which this transaction adds, at this time, the oldest first. Excludes
        others that add one at the same time."""

    def stop_waiting(self, external_id: str, author: str | None) -> int:
        """Removes the rating of one author that waits for an entry; returns how many that were."""

    def waiting_since(self, at: int, limit: int) -> list[str]:
        """The external ids for which ratings have waited since before a time."""

    def end_waiting(self, external_id: str, ids: Sequence[str]) -> None:
        """Removes ratings that wait no longer."""

    def retraction_of(self, event_id: str) -> str | None:
        """The event that retracted an opinion, if one did."""

    def of_session(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[FeedbackRow]:
        """The active opinions about a session as a whole."""

    def of_sessions(self, session_ids: Sequence[str] | None) -> Iterable[FeedbackRow]:
        """All active opinions, about these sessions and their entries, or about all."""

    def counts(self) -> Counts: ...

    def tallies(self, query: TallyQuery) -> list[TallyCounts]:
        """Counts of active opinions; a value and a bucket may have several rows, to be added up.

        On SQL, these include opinions about executions, messages and facts.
        """

    def negative_comments(
        self, dataset: str | None, since: int | None, until: int | None, limit: int
    ) -> list[tuple[str, str, int]]:
        """(id, comment, at) of active negative opinions that have a comment, the newest first."""

    def values(self, key: str) -> dict[str, int]:
        """How many sessions have each value of a (dotted) metadata key, as tags."""

    def keys(self, limit: int) -> list[str]:
        """The (dotted) metadata keys that sessions have, in order."""

    def variants(self, key: str, limit: int) -> list[str]:
        """Up to `limit` values of a (dotted) metadata key of sessions, as tags, in order."""


def deleted_key_error(key: str) -> Conflict:
    """The error for an idempotency key whose opinion was deleted with its session."""
    return Conflict(
        f"idempotency_key {ledger.idempotency_key_of(key)!r} was used for feedback that was deleted with its session",
        code="idempotency_key_reused",
        field="idempotency_key",
        value=key.partition("/")[2],
        remedy="Use a new key",
    )
