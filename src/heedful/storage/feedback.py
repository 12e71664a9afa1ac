"""Opinions about sessions, answers, executions and messages in SQL tables: an event of the ledger for each version, and
the words beside it.

Nothing is overwritten: an opinion that is replaced or retracted stays as a row that is no longer active.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    insert,
    select,
    update,
)

from heedful.model import OpinionTarget, Rating
from heedful.ranking.signals import suffices
from heedful.storage import external_ids, insight, ledger, tallies
from heedful.storage.executions import connectors, runs
from heedful.storage.executions.proofs import RETAINED_SQL, TARGETS, active_opinions
from heedful.storage.external_ids import WaitingRow
from heedful.storage.ledger import FEEDBACK, Event
from heedful.storage.rows import AnyRow, Direct, Prepared, batches, of_project, one_of, unpacked
from heedful.storage.schema import feedbacks, projects, session_tags, sessions
from heedful.storage.sessions.base import Counts, FeedbackRow, deleted_key_error
from heedful.storage.tallies import TallyCounts, TallyQuery

_ROW = (
    *(feedbacks.c.id, feedbacks.c.event_id, sessions.c.id.label("session_id"), feedbacks.c.target_type),
    *(feedbacks.c.target_id, feedbacks.c.author, feedbacks.c.rating, feedbacks.c.score, feedbacks.c.comment),
    *(feedbacks.c.extra, feedbacks.c.at, feedbacks.c.updated_at, feedbacks.c.author_kind, feedbacks.c.message_id),
    *(feedbacks.c.active, feedbacks.c.seq.label("number")),
)
_ROWS = select(*_ROW).outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq)

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
        one_of(feedbacks.c.about_id),
        feedbacks.c.rating.in_([bindparam("up", "up"), bindparam("down", "down")]),
    )
    .order_by(feedbacks.c.seq)
)
_DEACTIVATE = Prepared(update(feedbacks).where(feedbacks.c.event_id == bindparam("event")).values(active=0))
_ADD = Prepared(insert(feedbacks), [column.name for column in feedbacks.c if column.name != "seq"])


class SqlFeedbacks:
    """See `base.Feedbacks`. It has the opinions about executions and messages, too, wherever sessions are."""

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
        self._direct.run(
            _ADD,
            id=new.id,
            event_id=new.event_id,
            project_id=self._project,
            session_seq=session,
            target_type=new.target_type,
            target_id=new.target_id,
            about_id=runs.counted_target(self._connection, new.target_type, new.target_id) if is_about_sql else None,
            message_id=new.message_id,
            author=new.author,
            author_kind=new.author_kind,
            rating=new.rating,
            score=new.score,
            comment=new.comment,
            extra=orjson.dumps(new.extra).decode(),
            at=new.at,
            updated_at=new.updated_at,
            active=1,
        )
        self._follow(new)
        return True

    def with_key(self, key: str) -> FeedbackRow | None:
        event_id = ledger.with_key(self._direct, self._project, key)
        if event_id is None:
            return None
        for row in self.by_event_ids([event_id]):
            return row
        raise deleted_key_error(key)

    def get(self, feedback_id: str) -> FeedbackRow | None:
        condition = (feedbacks.c.id == feedback_id) | (feedbacks.c.event_id == feedback_id)
        latest = self._rows(condition).order_by(feedbacks.c.active.desc(), feedbacks.c.seq.desc()).limit(1)
        return next(self._read(latest), None)

    def by_event_ids(self, event_ids: Sequence[str]) -> list[FeedbackRow]:
        return [row for run in batches(event_ids) for row in self._read(self._rows(feedbacks.c.event_id.in_(run)))]

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
        conditions = (feedbacks.c.active == 1, feedbacks.c.target_type == target_type)
        return [
            row
            for run in batches(target_ids)
            for row in self._read(self._rows(*conditions, feedbacks.c.target_id.in_(run)).order_by(feedbacks.c.seq))
        ]

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
        groups: Iterable[Select[Any]] = [statement.order_by(sessions.c.seq).limit(limit)]
        if session_ids is not None:
            groups = (statement.where(sessions.c.id.in_(run)) for run in batches(session_ids))
        return {row[0]: row[1] for group in groups for row in self._connection.execute(group)}

    def set_processed(self, events: Mapping[str, str]) -> None:
        for session_id, event_id in events.items():
            self._direct.run(_CLEAR_SESSION, project=self._project, session=session_id, event=event_id)

    def clear_words(self, feedback_id: str) -> None:
        """Removes the comments of all versions of an opinion."""
        about = select(feedbacks.c.target_type, feedbacks.c.target_id).where(feedbacks.c.id == feedback_id).distinct()
        self._connection.execute(update(feedbacks).where(feedbacks.c.id == feedback_id).values(comment=None))
        for row in self._connection.execute(about).all():
            if row.target_type in TARGETS:
                # What was said is in memory, where lookups run.
                connectors.mark_rated(self._connection, row.target_type, row.target_id)

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
        return ledger.retraction_of(self._connection, self._project, event_id)

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
            yield from self._read(statement)
            return
        for run in batches(session_ids):
            yield from self._read(statement.where(sessions.c.id.in_(run)))

    def counts(self) -> Counts:
        row = self._connection.execute(select(*_count_columns()).where(self._of_sessions())).one()
        return _counts(row)

    def tallies(self, query: TallyQuery) -> list[TallyCounts]:
        return tallies.counts(self._connection, self._project, query)

    def negative_comments(
        self, dataset: str | None, since: int | None, until: int | None, limit: int
    ) -> list[tuple[str, str, int]]:
        return insight.negative_comments(self._connection, self._project, dataset, since, until, limit)

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
        return _ROWS.where(of_project(self._connection, feedbacks.c.project_id, self._project), *conditions)

    def _read(self, statement: Select[Any]) -> Iterator[FeedbackRow]:
        return map(_feedback, self._connection.execute(statement))

    def _follow(self, row: FeedbackRow) -> None:
        """Invalidates what is cached as proven, since an opinion has changed."""
        if row.target_type not in TARGETS:
            return
        if row.target_type == "execution":
            runs.follow_ratings(self._connection, row.target_id)
        connectors.mark_rated(self._connection, row.target_type, row.target_id)
        connectors.bump_revisions(self._connection, {sql["connector_id"] for sql in row.extra.get(RETAINED_SQL, ())})


def counted_opinions(rows: Sequence[FeedbackRow], authors: int) -> tuple[list[FeedbackRow], list[FeedbackRow]]:
    """The opinions for and against an execution; complaints by too few authors don't count."""
    trusted = [row for row in rows if row.author_kind != "visitor"]
    negative = [row for row in trusted if row.rating == "down"]
    enough = suffices([(row.author_kind, row.author) for row in negative], authors)
    return [row for row in trusted if row.rating == "up"], negative if enough else []


def _count_columns() -> list[ColumnElement[int]]:
    def total(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)

    return [
        total(feedbacks.c.rating == "up").label("up"),
        total(feedbacks.c.rating == "down").label("down"),
        total(feedbacks.c.id.is_not(None) & feedbacks.c.rating.is_(None)).label("neutral"),
        func.count(feedbacks.c.score).label("scores"),
        func.coalesce(func.sum(feedbacks.c.score), 0).label("score_sum"),
        func.coalesce(func.sum(func.length(feedbacks.c.comment)), 0).label("characters"),
    ]


def _counts(row: AnyRow) -> Counts:
    return Counts(*(int(getattr(row, name)) for name in Counts._fields))


_NAMES = [column.name for column in _ROW]


def _feedback(row: Sequence[Any]) -> FeedbackRow:
    values = dict(zip(_NAMES, row, strict=True))
    values |= {
        "session_id": values["session_id"] or "",
        "extra": unpacked(values["extra"]),
        "active": bool(values["active"]),
    }
    return FeedbackRow(**values)


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
