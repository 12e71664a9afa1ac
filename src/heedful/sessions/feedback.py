"""Opinions about answers and whole sessions: given, replaced and retracted, with what was derived from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import DAY, from_stored, new_id
from heedful.errors import Conflict, HeedfulError, Invalid, quoted
from heedful.ledger import erasure, events, rating_signals
from heedful.ledger.erasure import ErasureHandlers
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.rating_signals import EntryRow
from heedful.ledger.retract import UndoHandler, Undoing, irreversible, retract_events
from heedful.ledger.votes import STARS, kind_of, normalise_rating
from heedful.memory import forget
from heedful.model import RATINGS, Feedback, FeedbackMetrics, ForgetResult, Metadata, Page, Rating, Retraction, limits
from heedful.model.sessions import RatingResult
from heedful.notifications.channels import Channel
from heedful.notifications.outbox import AlertRow
from heedful.sessions import lessons
from heedful.sessions.hooks import hook_channels, run_hook
from heedful.sessions.metadata import check_keys
from heedful.sessions.session_store import Transaction, page
from heedful.sessions.space import SessionSpace
from heedful.sessions.sql_store import SqlTransaction
from heedful.storage.external_ids import WaitingRow
from heedful.storage.rows import to_model
from heedful.text import counted
from heedful.workspace import Workspace

logger = logging.getLogger("heedful.feedback")

Result = TypeVar("Result")

ORIGINAL_RATING = "original_rating"  # Under this key, the `extra` of an opinion has the rating as it was given.

RESERVED_KEYS = frozenset({"id", "feedback_id", "created_at", "rating", "comment", "qa_id", "feedback_score"})
"""Keys of a feedback that are not extras."""


class UndoResult(NamedTuple):
    """Facts whose scores changed, and learnt facts that were forgotten."""

    facts: list[str]
    forgotten: list[str]


@dataclass(slots=True)
class RetractedFeedback:
    """Opinions that a transaction retracted, and what is still active about the same entries."""

    rows: list[FeedbackRow] = field(default_factory=list)
    session_id: str | None = None  # The session, if it is deleted.
    limit: int | None = None  # How many of the facts learnt in that session go now, unless all do.
    entries: list[tuple[EntryRow, list[FeedbackRow]]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.rows and self.session_id is None

    def withdraw(self, tx: Transaction, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        """Retracts opinions; returns the ids of the retractions."""
        if not rows:
            return []
        # `improve` reads no opinions about executions and messages.
        self.rows += [row for row in rows if row.session_id]
        return tx.feedbacks.withdraw(rows, author, at)

    def read_remaining(self, tx: Transaction) -> None:
        """Reads the remaining opinions, which must now justify learnt facts."""
        if self.session_id is None:
            for row in self.rows:
                entry = tx.conversations.entry(row.session_id, row.target_id) if row.target_type == "entry" else None
                if entry is not None:
                    self.entries.append((entry, tx.feedbacks.active("entry", [entry.id])))


def change(space: SessionSpace, body: Callable[[Transaction, RetractedFeedback], Result]) -> tuple[Result, UndoResult]:
    """Runs a change, and undoes what `improve` derived from opinions that it retracts.

    With facts and sessions in one database that is one transaction. Otherwise it follows at once; should the process
    die between the two, the next `improve` does it.
    """
    result, retracted, undo_result = space.store.write(partial(change_in, space.workspace, body=body))
    if space.store.remote and space.workspace is not None and not retracted.is_empty:
        with space.workspace.write() as connection:
            undo_result = _undo(space.workspace, connection, retracted)
    space.feedback_changed()
    return result, undo_result


def change_in(
    workspace: Workspace | None, tx: Transaction, body: Callable[[Transaction, RetractedFeedback], Result]
) -> tuple[Result, RetractedFeedback, UndoResult]:
    """The same in an open transaction; nothing is undone yet where facts are in another database."""
    retracted = RetractedFeedback()
    result = body(tx, retracted)
    retracted.read_remaining(tx)
    if retracted.is_empty or workspace is None or tx.connection is None:
        return result, retracted, UndoResult([], [])
    return result, retracted, _undo(workspace, tx.connection, retracted)


def _undo(workspace: Workspace, connection: Connection, retracted: RetractedFeedback) -> UndoResult:
    derived = [
        event
        for row in retracted.rows
        for event in events.with_prefix(connection, f"{rating_signals.DERIVED_PREFIX}{row.id}/")
    ]
    updated = retract_events(workspace, connection, derived, None)
    ids = {row.id for row in retracted.rows}
    forgotten = lessons.forget(connection, lessons.unjustified(workspace, connection, retracted.entries, ids))
    entry_ids = {entry.id for entry, _ in retracted.entries}
    taught = lessons.taught_by(connection, sorted(ids))
    forgotten += lessons.forget(connection, [fact for fact in taught if fact.qa_id not in entry_ids])
    if retracted.session_id is not None:
        learnt = lessons.learnt(connection, [retracted.session_id], retracted.limit)
        forgotten += lessons.forget(connection, learnt)
    return UndoResult(updated, forgotten)


def rate_entry(
    space: SessionSpace,
    session_id: str,
    qa_id: str,
    feedback_text: str | None,
    feedback_score: int | None,
    author: str | None,
    extra: Metadata | None = None,
) -> bool:
    """Stores an opinion about an answer, replacing the author's earlier one; False if there is no such entry."""
    _check_score(feedback_score)
    if space.feedback_hook is None or not isinstance(feedback_text, str | None):
        _check_comment("feedback_text", feedback_text)
        _check_content(feedback_text, feedback_score)
    else:
        entry = space.store.read(lambda tx: tx.conversations.entry(session_id, qa_id))
        if entry is None:
            return False
        qa_id = entry.id

    def store(feedback: Any) -> FeedbackRow | None:
        checked = {**_mapping(feedback), **(extra or {})}
        rating = rating_of(_check_score(checked.get("feedback_score")))
        row = _row(space, checked, session_id, author, rating, qa_id)
        _check_content(row.comment, row.score)
        stored, _ = change(space, lambda tx, retracted: _replace(space, tx, retracted, row))
        _alert(space)
        return stored

    feedback = {
        "rating": rating_of(feedback_score),
        "comment": feedback_text or "",
        "qa_id": qa_id,
        "feedback_score": feedback_score,
    }
    if space.feedback_hook is None:
        return store(feedback) is not None
    stored_rows = run_hook(space.feedback_hook, store, "add", session_id, partial(metrics, space), feedback=feedback)
    return any(row is not None for row in stored_rows)


def rate(
    space: SessionSpace,
    external_id: str,
    rating: bool | int | float | str | None,
    comment: str | None,
    scale: Sequence[float] | None,
    author: str | None,
) -> RatingResult:
    """Stores an opinion about the entry with an external id, or else with this id; if there is none, it waits."""
    normalised = normalise_rating(rating, scale=scale)
    checks.name("external_id", external_id)
    _check_comment("comment", comment)
    score = normalised.score
    _check_content(comment, score, ("comment", "rating"))
    extra = {} if normalised.original is None else _check_extra({ORIGINAL_RATING: normalised.original})
    now = space.now()
    new = WaitingRow(
        id=new_id(),
        external_id=external_id,
        author=author,
        author_kind=kind_of(author),
        rating=normalised.rating,
        score=score,
        comment=comment,
        extra=extra,
        at=now,
    )

    def find(tx: Transaction) -> EntryRow | None:
        return tx.conversations.external_entry(external_id, or_id=True)

    def wait(tx: Transaction) -> EntryRow | None:
        entry = find(tx)
        if entry is None:
            tx.feedbacks.wait(new, now + space.waiting_days * DAY if space.waiting_days else None)
        return entry

    entry = space.store.read(find) or space.store.write(wait)
    if entry is None:
        within = f", within {counted(space.waiting_days, 'day')}" if space.waiting_days else ""
        detail = f"No answer has the id {quoted(external_id)} yet; the rating counts once one has{within}."
        if space.store.read(lambda tx: tx.conversations.session(external_id)):
            detail += " A session has it: add_session_feedback rates that as a whole."
        return RatingResult(status="waiting", detail=detail)
    if rate_entry(space, entry.session_id, entry.id, comment, score, author, extra):
        return RatingResult(status="stored")
    return RatingResult(status="refused", detail="The feedback hook did not store it.")


def add_waiting(space: SessionSpace, tx: Transaction, entry: EntryRow) -> None:
    """Makes opinions of the ratings that wait for an entry, in the transaction that adds it."""
    assert entry.external_id is not None
    waiting = tx.feedbacks.waiting(entry.external_id, space.now())
    for row in waiting:
        values = asdict(row) | {"comment": row.comment or None, "event_id": row.id, "updated_at": row.at}
        del values["external_id"]
        opinion = FeedbackRow(session_id=entry.session_id, target_type="entry", target_id=entry.id, **values)
        tx.feedbacks.add(opinion, row.id, space.now())
    if waiting:
        tx.feedbacks.end_waiting(entry.external_id, [row.id for row in waiting])


def pass_waiting(space: SessionSpace, entry: EntryRow) -> None:
    """Gives the ratings that wait for an entry to the feedback hook, one by one. It may store or refuse them; neither
    is the business of whoever added the entry."""
    external_id = entry.external_id
    assert external_id is not None

    def end(feedback_id: str, tx: Transaction) -> None:
        tx.feedbacks.end_waiting(external_id, [feedback_id])

    for row in space.store.write(lambda tx: tx.feedbacks.waiting(external_id, space.now())):
        try:
            rate_entry(space, entry.session_id, entry.id, row.comment, row.score, row.author, row.extra)
        except HeedfulError as error:
            logger.warning("the feedback hook refused a rating that waited for entry %s: %s", entry.id, error)
        space.store.write(partial(end, row.id))


def rate_session(
    space: SessionSpace, session_id: str, feedback: Mapping[str, Any], author: str | None, idempotency_key: str | None
) -> Feedback | None:
    """Stores an opinion about a session; None if a hook didn't store it."""
    checks.idempotency_key(idempotency_key)
    fields = dict(_mapping(feedback))
    unrated = "rating" not in fields
    key = events.event_key("feedback", idempotency_key)

    def store(fields: Any) -> FeedbackRow:
        checked = dict(_mapping(fields))
        if unrated and checked.get("rating") is None:
            checked.pop("rating", None)
        row = _row(space, checked, session_id, author, _check_rating(checked.get("rating")), None)
        stored, _ = change(space, lambda tx, retracted: _append(space, tx, retracted, row, key))
        _alert(space)
        return stored

    if space.feedback_hook is None:
        return to_feedback(store(fields))
    space.store.read(lambda tx: space.session(tx, session_id))
    # Hooks get both keys, and run before the checks: they may supply the comment.
    fields |= {"rating": fields.get("rating"), "comment": fields.get("comment") or ""}
    stored_rows = run_hook(space.feedback_hook, store, "add", session_id, partial(metrics, space), feedback=fields)
    return to_feedback(stored_rows[-1]) if stored_rows else None


def clear_entry(space: SessionSpace, session_id: str, qa_id: str, author: str | None) -> bool:
    """Retracts opinions about an answer: this author's, or without one, all. False if there is none."""

    def clear(tx: Transaction, retracted: RetractedFeedback) -> bool:
        entry = tx.conversations.entry(session_id, qa_id)
        if entry is None:
            return tx.feedbacks.stop_waiting(qa_id, author) > 0
        active = [row for row in tx.feedbacks.active("entry", [entry.id]) if author in (None, row.author)]
        return bool(retracted.withdraw(tx, active, author, space.now()))

    return change(space, clear)[0]


def undo_handler(space: SessionSpace) -> UndoHandler:
    """How opinions are undone, in the store of facts or in that of sessions."""
    return UndoHandler(
        partial(_retract_here, space), elsewhere=partial(_retract, space) if space.store.remote else None
    )


def _retract_here(space: SessionSpace, undoing: Undoing) -> Retraction:
    tx = SqlTransaction(undoing.direct, undoing.event.project_id)
    feedback_id = undoing.event.id
    body = partial(_withdraw, feedback_id=feedback_id, author=undoing.author, at=space.now())
    event, _, undone = change_in(space.workspace, tx, body)
    if event is None:
        raise irreversible(undoing.event)
    return Retraction(event_id=event, retracted=feedback_id, updated_facts=undone.facts)


def _retract(space: SessionSpace, feedback_id: str, author: str | None) -> Retraction | None:
    event, undone = change(space, partial(_withdraw, feedback_id=feedback_id, author=author, at=space.now()))
    return None if event is None else Retraction(event_id=event, retracted=feedback_id, updated_facts=undone.facts)


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
    after = checks.cursor(cursor)

    def read(tx: Transaction, count: int) -> list[FeedbackRow]:
        space.session(tx, session_id)
        return tx.feedbacks.of_session(session_id, after, count, newest_first)

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
    return to_model(Feedback, row, feedback_id=row.id, created_at=from_stored(row.at))


def _check_rating(value: Any) -> Rating | None:
    """A thumb: up, down, or None for neutral; a boolean or another word for one of them will do."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        remedy = 'Use "up", "down", or None for neutral'
        raise Invalid(f"invalid rating {quoted(value)}", field="rating", value=value, remedy=remedy)
    return normalise_rating(value).rating


def _check_score(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5):
        problem, remedy = "must be a whole number from 1 to 5", "Use 1 (worst) to 5 (best)"
        raise Invalid.got("feedback_score", problem, value, remedy)
    return None if value is None else int(value)


def _check_comment(field: str, value: Any) -> str | None:
    return None if value is None else checks.any_text(field, value, limits.MAX_COMMENT)


def _check_extra(feedback: Mapping[str, Any]) -> Metadata:
    extra = {name: value for name, value in feedback.items() if name not in RESERVED_KEYS}
    return check_keys("feedback", checks.metadata("feedback", extra)) if extra else {}


def _check_content(
    text: str | None, score: int | None, fields: tuple[str, str] = ("feedback_text", "feedback_score")
) -> None:
    if score is None and not (text or "").strip():
        remedy = "Pass at least one of them; delete_feedback clears both"
        raise Invalid(f"{fields[0]} and {fields[1]} are both missing", field=fields[1], value=score, remedy=remedy)


def _mapping(feedback: Any) -> Mapping[str, Any]:
    if not isinstance(feedback, Mapping):
        raise Invalid.got("feedback", "must be a mapping", feedback, 'Pass {"rating": "up", "comment": "…"}')
    return feedback


def _row(
    space: SessionSpace,
    feedback: Mapping[str, Any],
    session_id: str,
    author: str | None,
    rating: Rating | None,
    qa_id: str | None,
) -> FeedbackRow:
    comment = _check_comment("comment", feedback.get("comment"))
    if qa_id is None and rating is None and "rating" not in feedback and not (comment or "").strip():
        message = "feedback has neither a rating nor a comment"
        remedy = 'Pass {"rating": "up" | "down" | None, "comment": "…"}'
        raise Invalid(message, field="feedback", value=dict(feedback), remedy=remedy)
    feedback_id, now = new_id(), space.now()
    given = feedback.get("rating")
    other_form = {} if given is None or given in RATINGS else {ORIGINAL_RATING: given}
    return FeedbackRow(
        id=feedback_id,
        event_id=feedback_id,
        session_id=session_id,
        target_type="session" if qa_id is None else "entry",
        target_id=session_id if qa_id is None else qa_id,
        author=author,
        rating=rating,
        score=None if qa_id is None else _check_score(feedback.get("feedback_score")),
        comment=(comment or "") if qa_id is None else (comment or None),
        extra={**_check_extra(feedback), **other_form},
        at=now,
        updated_at=now,
        author_kind=kind_of(author),
    )


def _replace(
    space: SessionSpace, tx: Transaction, retracted: RetractedFeedback, row: FeedbackRow
) -> FeedbackRow | None:
    """Stores an opinion about an entry, unless the author's active one says the same; returns the active one."""
    entry = tx.conversations.entry(row.session_id, row.target_id)
    if entry is None:
        return None
    row = replace(row, target_id=entry.id)
    before = tx.feedbacks.active_by(row.author, "entry", row.target_id)
    if len(before) == 1 and before[0].says() == row.says():
        return before[0]
    return _put(space, tx, retracted, row, before, row.id)


def _append(
    space: SessionSpace, tx: Transaction, retracted: RetractedFeedback, row: FeedbackRow, key: str | None
) -> FeedbackRow:
    first = None if key is None else tx.feedbacks.with_key(key)
    if key is not None and first is not None:
        if first.says() == row.says() and (first.session_id, first.author) == (row.session_id, row.author):
            return first
        given = events.idempotency_key_of(key)
        message = f"idempotency_key {given!r} was used for another feedback"
        remedy = "Use a new key for each different call"
        raise Conflict(message, code="idempotency_key_reused", field="idempotency_key", value=given, remedy=remedy)
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
    channels = _alert_channels(space)
    if channels:
        payload = _alert_payload(space, row)
        alerts = [AlertRow(new_id(), channel.name, payload, row.at, next_at=row.at) for channel in channels]
        tx.outbox.add(row.session_id, alerts)
    return row


def _alert_payload(space: SessionSpace, row: FeedbackRow) -> Metadata:
    names = ("id", "target_type", "target_id", "rating", "score", "comment", "author", "author_kind")
    feedback: Metadata = {**row.extra, **{name: getattr(row, name) for name in names}}
    feedback["created_at"] = from_stored(row.at).isoformat()
    return {"type": "feedback", "project": space.project, "session_id": row.session_id, "feedback": feedback}


def _alert_channels(space: SessionSpace) -> tuple[Channel, ...]:
    """The channels that the hook chose for the feedback that is being stored."""
    return () if space.feedback_hook is None else hook_channels()


def _alert(space: SessionSpace) -> None:
    """Wakes the dispatcher if a hook asked for alerts; called after they are stored."""
    if channels := _alert_channels(space):
        space.dispatcher.add(*channels)
        space.dispatcher.wake()


def erase(space: SessionSpace, workspace: Workspace, author: str) -> ForgetResult:
    """Erases the person with exactly this name from the project; see `ledger.erasure`."""
    handlers = ErasureHandlers(
        sessions=space.store,
        open_sessions=SqlTransaction,
        learnt=partial(_learnt_facts, workspace),
        remove_facts=forget.remove,
        restored=partial(forget.restored, workspace),
    )
    return erasure.erase(workspace, author, handlers)


def _learnt_facts(
    workspace: Workspace,
    connection: Connection,
    rated_entries: Sequence[tuple[EntryRow, list[FeedbackRow]]],
    opinions: Set[str],
    sessions: Sequence[str],
) -> set[str]:
    """The facts learnt from the person's comments, alone or with others', and in their sessions."""
    unjustified = lessons.unjustified(workspace, connection, rated_entries, opinions)
    taught = lessons.taught_by(connection, sorted(opinions))
    from_comments = [fact for fact in (*unjustified, *taught) if fact.kind == "feedback"]
    return {fact.fact_id for fact in (*from_comments, *lessons.learnt(connection, sessions))}
