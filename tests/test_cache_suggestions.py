"""What the cache suggests where it may not decide, and what confirming it does."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from heedful import Heedful
from heedful.errors import Unavailable

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
    assert result.suggestion.question == "What is the private mobile phone contact of cy moss?"
    assert result.suggestion.sql_query == SQL.format("Cy Moss")


def test_what_is_confirmed_is_proven(shop: Heedful) -> None:
    session = shop.chat_sessions.create().id
    with pytest.raises(Unavailable, match="Did you mean: What is the private mobile phone contact of cy moss"):
        shop.chat.chat_to_answer(session, ASKED)
    likely = shop.chat.execution_cache_lookup(ASKED).suggestion
    assert likely is not None
    shop.golden_examples.create(ASKED, likely.sql_query)
    assert shop.chat.chat_to_answer(session, ASKED).answer == "phone: 3"


@pytest.mark.parametrize(
    "asked",
    [
        "private mobile phone contact of Cy Moss",
        "how many private mobile phone contacts does Cy Moss have",
        "private mobile phone contact of nobody",
    ],
)
def test_what_is_certain_or_means_something_else_is_not_suggested(shop: Heedful, asked: str) -> None:
    assert shop.chat.execution_cache_lookup(asked).suggestion is None


def test_what_people_say_is_wrong_is_not_suggested(shop: Heedful) -> None:
    for row in shop.executions.list().items:
        shop.feedback.create_negative(execution_id=row.execution_id, author="ann")
        shop.feedback.create_negative(execution_id=row.execution_id, author="bob")
    assert shop.chat.execution_cache_lookup(ASKED).suggestion is None
