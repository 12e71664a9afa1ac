"""Dates and times that SQL names and its question doesn't: right on the day they were proven, and not after it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heedful.sql.reuse.decision import decide
from heedful.sql.reuse.sql_dates import moments, outdated
from heedful.sql.reuse.values import Known

VALUES = Known({("loan", "book"): ["Dune", "Emma"]})
MONDAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


def is_served(
    question: str,
    sql: str,
    now: datetime = MONDAY + timedelta(days=10),
    dialect: str = "sqlite",
    proven_at: datetime = MONDAY,
) -> bool:
    made = decide(question, question, sql, dialect=dialect, values=VALUES, now=now, proven_at=proven_at)
    assert made.decision != "refuse" or made.gate == "relative_dates"
    return made.decision != "refuse"


@pytest.mark.parametrize(
    ("dialect", "condition"),
    [
        ("sqlite", "day = '2026-11-16'"),
        ("sqlite", 'day = "2026-11-16"'),
        ("sqlite", "day LIKE '2026-11-16%'"),
        ("sqlite", "day LIKE '2026-11%'"),
        ("sqlite", "day LIKE '%-11-16'"),
        ("sqlite", "placed LIKE '%-16'"),
        ("sqlite", "day LIKE '%-11-%'"),
        ("sqlite", "placed LIKE '%/16 09%'"),
        ("sqlite", "day BETWEEN '2026-11-09' AND '2026-11-16'"),
        ("sqlite", "day >= '2026-11-15 09:00'"),
        ("sqlite", "day >= '2026-11-15T09:00:00Z'"),
        ("sqlite", "day = date('2026-11-16')"),
        ("sqlite", "day > date('2026-11-16', '-7 days')"),
        ("sqlite", "strftime('%Y-%m', day) = '2026-11'"),
        ("sqlite", "strftime('%Y', day) = '2026'"),
        ("sqlite", "strftime('%Y', day) = \"2026\""),
        ("sqlite", "strftime('%m', day) = '11'"),
        ("sqlite", "CAST(strftime('%d', day) AS integer) = 16"),
        ("sqlite", "strftime('%m-%d', day) = '11-16'"),
        ("sqlite", "strftime('%m/%d', day) = '11/16'"),
        ("sqlite", "strftime('%d.%m.', day) = '16.11.'"),
        ("sqlite", "strftime('%Y-W%W', day) = '2026-W46'"),
        ("sqlite", "julianday(day) >= 2461360.5"),
        ("sqlite", "substr(day, 1, 4) = '2026'"),
        ("sqlite", "year = 2026"),
        ("sqlite", "month = 11"),
        ("sqlite", "month = 'November'"),
        ("sqlite", "at >= 1794787200"),
        ("sqlite", "at >= 1794787200000"),
        ("sqlite", "day = 20261116"),
        ("sqlite", "day = '20261116'"),
        ("sqlite", "day = '16.11.2026'"),
        ("sqlite", "day = '11/16/2026'"),
        ("sqlite", "day = '16-NOV-26'"),
        ("sqlite", "day = 'Nov 16, 2026'"),
        ("sqlite", "id IN (SELECT id FROM loan WHERE day = '2026-11-16')"),
        ("sqlite", "id IN (SELECT id FROM loan_2026_11)"),
        ("postgres", "day = DATE '2026-11-16'"),
        ("postgres", "day = '2026-11-16'::date"),
        ("postgres", "day >= TIMESTAMP '2026-11-16 00:00:00'"),
        ("postgres", "day >= $$2026-11-16$$"),
        ("postgres", "day >= E'2026-11-16'"),
        ("postgres", "day >= make_date(2026, 11, 16)"),
        ("postgres", "date_trunc('month', day) = '2026-11-01'"),
        ("postgres", "EXTRACT(MONTH FROM day) = 11"),
        ("postgres", "EXTRACT(YEAR FROM day) = 2026"),
        ("postgres", "date_part('week', day) = 47"),
        ("postgres", "to_char(day, 'MM') = '11'"),
        ("postgres", "day >= to_timestamp(1794787200)"),
        ("duckdb", "month(day) = 11"),
        ("duckdb", "monthname(day) = 'November'"),
        ("duckdb", "quarter(day) IN (3, 4)"),
        ("duckdb", "strftime(day, '%m') = '11'"),
        ("mysql", "DAYOFMONTH(day) = 16"),
        ("mysql", "DATE_FORMAT(day, '%Y-%m') = '2026-11'"),
        ("mysql", "day >= N'2026-11-16'"),
    ],
)
def test_every_way_to_write_a_date_is_seen(dialect: str, condition: str) -> None:
    sql = f"SELECT count(*) FROM loan WHERE {condition}"
    question = "How many books were borrowed lately?"
    assert is_served(question, sql, MONDAY.replace(hour=23), dialect) or ":" in condition
    assert not is_served(question, sql, MONDAY + timedelta(days=1), dialect)


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("Loans on 2026-03-01", "day = '2026-03-01'"),
        ("Loans on March 1st 2026", "day = '2026-03-01'"),
        ("Loans on March 1, 2026", "day = '2026-03-01'"),
        ("Loans on the 1st of March 2026", "day LIKE '2026-03-01%'"),
        ("Loans on 1 Mar 2026", "day >= '2026-03-01' AND day < '2026-03-02'"),
        ("Loans on 3/1/2026", "day = '2026-03-01'"),
        ("Loans on 01.03.2026", "day = '2026-03-01'"),
        ("Loans in March 2026", "day >= '2026-03-01' AND day < '2026-04-01'"),
        ("Loans in March 2026", "day BETWEEN '2026-03-01' AND '2026-03-31'"),
        ("Loans in March 2026", "strftime('%m', day) = '03' AND strftime('%Y', day) = '2026'"),
        ("Loans in March", "strftime('%m', day) = '03'"),
        ("Loans in March", "day LIKE '%-03-%'"),
        ("Loans on 1 March", "strftime('%d/%m', day) = '01/03'"),
        ("Loans in March", "day LIKE '2026-03%'"),
        ("Loans in March and April of 2024", "day >= '2024-03-01' AND day < '2024-05-01'"),
        ("Loans in 2024", "day BETWEEN '2024-01-01' AND '2024-12-31'"),
        ("Loans in 2024", "day >= '2024-01-01' AND day < '2025-01-01'"),
        ("Loans in 2024", "day >= '2024-01-01 00:00:00' AND day <= '2024-12-31 23:59:59'"),
        ("Loans in 2024", "day LIKE '2024%'"),
        ("Loans in 2024", "strftime('%Y', day) = '2024'"),
        ("Loans after 2019", "year >= 2020"),
        ("Loans since 2019", "day > '2018-12-31'"),
        ("Loans of the 1990s", "year BETWEEN 1990 AND 1999"),
        ("Loans in Q1 2024", "day >= '2024-01-01' AND day < '2024-04-01'"),
        ("Loans in the first quarter of 2024", "day BETWEEN '2024-01-01' AND '2024-03-31'"),
        ("Loans on Mondays", "strftime('%w', day) = '1'"),
        ("Loans after 08:30", "time(day) > '08:30'"),
        ("Loans after 8:30 pm", "time(day) > '20:30'"),
        ("Loans in the morning", "time(day) < '12:00'"),
        ("Loans this month", "day >= '2026-11-01' AND day <= '2026-11-30'"),
        ("Loans last year", "day BETWEEN '2025-01-01' AND '2025-12-31'"),
        ("Ausleihen im März 2026", "day LIKE '2026-03%'"),
        ("Prêts en février 2024", "day >= '2024-02-01' AND day < '2024-03-01'"),
        ("Préstamos en enero de 2024", "day LIKE '2024-01%'"),
        ("Loans of more than 2,000 euros", "euros > 2000"),
        ("How many loans are there?", "euros > 150000 AND pages = 12 AND title = 'Emma'"),
        ("Loans with more than a billion", "euros > 1000000000"),
    ],
)
def test_what_the_question_names_in_its_own_spelling_is_served_on_any_day(question: str, condition: str) -> None:
    assert is_served(question, f"SELECT count(*) FROM loan WHERE {condition}")


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("Loans in 2026 on Monday", "day = '2026-11-16'"),
        ("Loans on March 1st 2026", "day = '2026-03-01' AND returned < '2026-11-16'"),
        ("Loans in March 2025", "day LIKE '2026-03%'"),
        ("Loans which may be late", "day LIKE '2026-05%'"),
        ("Sales growth over 2025", "year IN (2025, 2026)"),
        ("The 11 newest loans", "month = 11"),
        ("Loans in November", "strftime('%m', day) = '11' AND strftime('%d', day) = '11'"),
        ("Loans on the 16th", "day = '2026-11-16'"),
    ],
)
def test_half_a_date_does_not_name_the_whole(question: str, condition: str) -> None:
    sql = f"SELECT count(*) FROM loan WHERE {condition}"
    assert is_served(question, sql, MONDAY)
    assert not is_served(question, sql, MONDAY + timedelta(days=1))


def test_march_without_a_year_is_that_of_this_year() -> None:
    sql = "SELECT count(*) FROM loan WHERE day LIKE '2026-03%'"
    assert is_served("Loans in March", sql, datetime(2026, 12, 31))
    assert not is_served("Loans in March", sql, datetime(2027, 1, 1))


@pytest.mark.parametrize(
    "condition", ["at >= '2026-11-16 07:00'", "time(at) >= '08:00'", "strftime('%H', at) >= '08'", "at >= 1794812400"]
)
def test_a_time_of_the_day_holds_for_a_minute(condition: str) -> None:
    question, sql = "How many books were borrowed in the last hour?", f"SELECT count(*) FROM loan WHERE {condition}"
    assert is_served(question, sql, MONDAY + timedelta(seconds=59))
    assert not is_served(question, sql, MONDAY + timedelta(seconds=60))


def test_a_date_that_is_not_named_holds_for_the_day_of_a_time_that_is() -> None:
    question, sql = "How many loans since 8 am?", "SELECT count(*) FROM loan WHERE at >= '2026-11-16 08:00'"
    assert is_served(question, sql, MONDAY + timedelta(hours=3))
    assert not is_served(question, sql, MONDAY + timedelta(days=1))


def test_the_reason_is_a_sentence() -> None:
    sql = "SELECT count(*) FROM loan WHERE day >= '2026-11-13'"
    assert outdated("Loans lately", sql, "sqlite", MONDAY + timedelta(days=1), MONDAY) == (
        "The SQL has “2026-11-13”, which the question doesn't name, so it is only used on the day it was proven,"
        " 2026-11-16 (UTC)."
    )
    sql = "SELECT count(*) FROM loan WHERE at >= '08:00'"
    assert outdated("Loans lately", sql, "sqlite", MONDAY + timedelta(hours=1), MONDAY) == (
        "The SQL has “08:00”, which the question doesn't name, so it is only used in the minute it was proven,"
        " 09:00 (UTC)."
    )


def test_sql_that_cant_be_read_names_none() -> None:
    assert moments("SELECT '2026-11-16", "sqlite") == moments(f"SELECT {'(' * 200}1{')' * 200}", "sqlite") == ()


def test_sql_without_dates_names_none() -> None:
    for sql in (
        "SELECT a FROM t LIMIT 10",
        "SELECT ROUND(a, 2) FROM t WHERE b > 150000",
        "SELECT '7 days', 'Mars'",
        f"SELECT {'1' * 5000}",
    ):
        assert moments(sql, "sqlite") == ()


NAMED = ["on {0:%Y-%m-%d}", "on {2} {0.day} {0.year}", "on the {0.day}th of {2}, {0.year}"]
days = st.dates(date(1990, 1, 1), date(2090, 1, 1))


@given(day=days, when=st.sampled_from(NAMED), proven_at=days, later=st.integers(0, 4000))
def test_a_date_that_the_question_names_is_served_on_any_day(day: date, when: str, proven_at: date, later: int) -> None:
    assume(day.day > 3)
    proven = datetime(proven_at.year, proven_at.month, proven_at.day, 12)
    question = f"How many books were borrowed {when.format(day, None, MONTHS[day.month - 1])}?"
    for condition in (f"day = '{day}'", f"day >= '{day}' AND day < '{day + timedelta(days=1)}'"):
        assert is_served(
            question, f"SELECT count(*) FROM loan WHERE {condition}", proven + timedelta(days=later), "sqlite", proven
        )
