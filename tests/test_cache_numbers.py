"""Numbers as people write them: 110k, 1.5M, a dozen."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from heedful import Heedful
from heedful.model import CacheMatch

SQL = "SELECT name FROM city WHERE population > 200000"
TOP = "SELECT name FROM city ORDER BY population DESC LIMIT 3"


@pytest.fixture
def geo(store: Heedful, tmp_path: Path) -> Heedful:
    with sqlite3.connect(tmp_path / "geo.sqlite") as database:
        database.executescript(
            "CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT, population INTEGER, length INTEGER);"
            "INSERT INTO city VALUES (5, 'Hull', 267000, 3), (5000, 'York', 110000, 9), (6, 'Rome', 2800000, 8);"
            "CREATE TABLE plan (name TEXT, size TEXT, fee INTEGER);"
            "INSERT INTO plan VALUES ('401k', '7M', 3), ('403b', '8M', 4), ('pension', '9M', 5);"
        )
    store.connectors.create("geo", f"sqlite:///{tmp_path / 'geo.sqlite'}")
    for question, sql in (
        ("Which cities have more than 200,000 inhabitants?", SQL),
        ("The top 3 cities by population", TOP),
        ("What is the fee of the 403b plan?", "SELECT fee FROM plan WHERE name = '403b'"),
        ("What is the fee of size 8M?", "SELECT fee FROM plan WHERE size = '8M'"),
        ("What is the name of city 5?", "SELECT name FROM city WHERE id = 5"),
        ("Which cities have walls longer than 5?", "SELECT name FROM city WHERE length > 5"),
    ):
        done = store.executions.execute_query(sql, question=question).execution_id
        store.feedback.create_positive(execution_id=done)
    return store


def look(store: Heedful, question: str) -> CacheMatch:
    return store.chat.execution_cache_lookup(question).matches[0]


@pytest.mark.parametrize(
    ("number", "bound"),
    [
        ("110k", 110_000),
        ("110K", 110_000),
        ("1.5M", 1_500_000),
        ("2bn", 2_000_000_000),
        ("2 bn", 2_000_000_000),
        ("1,200k", 1_200_000),
        ("0.25M", 250_000),
        ("half a million", 500_000),
        ("a dozen", 12),
        ("two dozen", 24),
        ("half a dozen", 6),
        ("3 dozen", 36),
    ],
)
@pytest.mark.nightly
def test_a_number_is_bound_however_it_is_written(geo: Heedful, number: str, bound: int) -> None:
    match = look(geo, f"Which cities have more than {number} inhabitants?")
    assert (match.decision, match.execution["sql_query"]) == ("rebind", SQL.replace("200000", str(bound))), match.reason


@pytest.mark.parametrize("number", ["200k", "0.2M", "200 thousand", "200000"])
def test_the_same_number_is_the_same_question(geo: Heedful, number: str) -> None:
    assert look(geo, f"Which cities have more than {number} inhabitants?").decision == "serve"


def test_a_count_of_rows_may_be_in_dozens(geo: Heedful) -> None:
    assert look(geo, "The top dozen cities by population").decision == "refuse"
    assert look(geo, "The top two dozen cities by population").execution["sql_query"] == TOP.replace("3", "24")


@pytest.mark.parametrize(
    ("question", "rows"), [("What is the fee of the 401k plan?", [[3]]), ("What is the fee of size 7m?", [[3]])]
)
def test_a_name_that_looks_like_a_number_is_a_name(geo: Heedful, question: str, rows: list[list[int]]) -> None:
    match = look(geo, question)
    assert match.decision == "rebind", match.reason
    assert match.execution["result"].rows == rows


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is the name of city 5K?", "5K"),
        ("Which cities have walls longer than 7m?", "7m"),
        ("Which cities have more than 1.5m inhabitants?", "1.5m"),
    ],
)
@pytest.mark.slow
def test_what_may_be_a_unit_or_a_name_is_no_number(geo: Heedful, question: str, value: str) -> None:
    match = look(geo, question)
    assert (match.decision, match.gate) == ("refuse", "kind")
    assert match.reason == f"“{value}” may be a number, a unit or a name."


def test_money_is_in_millions(geo: Heedful) -> None:
    done = geo.executions.execute_query(SQL, question="Which cities have a budget over $200,000?").execution_id
    geo.feedback.create_positive(execution_id=done)
    match = look(geo, "Which cities have a budget over $1.5m?")
    assert match.execution["sql_query"] == SQL.replace("200000", "1500000"), match.reason
    assert look(geo, "Which cities have a budget over 10%?").decision == "refuse"


@pytest.mark.parametrize(("number", "bound"), [(".5", "0.5"), ("\u22125", "-5"), ("\u20135", "-5")])
def test_a_point_or_a_minus_before_a_number_belongs_to_it(geo: Heedful, number: str, bound: str) -> None:
    match = look(geo, f"Which cities have more than {number} inhabitants?")
    assert match.execution["sql_query"] == SQL.replace("200000", bound), match.reason


@pytest.mark.parametrize("number", ["1\u00b2", "\u00bd", "\u221a9", "5\u2030", "\u00b15", "~5", "5\u00b0", "9" * 19])
def test_what_is_more_than_a_number_is_refused(geo: Heedful, number: str) -> None:
    assert look(geo, f"Which cities have more than {number} inhabitants?").decision == "refuse"


@pytest.mark.slow
def test_a_question_of_thousands_of_numbers_is_refused_without_reading_it_in_all_ways(geo: Heedful) -> None:
    found = geo.chat.execution_cache_lookup("Which cities have more than " + "0 " * 4_900)
    assert not found.cache_hit
