"""Feedback on whole sessions: up, down or neutral, with a comment and whatever else is worth keeping."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pymongo import MongoClient

from heedful import Conflict, Feedback, Heedful, Invalid, NotFound
from heedful.testing import ManualClock


@pytest.fixture
def session(either: Heedful) -> Heedful:
    either.sessions.create("s")
    return either


@pytest.fixture
def plain(store: Heedful) -> Heedful:
    """A session for what is refused before any store of sessions is asked."""
    store.sessions.create("s")
    return store


def give(store: Heedful, feedback: Any, **options: Any) -> Feedback:
    kept = store.sessions.add_session_feedback("s", feedback, **options)
    assert kept is not None
    return kept


def active(store: Heedful) -> list[Feedback]:
    return store.sessions.feedbacks("s").items


@pytest.mark.parametrize(
    ("value", "rating", "comment"),
    [
        ({"rating": "up", "comment": "The response was very helpful!"}, "up", "The response was very helpful!"),
        ({"rating": "down", "comment": "The answer was incomplete"}, "down", "The answer was incomplete"),
        ({"rating": None, "comment": "Just saving this for later"}, None, "Just saving this for later"),
        ({"rating": "up", "comment": ""}, "up", ""),
        ({"rating": "up"}, "up", ""),
        ({"rating": "down", "comment": None}, "down", ""),
        ({"rating": None}, None, ""),
        ({"comment": "no rating"}, None, "no rating"),
        ({"rating": "up", "comment": "  שלום 👍 "}, "up", "  שלום 👍 "),
    ],
)
def test_a_session_is_rated(
    session: Heedful, clock: ManualClock, value: dict[str, Any], rating: str | None, comment: str
) -> None:
    before = dict(value)
    feedback = give(session, value)
    assert (feedback.rating, feedback.comment, feedback.created_at) == (rating, comment, clock.now)
    assert (feedback.session_id, feedback.target_type, feedback.target_id) == ("s", "session", "s")
    assert (feedback.score, feedback.author, feedback.extra) == (None, None, {})
    assert active(session) == [feedback]
    assert value == before


@pytest.mark.parametrize("rating", ["maybe", "", 1, 0, 0.9, ["up"], b"up"])
def test_an_unknown_rating_is_refused(plain: Heedful, rating: Any) -> None:
    with pytest.raises(ValueError, match="invalid rating") as error:
        give(plain, {"rating": rating, "comment": "x"})
    assert isinstance(error.value, Invalid)
    assert error.value.field == "rating"
    assert active(plain) == []


@pytest.mark.parametrize("comment", [5, True, b"x", ["x"], {"x": 1}, "x" * 10_001, "\0", "\ud800"])
def test_a_comment_is_text(plain: Heedful, comment: Any) -> None:
    with pytest.raises(Invalid) as error:
        give(plain, {"rating": "up", "comment": comment})
    assert error.value.field == "comment"
    assert active(plain) == []


@pytest.mark.parametrize("feedback", [None, "up", 5, ["up"], {}, {"thumbs": True, "text": "good"}, {"comment": " "}])
def test_what_says_nothing_is_no_feedback(plain: Heedful, feedback: Any) -> None:
    with pytest.raises(Invalid) as error:
        give(plain, feedback)
    assert error.value.field == "feedback"
    assert active(plain) == []


def test_more_keys_are_kept_beside(session: Heedful) -> None:
    extra = {"_validated_at": "2024-01-22", "page": {"n": 3, "path": ["a", None, 1.5]}, "ünï": True}
    assert give(session, {"rating": "up", "comment": "x", **extra}).extra == extra
    assert active(session)[0].extra == extra


@pytest.mark.parametrize(
    "extra", [{"$set": 1}, {"a.b": 1}, {"": 1}, {"a": {"$b": 1}}, {"a": object()}, {"a": float("nan")}, {5: 1}]
)
def test_more_keys_are_names(plain: Heedful, extra: Any) -> None:
    with pytest.raises(Invalid) as error:
        give(plain, {"rating": "up", **extra})
    assert error.value.field == "feedback"
    assert active(plain) == []


@pytest.mark.slow
def test_time_and_id_are_set_by_the_store(session: Heedful, clock: ManualClock) -> None:
    feedback = give(session, {"rating": "up", "created_at": "1999-01-01", "id": "mine", "feedback_id": "mine"})
    assert feedback.created_at == clock.now
    assert feedback.feedback_id != "mine"
    assert feedback.extra == {}


def test_without_an_author_each_is_kept(session: Heedful) -> None:
    remaining = [give(session, {"rating": "up", "comment": "same"}) for _ in range(3)]
    assert active(session) == remaining
    assert len({each.feedback_id for each in remaining}) == 3


def test_an_author_has_one_opinion_the_latest(session: Heedful) -> None:
    give(session, {"rating": "up"}, author="ann")
    other = give(session, {"rating": "up"}, author="bo")
    latest = give(session, {"rating": "down", "comment": "no"}, author="ann")
    nobody = give(session, {"rating": None, "comment": "hm"})
    assert active(session) == [other, latest, nobody]
    metrics = session.sessions.feedback_metrics()
    assert (metrics.total, metrics.positive, metrics.negative, metrics.neutral) == (3, 1, 1, 1)
    assert metrics.avg_comment_length == pytest.approx((0 + 2 + 2) / 3)


def test_a_call_sent_again_counts_once(session: Heedful, clock: ManualClock) -> None:
    first = give(session, {"rating": "up", "comment": "x"}, idempotency_key="k")
    clock.advance(hours=1)
    assert give(session, {"rating": "up", "comment": "x"}, idempotency_key="k") == first
    assert active(session) == [first]
    for changed in ({"rating": "down", "comment": "x"}, {"rating": "up", "comment": "y"}):
        with pytest.raises(Conflict, match="'k' was used for another feedback"):
            give(session, changed, idempotency_key="k")
    with pytest.raises(Conflict):
        give(session, {"rating": "up", "comment": "x"}, idempotency_key="k", author="ann")
    session.sessions.create("t")
    with pytest.raises(Conflict):
        session.sessions.add_session_feedback("t", {"rating": "up", "comment": "x"}, idempotency_key="k")
    assert active(session) == [first]


def test_a_late_retry_does_not_bring_back_what_was_replaced(session: Heedful) -> None:
    give(session, {"rating": "up"}, author="ann", idempotency_key="k")
    latest = give(session, {"rating": "down"}, author="ann")
    give(session, {"rating": "up"}, author="ann", idempotency_key="k")
    assert active(session) == [latest]


def test_a_key_whose_session_was_deleted_is_a_conflict(session: Heedful) -> None:
    give(session, {"rating": "up"}, idempotency_key="k")
    session.sessions.delete("s")
    session.sessions.create("s")
    with pytest.raises(Conflict, match="deleted with its session"):
        give(session, {"rating": "up"}, idempotency_key="k")
    assert active(session) == []


@pytest.mark.parametrize("key", ["", " ", "x" * 201, 5, "\0"])
def test_a_key_is_a_name(plain: Heedful, key: Any) -> None:
    with pytest.raises(Invalid) as error:
        give(plain, {"rating": "up"}, idempotency_key=key)
    assert error.value.field == "idempotency_key"


def test_threads_with_one_key_give_one_feedback(open_either: Callable[..., Heedful]) -> None:
    stores = [open_either(), open_either()]
    stores[0].sessions.create("s")

    def rate(number: int) -> str:
        return give(stores[number % 2], {"rating": "up"}, idempotency_key="k").feedback_id

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(rate, range(12)))) == 1
    assert len(active(stores[0])) == 1


def test_a_session_that_is_not_there_is_not_rated(either: Heedful) -> None:
    with pytest.raises(NotFound) as error:
        either.sessions.add_session_feedback("s", {"rating": "up"})
    assert error.value.field == "session_id"
    with pytest.raises(NotFound):
        either.sessions.feedbacks("s")
    assert not either.sessions.exists("s")


def test_feedbacks_come_in_pages_both_ways(session: Heedful) -> None:
    remaining = [give(session, {"rating": "up", "comment": str(number)}) for number in range(7)]
    session.sessions.create("t")
    session.sessions.add_session_feedback("t", {"rating": "down"})
    for newest_first in (False, True):
        result: list[Feedback] = []
        cursor = None
        while True:
            page = session.sessions.feedbacks("s", limit=3, cursor=cursor, newest_first=newest_first)
            result += page.items
            if (cursor := page.next_cursor) is None:
                break
        assert result == (remaining[::-1] if newest_first else remaining)


def test_ratings_of_answers_are_not_among_them(session: Heedful) -> None:
    entry = session.sessions.add_entry("s", "q", "a")
    session.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
    feedback = give(session, {"rating": "down"})
    assert active(session) == [feedback]
    assert session.sessions.feedback_metrics().total == 2


def test_an_entry_with_the_name_of_a_session_is_not_mistaken_for_it(either: Heedful) -> None:
    entry = either.sessions.add_entry("s", "q", "a")
    either.sessions.create(entry.qa_id)
    either.sessions.add_session_feedback(entry.qa_id, {"rating": "down"}, author="ann")
    either.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author="ann")
    assert [each.rating for each in either.sessions.feedbacks(entry.qa_id).items] == ["down"]
    assert either.sessions.feedback_metrics().total == 2
    either.sessions.delete_feedback("s", entry.qa_id)
    assert either.sessions.feedback_metrics().negative == 1


def test_a_feedback_is_taken_back_by_its_id(session: Heedful) -> None:
    first, second = give(session, {"rating": "up"}), give(session, {"rating": "down"})
    retraction = session.retract(first.feedback_id, author="moderator")
    assert retraction.retracted == first.feedback_id
    assert session.retract(first.feedback_id) == retraction.model_copy(update={"updated_facts": []})
    assert active(session) == [second]


def test_satisfaction_can_be_worked_out_as_documented(session: Heedful) -> None:
    for rating in ("up", "down", "up", None):
        give(session, {"rating": rating, "comment": "c"})
    found = active(session)
    assert sum(each.rating == "up" for each in found) / len(found) == 0.5
    assert [each.comment for each in found if each.rating == "down"] == ["c"]


def test_a_mongodb_can_be_asked_directly(open_store: Callable[..., Heedful], mongodb_url: str) -> None:
    store = open_store(sessions=mongodb_url)
    store.sessions.create("a", metadata={"experiment": "prompt_v2", "variant": "B"})
    store.sessions.create("b", metadata={"experiment": "prompt_v2", "variant": "B"})
    store.sessions.create("c", metadata={"variant": "A"})
    store.sessions.add_session_feedback("a", {"rating": "up", "comment": "Much better than before!"})
    store.sessions.add_session_feedback("b", {"rating": "down"})
    store.sessions.add_session_feedback("c", {"rating": "up"})
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        sessions = client.get_default_database()["sessions"]
        (found,) = sessions.find({"metadata.variant": "B", "feedbacks.rating": "up"})
    assert found["session_id"] == "a"
    (shown,) = found["feedbacks"]
    assert (shown["rating"], shown["comment"]) == ("up", "Much better than before!")
    assert shown["created_at"].isoformat()
