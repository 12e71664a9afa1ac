"""Dates and times that a statement names, and whether a question names them, too."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from heedful.caching import cache_short
from heedful.sql.reuse import reasons
from heedful.sql.reuse.periods import Written, is_possible, periods, written_dates
from heedful.sql.reuse.query_parts import parsed_tokens
from heedful.sql.reuse.question_words import number
from heedful.sql.reuse.values import split
from heedful.sql.statements import QUOTED

_WEEKDAYS = re.compile(r"\b(?:mon|tues?|wednes|wed|thurs?|fri|satur|sat|sun)(?:days?)?\b|\bweek(?:end|day)s?\b")
_PARTS_OF_DAY = re.compile(r"\b(?:morning|noon|afternoon|evening|night|midnight|lunch\w*)s?\b")
_OPEN_ENDED = re.compile(r"\b(?:after|before|since|until|till|than|following|prior|later|earlier)\b")

_CLOCK = re.compile(
    r"(?<![\d:])(?P<half>1[0-2]|0?[1-9])(?::(?P<past>[0-5]\d))?\s*(?P<side>[ap])\.?m\b"
    r"|(?<!\d)(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)"
)
_OF_WHOLE_DAYS = frozenset(((0, 0), (23, 59), (24, 0)))
_TWO = r"(?:[0-2]\d|3[01])"
_MONTH_DAY = re.compile(rf"(?:%?[-/.]?(?P<first>{_TWO})|%)[-/.](?P<second>{_TWO})[-/.]?(?:[ T%].*)?")
"""A month and a day, in either order, or one of them behind a wildcard."""
_WEEK = re.compile(r"(?:19|20)\d\d-?[wW]\d\d")

FIRST_EPOCH, LAST_EPOCH = 978_307_200, 4_102_444_800  # 2001 to 2099.
_LONGEST_EPOCH = 13  # In milliseconds.
_ROUND = 1_000_000  # A number of so many zeros is rather a count than a moment.
_MAY_NAME_DATE = re.compile(
    r"\d{4}|(?<![a-z_])\d{1,2}[./:-]\w|day|month|\bmon\b|week|quarter|hour|minute|second|do[wy]\b|julian|epoch|extract|substr|to_char|_?part|%-?[a-z]|%[./-]\d",
    re.IGNORECASE,
)
_MAY_NAME_TIME = re.compile(r":\d\d|hour|minute|second|%|\d{10}|date_?part|to_char", re.IGNORECASE)
"""What a statement has that names one: most have none, and needn't be parsed."""
_TIME = re.compile(r":\d\d|^\d{10,}$")
HOUR = "hour"
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like, exp.Is)
_PARTS = {
    **dict.fromkeys(("month", "mon", "monthname", "month_name", "%m", "%b"), "month"),
    **dict.fromkeys(("day", "dayofmonth", "day_of_month", "dayofyear", "doy", "%d", "%e", "%j"), "day"),
    **dict.fromkeys(("dow", "isodow", "dayofweek", "day_of_week", "dayofweekiso", "weekday", "dayname"), "weekday"),
    **dict.fromkeys(("day_name", "%w", "%u", "%a"), "weekday"),
    **dict.fromkeys(("week", "weekofyear", "isoweek", "%v", "%g"), "week"),
    **dict.fromkeys(("quarter", "%q"), "quarter"),
    **dict.fromkeys(("hour", "minute", "second", "%h", "%i", "%s", "%t"), HOUR),
    **dict.fromkeys(("julianday", "julian", "epoch", "unixepoch", "to_days"), "day"),
}

_CUT = {("6", "2"): "month", ("9", "2"): "day"}


class Moment(NamedTuple):
    """A date or time as a statement writes it; what it leaves open is None."""

    text: str
    year: int | None = None
    month: int | None = None
    day: int | None = None
    clock: tuple[int, int] | None = None
    part: str = ""
    """Which part of a date it is compared with, for a number that stands for one: "month"."""


class Named(NamedTuple):
    """The dates that a question names on the day it is asked."""

    edges: frozenset[date]
    """The first and the last day of each period, and the days beside them, where a period that is compared may end."""
    months: frozenset[tuple[int, int]]
    years: frozenset[int]
    quarters: frozenset[int]
    parts_of_months: frozenset[int]
    """The months of periods that are no longer than a quarter: a year is not named by its first one."""
    parts_of_days: frozenset[int]
    clocks: frozenset[tuple[int, int]]
    any_clock: bool
    words: tuple[str, ...]
    text: str


def outdated(
    question: str,
    sql: str,
    dialect: str,
    now: datetime,
    proven_at: datetime,
    *,
    bound: Collection[tuple[str, str]] = (),
    rebound: bool = False,
) -> str | None:
    """Why a statement no longer answers a question as it did when it was proven: it names a date that the question
    doesn't, and another day has begun, or another minute if it names a time of the day. None if it still does.

    The dates `bound`, with the parts of a date that they are, were taken from the question. If one of them is another
    now (`rebound`), no day is the one of the proof.

    >>> outdated("Loans on Monday", "SELECT 1 WHERE d = '2026-11-16'", "sqlite", *2 * [datetime(2026, 11, 16, 9)])
    """
    another_day = rebound or now.date() != proven_at.date()
    if not another_day and (now.hour, now.minute) == (proven_at.hour, proven_at.minute):
        return None
    readings: dict[tuple[str, str], list[Moment]] = {}
    for each in moments(sql, dialect):
        readings.setdefault((each.text, each.part), []).append(each)
    for (text, part), ways in readings.items():
        if (text, part) in bound:
            continue
        named = _named(question, now.date())
        if any(_is_named(each, named) for each in ways):
            continue
        if another_day or any(each.part == HOUR or not _is_clock_named(each, named) for each in ways):
            return reasons.outdated(text, proven_at, by_minute=not another_day)
    return None


@cache_short(entries=16_384, characters=1_000)
def moments(sql: str, dialect: str) -> tuple[Moment, ...]:
    """The dates and times that are written into a statement that can be read.

    >>> [(each.year, each.month, each.day, each.clock) for each in moments("SELECT DATE '2024-05-01'", "postgres")]
    [(2024, 5, 1, None)]
    """
    statement = parsed_tokens(sql, dialect) if _MAY_NAME_DATE.search(sql) else None
    if statement is None:
        return ()
    found: list[Moment] = []
    for token in statement.tokens:
        if token.token_type is TokenType.NUMBER:
            found += _of_number(token.text)
        elif token.token_type in QUOTED or token.token_type is TokenType.VAR:
            # SQLite reads "2026" as a text. A name may hold a year that says nothing; with a month, it is asked for.
            is_name = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
            is_text = not is_name or token.text[:1].isdigit()
            found += [each for each in _of_text(token.text) if is_text or (each.year and each.month)]
    return (*found, *_of_parts(statement.tree))


def resolution(sql: str, dialect: str, at: datetime) -> date:
    """The day of a time, or its minute if the statement names a time of the day: for as long as that is the same, the
    statement answers the same questions."""
    return at.replace(second=0, microsecond=0) if _names_time(sql, dialect) else at.date()


def unnamed(question: str, sql: str, dialect: str, at: datetime) -> set[str]:
    """The dates and times of a statement that its question doesn't name: it is right until they are others."""
    found = moments(sql, dialect)
    return {each.text for each in found if not _is_named(each, _named(question, at.date()))}


@cache_short(entries=16_384, characters=1_000)
def _names_time(sql: str, dialect: str) -> bool:
    if not _MAY_NAME_TIME.search(sql):
        return False
    # Midnight is a time as well, where it is bound from the clock.
    return any(each.part == HOUR or _TIME.search(each.text) for each in moments(sql, dialect))


def _of_text(text: str) -> Iterator[Moment]:
    plain = text.casefold()
    clock = next((each for each in _clocks(plain) if each not in _OF_WHOLE_DAYS), None)
    if _WEEK.search(text):
        yield Moment(text)
        return
    # A month alone may be a name; where it is compared with a month, that shows it.
    dates = [each for each in written_dates(plain) if each[0] is not None or each[2] is not None]
    if not dates and (alone := _MONTH_DAY.fullmatch(text)):
        dates = [each for each in _without_year(alone) if is_possible(*each)]
    for year, month, day in dates:
        yield Moment(text, year, month, day, clock)
    if clock is not None and not dates:
        yield Moment(text, clock=clock)


def _without_year(match: re.Match[str]) -> Iterator[Written]:
    first, second = int(match["first"]) if match["first"] else None, int(match["second"])
    yield None, first, second
    yield None, second, first


def _of_number(text: str) -> Iterator[Moment]:
    if len(text) > _LONGEST_EPOCH or not text.isascii() or not text.isdecimal():
        return
    value = int(text)
    seconds = value // 1000 if len(text) == _LONGEST_EPOCH else value
    if len(text) in (4, 6, 8):
        yield from (Moment(text, *each) for each in written_dates(text))
    elif FIRST_EPOCH <= seconds < LAST_EPOCH and seconds % _ROUND:
        at = datetime.fromtimestamp(seconds, UTC)
        clock = (at.hour, at.minute)
        yield Moment(text, at.year, at.month, at.day, None if clock in _OF_WHOLE_DAYS else clock)


def _of_parts(tree: exp.Expr) -> Iterator[Moment]:
    """What is compared with a part of a date: "EXTRACT(MONTH FROM day) = 3"."""
    for node in tree.find_all(*_COMPARED):
        sides = [each for each in node.iter_expressions() if not isinstance(each, exp.Literal)]
        part = next((part for side in sides if (part := date_part(side))), None)
        if part is not None:
            texts = [str(each.this) for each in node.iter_expressions() if isinstance(each, exp.Literal)]
            yield from (Moment(text, part=part) for text in texts if next(_of_text(text), None) is None)


def date_part(node: exp.Expr) -> str | None:
    """The part of a date that an expression is, such as "month", or None for any other."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    if isinstance(node, exp.Column):
        return _PARTS.get(node.name.lower())
    if isinstance(node, exp.Substring):
        # Of an ISO date: "substr(day, 6, 2)".
        return _CUT.get((node.text("start"), node.text("length")))
    if isinstance(node, exp.Extract):
        return _PARTS.get(node.this.name.lower())
    if isinstance(node, exp.Anonymous):
        names = [node.name, *[str(each.this) for each in node.expressions if isinstance(each, exp.Literal)]]
        return next((part for name in names if (part := _PARTS.get(name.lower()))), None)
    if isinstance(node, exp.TimeToStr):
        letters = re.findall(r"%-?[A-Za-z]", str(node.args["format"].this) if node.args.get("format") else "")
        return _PARTS.get(_letter(letters[0])) if len(letters) == 1 else None
    return _PARTS.get(node.sql_name().lower().replace("_", "")) if isinstance(node, exp.Func) else None


def _letter(sign: str) -> str:
    # "%M" is the minute.
    return {"%M": "%i", "%-M": "%i"}.get(sign, sign.replace("-", "").lower())


def _clocks(text: str) -> Iterator[tuple[int, int]]:
    for match in _CLOCK.finditer(text):
        if match["side"]:
            yield int(match["half"]) % 12 + (12 if match["side"] == "p" else 0), int(match["past"] or 0)
        else:
            yield int(match["hour"]), int(match["minute"])


@cache_short(entries=4_096, characters=500)
def _named(question: str, today: date) -> Named:
    words = tuple(split(question))
    text = unicodedata.normalize("NFKD", question.casefold())
    text = " ".join("".join(sign for sign in text if not unicodedata.combining(sign)).split())
    written = list(written_dates(text))
    years = {year for year, _, _ in written if year is not None}
    explicit: list[tuple[date, date]] = []
    for year, month, day in written:
        # "In March" is in the year that the question names, or in this one.
        for each in (year,) if year is not None else sorted(years) or (today.year,):
            if is_possible(each, month, day):
                explicit.append(_period(each, month, day))
    edges = {day for first, last in explicit for day in (first - _A_DAY, first, last, last + _A_DAY)}
    relative = _relative(words, today)
    edges |= {day for first, last in relative for day in (first, last, last + _A_DAY)}
    found = [*explicit, *relative]
    ends = [day for period in found for day in period]
    # "After 2019" is "from 2020 on", too.
    beside = edges if _OPEN_ENDED.search(text) else ends
    return Named(
        frozenset(edges),
        frozenset((day.year, day.month) for day in (*ends, *beside)),
        frozenset(day.year for day in (*ends, *beside)) | years,
        frozenset((first.month + 2) // 3 for first, last in found if (last - first).days > 80),
        frozenset(day.month for first, last in found if (last - first).days <= _QUARTER for day in (first, last)),
        frozenset(first.day for first, last in found if first == last),
        frozenset(_clocks(text)),
        _PARTS_OF_DAY.search(text) is not None,
        words,
        text,
    )


_A_DAY = timedelta(days=1)
_QUARTER = 92  # Days, at most.


def _relative(words: tuple[str, ...], today: date) -> list[tuple[date, date]]:
    """The first and the last day of each period that follows the clock, if it can be read in one way only."""
    found = []
    for each in periods(words):
        ranges = set(each.ranges(datetime(today.year, today.month, today.day)).values())
        if each.follows_clock and len(ranges) == 1 and (only := ranges.pop()).kind != "hours":
            found.append((only.first.date(), only.end.date() - _A_DAY))
    return found


def _period(year: int, month: int | None, day: int | None) -> tuple[date, date]:
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    if day is None:
        return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - _A_DAY
    return date(year, month, day), date(year, month, day)


def _is_named(each: Moment, named: Named) -> bool:
    if _says(named.words, each.text) and not each.part:
        return True
    if each.part:
        return _is_part_named(each, named)
    if not _is_clock_named(each, named):
        return False
    if each.day is not None and each.month is not None:
        if each.year is None:
            return any((day.month, day.day) == (each.month, each.day) for day in named.edges)
        return date(each.year, each.month, each.day) in named.edges
    if each.month is not None:
        return any(month == each.month and each.year in (None, year) for year, month in named.months)
    return each.year in named.years if each.year is not None else each.clock is not None


def _is_clock_named(each: Moment, named: Named) -> bool:
    return each.clock is None or named.any_clock or each.clock in named.clocks


def _is_part_named(each: Moment, named: Named) -> bool:
    value = number(each.text.strip("%").lstrip("0") or "0")
    if value is None:
        return _says(named.words, each.text)
    if each.part in named.text and value in {number(word) for word in named.words}:
        return True  # "In week 12."
    if each.part == "weekday":
        return _WEEKDAYS.search(named.text) is not None
    if each.part == HOUR:
        return named.any_clock or value in {str(hour) for hour, _ in named.clocks}
    known = {
        "month": named.parts_of_months,
        "day": named.parts_of_days,
        "quarter": named.quarters,
    }
    return value in map(str, known.get(each.part, ()))


def _says(words: Sequence[str], text: str) -> bool:
    """Whether a question has a text, or a number, word for word."""
    wanted = split(text.strip("%"))
    if not wanted:
        return False
    if len(wanted) == 1 and (value := number(wanted[0])) is not None:
        return any(number(word) == value for word in words)
    return any(list(words[at : at + len(wanted)]) == wanted for at in range(len(words)))
