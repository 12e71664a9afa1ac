"""Feedback on executions and messages: one opinion model, one history, one undo."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from cities import IN_ITALY, IN_ITALY_SQL, make_cities

from heedful import Heedful
from heedful.errors import Conflict, Invalid, NotFound
from heedful.testing import ManualClock


@pytest.fixture
def geo(store: Heedful, tmp_path: Path) -> Heedful:
    store.connectors.create("geo", make_cities(tmp_path).url)
    return store


@pytest.fixture
def run(geo: Heedful) -> str:
    return geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id


def message(store: Heedful, question: str = IN_ITALY) -> str:
    """The message of a chat that has SQL and was not run."""
    if not store.golden_examples.list():
        store.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    return store.chat.chat_to_sql(store.chat_sessions.create().id, question).chat_message_id


def events(path: Path) -> list[tuple[Any, ...]]:
    """Kind, target's type and value of every event of the ledger, in order."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        query = "SELECT kind, target_type, value FROM events ORDER BY seq"
        rows = [tuple(row) for row in connection.exec_driver_sql(query)]
    engine.dispose()
    return rows


def test_feedback_is_kept_as_it_was_given(geo: Heedful, run: str, clock: ManualClock) -> None:
    feedback = geo.feedback.create(is_positive=True, feedback="Right.", execution_id=run, author="ada")
    assert (feedback.is_positive, feedback.feedback, feedback.execution_id, feedback.author) == (
        True,
        "Right.",
        run,
        "ada",
    )
    assert feedback.chat_message_id is None
    assert feedback.created_at == feedback.updated_at == clock.now
    assert geo.feedback.get(feedback.id) == feedback


def test_the_helpers_say_right_and_wrong(geo: Heedful, run: str) -> None:
    right = geo.feedback.create_positive(feedback_text="good", execution_id=run)
    wrong = geo.feedback.create_negative(feedback="bad", execution_id=run)
    assert (right.is_positive, right.feedback) == (True, "good")
    assert (wrong.is_positive, wrong.feedback) == (False, "bad")
    assert geo.feedback.create_positive(execution_id=run).feedback is None


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("execution_id", {}),
        ("execution_id", {"execution_id": 7}),
        ("is_positive", {"execution_id": "run", "is_positive": 1}),
        ("is_positive", {"execution_id": "run", "is_positive": None}),
        ("feedback", {"execution_id": "run", "feedback": 7}),
        ("feedback", {"execution_id": "run", "feedback": "x" * 20_000}),
        ("feedback", {"execution_id": "run", "feedback": "\ud800"}),
        ("author", {"execution_id": "run", "author": 7}),
        ("idempotency_key", {"execution_id": "run", "idempotency_key": ""}),
    ],
)
def test_what_can_not_be_kept_is_refused(geo: Heedful, run: str, field: str, arguments: dict[str, Any]) -> None:
    values = {"is_positive": True, **arguments}
    if values.get("execution_id") == "run":
        values["execution_id"] = run
    with pytest.raises(Invalid) as refused:
        geo.feedback.create(**values)
    assert refused.value.field == field
    assert geo.feedback.list().total == 0


def test_what_is_not_there_can_not_be_rated(geo: Heedful, run: str) -> None:
    with pytest.raises(NotFound) as refused:
        geo.feedback.create_positive(execution_id="nope")
    assert refused.value.field == "execution_id"
    with pytest.raises(NotFound) as refused:
        geo.feedback.create_positive(execution_id=run, chat_message_id="nope")
    assert refused.value.field == "chat_message_id"
    for call in (geo.feedback.get, geo.feedback.update, geo.feedback.delete):
        with pytest.raises(NotFound):
            call("nope")
    assert geo.feedback.list().total == 0


def test_a_message_can_be_rated_before_its_sql_ran(geo: Heedful) -> None:
    name = message(geo)
    feedback = geo.feedback.create_negative(chat_message_id=name, feedback="not what I meant")
    assert (feedback.chat_message_id, feedback.execution_id) == (name, None)
    assert list(geo.feedback.get_feedback_for_message(name)) == [feedback]


def test_feedback_on_a_message_is_about_the_execution_it_has(geo: Heedful) -> None:
    name = message(geo)
    run = geo.executions.execute_from_chat(name).execution_id
    feedback = geo.feedback.create_positive(chat_message_id=name)
    assert (feedback.chat_message_id, feedback.execution_id) == (name, run)
    other = geo.feedback.create_positive(execution_id=run)
    assert other.chat_message_id == name
    assert geo.feedback.get_feedback_for_message(name).total == 2
    assert geo.feedback.get_feedback_for_message("nope").total == 0


def test_an_execution_and_the_message_of_another_do_not_go_together(geo: Heedful) -> None:
    first, second = message(geo), message(geo)
    run = geo.executions.execute_from_chat(first).execution_id
    with pytest.raises(Conflict):
        geo.feedback.create_positive(execution_id=run, chat_message_id=second)


def test_lists_are_newest_first_with_a_total(geo: Heedful, run: str) -> None:
    made = [geo.feedback.create(is_positive=n % 2 == 0, feedback=f"Number {n}", execution_id=run).id for n in range(5)]
    page = geo.feedback.list(skip=1, limit=2)
    assert ([each.id for each in page], page.total, page.skip, page.limit) == (made[3:1:-1], 5, 1, 2)
    assert (len(page), page[0].id) == (2, made[3])
    assert geo.feedback.list(skip=9).items == []
    assert geo.feedback.list(skip=9).total == 5
    right, wrong = geo.feedback.list_positive(limit=1), geo.feedback.list_negative(skip=1)
    assert ([each.id for each in right], right.total) == ([made[4]], 3)
    assert ([each.id for each in wrong], wrong.total) == ([made[1]], 2)


@pytest.mark.parametrize(
    ("search", "found"),
    [("PRICE", 1), ("100%", 1), ("%", 1), ("_", 0), ("nothing", 0), ("größe", 1)],
)
def test_search_finds_text_in_any_case_and_takes_signs_as_they_are(
    geo: Heedful, run: str, search: str, found: int
) -> None:
    for text in ("the price is 100% right", "Größe fehlt", None):
        geo.feedback.create_negative(feedback=text, execution_id=run)
    page = geo.feedback.list(search=search)
    assert (page.total, len(page)) == (found, found)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("skip", {"skip": -1}),
        ("skip", {"skip": 1.5}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": 10**9}),
        ("limit", {"limit": True}),
        ("search", {"search": 7}),
    ],
)
def test_pages_that_are_none_are_refused(geo: Heedful, field: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        geo.feedback.list(**arguments)
    assert refused.value.field == field


def test_updating_changes_what_is_given_and_none_clears(geo: Heedful, run: str, clock: ManualClock) -> None:
    feedback = geo.feedback.create_positive(feedback_text="good", execution_id=run, author="ada")
    clock.advance(hours=1)
    flipped = geo.feedback.update(feedback.id, is_positive=False)
    assert (flipped.is_positive, flipped.feedback, flipped.author) == (False, "good", "ada")
    assert (flipped.id, flipped.created_at, flipped.updated_at) == (feedback.id, feedback.created_at, clock.now)
    assert geo.feedback.update(feedback.id, feedback="because").is_positive is False
    assert geo.feedback.update(feedback.id, feedback=None).feedback is None
    assert geo.feedback.get(feedback.id).is_positive is False
    with pytest.raises(Invalid):
        geo.feedback.update(feedback.id, is_positive="yes")  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        geo.feedback.update(feedback.id, feedback=7)  # type: ignore[arg-type]


def test_an_update_that_changes_nothing_leaves_no_event(geo: Heedful, run: str, path: Path) -> None:
    feedback = geo.feedback.create_positive(feedback_text="good", execution_id=run)
    before = events(path)
    assert geo.feedback.update(feedback.id, feedback="good", is_positive=True) == feedback
    assert geo.feedback.update(feedback.id) == feedback
    assert events(path) == before


def test_updates_at_the_same_time_do_not_overwrite_each_other(
    geo: Heedful, run: str, open_store: Callable[..., Heedful]
) -> None:
    second = open_store()
    for number in range(10):
        feedback = geo.feedback.create_positive(feedback_text="before", execution_id=run)
        with ThreadPoolExecutor(2) as threads:
            done = [
                threads.submit(geo.feedback.update, feedback.id, feedback=f"after {number}"),
                threads.submit(second.feedback.update, feedback.id, is_positive=False),
            ]
            for each in done:
                each.result()
        stored = geo.feedback.get(feedback.id)
        assert (stored.feedback, stored.is_positive) == (f"after {number}", False)


def test_deleting_takes_it_back_once(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create_positive(execution_id=run)
    assert geo.feedback.delete(feedback.id) is True
    with pytest.raises(NotFound):
        geo.feedback.get(feedback.id)
    with pytest.raises(NotFound):
        geo.feedback.delete(feedback.id)


def test_bulk_delete_says_what_it_did(geo: Heedful, run: str) -> None:
    made = [geo.feedback.create_positive(execution_id=run).id for _ in range(3)]
    done = geo.feedback.bulk_delete([made[0], "nope", made[1], made[1]])
    assert (done.deleted_count, done.failed_ids) == (2, ["nope"])
    assert (done["deleted_count"], done["failed_ids"]) == (2, ["nope"])
    assert [each.id for each in geo.feedback.list()] == [made[2]]
    assert geo.feedback.bulk_delete([]).deleted_count == 0


@pytest.mark.parametrize("ids", ["abc", None, {"a"}, 7, [7], ["x"] * 10_001])
def test_bulk_delete_takes_a_list_of_ids(geo: Heedful, ids: Any) -> None:
    with pytest.raises(Invalid) as refused:
        geo.feedback.bulk_delete(ids)
    assert refused.value.field == "feedback_ids"


def test_a_bad_id_in_a_bulk_delete_deletes_nothing(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create_positive(execution_id=run)
    with pytest.raises(Invalid):
        geo.feedback.bulk_delete([feedback.id, 7])  # type: ignore[list-item]
    assert geo.feedback.get(feedback.id) == feedback


def test_an_author_has_one_opinion_and_nobody_has_many(geo: Heedful, run: str, clock: ManualClock) -> None:
    first = geo.feedback.create_positive(feedback_text="good", execution_id=run, author="ada")
    clock.advance(hours=1)
    second = geo.feedback.create_negative(execution_id=run, author="ada")
    assert second.id == first.id
    assert (second.is_positive, second.feedback, second.updated_at) == (False, None, clock.now)
    geo.feedback.create_positive(execution_id=run, author="bob")
    assert geo.feedback.list().total == 2
    for _ in range(2):
        geo.feedback.create_positive(execution_id=run)
    assert geo.feedback.list().total == 4


def test_an_author_has_an_opinion_of_each_execution(geo: Heedful, run: str) -> None:
    other = geo.executions.execute_query("SELECT 1").execution_id
    for each in (run, other):
        geo.feedback.create_positive(execution_id=each, author="ada")
    assert geo.feedback.list().total == 2


@pytest.mark.slow
def test_retract_is_the_same_undo(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create_negative(execution_id=run)
    undone = geo.retract(feedback.id, author="ada")
    assert (undone.retracted, undone.updated_facts) == (feedback.id, [])
    assert geo.feedback.list().total == 0
    with pytest.raises((NotFound, Conflict)):
        geo.feedback.get(feedback.id)


def test_a_feedback_that_was_updated_is_taken_back_whole(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create_positive(execution_id=run)
    geo.feedback.update(feedback.id, is_positive=False)
    geo.retract(feedback.id)
    assert geo.feedback.list().total == 0
    assert geo.chat.execution_cache_lookup(IN_ITALY).matches[0].has_feedback is False


def versions(store: Heedful) -> list[tuple[Any, ...]]:
    """Every version of every opinion: id, rating, comment and whether it is active."""
    rows = store.insight.rows("feedback").items
    assert len({row["event_id"] for row in rows}) == len(rows)
    return [(row["feedback_id"], row["rating"], row["comment"], row["active"]) for row in rows]


@pytest.mark.slow
def test_what_was_replaced_or_retracted_stays_and_is_not_active(geo: Heedful, run: str, clock: ManualClock) -> None:
    feedback = geo.feedback.create_positive(feedback_text="Right.", execution_id=run, author="ada")
    clock.advance(days=1)
    geo.feedback.create_negative(feedback="One is missing.", execution_id=run, author="ada")
    assert geo.feedback.update(feedback.id, feedback="Two are missing.").created_at == feedback.created_at
    geo.retract(feedback.id)
    assert versions(geo) == [
        (feedback.id, "up", "Right.", False),
        (feedback.id, "down", "One is missing.", False),
        (feedback.id, "down", "Two are missing.", False),
    ]
    # As with what is said of an answer, which gets another id.
    entry = geo.sessions.add_entry("s", "q", "a")
    geo.sessions.add_feedback("s", entry.qa_id, "Good.", 5, author="ada")
    geo.sessions.add_feedback("s", entry.qa_id, "Bad.", 1, author="ada")
    geo.sessions.delete_feedback("s", entry.qa_id)
    assert [row[1:] for row in versions(geo)[3:]] == [("up", "Good.", False), ("down", "Bad.", False)]
    assert geo.insight.satisfaction("target_type").variants == []
    assert not [check for check in geo.doctor() if not check.ok or check.repaired]


def test_each_version_is_retracted_once(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create_positive(execution_id=run, author="ada")
    geo.feedback.update(feedback.id, is_positive=False)
    geo.feedback.update(feedback.id, is_positive=True)
    first, second, third = (row["event_id"] for row in geo.insight.rows("feedback").items)
    assert first == feedback.id
    replaced = geo.retract(second)
    assert geo.feedback.get(feedback.id).is_positive
    assert geo.retract(second) == replaced
    last = geo.retract(third)
    assert (geo.retract(third), geo.retract(feedback.id).event_id) == (last, last.event_id)
    assert geo.feedback.list().total == 0


def test_deleting_removes_the_words_of_every_version(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create_negative(feedback="No.", execution_id=run, author="bob")
    said = geo.feedback.create_positive(feedback_text="Right.", execution_id=run, author="ada")
    geo.feedback.update(said.id, feedback="Quite right.")
    geo.feedback.delete(said.id)
    assert versions(geo) == [
        (feedback.id, "down", "No.", True),
        (said.id, "up", None, False),
        (said.id, "up", None, False),
    ]


def test_a_retry_with_the_same_key_says_it_once(geo: Heedful, run: str) -> None:
    opinions = [geo.feedback.create(is_positive=True, execution_id=run, idempotency_key="k") for _ in range(2)]
    assert opinions[0] == opinions[1]
    assert geo.feedback.list().total == 1
    with pytest.raises(Conflict) as refused:
        geo.feedback.create(is_positive=False, execution_id=run, idempotency_key="k")
    assert refused.value.code == "idempotency_key_reused"


def test_a_key_is_remembered_for_an_opinion_that_replaced_another(geo: Heedful, run: str, path: Path) -> None:
    def say(is_positive: bool, key: str) -> bool:
        return geo.feedback.create(
            is_positive=is_positive, execution_id=run, author="ada", idempotency_key=key
        ).is_positive

    assert say(True, "first") is True
    assert say(False, "second") is False
    before = events(path)
    say(False, "second")
    assert events(path) == before
    # A late retry of the first call must not bring the old opinion back.
    assert say(True, "first") is False
    assert geo.feedback.list()[0].is_positive is False
    assert events(path) == before


def test_a_late_retry_of_what_was_changed_since_gives_what_stands(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create(is_positive=True, execution_id=run, idempotency_key="k")
    changed = geo.feedback.update(feedback.id, is_positive=False)
    assert geo.feedback.create(is_positive=True, execution_id=run, idempotency_key="k") == changed


def test_a_retry_after_it_was_taken_back_is_refused(geo: Heedful, run: str) -> None:
    feedback = geo.feedback.create(is_positive=True, execution_id=run, idempotency_key="k")
    geo.feedback.delete(feedback.id)
    with pytest.raises(Conflict) as refused:
        geo.feedback.create(is_positive=True, execution_id=run, idempotency_key="k")
    assert refused.value.field == "idempotency_key"
    assert geo.feedback.list().total == 0


def test_the_ledger_keeps_every_version(geo: Heedful, run: str, path: Path) -> None:
    feedback = geo.feedback.create_positive(feedback_text="secret words", execution_id=run)
    geo.feedback.update(feedback.id, is_positive=False)
    geo.feedback.delete(feedback.id)
    assert [event[:2] for event in events(path)] == [
        ("feedback", "execution"),
        ("retraction", "event"),
        ("feedback", "execution"),
        ("retraction", "event"),
    ]
    assert [event[2] for event in events(path)][::2] == ["up", "down"]


def test_feedback_on_answers_is_not_feedback_on_executions(geo: Heedful) -> None:
    geo.remember("Parcels may be returned within 30 days.")
    entry = geo.sessions.add_entry("s", "When may parcels be returned?", "Within 30 days.")
    geo.sessions.add_feedback("s", entry.qa_id, feedback_score=5)
    assert geo.feedback.list().total == 0
