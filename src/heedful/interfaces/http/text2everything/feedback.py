"""`/feedback`: what people say of executions and of messages."""

from __future__ import annotations

from typing import Any

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.http.text2everything import executions, reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import ExecutionFeedback

DEFAULT_LIMIT = 100
_PATH = "/api/projects/{project_id}/feedback"
_ITEM_PATH = f"{_PATH}/{{feedback_id}}"


def list_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    part = reading.window(request, DEFAULT_LIMIT)
    page = heedful.feedback.list(skip=part.start, limit=max(1, part.count), search=request.query.get("q") or None)
    items = [_to_feedback(heedful, opinion) for opinion in page.items[: part.count]]
    return reading.page(items, part, part.start + part.count < page.total) | {"total": page.total}


def get_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_feedback(heedful, heedful.feedback.get(request.path["feedback_id"]))


def create_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    message, execution = reading.optional(request, "chat_message_id"), reading.optional(request, "execution_id")
    if execution is None and message is not None and executions.is_execution(heedful, message):
        execution = message
    feedback = heedful.feedback.create(
        is_positive=reading.flag(request, "is_positive", default=True),
        feedback=reading.optional(request, "feedback"),
        execution_id=execution,
        chat_message_id=None if message == execution else message,
        author=request.author,
    )
    return _to_feedback(heedful, feedback)


def update_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes what is said; what it is said of stays."""
    current = _to_feedback(heedful, heedful.feedback.get(request.path["feedback_id"]))
    for field in ("chat_message_id", "execution_id"):
        value = reading.optional(request, field)
        if value not in (None, current[field]):
            raise Invalid(
                f"feedback {current['id']} can't be moved to another {field}",
                field=field,
                value=value,
                remedy="Delete it, and create another",
            )
    changes: dict[str, Any] = {}
    if "feedback" in reading.body(request):
        changes["feedback"] = reading.optional(request, "feedback")
    if reading.body(request).get("is_positive") is not None:
        changes["is_positive"] = reading.flag(request, "is_positive")
    return _to_feedback(heedful, heedful.feedback.update(current["id"], **changes))


def delete_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    heedful.feedback.delete(request.path["feedback_id"])
    return {"message": f"{request.path['feedback_id']} was retracted"}


def bulk_delete(heedful: Heedful, request: ForeignRequest) -> Any:
    return heedful.feedback.bulk_delete(reading.ids(request))


def _to_feedback(heedful: Heedful, feedback: ExecutionFeedback) -> dict[str, Any]:
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
    Wire("GET", _PATH, list_feedback, "read", "project_id"),
    Wire("POST", _PATH, create_feedback, "feedback", "project_id"),
    Wire("POST", f"{_PATH}/bulk-delete", bulk_delete, "feedback", "project_id", batch=True),
    Wire("GET", _ITEM_PATH, get_feedback, "read", "project_id"),
    Wire("PUT", _ITEM_PATH, update_feedback, "feedback", "project_id"),
    Wire("DELETE", _ITEM_PATH, delete_feedback, "feedback", "project_id"),
)
