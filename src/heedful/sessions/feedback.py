"""Opinions about answers and about whole sessions: given, replaced, retracted."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from heedful.clock import DAY, from_stored
from heedful.errors import Conflict, HeedfulError, Invalid, quoted
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import (
    RATINGS,
    Feedback,
    FeedbackMetrics,
    FeedbackTarget,
    Metadata,
    NormalisedRating,
    Page,
    Rating,
    Retraction,
)
from heedful.ranking.ratings import STARS, normalise_rating
from heedful.ranking.signals import kind_of
from heedful.sessions import checks
from heedful.sessions.conversations import page
from heedful.sessions.hooks import Guarded, hook_channels
from heedful.sessions.space import SessionSpace
from heedful.sessions.undo import RetractedFeedback, change, change_in
from heedful.storage import requests
from heedful.storage.external_ids import WaitingRow
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import AlertRow, EntryRow, FeedbackRow

logger = logging.getLogger("heedful.feedback")

ORIGINAL_RATING = "original_rating"
"""Under this key, the `extra` of an opinion has the rating as it was given."""


def rate_entry(
    space: SessionSpace,
    session_id: str,
    qa_id: str,
    text: str | None,
    score: int | None,
    author: str | None,
    extra: Metadata | None = None,
) -> bool:
    """Stores an opinion about an answer, replacing the author's earlier one; False if there is no such entry."""
    name = checks.session_id(session_id)
    values.identifier("qa_id", qa_id)
    author = values.author(author)
    checks.score(score)
    if space.feedback_hook is None or not isinstance(text, str | None):
        checks.comment("feedback_text", text)
        _check_content(text, score)
    else:
        entry_id = space.store.read(lambda tx: tx.conversations.entry_id(name, qa_id))
        if entry_id is None:
            return False
        qa_id = entry_id

    def store(feedback: Any) -> FeedbackRow | None:
        checked = {**_mapping(feedback), **(extra or {})}
        row = _row(space, checked, name, author, rating_of(checks.score(checked.get("feedback_score"))), qa_id)
        _check_content(row.comment, row.score)
        stored, _ = change(space, lambda tx, retracted: _replace(space, tx, retracted, row))
        _alert(space)
        return stored

    hook_input = {"rating": rating_of(score), "comment": text or "", "qa_id": qa_id, "feedback_score": score}
    stored_rows = Guarded(space.feedback_hook, partial(metrics, space)).run(store, "add", name, feedback=hook_input)
    return any(row is not None for row in stored_rows)


def rate(
    space: SessionSpace, external_id: str, rating: NormalisedRating, comment: str | None, author: str | None
) -> bool:
    """Stores an opinion about the entry with an external id; False if there is none yet, and it waits for it."""
    values.external_id(external_id)
    author = values.author(author)
    checks.comment("comment", comment)
    _check_content(comment, rating.score, ("comment", "rating"))
    extra = {} if rating.original is None else checks.extra({ORIGINAL_RATING: rating.original})
    now = space.now()
    new = WaitingRow(
        id=new_id(),
        external_id=external_id,
        author=author,
        author_kind=kind_of(author),
        rating=rating.rating,
        score=rating.score,
        comment=comment,
        extra=extra,
        at=now,
    )

    def wait(tx: Transaction) -> EntryRow | None:
        entry = tx.conversations.external_entry(external_id)
        if entry is None:
            tx.feedbacks.wait(new, now + space.waiting_days * DAY if space.waiting_days else None)
        return entry

    entry = space.store.read(lambda tx: tx.conversations.external_entry(external_id)) or space.store.write(wait)
    return entry is not None and rate_entry(space, entry.session_id, entry.id, comment, rating.score, author, extra)


def add_waiting(space: SessionSpace, tx: Transaction, entry: EntryRow) -> None:
    """Makes opinions of the ratings that wait for an entry, in the transaction that adds it."""
    assert entry.external_id is not None
    waiting = tx.feedbacks.waiting(entry.external_id, space.now())
    for row in waiting:
        tx.feedbacks.add(_opinion(row, entry), row.id, space.now())
    if waiting:
        tx.feedbacks.end_waiting(entry.external_id, [row.id for row in waiting])


def pass_waiting(space: SessionSpace, entry: EntryRow) -> None:
    """Gives the ratings that wait for an entry to the feedback hook, one by one. It may store or refuse them; neither
    is the business of whoever added the entry."""
    external_id = entry.external_id
    assert external_id is not None
    for row in space.store.write(lambda tx: tx.feedbacks.waiting(external_id, space.now())):
        try:
            rate_entry(space, entry.session_id, entry.id, row.comment, row.score, row.author, row.extra)
        except HeedfulError as error:
            logger.warning("the feedback hook refused a rating that waited for entry %s: %s", entry.id, error)
        space.store.write(partial(_end_waiting, external_id=external_id, feedback_id=row.id))


def _end_waiting(tx: Transaction, external_id: str, feedback_id: str) -> None:
    tx.feedbacks.end_waiting(external_id, [feedback_id])


def _opinion(row: WaitingRow, entry: EntryRow) -> FeedbackRow:
    return FeedbackRow(
        id=row.id,
        event_id=row.id,
        session_id=entry.session_id,
        target_type="entry",
        target_id=entry.id,
        author=row.author,
        rating=row.rating,
        score=row.score,
        comment=row.comment or None,
        extra=row.extra,
        at=row.at,
        updated_at=row.at,
        author_kind=row.author_kind,
    )


def rate_session(
    space: SessionSpace, session_id: str, feedback: Mapping[str, Any], author: str | None, idempotency_key: str | None
) -> Feedback | None:
    """Stores an opinion about a session; None if a hook didn't store it."""
    name = checks.session_id(session_id)
    author = values.author(author)
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
    author = values.author(author)

    def clear(tx: Transaction, retracted: RetractedFeedback) -> bool:
        entry_id = tx.conversations.entry_id(name, qa_id)
        if entry_id is None:
            return tx.feedbacks.stop_waiting(qa_id, author) > 0
        active = [row for row in tx.feedbacks.active("entry", [entry_id]) if author in (None, row.author)]
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
    return normalise_rating(score, scale=STARS).rating


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
        author_kind=row.author_kind,
        created_at=from_stored(row.at),
        extra=row.extra,
    )


def _check_content(
    text: str | None, score: int | None, fields: tuple[str, str] = ("feedback_text", "feedback_score")
) -> None:
    if score is None and not (text or "").strip():
        raise Invalid(
            f"{fields[0]} and {fields[1]} are both missing",
            field=fields[1],
            value=score,
            remedy="Pass at least one of them; delete_feedback clears both",
        )


def _mapping(feedback: Any) -> Mapping[str, Any]:
    if not isinstance(feedback, Mapping):
        raise Invalid(
            f"feedback must be a mapping, got {quoted(feedback)}",
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
        extra=_extra(feedback),
        at=now,
        updated_at=now,
        author_kind=kind_of(author),
    )


def _extra(feedback: Mapping[str, Any]) -> Metadata:
    """What else is said with an opinion, and the rating as it was given, if that is another form of it."""
    given = feedback.get("rating")
    other_form = {} if given is None or given in RATINGS else {ORIGINAL_RATING: given}
    return {**checks.extra(feedback), **other_form}


def _replace(
    space: SessionSpace, tx: Transaction, retracted: RetractedFeedback, row: FeedbackRow
) -> FeedbackRow | None:
    """Stores an opinion about an entry, unless the author's active one says the same; returns the active one."""
    entry_id = tx.conversations.entry_id(row.session_id, row.target_id)
    if entry_id is None:
        return None
    row = replace(row, target_id=entry_id)
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
        "author_kind": row.author_kind,
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
