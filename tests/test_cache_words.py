"""Small words, inflections and synonyms: which of them change what a question asks for."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful import Heedful
from heedful.model import CacheLookup, CacheMatch

TABLES = """
CREATE TABLE employees (id INTEGER, name TEXT, manager TEXT);
INSERT INTO employees VALUES (1, 'Ann', NULL), (2, 'Bob', 'Ann'), (3, 'Cy', 'Ann'), (4, 'Di', 'Bob');
CREATE TABLE books (title TEXT, borrowed INTEGER);
INSERT INTO books VALUES ('Dune', 1), ('Emma', 1), ('Ivanhoe', 0), ('Kim', 0);
CREATE TABLE loans (book TEXT, returned INTEGER);
CREATE TABLE customers (id INTEGER, name TEXT, city TEXT);
INSERT INTO customers VALUES (1, 'Ann', 'Hull'), (2, 'Bob', 'Hull'), (3, 'Cy', 'York');
CREATE TABLE calls (caller TEXT, callee TEXT);
CREATE TABLE payments (customer TEXT, kind TEXT);
CREATE TABLE cities (town TEXT, population INTEGER);
INSERT INTO cities VALUES ('Hull', 267000), ('York', 141000);
CREATE TABLE hotels (hotel TEXT, rate REAL, rating REAL, plans INTEGER, planes INTEGER);
INSERT INTO hotels VALUES ('Rex', 120, 4.5, 1, 0), ('Astor', 90, 3.9, 0, 1);
CREATE TABLE fees (place TEXT, parking_fee REAL, park_fee REAL);
INSERT INTO fees VALUES ('Hull', 10, 3), ('York', 12, 4);
CREATE TABLE patients (patient TEXT, town TEXT);
INSERT INTO patients VALUES ('Eve', 'Boston'), ('Flo', 'Leeds');
CREATE TABLE visits (patient TEXT, doctor TEXT);
INSERT INTO visits VALUES ('Eve', 'Dr. Clark'), ('Flo', 'Dr. Wu');
CREATE TABLE titles (title TEXT, kind TEXT);
INSERT INTO titles VALUES ('Alien', 'film'), ('Heat', 'movie');
"""
BORROWED = "SELECT title FROM books WHERE borrowed = 1"
EVER_BORROWED = "SELECT DISTINCT book FROM loans"
CALLED = "SELECT id FROM customers WHERE name = 'Ann'"
CALLERS = "SELECT caller FROM calls WHERE callee = 'Ann'"
RATE, RATING = (f"SELECT {column} FROM hotels WHERE hotel = 'Rex'" for column in ("rate", "rating"))
POPULATION = "SELECT population FROM cities WHERE town = 'Hull'"
NO_MANAGER = "SELECT name FROM employees WHERE manager IS NULL"
SEEN = "SELECT patient FROM visits WHERE doctor = 'Dr. Clark'"


class Pair(NamedTuple):
    """A proven question, and another one with the SQL that answers that."""

    proven: str
    sql: str
    asked: str
    right: str


OTHERS = [
    Pair(
        "Which employees have managers?",
        "SELECT name FROM employees WHERE manager IS NOT NULL",
        "Which employees are managers?",
        "SELECT DISTINCT manager FROM employees",
    ),
    Pair(
        "Who has a manager?",
        "SELECT name FROM employees WHERE manager IS NOT NULL",
        "Who is a manager?",
        "SELECT DISTINCT manager FROM employees",
    ),
    Pair(
        "Which employees have no managers?",
        "SELECT name FROM employees WHERE manager IS NULL",
        "Which employees are not managers?",
        "SELECT name FROM employees WHERE name NOT IN ('Ann', 'Bob')",
    ),
    Pair("Which books are borrowed?", BORROWED, "Which books were borrowed?", EVER_BORROWED),
    Pair("Which books are borrowed?", BORROWED, "Which books have been borrowed?", EVER_BORROWED),
    Pair("How many books are borrowed?", BORROWED, "How many books had been borrowed?", EVER_BORROWED),
    Pair("Are the books borrowed?", BORROWED, "Were the books borrowed?", EVER_BORROWED),
    Pair(
        "Which customers have paid?",
        "SELECT customer FROM payments WHERE kind = 'payment'",
        "Which customers were paid?",
        "SELECT customer FROM payments WHERE kind = 'refund'",
    ),
    Pair(
        "Which customers paid in cash?",
        "SELECT customer FROM payments WHERE kind = 'payment'",
        "Which customers were paid in cash?",
        "SELECT customer FROM payments WHERE kind = 'refund'",
    ),
    Pair("Which customers are called Ann?", CALLED, "Which customers called Ann?", CALLERS),
    Pair("Which customers are named Ann?", CALLED, "How many customers called Ann?", CALLERS),
    Pair("What is the rating of Rex?", RATING, "What is the rate of Rex?", RATE),
    Pair(
        "What is the parking fee in Hull?",
        "SELECT parking_fee FROM fees WHERE place = 'Hull'",
        "What is the park fee in Hull?",
        "SELECT park_fee FROM fees WHERE place = 'Hull'",
    ),
    Pair(
        "How many hotels have plans?",
        "SELECT COUNT(*) FROM hotels WHERE plans > 0",
        "How many hotels have planes?",
        "SELECT COUNT(*) FROM hotels WHERE planes > 0",
    ),
    Pair(
        "Top 2 hotels by rating",
        "SELECT hotel FROM hotels ORDER BY rating DESC LIMIT 2",
        "Top 2 hotels by rate",
        "SELECT hotel FROM hotels ORDER BY rate DESC LIMIT 2",
    ),
    Pair(
        "What is the population of Hull?",
        POPULATION,
        "How many people are there in Hull?",
        "SELECT COUNT(*) FROM customers WHERE city = 'Hull'",
    ),
    Pair(
        "Which patients did Dr. Clark see?",
        SEEN,
        "Which patients does Dr. Clark see?",
        "SELECT DISTINCT patient FROM visits WHERE doctor = 'Dr. Clark'",
    ),
    Pair(
        "How many films are there?",
        "SELECT COUNT(*) FROM titles WHERE kind = 'film'",
        "How many movies are there?",
        "SELECT COUNT(*) FROM titles WHERE kind = 'movie'",
    ),
    Pair(
        "Who is the manager of Bob?",
        "SELECT manager FROM employees WHERE name = 'Bob'",
        "Who was the manager of Bob?",
        "SELECT manager FROM employees WHERE name = 'Bob' AND id < 0",
    ),
]

SAME = [
    ("Which books are borrowed?", BORROWED, "Show me the books that are borrowed"),
    ("Which books were borrowed?", EVER_BORROWED, "Which books have been borrowed?"),
    ("Which books were borrowed?", EVER_BORROWED, "Books borrowed"),
    ("Which customers are called Ann?", CALLED, "Which customers are named Ann?"),
    ("Which customers are called Ann?", CALLED, "List the customers named Ann"),
    ("Which patients did Dr. Clark see?", SEEN, "Which patients Dr. Clark saw?"),
    (
        "Number of patients in Boston",
        "SELECT COUNT(*) FROM patients WHERE town = 'Boston'",
        "How many patients are in Boston?",
    ),
    (
        "Which patients live in Boston?",
        "SELECT patient FROM patients WHERE town = 'Boston'",
        "Which patients are living in Boston?",
    ),
    (
        "Which patients live in Boston?",
        "SELECT patient FROM patients WHERE town = 'Boston'",
        "Patients living in Boston",
    ),
    ("All patients except Eve", "SELECT patient FROM patients WHERE patient <> 'Eve'", "All patients excluding Eve"),
    ("What are the ratings of Rex?", RATING, "What is the rating of Rex?"),
    ("Which employees have no manager?", NO_MANAGER, "Which employees do not have any manager?"),
    ("Which employees have no manager?", NO_MANAGER, "Which employees don't have a manager?"),
    ("Which employees have no manager?", NO_MANAGER, "Employees without a manager"),
    ("Which employees have no manager?", NO_MANAGER, "List the employees who have no manager"),
]


@pytest.fixture
def shop(store: Heedful, tmp_path: Path) -> Heedful:
    file = tmp_path / "shop.sqlite"
    with sqlite3.connect(file) as connection:
        connection.executescript(TABLES)
    store.connectors.create("shop", f"sqlite:///{file}")
    return store


def prove(store: Heedful, question: str, sql: str) -> None:
    done = store.executions.execute_query(sql, question=question)
    store.feedback.create_positive(execution_id=done.execution_id)


def look(store: Heedful, question: str) -> CacheLookup:
    return store.chat.execution_cache_lookup(question)


def best(store: Heedful, question: str) -> CacheMatch:
    return look(store, question).matches[0]


def ran(store: Heedful, question: str) -> str:
    """The SQL that was used for a question."""
    match = best(store, question)
    assert match.decision != "refuse", match.reason
    sql: str = match.execution["sql_query"]
    return sql


@pytest.mark.parametrize("pair", OTHERS, ids=lambda pair: pair.asked)
@pytest.mark.nightly
def test_another_question_is_not_answered_with_the_proven_sql(shop: Heedful, pair: Pair) -> None:
    prove(shop, pair.proven, pair.sql)
    found = look(shop, pair.asked)
    assert not found.cache_hit, found.matches[0].reason
    assert ran(shop, pair.proven) == pair.sql


@pytest.mark.parametrize("pair", OTHERS, ids=lambda pair: pair.asked)
@pytest.mark.nightly
def test_both_questions_are_served_once_both_are_proven(shop: Heedful, pair: Pair) -> None:
    prove(shop, pair.proven, pair.sql)
    prove(shop, pair.asked, pair.right)
    assert ran(shop, pair.proven) == pair.sql
    assert ran(shop, pair.asked) == pair.right


def test_each_of_two_proven_forms_is_rebound_in_its_own_words(shop: Heedful) -> None:
    prove(shop, "What is the rate of Rex?", RATE)
    prove(shop, "What is the rating of Rex?", RATING)
    assert ran(shop, "What is the rate of Astor?") == RATE.replace("Rex", "Astor")
    assert ran(shop, "What is the rating of Astor?") == RATING.replace("Rex", "Astor")
    assert ran(shop, "Tell me the rates of Astor") == RATE.replace("Rex", "Astor")


@pytest.mark.parametrize(("proven", "sql", "asked"), SAME)
def test_small_words_that_make_no_difference_may_differ(shop: Heedful, proven: str, sql: str, asked: str) -> None:
    prove(shop, proven, sql)
    assert ran(shop, asked) == sql


def test_proven_questions_show_that_tense_makes_no_difference(shop: Heedful) -> None:
    sql = "SELECT patient FROM visits WHERE doctor = '{}'"
    prove(shop, "Which patients are treated by Dr. Clark?", sql.format("Dr. Clark"))
    assert best(shop, "Which patients were treated by Dr. Wu?").decision == "refuse"
    prove(shop, "Which patients were treated by Dr. Clark?", sql.format("Dr. Clark"))
    assert ran(shop, "Which patients were treated by Dr. Wu?") == sql.format("Dr. Wu")
    assert ran(shop, "Which patients are treated by Dr. Wu?") == sql.format("Dr. Wu")


def test_a_refusal_names_the_small_words(shop: Heedful) -> None:
    prove(shop, "Which books are borrowed?", BORROWED)
    match = best(shop, "Which books have been borrowed?")
    assert (match.gate, "have been borrowed" in match.reason, "are borrowed" in match.reason) == ("words", True, True)


def test_the_same_words_are_served_whatever_else_conflicts(shop: Heedful) -> None:
    """Questions that mean the same elsewhere, with other SQL, are a conflict for new words and none for their own."""
    prove(shop, "Which films start with A?", "SELECT title FROM titles WHERE title LIKE 'A%' AND kind = 'film'")
    prove(shop, "Which films begin with A?", "SELECT title FROM titles WHERE title LIKE 'A%'")
    assert ran(shop, "Which films start with A?").endswith("kind = 'film'")
    assert ran(shop, "Which films begin with A?").endswith("LIKE 'A%'")
    assert ran(shop, "which films begin with a").endswith("LIKE 'A%'")
