"""Dates and times in a statement: whether its question names them, and what they are for other periods.

A literal follows from a period of the question if it is one of its edges as the statement writes them: its first or
last day, the day beside one of these, its year or month as a text or a number, or its first or last moment in hours.
The same edge of another period is then put in its place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from heedful.caching import cache_short
from heedful.sql.reuse import reasons
from heedful.sql.reuse.query_parts import Literal, Query, follows_clock, parsed, parsed_tokens
from heedful.sql.reuse.question_periods import Period, Range, is_possible, periods, written_dates
from heedful.sql.reuse.question_words import number, occurrences, split
from heedful.sql.reuse.reasons import Inline
from heedful.sql.statements import QUOTED
from heedful.text import word_set
from heedful.text.regex import regex

_WEEKDAYS = regex(r"\b(?:mon|tues?|wednes|wed|thurs?|fri|satur|sat|sun)(?:days?)?\b|\bweek(?:end|day)s?\b")
_PARTS_OF_DAY = regex(r"\b(?:morning|noon|afternoon|evening|night|midnight|lunch\w*)s?\b")
_OPEN_ENDED = regex(r"\b(?:after|before|since|until|till|than|following|prior|later|earlier)\b")

_CLOCK = regex(
    r"(?<![\d:])(?P<half>1[0-2]|0?[1-9])(?::(?P<past>[0-5]\d))?\s*(?P<side>[ap])\.?m\b"
    r"|(?<!\d)(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)"
)
_OF_WHOLE_DAYS = frozenset(((0, 0), (23, 59), (24, 0)))
_TWO = r"(?:[0-2]\d|3[01])"
_MONTH_DAY = regex(rf"(?:%?[-/.]?(?P<first>{_TWO})|%)[-/.](?P<second>{_TWO})[-/.]?(?:[ T%].*)?")
"""A month and a day, in either order, or one of them behind a wildcard."""
_WEEK = regex(r"(?:19|20)\d\d-?[wW]\d\d")

_A_DAY = timedelta(days=1)
FIRST_EPOCH, LAST_EPOCH = 978_307_200, 4_102_444_800  # 2001 to 2099.
_LONGEST_EPOCH = 13  # In milliseconds.
_ROUND = 1_000_000  # A number of so many zeros is rather a count than a moment.
_MAY_NAME_DATE = regex(
    r"\d{4}|(?<![a-z_])\d{1,2}[./:-]\w|day|month|\bmon\b|week|quarter|hour|minute|second|do[wy]\b|julian|epoch|extract|substr|to_char|_?part|%-?[a-z]|%[./-]\d",
    re.IGNORECASE,
)
_MAY_NAME_TIME = regex(r":\d\d|hour|minute|second|%|\d{10}|date_?part|to_char", re.IGNORECASE)
"""Signs of a statement that names one: most have none, and needn't be parsed."""
_TIME = regex(r":\d\d|^\d{10,}$")
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
    for moment in moments(sql, dialect):
        readings.setdefault((moment.text, moment.part), []).append(moment)
    for (text, part), ways in readings.items():
        if (text, part) in bound:
            continue
        named = _named(question, now.date())
        if any(_is_named(moment, named) for moment in ways):
            continue
        if another_day or any(moment.part == HOUR or not _is_clock_named(moment, named) for moment in ways):
            return reasons.outdated(text, proven_at, by_minute=not another_day)
    return None


@cache_short(entries=16_384, characters=1_000)
def moments(sql: str, dialect: str) -> tuple[Moment, ...]:
    """The dates and times that are written into a statement that can be read.

    >>> [moment[1:5] for moment in moments("SELECT DATE '2024-05-01'", "postgres")]
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
            found += [moment for moment in _of_text(token.text) if is_text or (moment.year and moment.month)]
    return (*found, *_of_parts(statement.tree))


def unnamed(question: str, sql: str, dialect: str, at: datetime) -> set[str]:
    """The dates and times of a statement that its question doesn't name: it is right until they are others."""
    found = moments(sql, dialect)
    return {moment.text for moment in found if not _is_named(moment, _named(question, at.date()))}


@cache_short(entries=16_384, characters=1_000)
def names_time(sql: str, dialect: str) -> bool:
    """Whether a statement names a time of the day."""
    if not _MAY_NAME_TIME.search(sql):
        return False
    # Midnight is a time as well, where it is bound from the clock.
    return any(moment.part == HOUR or _TIME.search(moment.text) for moment in moments(sql, dialect))


def _of_text(text: str) -> Iterator[Moment]:
    plain = text.casefold()
    clock = next((clock for clock in _clocks(plain) if clock not in _OF_WHOLE_DAYS), None)
    if _WEEK.search(text):
        yield Moment(text)
        return
    # A month alone may be a name; where it is compared with a month, that shows it.
    dates = [found for found in written_dates(plain) if found[0] is not None or found[2] is not None]
    if not dates and (alone := _MONTH_DAY.fullmatch(text)):
        first, second = int(alone["first"]) if alone["first"] else None, int(alone["second"])
        dates = [way for way in ((None, first, second), (None, second, first)) if is_possible(*way)]
    for year, month, day in dates:
        yield Moment(text, year, month, day, clock)
    if clock is not None and not dates:
        yield Moment(text, clock=clock)


def _of_number(text: str) -> Iterator[Moment]:
    if len(text) > _LONGEST_EPOCH or not text.isascii() or not text.isdecimal():
        return
    value = int(text)
    seconds = value // 1000 if len(text) == _LONGEST_EPOCH else value
    if len(text) in (4, 6, 8):
        yield from (Moment(text, *found) for found in written_dates(text))
    elif FIRST_EPOCH <= seconds < LAST_EPOCH and seconds % _ROUND:
        at = datetime.fromtimestamp(seconds, UTC)
        clock = (at.hour, at.minute)
        yield Moment(text, at.year, at.month, at.day, None if clock in _OF_WHOLE_DAYS else clock)


def _of_parts(tree: exp.Expr) -> Iterator[Moment]:
    """Literals that are compared with a part of a date: "EXTRACT(MONTH FROM day) = 3"."""
    for node in tree.find_all(*_COMPARED):
        sides = list(node.iter_expressions())
        part = next((part for side in sides if not isinstance(side, exp.Literal) and (part := date_part(side))), None)
        if part is not None:
            texts = [str(side.this) for side in sides if isinstance(side, exp.Literal)]
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
        names = [node.name, *[str(part.this) for part in node.expressions if isinstance(part, exp.Literal)]]
        return next((part for name in names if (part := _PARTS.get(name.lower()))), None)
    if isinstance(node, exp.TimeToStr):
        letters = re.findall(r"%-?[A-Za-z]", str(node.args["format"].this) if node.args.get("format") else "")
        sign = letters[0].replace("-", "") if len(letters) == 1 else ""
        return _PARTS.get("%i" if sign == "%M" else sign.lower())  # "%M" is the minute.
    return _PARTS.get(node.sql_name().lower().replace("_", "")) if isinstance(node, exp.Func) else None


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
        for likely in (year,) if year is not None else sorted(years) or (today.year,):
            if is_possible(likely, month, day):
                explicit.append(_period(likely, month, day))
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


_QUARTER = 92  # Days, at most.


def _relative(words: tuple[str, ...], today: date) -> list[tuple[date, date]]:
    """The first and the last day of each period that follows the clock, if it can be read in one way only."""
    found = []
    for period in periods(words):
        ranges = set(period.ranges(datetime(today.year, today.month, today.day)).values())
        if period.follows_clock and len(ranges) == 1 and (only := ranges.pop()).kind != "hours":
            found.append((only.first.date(), only.end.date() - _A_DAY))
    return found


def _period(year: int, month: int | None, day: int | None) -> tuple[date, date]:
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    if day is None:
        return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - _A_DAY
    return date(year, month, day), date(year, month, day)


def _is_named(moment: Moment, named: Named) -> bool:
    if _says(named.words, moment.text) and not moment.part:
        return True
    if moment.part:
        return _is_part_named(moment, named)
    if not _is_clock_named(moment, named):
        return False
    if moment.day is not None and moment.month is not None:
        if moment.year is None:
            return any((day.month, day.day) == (moment.month, moment.day) for day in named.edges)
        return date(moment.year, moment.month, moment.day) in named.edges
    if moment.month is not None:
        return any(month == moment.month and moment.year in (None, year) for year, month in named.months)
    return moment.year in named.years if moment.year is not None else moment.clock is not None


def _is_clock_named(moment: Moment, named: Named) -> bool:
    return moment.clock is None or named.any_clock or moment.clock in named.clocks


def _is_part_named(moment: Moment, named: Named) -> bool:
    value = number(moment.text.strip("%").lstrip("0") or "0")
    if value is None:
        return _says(named.words, moment.text)
    if moment.part in named.text and value in {number(word) for word in named.words}:
        return True  # "In week 12."
    if moment.part == "weekday":
        return _WEEKDAYS.search(named.text) is not None
    if moment.part == HOUR:
        return named.any_clock or value in {str(hour) for hour, _ in named.clocks}
    known = {"month": named.parts_of_months, "day": named.parts_of_days, "quarter": named.quarters}
    return value in map(str, known.get(moment.part, ()))


def _says(words: Sequence[str], text: str) -> bool:
    """Whether a question has a text, or a number, word for word."""
    wanted = split(text.strip("%"))
    if not wanted:
        return False
    if len(wanted) == 1 and (value := number(wanted[0])) is not None:
        return any(number(word) == value for word in words)
    return bool(occurrences(words, wanted))


_A_SECOND, _A_MINUTE = timedelta(seconds=1), timedelta(minutes=1)
_SIDES: dict[type[exp.Expr], str] = {
    **dict.fromkeys((exp.GT, exp.GTE), "lower"),
    **dict.fromkeys((exp.LT, exp.LTE), "upper"),
    **dict.fromkeys((exp.EQ, exp.In, exp.Is, exp.NEQ), "point"),
    **dict.fromkeys((exp.Like, exp.ILike, exp.Glob), "prefix"),
}
_FLIPPED = {"lower": "upper", "upper": "lower"}
_ISO = regex(r"(\d{4})(?:(-\d\d)(?:(-\d\d)([ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)?)?(Z|\+00(?::?00)?|[- T]?[%*])?")
_NUMERIC = regex(r"\d\d([./-])\d\d\1\d{4}")
_ISO_WEEK = regex(r"\d{4}-W\d\d")
_WHOLE_DAY_CLOCK = regex(r"[ T](?:00:00(?::00(?:\.0+)?)?|23:59(?::59(?:\.9+)?)?)")
_IN_MONTH = regex(r"%-(\d\d)-%")
_YEAR, _SECONDS = 4, 10  # Digits.
_WILDCARDS = ("%", "*")
_OF_KINDS = {"year": ("year", "quarter", "month", "day"), "month": ("month", "day"), "day": ("day",)}
"""The kinds of periods that have a year, a month or a day as a part."""
_OPEN_ENDS = word_set("since after before until till by from to between through than starting ending")


@dataclass(frozen=True, slots=True)
class DateShape:
    """How a literal writes a date or time, and how it is compared."""

    unit: str
    """ "year", "month", "day", "week", "minute" or "epoch"; or a part of a date, as in "part month"."""
    side: str
    """ "lower" or "upper" for an end of a range, "point" for what is equal, or "prefix" for a pattern."""
    format: str = ""
    tail: str = ""
    text: str = ""

    def edges(self, of: Range) -> Iterator[tuple[str, str]]:
        """The edges of a range as this literal would write them, by their names."""
        if self.unit == "epoch" or (of.kind == "hours" and self.unit == "minute"):
            yield from (("first", self._moment(of.first)), ("after", self._moment(of.end)))
            if of.kind != "hours":
                yield "last", self._moment(of.end - _A_SECOND)
        elif of.kind == "hours":
            return
        elif self.unit.startswith("part "):
            yield from self._parts(self.unit.removeprefix("part "), of)
        elif self.side == "prefix":
            yield from self._prefix(of)
        elif self.unit == "week" and of.kind == "week":
            yield "same", of.first.strftime(self.format)
        elif self.unit == "day":
            for name, day in _days(of):
                yield (f"{name} {of.kind}" if self.side == "point" else name), self._written(day)
        elif self.unit in ("month", "year"):
            yield from self._whole(of)

    def fits(self, of: Range) -> set[str]:
        """The edges of a range that the literal may be."""
        if of.kind == "hours" and self.unit in ("minute", "epoch"):
            if self.unit == "epoch":
                value = int(self.text)
                at = datetime.fromtimestamp(value / 1000 if self.tail else value, UTC).replace(tzinfo=None)
            else:
                at = datetime.fromisoformat(self.text.removesuffix(self.tail))
            # Nobody writes a query in no time, nor to the second.
            found = {"first": of.first, "after": of.end}
            return {name for name, edge in found.items() if -_A_MINUTE < edge - at < _A_MINUTE}
        return {name for name, text in self.edges(of) if text == self.text}

    def _moment(self, at: datetime) -> str:
        if self.unit == "epoch":
            return f"{int(at.replace(tzinfo=UTC).timestamp())}{self.tail}"
        return self._written(at)

    def _written(self, at: datetime) -> str:
        return at.strftime(self.format) + self.tail

    def _prefix(self, of: Range) -> Iterator[tuple[str, str]]:
        wildcard = self.tail[-1:] in _WILDCARDS
        if of.kind in _PREFIXES and (wildcard or self.unit == of.kind):
            # "2025-%" becomes "2025-03%", which also begins a day.
            tail = self.tail if self.unit == of.kind else self.tail[-1:]
            yield "same", of.first.strftime(_PREFIXES[of.kind]) + tail
        else:
            yield from self._of_quarter(of)

    def _whole(self, of: Range) -> Iterator[tuple[str, str]]:
        """The years or months at the ends of a range of whole ones."""
        if self.side == "point" and self.unit == of.kind:
            yield "same", self._written(of.first)
        elif self.side == "point":
            yield from self._of_quarter(of)
        elif of.first.day == of.end.day == 1 and (self.unit == "month" or of.first.month == of.end.month == 1):
            yield from ((name, self._written(day)) for name, day in _days(of))

    def _of_quarter(self, of: Range) -> Iterator[tuple[str, str]]:
        if of.kind == "quarter" and self.unit == "month":
            yield from ((name, self._written(month)) for name, month in _months(of))

    def _parts(self, part: str, of: Range) -> Iterator[tuple[str, str]]:
        """The values of a part of a date in a range; it says nothing about ranges of other kinds."""
        found: list[tuple[str, datetime]] = []
        if part == "year" and of.kind == "year":
            found = [(name, day) for name, day in _days(of) if self.side != "point" or name in ("first", "last")]
        elif part == "month" and of.kind == "quarter":
            found = list(_months(of))
        elif part == of.kind or of.kind in _OF_KINDS.get(part, ()):
            found = [("first", of.first)]
        for name, day in found:
            if part == "quarter":
                text = f"{(day.month + 2) // 3}"
            elif "%" in self.format and part != "week":
                text = day.strftime(self.format)
            else:
                text = f"{day.isocalendar().week if part == 'week' else getattr(day, part):{self.format}}"
            yield f"{name} of {of.kind}", f"%-{text}-%" if self.side == "prefix" else text


_PREFIXES = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d"}


def _days(of: Range) -> Iterator[tuple[str, datetime]]:
    last = of.end - _A_DAY
    yield from (("before", of.first - _A_DAY), ("first", of.first), ("last", last), ("after", of.end))


def _months(quarter: Range) -> Iterator[tuple[str, datetime]]:
    first = quarter.first
    yield from ((f"month {place}", first.replace(month=first.month + place)) for place in range(3))


class Edge(NamedTuple):
    """One way in which a literal follows from a period: which of them, how that is read, and which edge it is."""

    period: int
    way: str
    name: str


class DatedLiteral(NamedTuple):
    """A literal that follows from periods of its question, in each of the ways that it may."""

    literal: Literal
    shape: DateShape
    edges: tuple[Edge, ...]

    @property
    def part(self) -> str:
        """Which part of a date it is, as `moments` calls it; empty for a whole date and for a year."""
        is_part = self.shape.unit.startswith("part ") and self.shape.side != "prefix"
        return self.shape.unit.removeprefix("part ").replace("year", "") if is_part else ""


def dated_literals(query: Query, found: Sequence[Period], at: datetime) -> list[list[DatedLiteral]]:
    """For each period of a question that was proven at a time, the literals of its statement that follow from it; none
    if they would do so for other periods, too, as the year alone does for a month."""
    ranges = [period.ranges(at) for period in found]
    tree = parsed(query.sql, query.dialect) if any(ranges) else None
    if tree is None:
        return [[] for _ in found]
    shapes = [
        (literal, shape)
        for literal, node in zip(query.literals, tree.find_all(exp.Literal, bfs=False), strict=True)
        if literal.span is not None
        for shape in _shapes(literal, node)
    ]
    made = []
    for place, ways in enumerate(ranges):
        own = []
        for literal, shape in shapes:
            edges = [Edge(place, way, name) for way, of in ways.items() for name in sorted(shape.fits(of))]
            if edges:
                own.append(DatedLiteral(literal, shape, tuple(edges)))
        is_whole = bool(own) and any(_is_determined(found[place], of.kind, own) for of in ways.values())
        if is_whole and follows_clock(query.sql, query.dialect):
            # Its other end may be the clock's.
            is_whole = not found[place].follows_clock and _has_both_ends(own)
        made.append(own if is_whole else [])
    return made


_NEEDED = {
    "year": {"year"},
    "quarter": {"year", "quarter"},
    "month": {"year", "month"},
    "week": {"year", "week"},
    "day": {"year", "month", "day"},
}


def _parts(known: Sequence[DatedLiteral]) -> set[str]:
    """The parts of a date that are compared, if nothing else is."""
    units = {dated.shape.unit for dated in known}
    return {unit.removeprefix("part ") for unit in units} if all(unit.startswith("part ") for unit in units) else set()


def _is_determined(period: Period, kind: str, known: Sequence[DatedLiteral]) -> bool:
    """Whether the literals say all that a period of a kind does."""
    parts = _parts(known)
    if not parts:
        return True
    if kind == "quarter" and "month" in parts:
        parts = parts | {"quarter"}
    needed = _NEEDED.get(kind)
    return needed is not None and needed - (set() if period.names_year else {"year"}) <= parts


def _has_both_ends(known: Sequence[DatedLiteral]) -> bool:
    sides = {dated.shape.side for dated in known}
    return bool(sides & {"point", "prefix"}) or {"lower", "upper"} <= sides


def _shapes(literal: Literal, node: exp.Expr) -> Iterator[DateShape]:
    side, other = _context(node)
    text = literal.text
    part = date_part(other) if other is not None else None
    if part is not None and (written := _part_format(literal)):
        yield DateShape(f"part {part}", side, written, text=text)
    elif side == "prefix" and _IN_MONTH.fullmatch(text):
        yield DateShape("part month", side, "02", text=text)
    elif text.isdecimal() and len(text) == _YEAR and side != "prefix":
        if literal.quoted or _is_year(other):
            yield DateShape("part year", side, "04", text=text)
    elif text.isdecimal():
        yield from _of_digits(text, side)
    elif _ISO_WEEK.fullmatch(text):
        yield from (DateShape("week", side, written, text=text) for written in ("%G-W%V", "%Y-W%W"))
    elif match := _NUMERIC.fullmatch(text):
        for written in ("%d/%m/%Y", "%m/%d/%Y"):
            yield DateShape("day", side, written.replace("/", match[1]), text=text)
    elif match := _ISO.fullmatch(text):
        yield from _of_iso(match, side)


def _of_digits(text: str, side: str) -> Iterator[DateShape]:
    """A date or month in one number, or the seconds or milliseconds since 1970."""
    if written := {6: "%Y%m", 8: "%Y%m%d"}.get(len(text)):
        yield DateShape("month" if len(text) == 6 else "day", side, written, text=text)
    seconds, tail = text[:_SECONDS], text[_SECONDS:]
    if len(seconds) == _SECONDS and FIRST_EPOCH <= int(seconds) < LAST_EPOCH and tail in ("", "000"):
        yield DateShape("epoch", side, tail=tail, text=text)


def _of_iso(match: re.Match[str], side: str) -> Iterator[DateShape]:
    _, month, day, clock, tail = match.groups(default="")
    if not clock or _WHOLE_DAY_CLOCK.fullmatch(clock):
        unit = "day" if day else "month" if month else "year"
        yield DateShape(unit, side, _PREFIXES[unit], clock + tail, match[0])
    if clock and tail[-1:] not in _WILDCARDS:
        seconds = {6: "", 9: ":%S"}.get(len(clock), ":%S.%f")
        yield DateShape("minute", side, f"%Y-%m-%d{clock[0]}%H:%M{seconds}", tail, match[0])


def _part_format(literal: Literal) -> str:
    """How a part of a date is written: with a leading zero, without, or as the name of a month."""
    text = literal.text
    if text.isdecimal() and len(text) <= 2:
        return "02" if literal.quoted and len(text) == 2 else "01"
    names = ("%B", "%b")
    return next((name for name in names if text in {date(2000, month, 1).strftime(name) for month in range(1, 13)}), "")


def _is_year(other: exp.Expr | None) -> bool:
    if other is None or other.find(exp.AggFunc):
        return False
    if isinstance(other, exp.Column):
        return "year" in other.name.lower()
    return other.find(exp.Extract, exp.Year, exp.TimeToStr, exp.Substring, exp.Anonymous) is not None


def _context(node: exp.Expr) -> tuple[str, exp.Expr | None]:
    """How a literal is compared, and what with."""
    child, parent = node, node.parent
    while parent is not None and not isinstance(parent, (exp.Query, exp.Connector)):
        if isinstance(parent, exp.Between):
            return ("lower" if child is parent.args["low"] else "upper"), parent.this
        side = _SIDES.get(type(parent))
        if side is not None:
            is_right = child is not parent.this
            other = parent.this if is_right else parent.args.get("expression")
            return (side if is_right else _FLIPPED.get(side, side)), other
        child, parent = parent, parent.parent
    return "point", None


class Unclear(Exception):
    """A date can't be taken from the periods of a question with certainty."""


def rebound_dates(
    known: Sequence[DatedLiteral], asked: Mapping[int, Period], at: datetime, words: Sequence[str]
) -> dict[int, Inline]:
    """Each literal for the periods of another question, by its place; `asked` has the one for each period of
    the proven question. Raises `Unclear` if there are several ways, or none."""
    ranges = {place: period.ranges(at) for place, period in asked.items()}
    for place, period in asked.items():
        if not ranges[place]:
            raise Unclear(reasons.UNCLEAR_DAYS.format(period.words))
        following = [dated for dated in known if any(edge.period == place for edge in dated.edges)]
        has_ends = _has_both_ends(following) or not _OPEN_ENDS.isdisjoint(words)
        reaches_now = all(of.end > at.replace(tzinfo=None) - _A_DAY for of in ranges[place].values())
        if not has_ends and ("upper" in {dated.shape.side for dated in following} or not reaches_now):
            raise Unclear(reasons.ONE_END.format(period.words))
        if period.names_year and "year" not in (_parts(following) or {"year"}):
            raise Unclear(reasons.NO_YEAR.format(period.words))
    ways = _possible_ways(known)
    made: dict[int, Inline] = {}
    for literal, shape, edges in known:
        found = {
            dict(shape.edges(of)).get(edge.name)
            for edge in edges
            if edge.way in ways[edge.period]
            for way, of in ranges[edge.period].items()
            if way == edge.way or edge.way not in ranges[edge.period]
        }
        new = next(iter(found)) if len(found) == 1 else None
        if new is None or made.get(literal.place, new) != new:
            names = [asked[place].words for place in sorted({edge.period for edge in edges})]
            raise Unclear(reasons.unclear_date(literal.text, names))
        made[literal.place] = Inline(new)
    return made


def _possible_ways(known: Sequence[DatedLiteral]) -> dict[int, set[str]]:
    """How each period can be read such that all literals that follow from it alone are among its edges."""
    found: dict[int, set[str]] = {}
    for dated in known:
        for edge in dated.edges:
            found.setdefault(edge.period, set()).add(edge.way)
    for dated in known:
        if len({edge.period for edge in dated.edges}) == 1:
            found[dated.edges[0].period] &= {edge.way for edge in dated.edges}
    return found
