"""Hooks: what stands between a caller and the store."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful import Heedful, HeedfulError, Invalid, NotFound, Unavailable
from heedful.sessions.hooks import AlertHook, AnalyticsHook, audit_hook, create_combined_hook, validation_hook

pytestmark = pytest.mark.usefixtures("warm_processes")

Original = Callable[..., Any]


class Desk:
    """A channel that keeps what it was sent."""

    name = "desk"

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        self.sent.append(payload)


def opened(open_either: Callable[..., Heedful], hook: Any = None, metadata_hook: Any = None) -> Heedful:
    store = open_either(feedback_hook=hook, metadata_hook=metadata_hook)
    open_either().sessions.create("s")
    return store


def ratings(store: Heedful) -> list[str | None]:
    return [each.rating for each in store.sessions.feedbacks("s").items]


def test_a_hook_sees_what_is_about_to_be_stored_and_gets_its_id(open_either: Callable[..., Heedful]) -> None:
    seen: list[Any] = []

    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        seen.append((action, session_id, dict(kwargs["feedback"])))
        seen.append(original_func(kwargs["feedback"]))
        return "nobody looks at this"

    store = opened(open_either, hook)
    feedback = store.sessions.add_session_feedback("s", {"rating": "up", "comment": "Great!"})
    assert feedback is not None
    assert seen == [("add", "s", {"rating": "up", "comment": "Great!"}), feedback.feedback_id]


def test_a_hook_sees_ratings_of_answers_too(open_either: Callable[..., Heedful]) -> None:
    seen: list[Any] = []

    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        seen.append((action, session_id, kwargs["feedback"]))
        return original_func(kwargs["feedback"])

    store = opened(open_either, hook)
    entry = store.sessions.add_entry("s", "q", "a")
    assert store.sessions.add_feedback("s", entry.qa_id, "bad", 1) is True
    assert seen == [("add", "s", {"rating": "down", "comment": "bad", "qa_id": entry.qa_id, "feedback_score": 1})]


def test_a_hook_is_asked_before_anything_is_refused(open_either: Callable[..., Heedful]) -> None:
    seen: list[Any] = []

    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        (given,) = kwargs.values()
        seen.append(given)
        if given.get("rating") == "maybe":
            raise ValueError("Thumbs point up or down")
        return original_func(given)

    store = opened(open_either, hook, hook)
    with pytest.raises(ValueError, match=r"^Thumbs point up or down$"):
        store.sessions.add_session_feedback("s", {"rating": "maybe", "comment": "Not sure"})
    # What the hook lets through is still refused.
    for bad in ({"rating": "so-so"}, {"thumbs": True, "text": "good"}, {"comment": "x" * 200_000}):
        with pytest.raises(Invalid):
            store.sessions.add_session_feedback("s", bad)
    entry = store.sessions.add_entry("s", "q", "a")
    with pytest.raises(Invalid):
        store.sessions.add_feedback("s", entry.qa_id, "x" * 200_000)
    with pytest.raises(Invalid):
        store.sessions.update_metadata("s", {"a..b": 1})
    assert [each.get("rating") for each in seen] == ["maybe", "so-so", None, None, None, None]
    assert seen[2] == {"thumbs": True, "text": "good", "rating": None, "comment": ""}
    assert ratings(store) == []


def test_a_hook_is_not_asked_about_what_is_not_there(open_either: Callable[..., Heedful]) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        raise AssertionError("it was asked")

    store = opened(open_either, hook)
    assert store.sessions.add_feedback("s", "nope", feedback_score=5) is False
    with pytest.raises(NotFound):
        store.sessions.add_session_feedback("nowhere", {"rating": "up"})
    with pytest.raises(Invalid):
        store.sessions.add_session_feedback("s", "up")  # type: ignore[arg-type]


def test_hooks_run_in_the_order_they_are_listed_the_first_outermost(open_either: Callable[..., Heedful]) -> None:
    steps: list[str] = []

    def named(name: str) -> Any:
        def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
            steps.append(f"{name} before")
            result = original_func({**kwargs["feedback"], name: len(steps)})
            steps.append(f"{name} after")
            return result

        return hook

    inner = create_combined_hook(named("b"), named("c"))
    store = opened(open_either, create_combined_hook(named("a"), inner, create_combined_hook()))
    feedback = store.sessions.add_session_feedback("s", {"rating": "up"})
    assert feedback is not None
    assert steps == ["a before", "b before", "c before", "c after", "b after", "a after"]
    assert feedback.extra == {"a": 1, "b": 2, "c": 3}


def test_an_audit_written_as_documented_logs_before_and_after(open_either: Callable[..., Heedful]) -> None:
    lines: list[str] = []

    def log_it(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        said = kwargs["feedback"]
        lines.append(f"{session_id}: {said.get('rating')} {said.get('comment')}")
        result = original_func(said)
        lines.append("saved")
        return result

    opened(open_either, log_it).sessions.add_session_feedback("s", {"rating": "up", "comment": "Great!"})
    assert lines == ["s: up Great!", "saved"]


def test_a_validation_written_as_documented_refuses_and_cleans(open_either: Callable[..., Heedful]) -> None:
    def check_it(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        said = kwargs["feedback"]
        if said.get("rating") == "down" and not said.get("comment", "").strip():
            raise ValueError("say why")
        if len(said.get("comment", "")) > 1000:
            raise ValueError("too long")
        said["comment"] = said.get("comment", "").strip()
        said["_validated_at"] = "2024-01-22T15:00:00"
        return original_func(said)

    store = opened(open_either, check_it)
    values = {"rating": "down", "comment": "  The response was incomplete "}
    feedback = store.sessions.add_session_feedback("s", values)
    assert feedback is not None
    assert (feedback.comment, feedback.extra) == (
        "The response was incomplete",
        {"_validated_at": "2024-01-22T15:00:00"},
    )
    assert values == {"rating": "down", "comment": "  The response was incomplete "}
    for bad, why in (({"rating": "down", "comment": ""}, "say why"), ({"rating": "up", "comment": "x" * 1001}, "long")):
        with pytest.raises(ValueError, match=why) as error:
            store.sessions.add_session_feedback("s", bad)
        assert type(error.value) is ValueError
    assert ratings(store) == ["down"]


def test_a_notification_written_as_documented_counts_by_session(open_either: Callable[..., Heedful]) -> None:
    class Notify:
        def __init__(self) -> None:
            self.bad: dict[str, int] = {}

        def __call__(self, original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
            if kwargs["feedback"].get("rating") == "down":
                self.bad[session_id] = self.bad.get(session_id, 0) + 1
            return original_func(kwargs["feedback"])

    notify = Notify()
    store = opened(open_either, notify)
    for rating in ("down", "up", "down"):
        store.sessions.add_session_feedback("s", {"rating": rating})
    assert notify.bad == {"s": 2}


def test_counting_and_chaining_written_as_documented(open_either: Callable[..., Heedful]) -> None:
    class Count:
        def __init__(self) -> None:
            self.total = 0
            self.positive = 0

        def __call__(self, original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
            self.total += 1
            self.positive += kwargs["feedback"].get("rating") == "up"
            return original_func(kwargs["feedback"])

    def chained(*hooks: Any) -> Any:
        """Another way to chain, one that knows of feedback alone."""

        def all_of_them(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
            call = original_func
            for hook in reversed(hooks):

                def around(feedback: Any, hook: Any = hook, inner: Original = call) -> Any:
                    return hook(inner, action, session_id, feedback=feedback)

                call = around
            return call(kwargs["feedback"])

        return all_of_them

    inner, outer = Count(), Count()
    store = opened(open_either, create_combined_hook(outer, chained(validation_hook, inner)))
    store.sessions.add_session_feedback("s", {"rating": "up", "comment": "Excellent!"})
    with pytest.raises(Invalid):
        store.sessions.add_session_feedback("s", {"rating": "down", "comment": " "})
    assert (outer.total, outer.positive, inner.total) == (2, 1, 1)
    assert ratings(store) == ["up"]


def test_the_ready_made_validation(open_either: Callable[..., Heedful]) -> None:
    store = opened(open_either, validation_hook)
    feedback = store.sessions.add_session_feedback("s", {"rating": "down", "comment": f"  {'x' * 1000}\n"})
    assert feedback is not None
    assert feedback.comment == "x" * 1000
    assert list(feedback.extra) == ["_validated_at"]
    for bad in ({"rating": "down"}, {"rating": "down", "comment": " \n"}, {"rating": "up", "comment": "x" * 1001}):
        with pytest.raises(Invalid) as error:
            store.sessions.add_session_feedback("s", bad)
        assert error.value.field == "comment"
    entry = store.sessions.add_entry("s", "q", "a")
    with pytest.raises(Invalid, match="required"):
        store.sessions.add_feedback("s", entry.qa_id, feedback_score=2)
    assert store.sessions.add_feedback("s", entry.qa_id, " too old ", 2) is True
    assert store.sessions.entry("s", entry.qa_id).feedback_text == "too old"
    assert ratings(store) == ["down"]


def test_the_ready_made_audit(open_either: Callable[..., Heedful], caplog: pytest.LogCaptureFixture) -> None:
    store = opened(open_either, create_combined_hook(audit_hook, validation_hook), audit_hook)
    with caplog.at_level(logging.INFO, "heedful.audit"):
        store.sessions.add_session_feedback("s", {"rating": "up", "comment": "Great!"})
        with pytest.raises(Invalid):
            store.sessions.add_session_feedback("s", {"rating": "down"})
        store.sessions.update_metadata("s", {"variant": "B"})
        store.sessions.delete_metadata("s", "variant")
        store.sessions.get_metadata("s")
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "add session='s' {'feedback': {'rating': 'up', 'comment': 'Great!'}}"
    assert messages[1] == "add session='s' stored"
    assert "refused: comment is required" in messages[3]
    assert caplog.records[3].levelno == logging.WARNING
    assert messages[4] == "update session='s' {'metadata': {'variant': 'B'}}"
    assert messages[6] == "delete session='s' {'keys': ['variant']}"
    assert messages[8] == "get session='s' {}"


def test_an_error_before_storing_is_the_hooks_own_and_nothing_is_stored(open_either: Callable[..., Heedful]) -> None:
    problem = RuntimeError("not today")

    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        raise problem

    store = opened(open_either, hook, hook)
    entry = store.sessions.add_entry("s", "q", "a")
    for call in (
        lambda: store.sessions.add_session_feedback("s", {"rating": "up"}),
        lambda: store.sessions.add_feedback("s", entry.qa_id, feedback_score=5),
        lambda: store.sessions.update_metadata("s", {"a": 1}),
        lambda: store.sessions.delete_metadata("s", "a"),
        lambda: store.sessions.get_metadata("s"),
        lambda: store.sessions.create("s", metadata={"a": 1}),
        lambda: store.sessions.create("new", metadata={"a": 1}),
    ):
        with pytest.raises(RuntimeError) as error:
            call()
        assert error.value is problem
    assert store.sessions.feedback_metrics().total == 0
    assert store.sessions.get("s").metadata == {}
    assert not store.sessions.exists("new")


def test_an_error_after_storing_says_that_it_is_stored(open_either: Callable[..., Heedful]) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        original_func(*kwargs.values())
        raise RuntimeError("the mail server is down")

    store = opened(open_either, hook, hook)
    with pytest.raises(HeedfulError, match=r"was stored, .* RuntimeError: the mail server is down") as error:
        store.sessions.add_session_feedback("s", {"rating": "up"})
    assert error.value.code == "hook_failed_after_storing"
    assert isinstance(error.value.__cause__, RuntimeError)
    (kept,) = store.sessions.feedbacks("s").items
    assert error.value.value == kept.feedback_id
    entry = store.sessions.add_entry("s", "q", "a")
    with pytest.raises(HeedfulError, match="was stored"):
        store.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
    assert store.sessions.entry("s", entry.qa_id).feedback_score == 5
    with pytest.raises(HeedfulError, match="was stored"):
        store.sessions.update_metadata("s", {"a": 1})
    assert store.sessions.get("s").metadata == {"a": 1}
    with pytest.raises(RuntimeError, match="the mail server is down"):
        store.sessions.get_metadata("s")


def test_an_answer_that_goes_while_its_hook_runs_was_not_rated(open_either: Callable[..., Heedful]) -> None:
    other = open_either()

    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        other.sessions.delete("s")
        original_func(kwargs["feedback"])
        raise RuntimeError("too late")

    store = opened(open_either, hook)
    entry = store.sessions.add_entry("s", "q", "a")
    with pytest.raises(RuntimeError, match="too late"):
        store.sessions.add_feedback("s", entry.qa_id, feedback_score=5)


def test_a_hook_that_never_stores_keeps_it_back(open_either: Callable[..., Heedful]) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> None:
        return None

    store = opened(open_either, hook, hook)
    entry = store.sessions.add_entry("s", "q", "a")
    assert store.sessions.add_session_feedback("s", {"rating": "up"}) is None
    assert store.sessions.add_feedback("s", entry.qa_id, feedback_score=5) is False
    assert store.sessions.update_metadata("s", {"a": 1}) == {}
    assert store.sessions.delete_metadata("s", "a") == {}
    assert store.sessions.get_metadata("s") == {}
    assert store.sessions.create("new", metadata={"a": 1}).metadata == {}
    assert store.sessions.feedback_metrics().total == 0


def test_a_hook_that_stores_twice_has_it_twice_but_for_what_is_keyed(open_either: Callable[..., Heedful]) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        return original_func(kwargs["feedback"]), original_func(kwargs["feedback"])

    store = opened(open_either, hook)
    store.sessions.add_session_feedback("s", {"rating": "up"})
    assert len(ratings(store)) == 2
    store.sessions.add_session_feedback("s", {"rating": "up"}, idempotency_key="k")
    assert len(ratings(store)) == 3
    store.sessions.add_session_feedback("s", {"rating": "down"}, author="ann")
    assert len(ratings(store)) == 4
    entry = store.sessions.add_entry("s", "q", "a")
    store.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
    assert store.sessions.feedback_metrics().total == 5


@pytest.mark.parametrize(
    "changed",
    [{"rating": "maybe"}, {"comment": 5}, {"$bad": 1}, None, {"rating": "up", "comment": "x" * 10_001}],
)
def test_what_a_hook_makes_of_it_is_checked_too(open_either: Callable[..., Heedful], changed: Any) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        return original_func(changed)

    store = opened(open_either, hook)
    with pytest.raises(Invalid):
        store.sessions.add_session_feedback("s", {"rating": "up"})
    assert ratings(store) == []


@pytest.mark.parametrize(
    "changed", [{"feedback_score": 6}, {"feedback_score": None, "comment": " "}, {}, {"comment": 5}]
)
def test_a_rating_that_a_hook_spoils_is_refused(open_either: Callable[..., Heedful], changed: Any) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        return original_func(changed)

    store = opened(open_either, hook)
    entry = store.sessions.add_entry("s", "q", "a")
    with pytest.raises(Invalid):
        store.sessions.add_feedback("s", entry.qa_id, "good", 5)
    assert store.sessions.feedback_metrics().total == 0


def test_metadata_hooks_may_change_what_is_stored(open_either: Callable[..., Heedful]) -> None:
    seen: list[tuple[str, list[str]]] = []

    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        seen.append((action, sorted(kwargs)))
        if action == "update":
            return original_func({**kwargs["metadata"], "by": "hook"})
        if action == "delete":
            return original_func([key for key in kwargs["keys"] if key != "by"])
        return original_func()

    store = opened(open_either, None, create_combined_hook(hook))
    assert store.sessions.update_metadata("s", {"a": 1}) == {"a": 1, "by": "hook"}
    assert store.sessions.delete_metadata("s", ["a", "by"]) == {"by": "hook"}
    assert store.sessions.get_metadata("s") == {"by": "hook"}
    assert store.sessions.create("new", metadata={"b": 2}).metadata == {"b": 2, "by": "hook"}
    actions = [("update", ["metadata"]), ("delete", ["keys"]), ("get", []), ("update", ["metadata"])]
    assert seen == actions
    assert store.sessions.create("plain").metadata == {}
    assert seen == actions


def test_a_metadata_hook_can_not_store_what_is_bad(open_either: Callable[..., Heedful]) -> None:
    def hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        return original_func({"$bad": 1} if action == "update" else ["$bad"])

    store = opened(open_either, None, hook)
    calls: list[Callable[[], Any]] = [
        lambda: store.sessions.update_metadata("s", {"a": 1}),
        lambda: store.sessions.delete_metadata("s", "a"),
    ]
    for call in calls:
        with pytest.raises(Invalid):
            call()


def test_analytics_count_what_stands(open_either: Callable[..., Heedful]) -> None:
    analytics = AnalyticsHook()
    with pytest.raises(Unavailable, match="not attached to a store"):
        analytics.get_metrics()
    store = opened(open_either, create_combined_hook(validation_hook, analytics))
    assert analytics.get_metrics()["total"] == 0
    for said in (
        {"rating": "up", "comment": "Excellent!"},
        {"rating": "down", "comment": "Could be better"},
        {"rating": "up", "comment": "Thanks!"},
        {"rating": None, "comment": ""},
    ):
        store.sessions.add_session_feedback("s", said)
    expected = {"total": 4, "positive": 2, "negative": 1, "neutral": 1, "avg_comment_length": 8.0}
    assert analytics.get_metrics() == expected
    other = AnalyticsHook()
    opened(open_either, other)
    assert other.get_metrics() == expected
    last = store.sessions.feedbacks("s", newest_first=True).items[0]
    store.retract(last.feedback_id)
    assert analytics.get_metrics() == other.get_metrics() == store.sessions.feedback_metrics().model_dump()
    assert other.get_metrics()["total"] == 3


def test_analytics_agree_with_another_process_and_after_reopening(
    path: Path, open_store: Callable[..., Heedful]
) -> None:
    program = """
import sys, heedful
from heedful.sessions.hooks import AnalyticsHook
from heedful.testing import WordEmbedder
hook = AnalyticsHook()
with heedful.open(sys.argv[1], embedding=WordEmbedder(), feedback_hook=hook) as store:
    store.sessions.create("s")
    store.sessions.add_session_feedback("s", {"rating": "down", "comment": "1234"})
    print(hook.get_metrics())
"""
    analytics = AnalyticsHook()
    with open_store(feedback_hook=analytics) as store:
        store.sessions.create("s")
        store.sessions.add_session_feedback("s", {"rating": "up", "comment": "12"})
        done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
        expected = {"total": 2, "positive": 1, "negative": 1, "neutral": 0, "avg_comment_length": 3.0}
        assert done.stdout.strip() == str(expected)
        assert analytics.get_metrics() == expected
    again = AnalyticsHook()
    open_store(feedback_hook=again)
    assert again.get_metrics() == expected


def test_an_alert_is_written_with_what_it_is_about(open_either: Callable[..., Heedful]) -> None:
    desk = Desk()
    store = opened(open_either, AlertHook(desk))
    kept = store.sessions.add_session_feedback("s", {"rating": "down", "comment": "no", "page": 3}, author="ann")
    assert kept is not None
    store.sessions.add_session_feedback("s", {"rating": "up"})
    (alert,) = store.sessions.alerts().items
    assert (alert.channel, alert.payload["project"], alert.payload["session_id"]) == ("desk", "default", "s")
    feedback = alert.payload["feedback"]
    assert (feedback["id"], feedback["rating"], feedback["comment"]) == (kept.feedback_id, "down", "no")
    assert (feedback["author"], feedback["page"]) == ("ann", 3)
    store.close()
    assert [payload["feedback"]["id"] for payload in desk.sent] == [kept.feedback_id]


def test_a_feedback_that_fails_leaves_no_alert(open_either: Callable[..., Heedful]) -> None:
    def spoil(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        return original_func({**kwargs["feedback"], "rating": "maybe"})

    desk = Desk()
    store = opened(open_either, create_combined_hook(AlertHook(desk), spoil))
    with pytest.raises(Invalid):
        store.sessions.add_session_feedback("s", {"rating": "down"})
    assert store.sessions.alerts().items == []
    assert ratings(store) == []
    store.close()
    assert desk.sent == []


def test_an_alert_that_can_not_be_written_leaves_no_feedback(
    open_either: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.sessions.mongo.outbox import MongoOutbox
    from heedful.sessions.sql_store import SqlOutbox

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    store = opened(open_either, AlertHook(Desk()))
    for outbox in (MongoOutbox, SqlOutbox):
        monkeypatch.setattr(outbox, "add", full)
    with pytest.raises(OSError, match="no space left"):
        store.sessions.add_session_feedback("s", {"rating": "down"})
    assert ratings(store) == []
    assert store.sessions.feedback_metrics().total == 0


def test_saying_the_same_again_alerts_once(open_either: Callable[..., Heedful]) -> None:
    store = opened(open_either, AlertHook(Desk()))
    entry = store.sessions.add_entry("s", "q", "a")
    for _ in range(2):
        store.sessions.add_feedback("s", entry.qa_id, "bad", 1)
        store.sessions.add_session_feedback("s", {"rating": "down"}, idempotency_key="k")
    assert len(store.sessions.alerts().items) == 2


def test_every_hook_may_alert_its_own_channel(open_either: Callable[..., Heedful]) -> None:
    class Other(Desk):
        name = "other"

    desk, other = Desk(), Other()
    always = AlertHook(other, when=lambda feedback: True)
    store = opened(open_either, create_combined_hook(AlertHook(desk), validation_hook, always))
    store.sessions.add_session_feedback("s", {"rating": "up"})
    store.sessions.add_session_feedback("s", {"rating": "down", "comment": "no"})
    assert sorted(alert.channel for alert in store.sessions.alerts().items) == ["desk", "other", "other"]


def test_an_alert_hook_without_a_channel_is_refused() -> None:
    with pytest.raises(Invalid) as error:
        AlertHook()
    assert error.value.field == "channels"


def test_what_one_call_alerts_of_is_no_matter_to_the_next(open_either: Callable[..., Heedful]) -> None:
    def fail(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        if kwargs["feedback"].get("comment") == "stop":
            raise RuntimeError("stop")
        return original_func(kwargs["feedback"])

    store = opened(open_either, create_combined_hook(AlertHook(Desk()), fail))
    with pytest.raises(RuntimeError):
        store.sessions.add_session_feedback("s", {"rating": "down", "comment": "stop"})
    store.sessions.add_session_feedback("s", {"rating": "up"})
    assert store.sessions.alerts().items == []
