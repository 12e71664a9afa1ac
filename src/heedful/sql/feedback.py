"""`.feedback`: opinions about executions and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.api.parameters import UNCHANGED
from heedful.clock import from_stored, new_id
from heedful.errors import Conflict, Invalid, NotFound
from heedful.ledger import events
from heedful.ledger.opinions import FeedbackRow, SqlFeedbacks
from heedful.ledger.proven_sql import TARGETS
from heedful.ledger.votes import kind_of, normalise_rating
from heedful.model import BulkDeletion, ExecutionFeedback, FeedbackList, Rating, limits
from heedful.sql import records
from heedful.sql.space import ExecutionSpace
from heedful.storage.rows import batches, to_model

DELETION_BATCH_SIZE = 50
"""Opinions that one transaction deletes."""


def create_feedback(
    space: ExecutionSpace,
    is_positive: bool,
    feedback: str | None,
    execution_id: str | None,
    chat_message_id: str | None,
    author: str | None,
    idempotency_key: str | None = None,
) -> ExecutionFeedback:
    checks.idempotency_key(idempotency_key)
    key = events.event_key("feedback", idempotency_key)
    if execution_id is not None:
        # Before the message is looked at: of two things that are missing, the execution is what it is about.
        checks.identifier("execution_id", execution_id)
        with space.workspace.read() as connection:
            if records.get_run(connection, space.project(connection), execution_id) is None:
                raise _missing(space, "execution", execution_id)
    if chat_message_id is not None:
        space.check_message(chat_message_id)
    with space.workspace.write() as connection:
        space.own_project(connection)
        opinions = _opinions(space, connection)
        new = _new(space, connection, execution_id, chat_message_id, is_positive, feedback, author)
        before = None if author is None else next(iter(opinions.active_by(author, *new.target)), None)
        first = None if key is None else opinions.with_key(key)
        if first is not None:
            return shown(_first_with_key(opinions, first, new, before, idempotency_key))
        return shown(put(opinions, new, before, key))


def create_positive(space: ExecutionSpace, feedback_text: str | None, **about: Any) -> ExecutionFeedback:
    return create_feedback(space, True, feedback_text, **about)


def get_feedback(space: ExecutionSpace, feedback_id: str) -> ExecutionFeedback:
    with space.workspace.read() as connection:
        return shown(_row(space, _opinions(space, connection), feedback_id))


def list_feedback(
    space: ExecutionSpace,
    skip: int,
    limit: int,
    search: str | None = None,
    rating: Rating | None = None,
    chat_message_id: str | None = None,
) -> FeedbackList:
    if search is not None:
        checks.any_text("search", search)
    with space.workspace.read() as connection:
        opinions = _opinions(space, connection)
        rows, total = opinions.page_about_sql(skip, limit, search=search, rating=rating, message_id=chat_message_id)
    return FeedbackList(items=[shown(row) for row in rows], total=total, skip=skip, limit=limit)


def update_feedback(
    space: ExecutionSpace, feedback_id: str, feedback: str | None, is_positive: bool, if_match: str | None
) -> ExecutionFeedback:
    with space.workspace.write() as connection:
        opinions = _opinions(space, connection)
        row = _row(space, opinions, feedback_id)
        checks.if_match(if_match, shown(row))
        new = replace(
            row,
            event_id=new_id(),
            rating=row.rating if is_positive is UNCHANGED else normalise_rating(is_positive).rating,
            comment=row.comment if feedback is UNCHANGED else feedback,
            updated_at=space.now(),
        )
        return shown(row if new.says() == row.says() else put(opinions, new, row, None))


def delete_feedback(space: ExecutionSpace, feedback_id: str) -> bool:
    with space.workspace.write() as connection:
        opinions = _opinions(space, connection)
        _delete(space, opinions, [_row(space, opinions, feedback_id)])
    return True


def delete_feedbacks(space: ExecutionSpace, feedback_ids: Sequence[str]) -> BulkDeletion:
    if isinstance(feedback_ids, str) or not isinstance(feedback_ids, Sequence):
        raise Invalid.got("feedback_ids", "must be a list of ids", feedback_ids)
    checks.batch("feedback_ids", feedback_ids, limits.MAX_LIST)
    failed: list[str] = []
    deleted = 0
    ids = list(dict.fromkeys(checks.identifier("feedback_ids", value) for value in feedback_ids))
    for run in batches(ids, DELETION_BATCH_SIZE):
        with space.workspace.read() as connection:
            opinions = _opinions(space, connection)
            known = [feedback_id for feedback_id in run if _active(opinions, feedback_id) is not None]
        rows: dict[str, FeedbackRow] = {}
        if known:
            with space.workspace.write() as connection:
                opinions = _opinions(space, connection)
                rows = {feedback_id: row for feedback_id in known if (row := _active(opinions, feedback_id))}
                _delete(space, opinions, list(rows.values()))
        failed += [feedback_id for feedback_id in run if feedback_id not in rows]
        deleted += len(rows)
    return BulkDeletion(deleted_count=deleted, failed_ids=failed)


def _delete(space: ExecutionSpace, opinions: SqlFeedbacks, rows: Sequence[FeedbackRow]) -> None:
    opinions.withdraw(rows, None, space.now())
    for row in rows:
        opinions.clear_words(row.id)


def _new(
    space: ExecutionSpace,
    connection: Connection,
    execution_id: str | None,
    chat_message_id: str | None,
    is_positive: bool,
    text: str | None,
    author: str | None,
) -> FeedbackRow:
    if execution_id is None and chat_message_id is None:
        remedy = "Pass execution_id, chat_message_id, or both"
        raise Invalid("the feedback has no target", field="execution_id", remedy=remedy)
    project = space.project(connection)
    if execution_id is None:
        executions = records.runs_of_message(connection, project, str(chat_message_id))
        execution_id = executions[0].id if len(executions) == 1 else None
    else:
        row = records.get_run(connection, project, execution_id)
        if row is None:
            raise _missing(space, "execution", execution_id)
        execution_id = row.id
        if chat_message_id is None:
            chat_message_id = row.message_id
        elif row.message_id not in (None, chat_message_id):
            message = f"execution {execution_id} was made for message {row.message_id}, not for {chat_message_id}"
            raise Conflict(message, field="chat_message_id", value=chat_message_id, remedy="Leave one of the two out")
    return new_opinion(execution_id, chat_message_id, is_positive, text, author, space.now())


def _opinions(space: ExecutionSpace, connection: Connection) -> SqlFeedbacks:
    return SqlFeedbacks.on(connection, space.project(connection))


def _row(space: ExecutionSpace, opinions: SqlFeedbacks, feedback_id: str) -> FeedbackRow:
    row = _active(opinions, feedback_id)
    if row is None:
        raise _missing(space, "feedback", feedback_id)
    return row


def _missing(space: ExecutionSpace, what: str, value: str) -> NotFound:
    return NotFound(f"no {what} {value!r} in project {space.workspace.project!r}", field=f"{what}_id", value=value)


def new_opinion(
    execution_id: str | None, message_id: str | None, is_positive: bool, text: str | None, author: str | None, now: int
) -> FeedbackRow:
    """An opinion about an execution, or about a message where no execution is known."""
    feedback_id = new_id()
    return FeedbackRow(
        id=feedback_id,
        event_id=feedback_id,
        session_id="",
        target_type="message" if execution_id is None else "execution",
        target_id=str(message_id) if execution_id is None else execution_id,
        author=author,
        rating=normalise_rating(is_positive).rating,
        score=None,
        comment=text,
        extra={},
        at=now,
        updated_at=now,
        author_kind=kind_of(author),
        message_id=message_id,
    )


def put(opinions: SqlFeedbacks, new: FeedbackRow, before: FeedbackRow | None, key: str | None) -> FeedbackRow:
    """Stores an opinion, in place of one under the same id, if there is one."""
    if before is not None:
        opinions.withdraw([before], new.author, new.updated_at)
        new = replace(new, id=before.id, at=before.at, extra=before.extra)
    opinions.add(new, key or new.event_id, new.updated_at)
    return new


def shown(row: FeedbackRow) -> ExecutionFeedback:
    """An opinion about an execution or a message, as callers see it."""
    return to_model(
        ExecutionFeedback,
        row,
        execution_id=row.target_id if row.target_type == "execution" else None,
        chat_message_id=row.message_id,
        feedback=row.comment,
        is_positive=row.rating == "up",
        created_at=from_stored(row.at),
    )


def _active(opinions: SqlFeedbacks, feedback_id: str) -> FeedbackRow | None:
    row = opinions.get(feedback_id)
    return row if row is not None and row.active and row.target_type in TARGETS else None


def _first_with_key(
    opinions: SqlFeedbacks, first: FeedbackRow, new: FeedbackRow, before: FeedbackRow | None, key: str | None
) -> FeedbackRow:
    """The active version of the opinion that was first given with a key."""
    current = _active(opinions, first.id) or before
    if first.target != new.target or first.rating != new.rating:
        message = f"idempotency_key {key!r} was used for another feedback"
        remedy = "Use a new key for each different call"
    elif current is None:
        message = f"the feedback with idempotency_key {key!r} was retracted"
        remedy = "Use a new key to give it again"
    else:
        return current
    raise Conflict(message, code="idempotency_key_reused", field="idempotency_key", value=key, remedy=remedy)
