"""One typing error in a long word: what is probably meant is suggested, never served."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from heedful import Heedful
from heedful.model import CacheLookup

LIVE = "SELECT COUNT(*) FROM patient WHERE city = '{}'"
PRICE = "SELECT price FROM drug WHERE name = '{}'"


@pytest.fixture
def clinic(store: Heedful, tmp_path: Path) -> Heedful:
    with sqlite3.connect(tmp_path / "clinic.sqlite") as database:
        database.executescript(
            "CREATE TABLE patient (name TEXT, city TEXT, symptom TEXT, patents INTEGER, hospital_id INTEGER);"
            "INSERT INTO patient VALUES ('Ann Thompson', 'Boston', 'typical', 1, 7),"
            " ('Bob Ray', 'Worcester', 'rare', 2, 7);"
            "CREATE TABLE drug (name TEXT, price INTEGER);"
            "INSERT INTO drug VALUES ('Ibuprofen', 5), ('Aspirin', 3), ('Cortisol', 8), ('Cortisal', 9);"
        )
    store.connectors.create("clinic", f"sqlite:///{tmp_path / 'clinic.sqlite'}")
    for question, sql in (
        ("How many patients live in Boston?", LIVE.format("Boston")),
        ("What is the price of Aspirin?", PRICE.format("Aspirin")),
        ("Where does Bob Ray live now?", "SELECT city FROM patient WHERE name = 'Bob Ray'"),
        ("Which typical employees arrived?", "SELECT name FROM patient"),
    ):
        done = store.executions.execute_query(sql, question=question).execution_id
        store.feedback.create_positive(execution_id=done)
    return store


def look(store: Heedful, question: str) -> CacheLookup:
    return store.chat.execution_cache_lookup(question)


@pytest.mark.parametrize(
    ("asked", "meant", "sql"),
    [
        ("how many patiens live in boston", "How many patients live in Boston?", LIVE.format("Boston")),
        ("how many patietns live in Boston?", "How many patients live in Boston?", LIVE.format("Boston")),
        ("How many pattients live in Worcester?", "How many patients live in Worcester?", LIVE.format("Worcester")),
        ("How many patients live in Worcster?", "How many patients live in Worcester?", LIVE.format("Worcester")),
        ("What is the price of Ibuprofin?", "What is the price of Ibuprofen?", PRICE.format("Ibuprofen")),
        ("What is the price of Asperrin?", None, None),
        (
            "Where does Ann Thompsen live now?",
            "Where does Ann Thompson live now?",
            "SELECT city FROM patient WHERE name = 'Ann Thompson'",
        ),
    ],
)
def test_a_word_put_right_is_suggested(clinic: Heedful, asked: str, meant: str | None, sql: str | None) -> None:
    found = look(clinic, asked)
    assert not found.cache_hit
    likely = found.suggestion
    assert (likely and likely.question, likely and likely.sql_query) == (meant, sql)


@pytest.mark.parametrize(
    "asked",
    [
        "What is the price of Asprin?",  # Six letters.
        "What is the price of Cortisel?",  # Two drugs.
        "How many patents live in Boston?",  # A column.
        "Which atypical employees arrived?",
        "Which typical employers arrived?",
        "Which typical employees arrives?",
        "How many patiens liive in Bosston?",
        "How many patiens do not live in Boston?",
        "How many excellent patiens live in Boston?",
        f"How many p{'a' * 5000}tients live in Boston?",
    ],
)
def test_what_may_be_meant_or_is_another_word_is_left_alone(clinic: Heedful, asked: str) -> None:
    found = look(clinic, asked)
    assert (found.cache_hit, found.suggestion) == (False, None)


def test_a_confirmed_correction_is_proven(clinic: Heedful) -> None:
    asked = "How many patiens live in Worcester?"
    likely = look(clinic, asked).suggestion
    assert likely is not None
    done = clinic.chat.confirm_suggestion(asked, likely.execution_id, author="ann")
    assert done.result.rows == [[1]]
    assert look(clinic, asked).cache_hit


def test_a_chat_asks_whether_it_is_meant(clinic: Heedful) -> None:
    answer = clinic.chat.chat_to_answer(clinic.chat_sessions.create().id, "how many patiens live in boston")
    assert (answer.origin, answer.answer) == ("suggested", "Did you mean: How many patients live in Boston?")


def test_coverage_names_what_was_probably_meant(clinic: Heedful) -> None:
    look(clinic, "How many patiens live in Worcester?")
    (missing,) = clinic.chat.execution_cache_coverage().missing
    assert missing.suggestion is not None
    assert missing.suggestion.question == "How many patients live in Worcester?"


def test_a_word_of_a_question_that_is_proven_no_more_corrects_nothing(clinic: Heedful) -> None:
    for row in clinic.executions.list().items:
        if row.question == "How many patients live in Boston?":
            clinic.executions.delete(row.execution_id)
    assert look(clinic, "How many patiens live in Boston?").suggestion is None


def test_a_value_of_a_large_column_is_put_right(clinic: Heedful, tmp_path: Path) -> None:
    names = ", ".join(f"('Preparation{number}', {number})" for number in range(1_500))
    with sqlite3.connect(tmp_path / "clinic.sqlite") as database:
        database.execute(f"INSERT INTO drug VALUES {names}")
    clinic.connectors.refresh("clinic")
    look(clinic, "What is the price of Ibuprofin?")
    for thread in threading.enumerate():
        if thread.name == "heedful-values":
            thread.join(60)
    likely = look(clinic, "What is the price of Ibuprofin?").suggestion
    assert likely is not None
    assert likely.sql_query == PRICE.format("Ibuprofen")
    assert look(clinic, "What is the price of Cortisel?").suggestion is None
