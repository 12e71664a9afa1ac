"""The routes for feedback that mongodb_session_manager documents for web applications, on Heedful's sessions."""

from __future__ import annotations

from typing import Any

from heedful.clock import new_id
from heedful.compat.foreign_api import Body, ForeignRequest, ForeignRoute, every, read
from heedful.compat.mongodb_session_manager import document
from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid
from heedful.model import VISITOR

STATUSES = {422: 400}


class FeedbackBody(Body):
    rating: str | None = None
    comment: str = ""


def error_body(error: HeedfulError, status: int) -> Any:
    return {"detail": str(error)}


def add_feedback(store: Heedful, request: ForeignRequest) -> Any:
    body = read(FeedbackBody, request.body)
    # Each request is another visitor's: all of them are kept.
    author = request.author or f"{VISITOR}{new_id()}"
    try:
        store.sessions.add_session_feedback(request.path["session_id"], body.model_dump(), author=author)
    except Invalid:
        raise
    except ValueError as error:
        # Hooks refuse feedback in this way.
        raise Invalid(str(error), field="feedback") from error
    return {"status": "success", "message": "Feedback recorded"}


def get_feedback(store: Heedful, request: ForeignRequest) -> Any:
    session_id = request.path["session_id"]
    feedbacks = [
        document(feedback) | {"created_at": feedback.created_at.isoformat()}
        for feedback in every(store.sessions.feedbacks, session_id)
    ]
    return {"session_id": session_id, "feedbacks": feedbacks, "total": len(feedbacks)}


def metrics(store: Heedful, request: ForeignRequest) -> Any:
    return store.sessions.feedback_metrics()


FEEDBACK = "/api/sessions/{session_id}/feedback"

ROUTES: tuple[ForeignRoute, ...] = (
    ForeignRoute("POST", FEEDBACK, add_feedback, "feedback"),
    ForeignRoute("GET", FEEDBACK, get_feedback, "read"),
    ForeignRoute("GET", "/api/metrics/feedback", metrics, "read"),
)
