"""The routes for feedback that mongodb_session_manager documents, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import wires
from wires import served

from heedful import Heedful
from heedful.sessions.hooks import create_combined_hook
from heedful.testing import ManualClock

FEEDBACK = "/api/sessions/user-123/feedback"


@contextmanager
def calling(store: Heedful) -> Iterator[httpx.Client]:
    with served(store) as url, wires.client(url) as client:
        yield client


@pytest.fixture
def http(either: Heedful) -> Iterator[httpx.Client]:
    either.sessions.create("user-123")
    with calling(either) as client:
        yield client


@pytest.mark.slow
def test_feedback_is_recorded_and_read_again(http: httpx.Client, clock: ManualClock) -> None:
    items = [
        {"rating": "up", "comment": "Great!"},
        {"rating": "down", "comment": "Too slow."},
        {"rating": None, "comment": "A note."},
        {"comment": "No rating."},
        {"rating": "up"},
    ]
    for feedback in items:
        answer = http.post(FEEDBACK, json=feedback)
        assert (answer.status_code, answer.json()) == (200, {"status": "success", "message": "Feedback recorded"})
    found = http.get(FEEDBACK).json()
    assert (found["session_id"], found["total"]) == ("user-123", 5)
    assert [(each["rating"], each["comment"]) for each in found["feedbacks"]] == [
        ("up", "Great!"),
        ("down", "Too slow."),
        (None, "A note."),
        (None, "No rating."),
        ("up", ""),
    ]
    assert {each["created_at"] for each in found["feedbacks"]} == {clock().isoformat()}


def test_a_session_without_feedback_has_none(http: httpx.Client) -> None:
    assert http.get(FEEDBACK).json() == {"session_id": "user-123", "feedbacks": [], "total": 0}


def test_the_metrics_count_all_sessions(http: httpx.Client, either: Heedful) -> None:
    either.sessions.create("other")
    http.post(FEEDBACK, json={"rating": "up", "comment": "1234"})
    http.post("/api/sessions/other/feedback", json={"rating": "down", "comment": "12"})
    http.post(FEEDBACK, json={"rating": None, "comment": ""})
    assert http.get("/api/metrics/feedback").json() == {
        "total": 3,
        "positive": 1,
        "negative": 1,
        "neutral": 1,
        "avg_comment_length": 2.0,
    }


@pytest.mark.parametrize(
    "body",
    [
        {"rating": "maybe", "comment": "?"},
        {"rating": 5},
        {"comment": None},
        {"comment": ["x"]},
        {"rating": "up", "comment": "x" * 100_000},
        ["up"],
        "up",
    ],
)
def test_feedback_that_cant_be_accepted_is_a_400_with_a_reason(http: httpx.Client, body: Any) -> None:
    answer = http.post(FEEDBACK, json=body)
    assert answer.status_code == 400
    assert isinstance(answer.json()["detail"], str)
    assert http.get(FEEDBACK).json()["total"] == 0


def test_a_session_that_nobody_made_is_a_404(http: httpx.Client, either: Heedful) -> None:
    path = "/api/sessions/nobody/feedback"
    for answer in (http.get(path), http.post(path, json={"rating": "up"})):
        assert answer.status_code == 404
        assert "nobody" in answer.json()["detail"]
    assert not either.sessions.exists("nobody")


def test_what_a_hook_refuses_is_a_400_in_its_words(open_store: Callable[..., Heedful]) -> None:
    def commented(original_func: Any, action: str, session_id: str, **kwargs: Any) -> Any:
        feedback = kwargs["feedback"]
        if feedback.get("rating") not in ("up", "down", None):
            raise ValueError(f"Invalid rating: {feedback.get('rating')}")
        if feedback.get("rating") == "down" and not feedback.get("comment", "").strip():
            raise ValueError("Please provide a comment with negative feedback")
        return original_func({**feedback, "checked": True})

    store = open_store(feedback_hook=create_combined_hook(commented))
    store.sessions.create("user-123")
    with calling(store) as http:
        answer = http.post(FEEDBACK, json={"rating": "down", "comment": " "})
        assert (answer.status_code, answer.json()) == (
            400,
            {"detail": "Please provide a comment with negative feedback"},
        )
        answer = http.post(FEEDBACK, json={"rating": "maybe"})
        assert (answer.status_code, answer.json()) == (400, {"detail": "Invalid rating: maybe"})
        assert http.post(FEEDBACK, json={"rating": "down", "comment": "Slow."}).status_code == 200
        assert [each["checked"] for each in http.get(FEEDBACK).json()["feedbacks"]] == [True]
