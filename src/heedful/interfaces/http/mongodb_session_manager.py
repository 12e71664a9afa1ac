"""The routes for feedback that mongodb_session_manager documents for web applications, on Heedful's sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid
from heedful.ids import new_id
from heedful.interfaces.http.hindsight_bodies import Body, read
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import VISITOR, Feedback

__all__ = ["ROUTES", "STATUSES", "error_body"]

STATUSES: Mapping[int, int] = {422: 400}
PAGE_LIMIT = 1_000


class FeedbackBody(Body):
    """What somebody says of a session."""

    rating: str | None = None
    comment: str = ""


def error_body(error: HeedfulError, status: int) -> Any:
    """The body of an error."""
    return {"detail": str(error)}


def add_feedback(store: Heedful, request: ForeignRequest) -> Any:
    body = read(FeedbackBody, request.body, {})
    # Each request is another visitor's: all of them are kept.
    author = request.author or f"{VISITOR}{new_id()}"
    try:
        store.sessions.add_session_feedback(request.path["session_id"], body.model_dump(), author=author)
    except Invalid:
        raise
    except ValueError as error:
        # So do hooks refuse what the caller said.
        raise Invalid(str(error), field="feedback") from error
    return {"status": "success", "message": "Feedback recorded"}


def get_feedback(store: Heedful, request: ForeignRequest) -> Any:
    session_id = request.path["session_id"]
    feedbacks: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = store.sessions.feedbacks(session_id, cursor=cursor, limit=PAGE_LIMIT)
        feedbacks += map(_to_document, page.items)
        cursor = page.next_cursor
        if cursor is None:
            return {"session_id": session_id, "feedbacks": feedbacks, "total": len(feedbacks)}


def metrics(store: Heedful, request: ForeignRequest) -> Any:
    return store.sessions.feedback_metrics()


def _to_document(each: Feedback) -> dict[str, Any]:
    return each.extra | {
        "id": each.feedback_id,
        "rating": each.rating,
        "comment": each.comment,
        "created_at": each.created_at.isoformat(),
    }


FEEDBACK = "/api/sessions/{session_id}/feedback"

ROUTES: tuple[Wire, ...] = (
    Wire("POST", FEEDBACK, add_feedback, "feedback"),
    Wire("GET", FEEDBACK, get_feedback, "read"),
    Wire("GET", "/api/metrics/feedback", metrics, "read"),
)
