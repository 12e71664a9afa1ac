"""Dates of proven SQL: bound from the question and the clock, or else reused on the day of the proof and no other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cities import Cities

from heedful import Heedful
from heedful.errors import Unavailable
from heedful.testing import ManualClock

LOANS = """
CREATE TABLE loan (id integer PRIMARY KEY, book text, at text, town text);
INSERT INTO loan VALUES (1, 'Dune', '2026-11-01', 'Hull'), (2, 'Emma', '2026-11-14', 'York'),
    (3, 'Ulysses', '2026-11-16 08:30', 'Hull'), (4, 'Hamlet', '2026-11-09', 'York');
"""
IN_HULL = "How many books were borrowed in Hull lately?"
IN_HULL_SQL = "SELECT count(*) AS n FROM loan WHERE at >= '2026-11-14' AND at < '2026-11-16' AND town = 'Hull'"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))


@pytest.fixture
def library(store: Heedful, tmp_path: Path) -> Heedful:
    loans = Cities(tmp_path / "library.db")
    loans.write(LOANS)
    store.connectors.create("library", loans.url)
    return store


def prove(store: Heedful, question: str, sql: str) -> None:
    done = store.executions.execute_query(sql, question=question)
    store.feedback.create_positive(execution_id=done.execution_id)


def gate(store: Heedful, question: str, **options: Any) -> str:
    """The gate that refuses a question; empty if it is answered."""
    found = store.chat.execution_cache_lookup(question, **options)
    return "" if found.cache_hit else found.matches[0].gate


@pytest.mark.parametrize(
    ("when", "condition"),
    [
        ("on Monday", ">= '2026-11-13'"),
        ("over the weekend", "BETWEEN '2026-11-12' AND '2026-11-16'"),
        ("in the last few days", ">= '2026-11-13'"),
        ("in recent days", ">= '2026-11-13'"),
        ("in November so far", ">= '2026-11-03'"),
    ],
)
def test_the_same_words_on_another_day_are_another_question(
    library: Heedful, clock: ManualClock, when: str, condition: str
) -> None:
    question = f"How many books were borrowed {when}?"
    prove(library, question, f"SELECT count(*) AS n FROM loan WHERE at {condition}")
    clock.advance(hours=14, minutes=59)
    assert gate(library, question) == gate(library, question, reuse="result") == ""
    clock.advance(minutes=1)
    assert gate(library, question) == gate(library, question, reuse="result") == "relative_dates"
    (match,) = library.chat.execution_cache_lookup(question.rstrip("?").lower()).matches[:1]
    assert match.reason.endswith(
        "which the question doesn't name, so it is only used on the day it was proven, 2026-11-16 (UTC)."
    )


@pytest.mark.parametrize("when", ["in the last 2 hours", "in the past 24h", "since breakfast"])
def test_a_time_of_the_day_is_another_one_in_the_next_minute(library: Heedful, clock: ManualClock, when: str) -> None:
    question = f"How many books were borrowed {when}?"
    prove(library, question, "SELECT count(*) AS n FROM loan WHERE at >= '2026-11-16 08:00'")
    clock.advance(seconds=59)
    assert gate(library, question) == ""
    clock.advance(seconds=1)
    assert gate(library, question) == "relative_dates"


def test_other_values_keep_no_date_that_nobody_named(library: Heedful, clock: ManualClock) -> None:
    prove(library, IN_HULL, IN_HULL_SQL)
    in_york = IN_HULL.replace("Hull", "York")
    assert library.chat.execution_cache_lookup(in_york).matches[0].decision == "rebind"
    clock.advance(days=1)
    found = library.chat.execution_cache_lookup(in_york)
    assert (found.cache_hit, found.suggestion, found.matches[0].gate) == (False, None, "relative_dates")


@pytest.mark.slow
def test_what_many_agree_on_keeps_none_either(library: Heedful, clock: ManualClock) -> None:
    for lead in ("How many books were borrowed in {} lately?", "Number of books borrowed in {} lately"):
        for town in ("Hull", "York"):
            prove(library, lead.format(town), IN_HULL_SQL.replace("Hull", town))
    clock.advance(days=1)
    for question in ("How many books were borrowed lately in Hull?", "In York, how many books were lately borrowed?"):
        found = library.chat.execution_cache_lookup(question)
        assert (found.cache_hit, found.suggestion) == (False, None), question


def test_a_golden_example_in_a_chat(library: Heedful, clock: ManualClock) -> None:
    library.golden_examples.create(IN_HULL, IN_HULL_SQL)
    named = "How many books were borrowed in November 2026?"
    library.golden_examples.create(named, "SELECT count(*) AS n FROM loan WHERE at LIKE '2026-11%'")
    chat = library.chat_sessions.create().id
    assert library.chat.chat_to_answer(chat, IN_HULL).origin == "served"
    clock.advance(days=7)
    with pytest.raises(Unavailable, match="which the question doesn't name"):
        library.chat.chat_to_answer(chat, IN_HULL)
    clock.advance(days=700)
    assert library.chat.chat_to_answer(chat, named).answer == "n: 4"


def test_what_is_proven_again_today_is_served_today(library: Heedful, clock: ManualClock) -> None:
    prove(library, IN_HULL, IN_HULL_SQL)
    clock.advance(days=7)
    assert gate(library, IN_HULL) == "relative_dates"
    prove(library, IN_HULL, IN_HULL_SQL)
    assert gate(library, IN_HULL) == ""


def answer(store: Heedful, question: str) -> tuple[str, str]:
    """How a question is answered, and by which condition."""
    match = store.chat.execution_cache_lookup(question).matches[0]
    return match.decision, match.execution["sql_query"].partition(" at ")[2]


@pytest.mark.parametrize(
    ("when", "condition", "days", "wanted"),
    [
        ("on Monday", "LIKE '2026-11-16%'", 10, "LIKE '2026-11-23%'"),
        ("on the last Mon", "= '2026-11-09'", 7, "= '2026-11-16'"),
        ("over the weekend", "IN ('2026-11-14', '2026-11-15')", 10, "IN ('2026-11-21', '2026-11-22')"),
        ("in the past 24h", ">= '2026-11-15 09:00'", 10, ">= '2026-11-25 09:00'"),
        ("in the last hour", ">= '2026-11-16 08:00'", 0.375, ">= '2026-11-16 17:00'"),
        ("yesterday", "LIKE '2026-11-15%'", 1, "LIKE '2026-11-16%'"),
        ("this month", ">= '2026-11-01'", 20, ">= '2026-12-01'"),
    ],
)
def test_a_date_is_bound_from_the_clock(
    library: Heedful, clock: ManualClock, when: str, condition: str, days: float, wanted: str
) -> None:
    question = f"How many books were borrowed {when}?"
    prove(library, question, f"SELECT count(*) AS n FROM loan WHERE at {condition}")
    assert answer(library, question) == ("serve", condition)
    clock.advance(days=days)
    assert answer(library, question) == ("rebind", wanted)
    assert gate(library, question, reuse="result") == "rebind"


def test_a_minute_later_the_last_hour_is_another_one(library: Heedful, clock: ManualClock) -> None:
    question = "How many books were borrowed in the last hour?"
    prove(library, question, "SELECT count(*) AS n FROM loan WHERE at >= '2026-11-16 08:00'")
    for minute in range(1, 4):
        clock.advance(minutes=1)
        assert answer(library, question) == ("rebind", f">= '2026-11-16 08:0{minute}'")


def test_what_is_proven_again_on_another_day_is_no_conflict(library: Heedful, clock: ManualClock) -> None:
    on_monday, lately = "How many books were borrowed on Monday?", "How many books were borrowed lately?"
    for day in ("2026-11-16", "2026-11-23"):
        prove(library, on_monday, f"SELECT count(*) AS n FROM loan WHERE at LIKE '{day}%'")
        prove(library, lately, f"SELECT count(*) AS n FROM loan WHERE at > '{day}'")
        assert answer(library, on_monday) == ("serve", f"LIKE '{day}%'")
        assert answer(library, lately) == ("serve", f"> '{day}'")
        clock.advance(days=7)
    assert answer(library, on_monday) == ("rebind", "LIKE '2026-11-30%'")
    assert gate(library, lately) == "relative_dates"


def test_what_is_rebound_and_proven_is_bound_from_its_own_day(library: Heedful, clock: ManualClock) -> None:
    question = "How many books were borrowed yesterday?"
    prove(library, question, "SELECT count(*) AS n FROM loan WHERE at LIKE '2026-11-15%'")
    for day in ("2026-11-16", "2026-11-17"):
        clock.advance(days=1)
        (match,) = library.chat.execution_cache_lookup(question, top_n=1).matches
        assert match.execution["sql_query"].endswith(f"'{day}%'")
        library.feedback.create_positive(execution_id=match.execution["execution_id"])


@pytest.mark.slow
def test_a_year_in_every_spelling(library: Heedful, tmp_path: Path) -> None:
    for place, condition in enumerate(
        (
            "strftime('%Y', at) = '{}'",
            "CAST(strftime('%Y', at) AS INTEGER) = {}",
            "at LIKE '{}%'",
            "at BETWEEN '{}-01-01' AND '{}-12-31'",
            "substr(at, 1, 4) = '{}'",
            "year = {}",
            "year_text = '{}'",
        )
    ):
        visits = Cities(tmp_path / f"{place}.db")
        visits.write(
            "CREATE TABLE visit (at text, year integer, year_text text);"
            "INSERT INTO visit VALUES ('2024-05-01', 2024, '2024'), ('2025-05-01', 2025, '2025'),"
            " ('2025-06-01', 2025, '2025')"
        )
        name = f"visits{place}"
        library.connectors.create(name, visits.url)
        sql = f"SELECT count(*) AS n FROM visit WHERE {condition.replace('{}', '2025')}"
        done = library.executions.execute_query(sql, connector_id=name, question="How many visits were there in 2025?")
        library.feedback.create_positive(execution_id=done.execution_id)
        found = library.chat.execution_cache_lookup("How many visits were there in 2024?", connector_id=name)
        assert found.cache_hit, (condition, found.matches[0].reason)
        assert found.matches[0].execution["result"].rows == [[1]]
