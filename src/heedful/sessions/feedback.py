"""Opinions about answers and about whole sessions: given, replaced, retracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from heedful.clock import from_stored
from heedful.errors import Conflict, Invalid
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import Feedback, FeedbackMetrics, FeedbackTarget, Metadata, Page, Rating, Retraction
from heedful.ranking.signals import trust_of
from heedful.sessions import checks
from heedful.sessions.conversations import page
from heedful.sessions.hooks import Guarded, hook_channels
from heedful.sessions.space import SessionSpace
from heedful.sessions.undo import RetractedFeedback, change, change_in
from heedful.storage import requests
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import AlertRow, FeedbackRow


def rate_entry(
    space: SessionSpace, session_id: str, qa_id: str, text: str | None, score: int | None, author: str | None
) -> bool:
    """Stores an opinion about an answer, replacing the author's earlier one; False if there is no such entry."""
    name = checks.session_id(session_id)
    values.identifier("qa_id", qa_id)
    values.author(author)
    checks.score(score)
    if space.feedback_hook is None or not isinstance(text, str | None):
        checks.comment("feedback_text", text)
        _check_content(text, score)
    elif not space.store.read(lambda tx: tx.conversations.has_entry(name, qa_id)):
        return False

    def store(feedback: Any) -> FeedbackRow | None:
        checked = _mapping(feedback)
        row = _row(space, checked, name, author, rating_of(checks.score(checked.get("feedback_score"))), qa_id)
        _check_content(row.comment, row.score)
        stored, _ = change(space, lambda tx, retracted: _replace(space, tx, retracted, row))
        _alert(space)
        return stored

    hook_input = {"rating": rating_of(score), "comment": text or "", "qa_id": qa_id, "feedback_score": score}
    stored_rows = Guarded(space.feedback_hook, partial(metrics, space)).run(store, "add", name, feedback=hook_input)
    return any(row is not None for row in stored_rows)


def rate_session(
    space: SessionSpace, session_id: str, feedback: Mapping[str, Any], author: str | None, idempotency_key: str | None
) -> Feedback | None:
    """Stores an opinion about a session; None if a hook didn't store it."""
    name = checks.session_id(session_id)
    values.author(author)
    values.idempotency_key(idempotency_key)
    fields = dict(_mapping(feedback))
    key = requests.event_key("feedback", idempotency_key)

    def keep(row: FeedbackRow) -> FeedbackRow:
        return change(space, lambda tx, retracted: _append(space, tx, retracted, row, key))[0]

    if space.feedback_hook is None:
        return to_feedback(keep(_row(space, fields, name, author, checks.rating(fields.get("rating")), None)))
    if space.store.read(lambda tx: tx.conversations.session(name)) is None:
        raise space.missing(name)

    def store(fields: Any) -> FeedbackRow:
        checked = dict(_mapping(fields))
        if unrated and checked.get("rating") is None:
            checked.pop("rating", None)
        stored = keep(_row(space, checked, name, author, checks.rating(checked.get("rating")), None))
        _alert(space)
        return stored

    unrated = "rating" not in fields
    # Hooks get both keys, and run before the checks: they may supply the comment.
    fields |= {"rating": fields.get("rating"), "comment": fields.get("comment") or ""}
    stored_rows = Guarded(space.feedback_hook, partial(metrics, space)).run(store, "add", name, feedback=fields)
    return to_feedback(stored_rows[-1]) if stored_rows else None


def clear_entry(space: SessionSpace, session_id: str, qa_id: str, author: str | None) -> bool:
    """Retracts opinions about an answer: this author's, or without one, all. False if there is no such entry."""
    name = checks.session_id(session_id)
    values.identifier("qa_id", qa_id)
    values.author(author)

    def clear(tx: Transaction, retracted: RetractedFeedback) -> bool:
        if not tx.conversations.has_entry(name, qa_id):
            return False
        active = [row for row in tx.feedbacks.active("entry", [qa_id]) if author in (None, row.author)]
        retracted.withdraw(tx, active, author, space.now())
        return True

    return change(space, clear)[0]


def retract(space: SessionSpace, feedback_id: str, author: str | None) -> Retraction | None:
    """Retracts one opinion by its id; None if there is none. Idempotent."""
    event, undo_result = change(space, partial(_withdraw, feedback_id=feedback_id, author=author, at=space.now()))
    return None if event is None else Retraction(event_id=event, retracted=feedback_id, updated_facts=undo_result.facts)


def retract_in(space: SessionSpace, tx: Transaction, feedback_id: str, author: str | None) -> Retraction | None:
    """The same in an open transaction of the store of facts."""
    body = partial(_withdraw, feedback_id=feedback_id, author=author, at=space.now())
    event, _, undo_result = change_in(space.workspace, tx, body)
    return None if event is None else Retraction(event_id=event, retracted=feedback_id, updated_facts=undo_result.facts)


def _withdraw(
    tx: Transaction, retracted: RetractedFeedback, feedback_id: str, author: str | None, at: int
) -> str | None:
    row = tx.feedbacks.get(feedback_id)
    if row is None:
        return None
    if not row.active:
        return tx.feedbacks.retraction_of(row.event_id)
    return retracted.withdraw(tx, [row], author, at)[0]


def list_for_session(
    space: SessionSpace, session_id: str, cursor: str | None, limit: int, newest_first: bool
) -> Page[Feedback]:
    name, after = checks.session_id(session_id), checks.cursor(cursor)
    values.flag("newest_first", newest_first)

    def read(tx: Transaction, count: int) -> list[FeedbackRow]:
        if tx.conversations.session(name) is None:
            raise space.missing(name)
        return tx.feedbacks.of_session(name, after, count, newest_first)

    return page(lambda count: space.store.read(lambda tx: read(tx, count)), limit, to_feedback)


def metrics(space: SessionSpace) -> FeedbackMetrics:
    counts = space.store.read(lambda tx: tx.feedbacks.counts())
    total = counts.up + counts.down + counts.neutral
    return FeedbackMetrics(
        total=total,
        positive=counts.up,
        negative=counts.down,
        neutral=counts.neutral,
        avg_comment_length=counts.characters / total if total else 0.0,
    )


def rating_of(score: int | None) -> Rating | None:
    """A score as a rating: up from 4, down to 2."""
    if score is None or score == 3:
        return None
    return "up" if score > 3 else "down"


def to_feedback(row: FeedbackRow) -> Feedback:
    return Feedback(
        feedback_id=row.id,
        session_id=row.session_id,
        target_type=cast(FeedbackTarget, row.target_type),
        target_id=row.target_id,
        rating=row.rating,
        score=row.score,
        comment=row.comment,
        author=row.author,
        author_trust=row.author_trust,
        created_at=from_stored(row.at),
        extra=row.extra,
    )


def _check_content(text: str | None, score: int | None) -> None:
    if score is None and not (text or "").strip():
        raise Invalid(
            "feedback_text and feedback_score are both missing",
            field="feedback_score",
            value=score,
            remedy="Pass at least one of them; delete_feedback clears both",
        )


def _mapping(feedback: Any) -> Mapping[str, Any]:
    if not isinstance(feedback, Mapping):
        raise Invalid(
            f"feedback must be a mapping, got {feedback!r}",
            field="feedback",
            value=feedback,
            remedy='Pass {"rating": "up", "comment": "…"}',
        )
    return feedback


def _row(
    space: SessionSpace,
    feedback: Mapping[str, Any],
    session_id: str,
    author: str | None,
    rating: Rating | None,
    qa_id: str | None,
) -> FeedbackRow:
    comment = checks.comment("comment", feedback.get("comment"))
    if qa_id is None and rating is None and "rating" not in feedback and not (comment or "").strip():
        raise Invalid(
            "feedback has neither a rating nor a comment",
            field="feedback",
            value=dict(feedback),
            remedy='Pass {"rating": "up" | "down" | None, "comment": "…"}',
        )
    feedback_id, now = new_id(), space.now()
    return FeedbackRow(
        id=feedback_id,
        event_id=feedback_id,
        session_id=session_id,
        target_type="session" if qa_id is None else "entry",
        target_id=session_id if qa_id is None else qa_id,
        author=author,
        rating=rating,
        score=None if qa_id is None else checks.score(feedback.get("feedback_score")),
        comment=(comment or "") if qa_id is None else (comment or None),
        extra=checks.extra(feedback),
        at=now,
        updated_at=now,
        author_trust=trust_of(author),
    )


def _replace(
    space: SessionSpace, tx: Transaction, retracted: RetractedFeedback, row: FeedbackRow
) -> FeedbackRow | None:
    """Stores an opinion about an entry, unless the author's active one says the same; returns the active one."""
    if not tx.conversations.has_entry(row.session_id, row.target_id):
        return None
    before = tx.feedbacks.active_by(row.author, "entry", row.target_id)
    if len(before) == 1 and before[0].says() == row.says():
        return before[0]
    return _put(space, tx, retracted, row, before, row.id)


def _append(
    space: SessionSpace, tx: Transaction, retracted: RetractedFeedback, row: FeedbackRow, key: str | None
) -> FeedbackRow:
    if key is not None:
        first = tx.feedbacks.with_key(key)
        if first is not None:
            if first.says() != row.says() or (first.session_id, first.author) != (row.session_id, row.author):
                raise _reused(key)
            return first
    before = [] if row.author is None else tx.feedbacks.active_by(row.author, "session", row.target_id)
    return _put(space, tx, retracted, row, before, key or row.id)


def _put(
    space: SessionSpace,
    tx: Transaction,
    retracted: RetractedFeedback,
    row: FeedbackRow,
    before: Sequence[FeedbackRow],
    key: str,
) -> FeedbackRow:
    retracted.withdraw(tx, before, row.author, row.at)
    if not tx.feedbacks.add(row, key, row.at):
        raise space.missing(row.session_id)
    channels = hook_channels()
    if channels:
        payload = _alert_payload(space, row)
        tx.outbox.add(
            row.session_id,
            [AlertRow(new_id(), channel.name, payload, row.at, next_at=row.at) for channel in channels],
        )
    return row


def _alert_payload(space: SessionSpace, row: FeedbackRow) -> Metadata:
    """What an alert says."""
    feedback: Metadata = {
        **row.extra,
        "id": row.id,
        "target_type": row.target_type,
        "target_id": row.target_id,
        "rating": row.rating,
        "score": row.score,
        "comment": row.comment,
        "author": row.author,
        "author_trust": row.author_trust,
        "created_at": from_stored(row.at).isoformat(),
    }
    return {"type": "feedback", "project": space.project, "session_id": row.session_id, "feedback": feedback}


def _alert(space: SessionSpace) -> None:
    """Wakes the dispatcher if a hook asked for alerts; called after they are stored."""
    channels = hook_channels()
    if channels:
        space.dispatcher.add(*channels)
        space.dispatcher.wake()


def _reused(key: str) -> Conflict:
    idempotency_key = requests.idempotency_key_of(key)
    return Conflict(
        f"idempotency_key {idempotency_key!r} was used for another feedback",
        code="idempotency_key_reused",
        field="idempotency_key",
        value=idempotency_key,
        remedy="Use a new key for each different call",
    )
