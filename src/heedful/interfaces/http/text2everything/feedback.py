"""`/feedback`: what people say of executions and of messages."""

from __future__ import annotations

from typing import Any

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.http.text2everything import executions, paging, reading
from heedful.interfaces.problems import Asked, Wire
from heedful.model import ExecutionFeedback

USUAL = 100
_PLACE = "/api/projects/{project_id}/feedback"
_ONE = f"{_PLACE}/{{feedback_id}}"


def listed(heedful: Heedful, asked: Asked) -> Any:
    part = paging.window(asked, USUAL)
    found = heedful.feedback.list(skip=part.start, limit=max(1, part.count), search=asked.query.get("q") or None)
    shown = [_shown(heedful, each) for each in found.items[: part.count]]
    return paging.page(shown, part, part.start + part.count < found.total) | {"total": found.total}


def got(heedful: Heedful, asked: Asked) -> Any:
    return _shown(heedful, heedful.feedback.get(asked.path["feedback_id"]))


def created(heedful: Heedful, asked: Asked) -> Any:
    message, execution = reading.optional(asked, "chat_message_id"), reading.optional(asked, "execution_id")
    if execution is None and message is not None and executions.is_execution(heedful, message):
        execution = message
    made = heedful.feedback.create(
        is_positive=reading.flag(asked, "is_positive", default=True),
        feedback=reading.optional(asked, "feedback"),
        execution_id=execution,
        chat_message_id=None if message == execution else message,
    )
    return _shown(heedful, made)


def updated(heedful: Heedful, asked: Asked) -> Any:
    """Changes what is said; what it is said of stays."""
    known = _shown(heedful, heedful.feedback.get(asked.path["feedback_id"]))
    for field in ("chat_message_id", "execution_id"):
        given = reading.optional(asked, field)
        if given not in (None, known[field]):
            raise Invalid(
                f"feedback {known['id']} can't be moved to another {field}",
                field=field,
                value=given,
                remedy="Delete it, and create another",
            )
    changes: dict[str, Any] = {}
    if "feedback" in reading.body(asked):
        changes["feedback"] = reading.optional(asked, "feedback")
    if reading.body(asked).get("is_positive") is not None:
        changes["is_positive"] = reading.flag(asked, "is_positive")
    return _shown(heedful, heedful.feedback.update(known["id"], **changes))


def deleted(heedful: Heedful, asked: Asked) -> Any:
    heedful.feedback.delete(asked.path["feedback_id"])
    return {"message": f"{asked.path['feedback_id']} is taken back"}


def bulk_deleted(heedful: Heedful, asked: Asked) -> Any:
    return heedful.feedback.bulk_delete(reading.ids(asked))


def _shown(heedful: Heedful, feedback: ExecutionFeedback) -> dict[str, Any]:
    return {
        "id": feedback.id,
        "project_id": reading.project(heedful),
        # The client can't read a feedback without a message or a text.
        "chat_message_id": feedback.chat_message_id or feedback.execution_id or "",
        "execution_id": feedback.execution_id,
        "feedback": feedback.feedback or "",
        "is_positive": feedback.is_positive,
        "created_at": feedback.created_at.isoformat(),
        "updated_at": feedback.updated_at.isoformat(),
    }


ROUTES = (
    Wire("GET", _PLACE, listed, "read", "project_id"),
    Wire("POST", _PLACE, created, "feedback", "project_id"),
    Wire("POST", f"{_PLACE}/bulk-delete", bulk_deleted, "feedback", "project_id"),
    Wire("GET", _ONE, got, "read", "project_id"),
    Wire("PUT", _ONE, updated, "feedback", "project_id"),
    Wire("DELETE", _ONE, deleted, "feedback", "project_id"),
)
