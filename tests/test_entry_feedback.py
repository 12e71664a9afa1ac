"""Feedback on answers: scores and words, given, replaced and retracted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from heedful import Conflict, Entry, Heedful, HeedfulError, Invalid, NotFound
from heedful.testing import ManualClock

Ledger = Callable[[], list[tuple[str, str | None]]]


@pytest.fixture(params=["sqlite", "mongodb"])
def kept(request: pytest.FixtureRequest, path: Path) -> tuple[Heedful, Ledger]:
    """A store, and a look at its ledger of feedback: (kind, value) in order."""
    if request.param == "sqlite":
        store: Heedful = request.getfixturevalue("open_store")()

        def rows() -> list[tuple[str, str | None]]:
            with sqlite3.connect(path) as connection:
                return connection.execute("SELECT kind, value FROM events ORDER BY seq").fetchall()

        return store, rows
    url = request.getfixturevalue("mongodb_url")
    store = request.getfixturevalue("open_store")(sessions=url)

    def documents() -> list[tuple[str, str | None]]:
        with MongoClient[dict[str, Any]](url) as client:
            found = client.get_default_database()["events"].find(sort=[("session", 1), ("seq", 1)])
            return [(each["kind"], each["value"]) for each in found]

    return store, documents


@pytest.fixture
def entry(either: Heedful) -> Entry:
    return either.sessions.add_entry("s", "When?", "Within 30 days.")


@pytest.fixture
def plain(store: Heedful) -> Entry:
    """An entry for what is refused before any store of sessions is asked."""
    return store.sessions.add_entry("s", "When?", "Within 30 days.")


def stored_feedback(store: Heedful, entry: Entry) -> tuple[int | None, str | None]:
    found = store.sessions.entry("s", entry.qa_id)
    return found.feedback_score, found.feedback_text


@pytest.mark.parametrize("score", [1, 2, 3, 4, 5])
def test_an_answer_is_rated_from_1_to_5(either: Heedful, entry: Entry, score: int) -> None:
    assert either.sessions.add_feedback("s", entry.qa_id, feedback_score=score) is True
    assert stored_feedback(either, entry) == (score, None)
    metrics = either.sessions.feedback_metrics()
    assert (metrics.negative, metrics.neutral, metrics.positive) == (score < 3, score == 3, score > 3)
    assert either.sessions.entries("s").items[0].feedback_score == score


def test_words_alone_are_feedback(either: Heedful, entry: Entry) -> None:
    assert either.sessions.add_feedback("s", entry.qa_id, "Für mich: 👍\nשלום") is True
    assert stored_feedback(either, entry) == (None, "Für mich: 👍\nשלום")
    assert either.sessions.feedback_metrics().neutral == 1


@pytest.mark.parametrize("score", [0, 6, -1, True, False, 3.0, "5", float("nan"), 10**30, [5]])
def test_a_score_that_is_none_is_an_error_and_never_false(store: Heedful, plain: Entry, score: Any) -> None:
    for qa_id in (plain.qa_id, "nope"):
        with pytest.raises(Invalid) as error:
            store.sessions.add_feedback("s", qa_id, "good", score)
        assert error.value.field == "feedback_score"
        assert error.value.remedy == "Use 1 (worst) to 5 (best)"
    assert stored_feedback(store, plain) == (None, None)


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_neither_a_score_nor_words_is_an_error(store: Heedful, plain: Entry, text: str | None) -> None:
    store.sessions.add_feedback("s", plain.qa_id, "before", 3)
    with pytest.raises(Invalid, match="feedback_text and feedback_score are both missing"):
        store.sessions.add_feedback("s", plain.qa_id, text)
    assert stored_feedback(store, plain) == (3, "before")


@pytest.mark.parametrize("text", [5, b"good", ["good"], "x" * 10_001, "\0", "\ud800"])
def test_what_is_no_text_is_refused(store: Heedful, plain: Entry, text: Any) -> None:
    with pytest.raises(Invalid) as error:
        store.sessions.add_feedback("s", plain.qa_id, text, 5)
    assert error.value.field == "feedback_text"
    assert stored_feedback(store, plain) == (None, None)


@pytest.mark.parametrize("author", [5, "\0", "\ud800", ["ann"]])
def test_an_author_is_a_text(store: Heedful, plain: Entry, author: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: store.sessions.add_feedback("s", plain.qa_id, feedback_score=5, author=author),
        lambda: store.sessions.delete_feedback("s", plain.qa_id, author=author),
    ]
    for call in calls:
        with pytest.raises(Invalid) as error:
            call()
        assert error.value.field == "author"


@pytest.mark.parametrize("qa_id", [None, 5, "\0", "\ud800"])
def test_the_id_of_an_entry_is_a_text(store: Heedful, plain: Entry, qa_id: Any) -> None:
    with pytest.raises(Invalid) as error:
        store.sessions.add_feedback("s", qa_id, feedback_score=5)
    assert error.value.field == "qa_id"


def test_false_where_the_entry_is_not_there(either: Heedful, entry: Entry) -> None:
    either.sessions.create("t")
    for session, qa_id in (("s", "nope"), ("t", entry.qa_id), ("nowhere", entry.qa_id)):
        assert either.sessions.add_feedback(session, qa_id, feedback_score=5) is False
        assert either.sessions.delete_feedback(session, qa_id) is False
    with pytest.raises(Invalid):
        either.sessions.add_feedback("s", "", feedback_score=5)
    assert not either.sessions.exists("nowhere")
    assert either.sessions.feedback_metrics().total == 0


def test_rating_again_replaces_all_that_was_said(either: Heedful, entry: Entry) -> None:
    either.sessions.add_feedback("s", entry.qa_id, "bad", 1)
    either.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
    assert stored_feedback(either, entry) == (5, None)
    either.sessions.add_feedback("s", entry.qa_id, "fine after all")
    assert stored_feedback(either, entry) == (None, "fine after all")
    assert either.sessions.feedback_metrics().total == 1


def test_every_author_has_one_opinion_and_the_entry_shows_the_latest(
    either: Heedful, entry: Entry, clock: ManualClock
) -> None:
    for author, score in (("ann", 1), ("bo", 2), (None, 3), ("ann", 5), ("cy", 4)):
        clock.advance(seconds=1)
        either.sessions.add_feedback("s", entry.qa_id, feedback_score=score, author=author)
        assert stored_feedback(either, entry)[0] == score
    metrics = either.sessions.feedback_metrics()
    assert (metrics.total, metrics.positive, metrics.neutral, metrics.negative) == (4, 2, 1, 1)


def test_the_latest_is_the_one_given_last_even_if_the_clock_went_back(
    either: Heedful, entry: Entry, clock: ManualClock
) -> None:
    either.sessions.add_feedback("s", entry.qa_id, feedback_score=1, author="ann")
    clock.advance(days=-2)
    either.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author="bo")
    assert stored_feedback(either, entry) == (5, None)
    either.sessions.add_feedback("s", entry.qa_id, feedback_score=4, author="ann")
    assert stored_feedback(either, entry) == (4, None)


def test_deleting_clears_both_and_leaves_the_entry(either: Heedful, entry: Entry) -> None:
    either.sessions.add_feedback("s", entry.qa_id, "bad", 1)
    assert either.sessions.delete_feedback("s", entry.qa_id) is True
    assert either.sessions.entry("s", entry.qa_id) == entry
    assert either.sessions.delete_feedback("s", entry.qa_id) is False
    assert either.sessions.feedback_metrics().total == 0
    assert either.sessions.add_feedback("s", entry.qa_id, feedback_score=2) is True
    assert stored_feedback(either, entry) == (2, None)


def test_an_author_deletes_what_he_said_and_nobody_in_particular_deletes_all(either: Heedful, entry: Entry) -> None:
    for author, score in (("ann", 1), ("bo", 5), (None, 3)):
        either.sessions.add_feedback("s", entry.qa_id, feedback_score=score, author=author)
    assert either.sessions.delete_feedback("s", entry.qa_id, author="cy") is False
    assert either.sessions.feedback_metrics().total == 3
    assert either.sessions.delete_feedback("s", entry.qa_id, author="bo") is True
    assert either.sessions.feedback_metrics().total == 2
    assert stored_feedback(either, entry) == (3, None)
    either.sessions.delete_feedback("s", entry.qa_id)
    assert either.sessions.feedback_metrics().total == 0


def test_the_ledger_keeps_what_was_said_and_taken_back(kept: tuple[Heedful, Ledger]) -> None:
    store, ledger = kept
    entry = store.sessions.add_entry("s", "q", "a")
    store.sessions.add_feedback("s", entry.qa_id, "secret words", 1)
    store.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
    store.sessions.delete_feedback("s", entry.qa_id)
    history = [("feedback", "1"), ("retraction", None), ("feedback", "5"), ("retraction", None)]
    # A replacement and the retraction of what it replaces are one change: their order among themselves is no matter.
    assert sorted(ledger(), key=str) == sorted(history, key=str)
    store.sessions.delete("s")
    assert sorted(ledger(), key=str) == sorted(history, key=str)


def test_saying_the_same_again_makes_no_event(kept: tuple[Heedful, Ledger]) -> None:
    store, ledger = kept
    entry = store.sessions.add_entry("s", "q", "a")
    for _ in range(3):
        assert store.sessions.add_feedback("s", entry.qa_id, "good", 5, author="ann") is True
    assert ledger() == [("feedback", "5")]
    store.sessions.delete_feedback("s", entry.qa_id)
    store.sessions.add_feedback("s", entry.qa_id, "good", 5, author="ann")
    assert len(ledger()) == 3


def test_an_opinion_that_fails_leaves_no_event(kept: tuple[Heedful, Ledger]) -> None:
    store, ledger = kept
    entry = store.sessions.add_entry("s", "q", "a")
    with pytest.raises(Invalid):
        store.sessions.add_feedback("s", entry.qa_id, feedback_score=6)
    store.sessions.add_feedback("s", "nope", feedback_score=5)
    assert ledger() == []


def test_a_feedback_is_taken_back_by_its_id(open_either: Callable[..., Heedful]) -> None:
    ids: list[str] = []

    def note(original: Any, action: str, session_id: str, **kwargs: Any) -> Any:
        ids.append(original(kwargs["feedback"]))
        return ids[-1]

    store = open_either(feedback_hook=note)
    entry = store.sessions.add_entry("s", "q", "a")
    store.sessions.add_feedback("s", entry.qa_id, feedback_score=5, author="ann")
    store.sessions.add_feedback("s", entry.qa_id, feedback_score=1, author="bo")
    first = store.retract(ids[1], author="moderator")
    assert first.retracted == ids[1]
    assert stored_feedback(store, entry) == (5, None)
    assert store.retract(ids[1]).event_id == first.event_id
    assert store.sessions.feedback_metrics().total == 1
    with pytest.raises(NotFound):
        store.retract("nope")
    with pytest.raises((Conflict, NotFound)):
        store.retract(first.event_id)
    store.sessions.delete("s")
    with pytest.raises((Conflict, NotFound)):
        store.retract(ids[0])


def test_threads_of_one_author_leave_one_opinion(either: Heedful, entry: Entry) -> None:
    def rate(number: int) -> bool:
        return either.sessions.add_feedback("s", entry.qa_id, feedback_score=number % 5 + 1, author="ann")

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(rate, range(18)))
    assert either.sessions.feedback_metrics().total == 1


def test_threads_of_many_authors_lose_no_opinion(open_either: Callable[..., Heedful]) -> None:
    stores = [open_either(), open_either()]
    entry = stores[0].sessions.add_entry("s", "q", "a")

    def rate(number: int) -> bool:
        return stores[number % 2].sessions.add_feedback("s", entry.qa_id, feedback_score=5, author=str(number))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(rate, range(20)))
    assert stores[0].sessions.feedback_metrics().positive == 20


def test_rating_while_the_session_is_deleted_leaves_nothing_behind(either: Heedful) -> None:
    entries = [either.sessions.add_entry("s", f"q{n}", "a") for n in range(8)]

    def rate(entry: Entry) -> bool | None:
        try:
            return either.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
        except HeedfulError:
            return None

    with ThreadPoolExecutor(4) as pool:
        rated = [pool.submit(rate, entry) for entry in entries]
        pool.submit(either.sessions.delete, "s").result()
        assert {each.result() for each in rated} <= {True, False}
    assert either.sessions.feedback_metrics().total == 0
    assert either._project.sessions.store.check() == "ok"
