"""Opinions about sessions and entries in SQL tables: the ledger, and the words beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Connection, Select, and_, bindparam, case, func, insert, select, update

from heedful.model import AuthorTrust, FeedbackTarget, Rating
from heedful.storage import insight, ledger, tallies
from heedful.storage.ledger import FEEDBACK, Event
from heedful.storage.rows import AnyRow, Direct, Prepared, batches, of_project, unpacked
from heedful.storage.schema import feedbacks, session_tags, sessions
from heedful.storage.sessions.base import Counts, FeedbackRow, deleted_key_error
from heedful.storage.tallies import TallyCounts, TallyQuery

_ROW = (
    *(feedbacks.c.id, sessions.c.id, feedbacks.c.target_type, feedbacks.c.target_id, feedbacks.c.author),
    *(feedbacks.c.rating, feedbacks.c.score, feedbacks.c.comment, feedbacks.c.extra, feedbacks.c.at),
    *(feedbacks.c.author_trust, feedbacks.c.active, feedbacks.c.seq),
)
_ROWS = select(*_ROW).join(sessions, sessions.c.seq == feedbacks.c.session_seq)

_ACTIVE = _ROWS.where(
    feedbacks.c.project_id == bindparam("project"),
    feedbacks.c.active == 1,
    feedbacks.c.target_type == bindparam("type"),
    feedbacks.c.target_id == bindparam("target"),
).order_by(feedbacks.c.seq)
_ABOUT = Prepared(_ACTIVE)
_BY = Prepared(_ACTIVE.where(feedbacks.c.author.is_not_distinct_from(bindparam("by"))))
_DEACTIVATE = Prepared(update(feedbacks).where(feedbacks.c.id == bindparam("named")).values(active=0))
_ADD = Prepared(insert(feedbacks), [column.name for column in feedbacks.c if column.name != "seq"])


class SqlFeedbacks:
    """See `base.Feedbacks`."""

    def __init__(self, direct: Direct, project: int) -> None:
        self._direct = direct
        self._project = project

    @property
    def _connection(self) -> Connection:
        return self._direct.connection

    def add(self, new: FeedbackRow, key: str, recorded_at: int) -> bool:
        session = touch_session(self._direct, self._project, new.session_id, new.at)
        if session is None:
            return False
        event = Event(
            id=new.id,
            project_id=self._project,
            kind=FEEDBACK,
            target_type=new.target_type,
            target_id=new.target_id,
            source="add_feedback",
            at=new.at,
            recorded_at=recorded_at,
            author=new.author,
            author_trust=new.author_trust,
            value=str(new.score) if new.score is not None else new.rating,
            idempotency_key=key,
        )
        ledger.append_one(self._direct, event)
        self._direct.run(
            _ADD,
            about_id=None,
            event_id=new.id,
            message_id=None,
            updated_at=new.at,
            id=new.id,
            project_id=self._project,
            session_seq=session,
            target_type=new.target_type,
            target_id=new.target_id,
            author=new.author,
            author_trust=new.author_trust,
            rating=new.rating,
            score=new.score,
            comment=new.comment,
            extra=orjson.dumps(new.extra).decode(),
            at=new.at,
            active=1,
        )
        return True

    def with_key(self, key: str) -> FeedbackRow | None:
        found = ledger.with_key(self._direct, self._project, key)
        if found is None:
            return None
        said = self.get(found)
        if said is None:
            raise deleted_key_error(key)
        return said

    def get(self, feedback_id: str) -> FeedbackRow | None:
        row = self._connection.execute(self._rows(feedbacks.c.id == feedback_id)).first()
        return None if row is None else _feedback(*row)

    def named(self, feedback_ids: Sequence[str]) -> list[FeedbackRow]:
        return [
            _feedback(*row)
            for run in batches(feedback_ids)
            for row in self._connection.execute(self._rows(feedbacks.c.id.in_(run)))
        ]

    def negatives(self, after: str | None, limit: int) -> list[str]:
        statement = select(feedbacks.c.id).where(self._active(), feedbacks.c.rating == "down")
        if after is not None:
            statement = statement.where(feedbacks.c.id > after)
        return list(self._connection.execute(statement.order_by(feedbacks.c.id).limit(limit)).scalars())

    def active(self, target_type: FeedbackTarget, target_ids: Sequence[str]) -> list[FeedbackRow]:
        if len(target_ids) == 1:
            rows = self._direct.run(_ABOUT, project=self._project, type=target_type, target=target_ids[0])
            return [_feedback(*row) for row in rows]
        return [
            _feedback(*row)
            for run in batches(target_ids)
            for row in self._connection.execute(
                self._rows(
                    feedbacks.c.active == 1,
                    feedbacks.c.target_type == target_type,
                    feedbacks.c.target_id.in_(run),
                ).order_by(feedbacks.c.seq)
            )
        ]

    def active_by(self, author: str | None, target_type: FeedbackTarget, target_id: str) -> list[FeedbackRow]:
        rows = self._direct.run(_BY, project=self._project, type=target_type, target=target_id, by=author)
        return [_feedback(*row) for row in rows]

    def withdraw(self, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        retractions = [ledger.retraction(self._project, row.id, author, at) for row in rows]
        with tallies.changing_folded(self._connection, self._project, [(row.target_id, row.number) for row in rows]):
            for row, event in zip(rows, retractions, strict=True):
                ledger.append_one(self._direct, event)
                self._direct.run(_DEACTIVATE, named=row.id)
        return [event.id for event in retractions]

    def retraction_of(self, feedback_id: str) -> str | None:
        return ledger.retraction_of(self._connection, self._project, feedback_id)

    def of_session(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[FeedbackRow]:
        # By its number, so that the index gives them in order however many there are.
        number = select(sessions.c.seq).where(sessions.c.project_id == self._project, sessions.c.id == session_id)
        statement = self._rows(
            feedbacks.c.active == 1,
            feedbacks.c.target_type == "session",
            feedbacks.c.session_seq == number.scalar_subquery(),
        )
        if after is not None:
            statement = statement.where(feedbacks.c.seq < after if newest_first else feedbacks.c.seq > after)
        order = feedbacks.c.seq.desc() if newest_first else feedbacks.c.seq
        return [_feedback(*row) for row in self._connection.execute(statement.order_by(order).limit(limit))]

    def of_sessions(self, session_ids: Sequence[str] | None) -> Iterable[FeedbackRow]:
        ours = feedbacks.c.project_id == self._project
        statement: Select[Any] = _ROWS.where(ours, feedbacks.c.active == 1).order_by(feedbacks.c.seq)
        if session_ids is None:
            yield from starmap(_feedback, self._connection.execute(statement))
            return
        for run in batches(session_ids):
            yield from starmap(_feedback, self._connection.execute(statement.where(sessions.c.id.in_(run))))

    def counts(self) -> Counts:
        row = self._connection.execute(select(*_counted()).where(self._active())).one()
        return _counts(row)

    def tallies(self, asked: TallyQuery) -> list[TallyCounts]:
        return tallies.counts(self._connection, self._project, asked)

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
        ours = and_(session_tags.c.project_id == self._project, session_tags.c.key == key)
        return self._distinct(session_tags.c.value, ours, limit)

    def _distinct(self, column: Column[str], ours: ColumnElement[bool], limit: int) -> list[str]:
        """Steps from each value of an indexed column to the next, so that it doesn't matter how many rows there are."""
        found = select(func.min(column).label("found")).where(ours).cte("found", recursive=True)
        following = select(func.min(column)).where(ours, column > found.c.found).scalar_subquery()
        found = found.union_all(select(following).where(found.c.found.is_not(None)))
        rows = self._connection.execute(select(found.c.found).where(found.c.found.is_not(None)).limit(limit))
        return list(rows.scalars())

    def _active(self) -> ColumnElement[bool]:
        return and_(
            feedbacks.c.project_id == self._project,
            feedbacks.c.active == 1,
            feedbacks.c.target_type.in_(("session", "entry")),
        )

    def _rows(self, *conditions: ColumnElement[bool]) -> Select[Any]:
        """Those that ids or numbers among the conditions find."""
        return _ROWS.where(of_project(self._connection, feedbacks.c.project_id, self._project), *conditions)


def _counted() -> list[ColumnElement[int]]:
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


def _feedback(
    feedback_id: str,
    session_id: str,
    target_type: FeedbackTarget,
    target_id: str,
    author: str | None,
    rating: Rating | None,
    score: int | None,
    comment: str | None,
    extra: Any,
    at: int,
    author_trust: AuthorTrust,
    active: int,
    number: int,
) -> FeedbackRow:
    return FeedbackRow(
        *(feedback_id, session_id, target_type, target_id, author, rating, score, comment),
        extra=unpacked(extra),
        at=at,
        author_trust=author_trust,
        active=bool(active),
        number=number,
    )


_TOUCH_SESSION = Prepared(
    update(sessions)
    .where(sessions.c.project_id == bindparam("project"), sessions.c.id == bindparam("session"))
    .values(updated_at=bindparam("now"))
    .returning(sessions.c.seq)
)


def touch_session(direct: Direct, project: int, session_id: str, at: int) -> int | None:
    """The number of a session in which something is written now; None if there is no such session."""
    rows = direct.run(_TOUCH_SESSION, project=project, session=session_id, now=at)
    return rows[0][0] if rows else None
