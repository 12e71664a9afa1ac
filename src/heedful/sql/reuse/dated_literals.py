"""How the dates of a proven statement follow from the periods of its question, and what they are for other periods.

A literal follows from a period if it is one of its edges as the statement writes them: its first or last day, the day
beside one of these, its year or month as a text or a number, or its first or last moment in hours. The same edge of
another period is then put in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from sqlglot import exp

from heedful.sql.reuse import reasons
from heedful.sql.reuse.moments import FIRST_EPOCH, LAST_EPOCH, date_part
from heedful.sql.reuse.periods import Period, Range
from heedful.sql.reuse.query_parts import Literal, Query, follows_clock, parsed
from heedful.sql.reuse.verdict import Inline

_A_DAY, _A_SECOND, _A_MINUTE = timedelta(days=1), timedelta(seconds=1), timedelta(minutes=1)
_COMPARED: dict[type[exp.Expr], str] = {
    exp.GT: "lower",
    exp.GTE: "lower",
    exp.LT: "upper",
    exp.LTE: "upper",
    exp.EQ: "point",
    exp.In: "point",
    exp.Is: "point",
    exp.NEQ: "point",
    exp.Like: "prefix",
    exp.ILike: "prefix",
    exp.Glob: "prefix",
}
_FLIPPED = {"lower": "upper", "upper": "lower"}
_ISO = re.compile(r"(\d{4})(?:(-\d\d)(?:(-\d\d)([ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)?)?(Z|\+00(?::?00)?|[- T]?[%*])?")
_NUMERIC = re.compile(r"\d\d([./-])\d\d\1\d{4}")
_WEEK = re.compile(r"\d{4}-W\d\d")
_OF_WHOLE_DAYS = re.compile(r"[ T](?:00:00(?::00(?:\.0+)?)?|23:59(?::59(?:\.9+)?)?)")
_IN_MONTH = re.compile(r"%-(\d\d)-%")
_YEAR, _SECONDS = 4, 10  # Digits.
_WILDCARDS = ("%", "*")
_OF_KINDS = {"year": ("year", "quarter", "month", "day"), "month": ("month", "day"), "day": ("day",)}
"""The kinds of periods that have a year, a month or a day as a part."""
_OPEN_ENDED = frozenset("since after before until till by from to between through than starting ending".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Shape:
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
        if of.kind == "hours":
            if self.unit in ("minute", "epoch"):
                yield from (("first", self._moment(of.first)), ("after", self._moment(of.end)))
        elif self.unit == "epoch":
            yield from (("first", self._moment(of.first)), ("after", self._moment(of.end)))
            yield "last", self._moment(of.end - _A_SECOND)
        elif self.unit.startswith("part "):
            yield from self._parts(self.unit.removeprefix("part "), of)
        elif self.side == "prefix":
            yield from self._prefix(of)
        elif self.unit == "week" and of.kind == "week":
            yield "same", of.first.strftime(self.format)
        elif self.unit == "day":
            for name, day in _days(of):
                yield (f"{name} {of.kind}" if self.side == "point" else name), self._written(day)
        elif self.unit == "month" or self.unit == "year":
            yield from self._whole(of)

    def fits(self, of: Range) -> set[str]:
        """The edges of a range that the literal may be."""
        if of.kind == "hours" and self.unit in ("minute", "epoch"):
            at = self._read()
            # Nobody writes a query in no time, nor to the second.
            found = {"first": of.first, "after": of.end}
            return {name for name, each in found.items() if -_A_MINUTE < each - at < _A_MINUTE}
        return {name for name, text in self.edges(of) if text == self.text}

    def _read(self) -> datetime:
        if self.unit == "epoch":
            value = int(self.text)
            return datetime.fromtimestamp(value / 1000 if self.tail else value, UTC).replace(tzinfo=None)
        return datetime.fromisoformat(self.text.removesuffix(self.tail))

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
        elif of.kind == "quarter" and self.unit == "month":
            yield from ((f"month {place}", self._written(each)) for place, each in enumerate(_months(of.first, of.end)))

    def _whole(self, of: Range) -> Iterator[tuple[str, str]]:
        """The years or months at the ends of a range of whole ones."""
        if self.side == "point":
            if self.unit == of.kind:
                yield "same", self._written(of.first)
            elif of.kind == "quarter" and self.unit == "month":
                yield from (
                    (f"month {place}", self._written(each)) for place, each in enumerate(_months(of.first, of.end))
                )
            return
        last = of.end - _A_DAY
        if of.first.day == of.end.day == 1 and (self.unit == "month" or of.first.month == of.end.month == 1):
            for name, each in (("before", of.first - _A_DAY), ("first", of.first), ("last", last), ("after", of.end)):
                yield name, self._written(each)

    def _parts(self, part: str, of: Range) -> Iterator[tuple[str, str]]:
        """What a part of a date is in a range; it says nothing about ranges of other kinds."""
        found: list[tuple[str, datetime]] = []
        if part == "year" and of.kind == "year":
            found = [("first", of.first), ("last", of.end - _A_DAY)]
            if self.side != "point":
                found += [("before", of.first - _A_DAY), ("after", of.end)]
        elif part == "month" and of.kind == "quarter":
            found = [(f"month {place}", each) for place, each in enumerate(_months(of.first, of.end))]
        elif part == of.kind or of.kind in _OF_KINDS.get(part, ()):
            found = [("first", of.first)]
        for name, each in found:
            values = {
                "quarter": f"{(each.month + 2) // 3}",
                "week": f"{each.isocalendar().week:{self.format}}" if part == "week" else "",
            }
            text = values.get(part) or (
                each.strftime(self.format) if "%" in self.format else f"{getattr(each, part):{self.format}}"
            )
            yield f"{name} of {of.kind}", f"%-{text}-%" if self.side == "prefix" else text


_PREFIXES = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d"}


def _days(of: Range) -> Iterator[tuple[str, datetime]]:
    last = of.end - _A_DAY
    yield from (("before", of.first - _A_DAY), ("first", of.first), ("last", last), ("after", of.end))


def _months(first: datetime, end: datetime) -> Iterator[datetime]:
    while first < end:
        yield first
        first = (first + timedelta(days=31)).replace(day=1)


class Edge(NamedTuple):
    """One way in which a literal follows from a period: which of them, how that is read, and which edge it is."""

    period: int
    way: str
    name: str


class DatedLiteral(NamedTuple):
    """A literal that follows from periods of its question, in each of the ways that it may."""

    literal: Literal
    shape: Shape
    edges: tuple[Edge, ...]

    @property
    def part(self) -> str:
        """Which part of a date it is, as `moments` calls it; empty for a whole date and for a year."""
        is_part = self.shape.unit.startswith("part ") and self.shape.side != "prefix"
        return self.shape.unit.removeprefix("part ").replace("year", "") if is_part else ""


def dated_literals(query: Query, found: Sequence[Period], at: datetime) -> list[list[DatedLiteral]]:
    """For each period of a question that was proven at a time, the literals of its statement that follow from it; none
    if they would do so for other periods, too, as the year alone does for a month."""
    ranges = [each.ranges(at) for each in found]
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
            edges = [Edge(place, way, name) for way, each in ways.items() for name in sorted(shape.fits(each))]
            if edges:
                own.append(DatedLiteral(literal, shape, tuple(edges)))
        is_whole = bool(own) and any(_is_determined(found[place], each.kind, own) for each in ways.values())
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
    units = {each.shape.unit for each in known}
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
    sides = {each.shape.side for each in known}
    return bool(sides & {"point", "prefix"}) or {"lower", "upper"} <= sides


def _shapes(literal: Literal, node: exp.Expr) -> Iterator[Shape]:
    """The ways in which a literal may write a date."""
    side, other = _context(node)
    text = literal.text
    part = date_part(other) if other is not None else None
    if part is not None and (written := _part_format(literal)):
        yield Shape(f"part {part}", side, written, text=text)
    elif side == "prefix" and _IN_MONTH.fullmatch(text):
        yield Shape("part month", side, "02", text=text)
    elif text.isdecimal() and len(text) == _YEAR and side != "prefix":
        if literal.quoted or _is_year(other):
            yield Shape("part year", side, "04", text=text)
    elif text.isdecimal():
        yield from _of_digits(text, side)
    elif _WEEK.fullmatch(text):
        yield from (Shape("week", side, each, text=text) for each in ("%G-W%V", "%Y-W%W"))
    elif match := _NUMERIC.fullmatch(text):
        for each in ("%d/%m/%Y", "%m/%d/%Y"):
            yield Shape("day", side, each.replace("/", match[1]), text=text)
    elif match := _ISO.fullmatch(text):
        yield from _of_iso(match, side)


def _of_digits(text: str, side: str) -> Iterator[Shape]:
    """A date or month in one number, or the seconds or milliseconds since 1970."""
    if written := {6: "%Y%m", 8: "%Y%m%d"}.get(len(text)):
        yield Shape("month" if len(text) == 6 else "day", side, written, text=text)
    seconds, tail = text[:_SECONDS], text[_SECONDS:]
    if len(seconds) == _SECONDS and FIRST_EPOCH <= int(seconds) < LAST_EPOCH and tail in ("", "000"):
        yield Shape("epoch", side, tail=tail, text=text)


def _of_iso(match: re.Match[str], side: str) -> Iterator[Shape]:
    _, month, day, clock, tail = match.groups(default="")
    if not clock or _OF_WHOLE_DAYS.fullmatch(clock):
        unit = "day" if day else "month" if month else "year"
        yield Shape(unit, side, _PREFIXES[unit], clock + tail, match[0])
    if clock and tail[-1:] not in _WILDCARDS:
        seconds = {6: "", 9: ":%S"}.get(len(clock), ":%S.%f")
        yield Shape("minute", side, f"%Y-%m-%d{clock[0]}%H:%M{seconds}", tail, match[0])


def _part_format(literal: Literal) -> str:
    """How a part of a date is written: with a leading zero, without, or as the name of a month."""
    text = literal.text
    if text.isdecimal() and len(text) <= 2:
        return "02" if literal.quoted and len(text) == 2 else "01"
    names = ("%B", "%b")
    return next((each for each in names if text in {date(2000, month, 1).strftime(each) for month in range(1, 13)}), "")


def _is_year(other: exp.Expr | None) -> bool:
    """Whether a number is compared with the year of something."""
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
        side = _COMPARED.get(type(parent))
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
    """What each literal is for the periods of another question, by its place; `asked` has the one for each period of
    the proven question. Raises `Unclear` if there are several ways, or none."""
    ranges = {place: period.ranges(at) for place, period in asked.items()}
    for place, period in asked.items():
        if not ranges[place]:
            raise Unclear(reasons.unclear_days(period.words))
        _check_ends(known, place, period, ranges[place], at, words)
        if period.names_year and "year" not in (_parts(_following(known, place)) or {"year"}):
            raise Unclear(reasons.no_year(period.words))
    ways = _possible_ways(known)
    made: dict[int, Inline] = {}
    for literal, shape, edges in known:
        found = {
            dict(shape.edges(each)).get(edge.name)
            for edge in edges
            if edge.way in ways[edge.period]
            for each in _read_as(edge.way, ranges[edge.period])
        }
        new = next(iter(found)) if len(found) == 1 else None
        if new is None or made.get(literal.place, new) != new:
            names = [asked[place].words for place in sorted({edge.period for edge in edges})]
            raise Unclear(reasons.unclear_date(literal.text, names))
        made[literal.place] = Inline(new)
    return made


def _read_as(way: str, ranges: Mapping[str, Range]) -> Sequence[Range]:
    return (ranges[way],) if way in ranges else tuple(ranges.values())


def _possible_ways(known: Sequence[DatedLiteral]) -> dict[int, set[str]]:
    """How each period can be read such that all literals that follow from it alone are among its edges."""
    found: dict[int, set[str]] = {}
    for each in known:
        for edge in each.edges:
            found.setdefault(edge.period, set()).add(edge.way)
    for each in known:
        if len({edge.period for edge in each.edges}) == 1:
            found[each.edges[0].period] &= {edge.way for edge in each.edges}
    return found


def _check_ends(
    known: Sequence[DatedLiteral],
    place: int,
    period: Period,
    ranges: Mapping[str, Range],
    at: datetime,
    words: Sequence[str],
) -> None:
    """Raises `Unclear` if the statement has only one end of a period that has two."""
    own = _following(known, place)
    if _has_both_ends(own) or not _OPEN_ENDED.isdisjoint(words):
        return
    reaches_now = all(each.end > at.replace(tzinfo=None) - _A_DAY for each in ranges.values())
    if "upper" in {each.shape.side for each in own} or not reaches_now:
        raise Unclear(reasons.one_end(period.words))


def _following(known: Sequence[DatedLiteral], place: int) -> list[DatedLiteral]:
    """The literals that follow from a period, or may."""
    return [each for each in known if any(edge.period == place for edge in each.edges)]
