"""What a token may do: rate the things it names, under its own name, and change or retract what it said."""

from __future__ import annotations

from typing import Any

from heedful.access.tokens import Claims, target
from heedful.engine import Heedful
from heedful.errors import Forbidden, NotFound

RATE = 20
"""Calls a second that a token may make."""

TARGET_FIELDS = {
    "sessions.add_feedback": ("session_id", "qa_id"),
    "sessions.delete_feedback": ("session_id", "qa_id"),
    "sessions.add_session_feedback": ("session_id",),
    "signal_recall": ("recall_id",),
}
"""Operations whose arguments name what they are about."""

CREATE = frozenset({"feedback.create", "feedback.create_positive", "feedback.create_negative"})
CHANGE = frozenset({"feedback.update", "feedback.delete"})


def check_token(claims: Claims, operation: str, arguments: dict[str, Any], engine: Heedful) -> dict[str, Any]:
    """The arguments, under the name of the token; `Forbidden` if it doesn't allow this."""
    if operation in TARGET_FIELDS:
        _check(claims, target(**{name: arguments.get(name) for name in TARGET_FIELDS[operation]}))
    elif operation in CREATE:
        named = [name for name in ("execution_id", "chat_message_id") if arguments.get(name) is not None]
        if not named:
            raise _refused()
        for name in named:
            _check(claims, target(**{name: arguments[name]}))
    elif operation in CHANGE:
        _check_own(claims, engine, arguments["feedback_id"])
        return arguments
    elif operation == "retract":
        _check_opinion_count(claims, engine, arguments["event_id"])
    else:
        raise _refused()
    return {**arguments, "author": claims.author}


def _check(claims: Claims, wanted: dict[str, str]) -> None:
    if not claims.names(wanted):
        raise _refused()


def _check_own(claims: Claims, engine: Heedful, feedback_id: str) -> None:
    given = engine.feedback.get(feedback_id)
    about = [target(execution_id=given.execution_id), target(chat_message_id=given.chat_message_id)]
    if given.author != claims.author or not any(claims.names(each) for each in about):
        raise NotFound(f"no feedback {feedback_id!r} of yours", field="feedback_id", value=feedback_id)


def _check_opinion_count(claims: Claims, engine: Heedful, event_id: str) -> None:
    """A token speaks of few sessions, and of each there are few opinions."""
    for about in claims.targets:
        if set(about) == {"session_id"} and engine.sessions.exists(about["session_id"]):
            cursor = None
            while True:
                page = engine.sessions.feedbacks(about["session_id"], cursor=cursor, limit=1000, newest_first=True)
                if any(each.feedback_id == event_id and each.author == claims.author for each in page.items):
                    return
                cursor = page.next_cursor
                if cursor is None:
                    break
    raise NotFound(f"no feedback {event_id!r} of yours", field="event_id", value=event_id)


def _refused() -> Forbidden:
    return Forbidden(
        "the token does not allow this",
        code="scope_missing",
        remedy="Name the target when the token is made: keys.create_token([{…}])",
    )
