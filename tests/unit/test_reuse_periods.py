"""Periods that a question names, and how the dates of proven SQL follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.sql.reuse.decision import decide
from heedful.sql.reuse.question_periods import impossible, periods
from heedful.sql.reuse.question_words import split
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.values import Known

VALUES = Known({("visits", "town"): ["Hull", "York"], ("visits", "month"): ["March", "April"]})
MONDAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
FRIDAY = datetime(2024, 3, 15, 9)
A_DAY = timedelta(days=1)
VISITS = "How many visits were there {}?"


def verdict(
    proven: str,
    asked: str,
    condition: str,
    *,
    later: timedelta = timedelta(days=10),
    dialect: str = "sqlite",
    proven_at: datetime = MONDAY,
) -> Verdict:
    sql = f"SELECT count(*) FROM visits WHERE {condition}"
    return decide(asked, proven, sql, dialect=dialect, values=VALUES, now=proven_at + later, proven_at=proven_at)


def condition_of(made: Verdict) -> str | None:
    return None if made.display is None else made.display.partition(" WHERE ")[2]


def days(words: str, at: datetime) -> list[tuple[date, date]]:
    """The first and the last day of what words may mean."""
    (found,) = periods(tuple(split(f"Visits {words}")))
    return [(each.first.date(), (each.end - timedelta(days=1)).date()) for each in found.ranges(at).values()]


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("today", date(2024, 3, 15), date(2024, 3, 15)),
        ("yesterday", date(2024, 3, 14), date(2024, 3, 14)),
        ("the day before yesterday", date(2024, 3, 13), date(2024, 3, 13)),
        ("this week", date(2024, 3, 11), date(2024, 3, 17)),
        ("last week", date(2024, 3, 4), date(2024, 3, 10)),
        ("last week", date(2024, 3, 3), date(2024, 3, 9)),
        ("the week before last", date(2024, 2, 26), date(2024, 3, 3)),
        ("last month", date(2024, 2, 1), date(2024, 2, 29)),
        ("past month", date(2024, 2, 1), date(2024, 2, 29)),
        ("past month", date(2024, 2, 15), date(2024, 3, 15)),
        ("this quarter", date(2024, 1, 1), date(2024, 3, 31)),
        ("previous quarter", date(2023, 10, 1), date(2023, 12, 31)),
        ("next year", date(2025, 1, 1), date(2025, 12, 31)),
        ("the last 3 months", date(2023, 12, 1), date(2024, 2, 29)),
        ("the last 3 months", date(2023, 12, 15), date(2024, 3, 15)),
        ("past seven days", date(2024, 3, 8), date(2024, 3, 15)),
        ("past seven days", date(2024, 3, 9), date(2024, 3, 15)),
        ("past seven days", date(2024, 3, 8), date(2024, 3, 14)),
        ("two years ago", date(2022, 1, 1), date(2022, 12, 31)),
        ("two years ago", date(2022, 3, 15), date(2022, 3, 15)),
        ("year to date", date(2024, 1, 1), date(2024, 3, 15)),
        ("ytd", date(2024, 1, 1), date(2024, 3, 15)),
        ("last Friday", date(2024, 3, 8), date(2024, 3, 8)),
        ("next Monday", date(2024, 3, 18), date(2024, 3, 18)),
        ("that ended on Friday", date(2024, 3, 15), date(2024, 3, 15)),
        ("that ended on Monday", date(2024, 3, 11), date(2024, 3, 11)),
        ("that ended over the weekend", date(2024, 3, 9), date(2024, 3, 10)),
        ("that will be on Monday", date(2024, 3, 18), date(2024, 3, 18)),
        ("in March 2025", date(2025, 3, 1), date(2025, 3, 31)),
        ("that ended in March", date(2024, 3, 1), date(2024, 3, 31)),
        ("that ended in April", date(2023, 4, 1), date(2023, 4, 30)),
        ("in March of last year", date(2023, 3, 1), date(2023, 3, 31)),
        ("in Q1 2025", date(2025, 1, 1), date(2025, 3, 31)),
        ("in the second quarter of 2025", date(2025, 4, 1), date(2025, 6, 30)),
        ("in week 12 of 2025", date(2025, 3, 17), date(2025, 3, 23)),
        ("in 2025-W12", date(2025, 3, 17), date(2025, 3, 23)),
        ("on March 1st 2025", date(2025, 3, 1), date(2025, 3, 1)),
        ("on 2025-03-01", date(2025, 3, 1), date(2025, 3, 1)),
        ("in the year 2025", date(2025, 1, 1), date(2025, 12, 31)),
        ("in the 1990s", date(1990, 1, 1), date(1999, 12, 31)),
    ],
)
def test_a_period_is_known_by_its_words(words: str, first: date, last: date) -> None:
    assert (first, last) in days(words, FRIDAY)


@pytest.mark.parametrize(
    "words",
    [
        "recently",
        "currently",
        "this morning",
        "on the first Monday of March 2025",
        "on the first Monday of the month",
        "on every Monday",
        "on the last Monday of the quarter",
        "in the last week of March 2025",
        "in March and April",
        "on Monday of last week",
    ],
)
def test_what_words_may_mean_is_left_open(words: str) -> None:
    assert any(not each.ranges(FRIDAY) for each in periods(tuple(split(f"Visits {words}"))))


@pytest.mark.parametrize("words", ["in the last few days", "of the last customer", "that may march on", "on Mondays"])
def test_no_period_is_named(words: str) -> None:
    assert periods(tuple(split(f"Visits {words}"))) == ()


@pytest.mark.parametrize(
    "condition",
    [
        "strftime('%Y', day) = '{}'",
        "CAST(strftime('%Y', day) AS INTEGER) = {}",
        "day LIKE '{}%'",
        "day LIKE '{}-%'",
        "day GLOB '{}*'",
        "day BETWEEN '{}-01-01' AND '{}-12-31'",
        "day >= '{}-01-01' AND day <= '{}-12-31 23:59:59'",
        "substr(day, 1, 4) = '{}'",
        "year = {}",
        "year = '{}'",
        "year(day) = {}",
        "EXTRACT(YEAR FROM day) = {}",
        "day >= DATE '{}-01-01' AND day <= DATE '{}-12-31'",
    ],
)
def test_a_year_is_another_one_in_every_spelling(condition: str) -> None:
    made = verdict(VISITS.format("in 2025"), VISITS.format("in 2024"), condition.replace("{}", "2025"))
    assert (made.decision, condition_of(made)) == ("rebind", condition.replace("{}", "2024")), made.reason


@pytest.mark.parametrize(
    ("dialect", "proven", "asked"),
    [
        ("sqlite", "day LIKE '2025-03%'", "day LIKE '2024-02%'"),
        ("sqlite", "day BETWEEN '2025-03-01' AND '2025-03-31'", "day BETWEEN '2024-02-01' AND '2024-02-29'"),
        ("sqlite", "day >= '2025-03-01' AND day < '2025-04-01'", "day >= '2024-02-01' AND day < '2024-03-01'"),
        ("sqlite", "'2025-03-01' <= day AND '2025-04-01' > day", "'2024-02-01' <= day AND '2024-03-01' > day"),
        ("sqlite", "day > '2025-02-28' AND day < '2025-04-01'", "day > '2024-01-31' AND day < '2024-03-01'"),
        ("sqlite", "strftime('%Y-%m', day) = '2025-03'", "strftime('%Y-%m', day) = '2024-02'"),
        (
            "sqlite",
            "strftime('%Y', day) = '2025' AND strftime('%m', day) = '03'",
            "strftime('%Y', day) = '2024' AND strftime('%m', day) = '02'",
        ),
        (
            "sqlite",
            "substr(day, 1, 4) = '2025' AND substr(day, 6, 2) = '03'",
            "substr(day, 1, 4) = '2024' AND substr(day, 6, 2) = '02'",
        ),
        ("sqlite", "day BETWEEN date('2025-03-01') AND date('2025-03-31')", None),
        ("sqlite", "at >= 1740787200 AND at < 1743465600", "at >= 1706745600 AND at < 1709251200"),
        ("sqlite", "at >= 1740787200000 AND at < 1743465600000", "at >= 1706745600000 AND at < 1709251200000"),
        ("sqlite", "day BETWEEN 20250301 AND 20250331", "day BETWEEN 20240201 AND 20240229"),
        ("sqlite", "day >= '01.03.2025' AND day <= '31.03.2025'", "day >= '01.02.2024' AND day <= '29.02.2024'"),
        (
            "postgres",
            "day >= DATE '2025-03-01' AND day < '2025-04-01'::date",
            "day >= DATE '2024-02-01' AND day < '2024-03-01' ::date",
        ),
        (
            "postgres",
            "at >= TIMESTAMP '2025-03-01 00:00:00' AND at <= TIMESTAMP '2025-03-31 23:59:59.999'",
            "at >= TIMESTAMP '2024-02-01 00:00:00' AND at <= TIMESTAMP '2024-02-29 23:59:59.999'",
        ),
        ("postgres", "date_trunc('month', day) = '2025-03-01'", "date_trunc('month', day) = '2024-02-01'"),
        (
            "postgres",
            "EXTRACT(YEAR FROM day) = 2025 AND EXTRACT(MONTH FROM day) = 3",
            "EXTRACT(YEAR FROM day) = 2024 AND EXTRACT(MONTH FROM day) = 2",
        ),
        ("postgres", "to_char(day, 'YYYY-MM') = '2025-03'", "to_char(day, 'YYYY-MM') = '2024-02'"),
        ("mysql", "YEAR(day) = 2025 AND MONTH(day) = 3", "YEAR(day) = 2024 AND MONTH(day) = 2"),
        ("mysql", "DATE_FORMAT(day, '%Y-%m') = '2025-03'", "DATE_FORMAT(day, '%Y-%m') = '2024-02'"),
        (
            "duckdb",
            "year(day) = 2025 AND monthname(day) = 'March'",
            "year(day) = 2024 AND monthname(day) = 'February'",
        ),
    ],
)
def test_a_month_is_another_one_in_every_spelling(dialect: str, proven: str, asked: str | None) -> None:
    made = verdict(VISITS.format("in March 2025"), VISITS.format("in February 2024"), proven, dialect=dialect)
    wanted = asked or proven.replace("2025-03-01", "2024-02-01").replace("2025-03-31", "2024-02-29")
    assert (made.decision, condition_of(made)) == ("rebind", wanted), made.reason


@pytest.mark.parametrize(
    ("when", "condition", "later", "wanted"),
    [
        ("on Monday", "day LIKE '2026-11-16%'", timedelta(days=10), "day LIKE '2026-11-23%'"),
        ("on Monday", "day = '2026-11-16'", timedelta(days=2), "day = '2026-11-16'"),
        ("last Monday", "day = '2026-11-09'", timedelta(days=14), "day = '2026-11-23'"),
        ("yesterday", "day = '2026-11-15'", timedelta(days=3), "day = '2026-11-18'"),
        ("today", "day >= '2026-11-16' AND day < '2026-11-17'", timedelta(days=1), None),
        (
            "over the weekend",
            "day BETWEEN '2026-11-14' AND '2026-11-15'",
            timedelta(days=10),
            "day BETWEEN '2026-11-21' AND '2026-11-22'",
        ),
        ("in the last 7 days", "day >= '2026-11-09'", timedelta(days=10), "day >= '2026-11-19'"),
        ("in the last 7 days", "day > date('2026-11-16', '-7 days')", timedelta(days=10), None),
        ("in the past 30 days", "day >= '2026-10-17' AND day <= '2026-11-16'", timedelta(days=1), None),
        (
            "last week",
            "day BETWEEN '2026-11-09' AND '2026-11-15'",
            timedelta(days=10),
            "day BETWEEN '2026-11-16' AND '2026-11-22'",
        ),
        (
            "last month",
            "day >= '2026-10-01' AND day < '2026-11-01'",
            timedelta(days=60),
            "day >= '2026-12-01' AND day < '2027-01-01'",
        ),
        ("last month", "day LIKE '2026-10%'", timedelta(days=30), "day LIKE '2026-11%'"),
        ("this quarter", "day >= '2026-10-01'", timedelta(days=60), "day >= '2027-01-01'"),
        ("this year", "strftime('%Y', day) = '2026'", timedelta(days=60), "strftime('%Y', day) = '2027'"),
        ("this year", "year = 2026", timedelta(days=60), "year = 2027"),
        ("this month", "month = 11 AND year = 2026", timedelta(days=60), "month = 1 AND year = 2027"),
        (
            "year to date",
            "day BETWEEN '2026-01-01' AND '2026-11-16'",
            timedelta(days=60),
            "day BETWEEN '2027-01-01' AND '2027-01-15'",
        ),
        ("this week", "strftime('%G-W%V', day) = '2026-W47'", timedelta(days=7), None),
        ("in the past 24 hours", "at >= '2026-11-15 09:00'", timedelta(days=10, minutes=3), "at >= '2026-11-25 09:03'"),
        ("in the past 24h", "at >= '2026-11-15T09:00:00Z'", timedelta(hours=5), "at >= '2026-11-15T14:00:00Z'"),
        ("in the last hour", "at > 1794816000", timedelta(minutes=90), "at > 1794821400"),
        ("in the last 30 minutes", "at >= '2026-11-16 08:30'", timedelta(minutes=1), "at >= '2026-11-16 08:31'"),
    ],
)
def test_words_that_follow_the_clock_are_bound_from_it(
    when: str, condition: str, later: timedelta, wanted: str | None
) -> None:
    question = VISITS.format(when)
    made = verdict(question, question, condition, later=later)
    assert made.decision == ("serve" if wanted == condition else "rebind"), made.reason
    if wanted is not None:
        assert condition_of(made) == wanted
    else:
        assert condition_of(made) not in (condition, None)


@pytest.mark.parametrize(
    ("condition", "decision"),
    [
        ("strftime('%m-%d', day) = '03-05'", "serve"),
        ("strftime('%m-%d', day) = '06-09'", "refuse"),
        ("day LIKE 'March 5%'", "serve"),
        ("day LIKE 'June 9%'", "refuse"),
    ],
)
def test_a_day_of_any_year_is_served_if_the_question_names_it(condition: str, decision: str) -> None:
    question = VISITS.format("on March 5th")
    assert verdict(question, question, condition).decision == decision


def test_sql_of_another_day_serves_the_days_between_as_long_as_they_are_the_same() -> None:
    question = VISITS.format("last month")
    condition = "day >= '2026-10-01' AND day < '2026-11-01'"
    for later, decision in ((14, "serve"), (15, "rebind")):
        assert verdict(question, question, condition, later=timedelta(days=later)).decision == decision


@pytest.mark.parametrize(
    ("proven", "asked", "condition", "wanted"),
    [
        ("in 2025", "in March 2025", "day LIKE '2025%'", "day LIKE '2025-03%'"),
        ("in 2025", "in March 2024", "day LIKE '2025-%'", "day LIKE '2024-03%'"),
        ("in 2025", "on 2025-03-01", "day LIKE '2025%'", "day LIKE '2025-03-01%'"),
        (
            "in 2025",
            "in March 2025",
            "day BETWEEN '2025-01-01' AND '2025-12-31'",
            "day BETWEEN '2025-03-01' AND '2025-03-31'",
        ),
        (
            "last month",
            "in Q1 2025",
            "day >= '2026-10-01' AND day < '2026-11-01'",
            "day >= '2025-01-01' AND day < '2025-04-01'",
        ),
        (
            "in Q1 2025",
            "in Q2 2024",
            "strftime('%Y', day) = '2025' AND strftime('%m', day) IN ('01', '02', '03')",
            "strftime('%Y', day) = '2024' AND strftime('%m', day) IN ('04', '05', '06')",
        ),
        ("on Monday", "on Tuesday", "day = '2026-11-16'", "day = '2026-11-24'"),
        ("on Monday", "on March 1st 2025", "day = '2026-11-16'", "day = '2025-03-01'"),
        ("since 2025", "since March 2025", "day >= '2025-01-01'", "day >= '2025-03-01'"),
        ("after 2025", "after 2019", "day > '2025-12-31'", "day > '2019-12-31'"),
        ("after 2025", "after 2019", "year >= 2026", "year >= 2020"),
        (
            "between March 2025 and May 2025",
            "between July 2025 and February 2025",
            "day >= '2025-03-01' AND day < '2025-06-01'",
            "day >= '2025-02-01' AND day < '2025-08-01'",
        ),
        (
            "between 2025-01-01 and 2025-02-01",
            "between 2024-05-01 and 2024-03-01",
            "day BETWEEN '2025-01-01' AND '2025-02-01'",
            "day BETWEEN '2024-03-01' AND '2024-05-01'",
        ),
        ("between 50 and 100 long", "between 300 and 200 long", "n BETWEEN 50 AND 100", "n BETWEEN 200 AND 300"),
        ("between 100 and 50 long", "between 200 and 300 long", "n BETWEEN 50 AND 100", "n BETWEEN 200 AND 300"),
        ("with more than 2000 items", "with more than 1990 items", "n > 2000", "n > 1990"),
        ("in March", "in April", "strftime('%m', day) = '03'", "strftime('%m', day) = '04'"),
    ],
)
def test_one_period_stands_for_another(proven: str, asked: str, condition: str, wanted: str) -> None:
    made = verdict(VISITS.format(proven), VISITS.format(asked), condition)
    assert (made.decision, condition_of(made)) == ("rebind", wanted), made.reason


@pytest.mark.parametrize(
    ("proven", "asked", "condition"),
    [
        ("in 2025", "in March 2025", "strftime('%Y', day) = '2025'"),
        ("in March 2025", "in 2025", "strftime('%Y', day) = '2025' AND strftime('%m', day) = '03'"),
        ("in March 2025", "in April 2025", "strftime('%Y', day) = '2025'"),
        ("in March", "in April 2025", "strftime('%m', day) = '03'"),
        ("in March 2025", "in April 2025", "day >= '2025-03-01' AND day < '2025-04-05'"),
        ("in March 2025", "in April 2025", "day >= '2025-03-01'"),
        ("in March 2025", "in April 2025", "day >= '2025-03-01' AND day < CURRENT_DATE"),
        ("since 2025", "in 2025", "day >= '2025-01-01'"),
        ("before 2025", "after 2025", "day < '2025-01-01'"),
        ("in 2024 and 2025", "in 2021 and 2023", "day >= '2024-01-01' AND day < '2025-01-01'"),
        ("in the last few days", "in the last few days", "day >= '2026-11-13'"),
        ("recently", "recently", "day >= '2026-11-13'"),
        ("in the last 7 days", "in the last 7 days", "day >= '2026-11-12'"),
        ("in the past 24 hours", "in the past 24 hours", "at >= '2026-11-16 08:00'"),
        ("in the past 24 hours", "in the past 24 hours", "at >= '2026-11-15'"),
        ("in the last Monday of March 2025", "in the last Monday of April 2025", "day = '2025-03-31'"),
        ("in the second quarter of this year", "in the second quarter of last year", "year = 2026 AND quarter = 3"),
    ],
)
def test_what_does_not_follow_for_certain_is_refused(proven: str, asked: str, condition: str) -> None:
    made = verdict(VISITS.format(proven), VISITS.format(asked), condition)
    assert (made.decision, made.display) == ("refuse", None), made.display


@pytest.mark.parametrize("asked", ["How many loans were due on Monday?", "How many loans were due on Friday?"])
def test_what_was_due_is_not_bound_to_a_day_that_comes(asked: str) -> None:
    proven = "How many loans are due on Friday?"
    assert verdict(proven, asked, "day = '2026-11-20'", later=timedelta(0)).decision == "refuse"
    coming = verdict(proven, "How many loans are due on Thursday?", "day = '2026-11-20'", later=timedelta(0))
    assert condition_of(coming) == "day = '2026-11-19'"


def test_a_weekday_without_a_tense_may_be_the_last_or_the_next() -> None:
    on_monday = "Visits on Monday"
    assert verdict(on_monday, on_monday, "day = '2026-11-16'", later=timedelta(hours=5)).decision == "serve"
    assert verdict(on_monday, on_monday, "day = '2026-11-16'").decision == "refuse"
    # Proven on a Wednesday, the Monday before it shows which one is meant.
    wednesday = MONDAY + timedelta(days=2)
    made = verdict(on_monday, on_monday, "day = '2026-11-16'", proven_at=wednesday)
    assert condition_of(made) == "day = '2026-11-23'"


@pytest.mark.parametrize(
    "words", ["on 2020-13-45", "on 2025-02-29", "on February 30th", "on 31 April 2025", "on Feb 29, 2025"]
)
def test_a_date_that_no_calendar_has_is_refused(words: str) -> None:
    made = verdict(VISITS.format("on 2025-03-01"), VISITS.format(words), "day = '2025-03-01'")
    assert (made.decision, made.gate) == ("refuse", "literals")
    assert made.reason == f"“{words.removeprefix('on ')}” is not a date of the calendar."
    assert impossible(split("on 2024-02-29, Feb 29 and April 30th 2025")) is None


def before(day: date, wanted: int) -> date:
    """The last such weekday on or before a day."""
    return day - timedelta(days=(day.weekday() - wanted) % 7)


def month_before(day: date) -> tuple[date, date]:
    last = day.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last


def this_month(day: date) -> tuple[date, date]:
    return day.replace(day=1), month_before(day.replace(day=28) + timedelta(days=4))[1]


MEANT: dict[str, Callable[[date], Sequence[tuple[date, date]]]] = {
    "on Monday": lambda day: [2 * (before(each, 0),) for each in (day, day - A_DAY)],
    "on Saturday": lambda day: [2 * (before(each, 5),) for each in (day, day - A_DAY)],
    "over the weekend": lambda day: [(before(each, 5), before(each, 5) + A_DAY) for each in (day, day - 2 * A_DAY)],
    "yesterday": lambda day: [2 * (day - A_DAY,)],
    "today": lambda day: [2 * (day,)],
    "last week": lambda day: [(before(day, first) - 7 * A_DAY, before(day, first) - A_DAY) for first in (0, 6)],
    "last month": lambda day: [month_before(day)],
    "this month": lambda day: [this_month(day), (day.replace(day=1), day)],
    "in the last 7 days": lambda day: [(day - 7 * A_DAY, day), (day - 6 * A_DAY, day), (day - 7 * A_DAY, day - A_DAY)],
    "in 2026": lambda day: [(date(2026, 1, 1), date(2026, 12, 31))],
    "in October 2026": lambda day: [(date(2026, 10, 1), date(2026, 10, 31))],
    **dict.fromkeys(
        (
            "in the last few days",
            "in recent days",
            "lately",
            "since the last holiday",
            "at Easter",
            "",
            "in the past 24h",
            "in the last hour",
            "this morning",
            "on the first Monday of the month",
            "on the third Saturday",
            "in the first week of this month",
            "every Monday",
        ),
        lambda day: [],
    ),
}
"""What words mean on a day, as the first and the last day of each reading."""
SPELLINGS = [
    "day = '{0:%Y-%m-%d}'",
    "day >= DATE '{0:%Y-%m-%d}'",
    "day LIKE '{0:%Y-%m-%d}%'",
    "day LIKE '{0:%Y-%m}%'",
    "day > TIMESTAMP '{0:%Y-%m-%d} 00:00:00'",
    "day > '{0:%Y-%m-%d} 07:15'",
    "day <= '{0:%Y-%m-%d} 23:59:59'",
    "day = '{0:%d.%m.%Y}'",
    "day = '{0:%m/%d/%Y}'",
    "day = {0:%Y%m%d}",
    "EXTRACT(YEAR FROM day) = {0:%Y} AND EXTRACT(MONTH FROM day) = {0.month}",
    "EXTRACT(YEAR FROM day) = {0:%Y} AND EXTRACT(MONTH FROM day) = {0.month} AND EXTRACT(DAY FROM day) = {0.day}",
    "to_char(day, 'YYYY-MM') = '{0:%Y-%m}'",
    "day BETWEEN '{0:%Y-%m-%d}' AND '{1:%Y-%m-%d}'",
    "day >= '{0:%Y-%m-%d}' AND day < '{1:%Y-%m-%d}'",
    "day >= '{0:%Y-%m-%d}' AND town = 'Hull'",
    "at >= {2}",
    "at >= {2}000 AND at < {3}000",
    "at >= to_timestamp({2})",
]
HOURS = {"in the last hour": 1, "in the past 24 hours": 24, "in the past 24h": 24, "in the last 3 hours": 3}
days_of_proofs = st.dates(date(2025, 10, 1), date(2027, 2, 1))


def written(spelling: str, first: date, last: date) -> str:
    seconds = (int(datetime.combine(each, time(), UTC).timestamp()) for each in (first, last))
    return spelling.format(first, last, *seconds)


@settings(max_examples=400)
@given(
    proven_at=days_of_proofs,
    away=st.integers(-45, 10),
    length=st.sampled_from([0, 1, 6, 7, 27, 28, 29, 30, 31, 364, 365]),
    spelling=st.sampled_from(SPELLINGS),
    when=st.sampled_from(sorted(MEANT)),
    town=st.sampled_from(["Hull", "York"]),
    later=st.integers(1, 500),
    at=st.times(),
)
@pytest.mark.slow
def test_no_date_is_used_on_another_day_unless_the_question_names_it(
    proven_at: date, away: int, length: int, spelling: str, when: str, town: str, later: int, at: time
) -> None:
    first = proven_at + timedelta(days=away)
    condition = written(spelling, first, first + timedelta(days=length))
    proven = f"How many people visited Hull {when}?"
    now = datetime.combine(proven_at + timedelta(days=later), at, UTC)
    made = decide(
        proven.replace("Hull", town),
        proven,
        f"SELECT count(*) FROM visits WHERE {condition}",
        dialect="postgres",
        values=VALUES,
        now=now,
        proven_at=datetime.combine(proven_at, at, UTC),
    )
    if made.decision == "refuse":
        return
    edges = {edge for one, other in MEANT[when](now.date()) for edge in (one - A_DAY, one, other, other + A_DAY)}
    used = str(condition_of(made)).replace("York", "Hull")
    assert any(used == written(spelling, one, other) for one in edges for other in edges), (used, made.reason)


@given(
    proven_at=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),
    away=st.integers(0, 30 * 60),
    when=st.sampled_from(sorted(HOURS)),
    spelling=st.sampled_from(["at >= '{0:%Y-%m-%d %H:%M}'", "at > '{0:%Y-%m-%dT%H:%M:%S}'", "at >= {1}"]),
    later=st.timedeltas(timedelta(minutes=1), timedelta(days=9)),
    exact=st.booleans(),
)
@pytest.mark.slow
def test_no_hour_is_used_in_another_minute_unless_it_is_as_far_from_now(
    proven_at: datetime, away: int, when: str, spelling: str, later: timedelta, exact: bool
) -> None:
    def of(moment: datetime) -> str:
        return spelling.format(moment, int(moment.replace(tzinfo=UTC).timestamp()))

    question = VISITS.format(when)
    at = proven_at - (timedelta(hours=HOURS[when]) if exact else timedelta(minutes=away))
    made = verdict(question, question, of(at), later=later, proven_at=proven_at)
    now = proven_at + later
    if made.decision != "refuse" and (now.date() != proven_at.date() or (at.hour, at.minute) not in MIDNIGHTS):
        assert condition_of(made) in {of(now - timedelta(hours=HOURS[when])), of(now)}, made.reason


MIDNIGHTS = ((0, 0), (23, 59))
