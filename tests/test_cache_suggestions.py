"""What the cache suggests where it may not decide, and what confirming it does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful import Heedful
from heedful.errors import Conflict, Unavailable
from heedful.model import CacheSuggestion
from heedful.testing import ScriptedModel

SQL = "SELECT phone FROM staff WHERE name = '{}'"
PROVEN = "What is the private mobile phone contact of {}?"
ASKED = "the private mobile phone contact of Cy Moss, quickly"


@pytest.fixture
def shop(store: Heedful, tmp_path: Path) -> Heedful:
    """A shop with two proven questions about its staff."""
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.executescript(
            "CREATE TABLE staff (name TEXT, phone TEXT);"
            "INSERT INTO staff VALUES ('Ann Lee', '1'), ('Bob Ray', '2'), ('Cy Moss', '3');"
        )
    store.connectors.create("shop", f"sqlite:///{tmp_path / 'shop.sqlite'}")
    for name in ("Ann Lee", "Bob Ray"):
        done = store.executions.execute_query(
            SQL.format(name), question=f"What is the private mobile phone contact of {name}?"
        )
        store.feedback.create_positive(execution_id=done.execution_id, author=f"author of {name}")
    return store


def test_one_likely_reading_is_suggested_with_the_values_of_the_question(shop: Heedful) -> None:
    result = shop.chat.execution_cache_lookup(ASKED)
    assert not result.cache_hit
    assert result.suggestion is not None
    assert result.suggestion.question == "What is the private mobile phone contact of Cy Moss?"
    assert result.suggestion.sql_query == SQL.format("Cy Moss")


def suggested(shop: Heedful) -> CacheSuggestion:
    likely = shop.chat.execution_cache_lookup(ASKED).suggestion
    assert likely is not None
    return likely


def test_an_answer_without_a_model_is_the_suggestion_and_runs_nothing(shop: Heedful) -> None:
    session, ran = shop.chat_sessions.create().id, len(shop.executions.list().items)
    answer = shop.chat.chat_to_answer(session, ASKED)
    assert answer.answer == "Did you mean: What is the private mobile phone contact of Cy Moss?"
    assert (answer.origin, answer.execution_result) == ("suggested", None)
    assert answer.suggestion == suggested(shop)
    assert len(shop.executions.list().items) == ran
    with pytest.raises(Unavailable, match="Did you mean: What is the private mobile phone contact of Cy Moss"):
        shop.chat.chat_to_sql(session, ASKED)


def test_the_answer_of_a_model_has_the_suggestion_beside_it(shop: Heedful, open_store: Callable[..., Heedful]) -> None:
    model = ScriptedModel(lambda messages: "```sql\nSELECT count(*) AS people FROM staff\n```")
    asking, likely = open_store(language_model=model), suggested(shop)
    answer = asking.chat.chat_to_answer(asking.chat_sessions.create().id, ASKED)
    assert (answer.origin, answer.answer) == ("written", "people: 3")
    assert answer.suggestion == likely


def test_what_is_confirmed_is_proven_until_that_is_retracted(shop: Heedful) -> None:
    likely = suggested(shop)
    done = shop.chat.confirm_suggestion(ASKED, likely.execution_id, author="ann")
    assert done.result.rows == [["3"]]
    found = shop.chat.execution_cache_lookup(ASKED)
    assert (found.cache_hit, found.matches[0].decision, found.suggestion) == (True, "serve", None)
    assert found.matches[0].execution["result"].rows == [["3"]]
    session = shop.chat_sessions.create().id
    assert shop.chat.chat_to_answer(session, ASKED).answer == "phone: 3"
    (said,) = [each for each in shop.feedback.list().items if each.execution_id == done.execution_id]
    assert (said.author, said.is_positive) == ("ann", True)
    shop.retract(said.id)
    assert not shop.chat.execution_cache_lookup(ASKED, only_positive_feedback=True).cache_hit
    assert shop.chat.chat_to_answer(session, ASKED).origin == "suggested"


def test_a_visitor_confirms_nothing(shop: Heedful) -> None:
    shop.chat.confirm_suggestion(ASKED, suggested(shop).execution_id, author="visitor-1")
    assert not shop.chat.execution_cache_lookup(ASKED).cache_hit


def test_only_what_is_suggested_can_be_confirmed(shop: Heedful) -> None:
    likely = suggested(shop)
    other = next(row for row in shop.executions.list().items if row.execution_id != likely.execution_id)
    for asked, execution_id in ((ASKED, other.execution_id), ("phones", likely.execution_id)):
        with pytest.raises(Conflict) as refused:
            shop.chat.confirm_suggestion(asked, execution_id)
        assert refused.value.code == "not_suggested"


def test_a_suggestion_of_a_golden_example_is_confirmed_alike(shop: Heedful) -> None:
    for row in shop.executions.list().items:
        shop.executions.delete(row.execution_id)
    for name in ("Ann Lee", "Bob Ray"):
        shop.golden_examples.create(PROVEN.format(name), SQL.format(name))
    session = shop.chat_sessions.create().id
    likely = shop.chat.chat_to_answer(session, ASKED).suggestion
    assert likely is not None
    shop.chat.confirm_suggestion(ASKED, likely.execution_id)
    assert shop.chat.execution_cache_lookup(ASKED).cache_hit


def test_what_was_suggested_in_a_chat_can_be_run_and_rated(shop: Heedful) -> None:
    answer = shop.chat.chat_to_answer(shop.chat_sessions.create().id, ASKED)
    done = shop.executions.execute_from_chat(answer.chat_message_id)
    assert done.origin == "rebound"
    shop.feedback.create_positive(execution_id=done.execution_id)
    assert shop.chat.execution_cache_lookup(ASKED).cache_hit


@pytest.mark.parametrize(
    "question",
    [
        "private mobile phone contact of Cy Moss",
        "how many private mobile phone contacts does Cy Moss have",
        "private mobile phone contact of nobody",
    ],
)
def test_what_is_certain_or_means_something_else_is_not_suggested(shop: Heedful, question: str) -> None:
    assert shop.chat.execution_cache_lookup(question).suggestion is None


def test_what_people_say_is_wrong_is_not_suggested(shop: Heedful) -> None:
    for row in shop.executions.list().items:
        shop.feedback.create_negative(execution_id=row.execution_id, author="ann")
        shop.feedback.create_negative(execution_id=row.execution_id, author="bob")
    assert shop.chat.execution_cache_lookup(ASKED).suggestion is None


@pytest.fixture
def visits(store: Heedful, tmp_path: Path) -> Heedful:
    """Visits of towns, with questions about two of them that are proven."""
    with sqlite3.connect(tmp_path / "visits.sqlite") as database:
        database.executescript(
            "CREATE TABLE visit (city TEXT, goal TEXT);"
            "INSERT INTO visit VALUES ('Hull', 'York'), ('York', 'Hull'), ('Leeds', 'Hull');"
        )
    store.connectors.create("visits", f"sqlite:///{tmp_path / 'visits.sqlite'}")
    return store


def prove(store: Heedful, *proven: tuple[str, str]) -> None:
    for question, sql in proven:
        done = store.executions.execute_query(sql, question=question)
        store.feedback.create_positive(execution_id=done.execution_id)


IN = "SELECT COUNT(*) FROM visit WHERE city = '{}'"
OUTSIDE = "SELECT COUNT(*) FROM visit WHERE city <> '{}'"
OTHERWISE = [
    "outside Hull", "outside of Hull", "far from Hull", "away from Hull", "excluding Hull", "except Hull",
    "unlike Hull", "near Hull", "nearby Hull", "close to Hull", "around Hull", "beyond Hull", "other than Hull",
    "without Hull", "not in Hull", "opposite Hull", "past Hull", "minus Hull", "against Hull", "besides Hull",
    "bypassing Hull", "that avoid Hull", "anywhere but Hull", "north of Hull", "regardless of Hull", "instead of Hull",
]  # fmt: skip


@pytest.mark.parametrize("asked", OTHERWISE)
def test_what_excludes_or_is_somewhere_else_is_not_suggested(visits: Heedful, asked: str) -> None:
    prove(visits, ("How many visits were there in Hull?", IN.format("Hull")))
    found = visits.chat.execution_cache_lookup(f"How many visits were there {asked}?")
    assert (found.cache_hit, found.suggestion) == (False, None)


@pytest.mark.parametrize(
    "asked",
    [
        "How many visits failed in Hull?",
        "How many failed visits were there in Hull?",
        "How many cancelled visits were there in Hull?",
        "How many unpaid visits were there in Hull?",
        "How many visits fail in Hull?",
        "How many fruitless visits were there in Hull?",
    ],
)
def test_what_restricts_a_verb_nobody_proved_is_not_suggested(visits: Heedful, asked: str) -> None:
    prove(visits, ("How many visits were there in Hull?", IN.format("Hull")))
    assert visits.chat.execution_cache_lookup(asked).suggestion is None


@pytest.mark.parametrize("words", ["outside", "near", "excluding", "except"])
def test_what_the_proven_question_excludes_is_not_suggested(visits: Heedful, words: str) -> None:
    prove(visits, (f"How many visits were there {words} Hull?", OUTSIDE.format("Hull")))
    found = visits.chat.execution_cache_lookup("How many visits were there in York?")
    assert (found.cache_hit, found.suggestion) == (False, None)


def test_the_other_direction_is_not_suggested(visits: Heedful) -> None:
    prove(
        visits,
        ("Show the long visits from Hull", "SELECT goal FROM visit WHERE city = 'Hull'"),
        ("Show the long visits from York", "SELECT goal FROM visit WHERE city = 'York'"),
    )
    for asked in ("Show the long visits to Leeds", "Show the long visits to Leeds, quickly"):
        found = visits.chat.execution_cache_lookup(asked)
        assert (found.cache_hit, found.suggestion) == (False, None)


def test_opposite_words_are_not_suggested(visits: Heedful) -> None:
    prove(
        visits,
        ("How many visits with paid fees were there in Hull?", IN.format("Hull")),
        ("How many visits with paid fees were there in York?", IN.format("York")),
    )
    found = visits.chat.execution_cache_lookup("How many visits with unpaid fees were there in Leeds?")
    assert (found.cache_hit, found.suggestion) == (False, None)


@pytest.mark.parametrize("words", ["urgently", "altogether", "today or tomorrow"])
def test_a_harmless_word_is_still_suggested(shop: Heedful, words: str) -> None:
    likely = shop.chat.execution_cache_lookup(f"The private mobile phone contact of Cy Moss, {words}").suggestion
    assert (likely is None) == ("or" in words)


def test_values_that_change_places_are_both_in_the_suggestion(shop: Heedful) -> None:
    sql = "SELECT phone FROM staff WHERE name IN ('{}', '{}')"
    for names in (("Ann Lee", "Bob Ray"), ("Cy Moss", "Ann Lee")):
        prove(shop, (PROVEN.format(" or ".join(names)), sql.format(*names)))
    likely = shop.chat.execution_cache_lookup(ASKED.replace("Cy Moss", "Bob Ray or Ann Lee")).suggestion
    assert likely is not None
    assert likely.question == PROVEN.format("Bob Ray or Ann Lee")
    assert likely.sql_query == sql.format("Bob Ray", "Ann Lee")
