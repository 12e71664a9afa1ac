"""SQL with a date that its question doesn't name: reused on the day it was proven, and on no other."""

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
IN_HULL = "How many books were borrowed in Hull over the weekend?"
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
        ("on Monday", "LIKE '2026-11-16%'"),
        ("on the last Mon", "LIKE '2026-11-16%'"),
        ("over the weekend", "BETWEEN '2026-11-14' AND '2026-11-16'"),
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


@pytest.mark.parametrize("when", ["in the last hour", "in the past 24h", "since breakfast"])
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
