"""Dates that a question names relative to the day it is asked on."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple


class Period(NamedTuple):
    """What a relative date stood for on the day it was asked: the words, the first day, and the last."""

    words: str
    first: date
    last: date


_NUMBER_WORDS = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_UNIT = r"(day|week|month|quarter|year|hour|minute|night|morning|afternoon|evening|weekend)s?"
_RELATIVE = re.compile(
    rf"\b(?:(?P<named>today|tonight|yesterday|tomorrow|now|nowadays|currently|recently|ytd|mtd|qtd)"
    rf"|(?P<which>last|past|previous|this|current|next|coming|upcoming)\s+(?:(?P<count>\d+|{'|'.join(_NUMBER_WORDS)})\s+)?"
    rf"(?P<unit>{_UNIT})"
    rf"|(?P<ago>\d+|{'|'.join(_NUMBER_WORDS)}|a|an)\s+(?P<ago_unit>{_UNIT})\s+(?P<way>ago|from now)"
    rf"|(?P<todate>year|month|week|quarter)[\s-]to[\s-]date"
    rf"|(?P<weekday_which>last|this|next)\s+(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday))\b",
    re.IGNORECASE,
)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_PARTS_OF_DAYS = frozenset(("day", "hour", "minute", "night", "morning", "afternoon", "evening"))


def relative_dates(text: str, at: datetime) -> list[Period]:
    """The relative dates of a question asked at `at`.

    >>> relative_dates("sales last month", datetime(2024, 3, 5))
    [Period(words='last month', first=datetime.date(2024, 2, 1), last=datetime.date(2024, 2, 29))]
    """
    return list(_relative_dates(text, at.date()))


@lru_cache(maxsize=16384)
def _relative_dates(text: str, today: date) -> tuple[Period, ...]:
    return tuple(
        Period(" ".join(match.group().lower().split()), *_resolved(match, today)) for match in _RELATIVE.finditer(text)
    )


def _resolved(match: re.Match[str], today: date) -> tuple[date, date]:
    parts = {name: (value or "").lower() for name, value in match.groupdict().items()}
    if parts["named"]:
        day = today + timedelta(days={"yesterday": -1, "tomorrow": 1}.get(parts["named"], 0))
        return {"ytd": today.replace(month=1, day=1), "mtd": today.replace(day=1)}.get(parts["named"], day), day
    if parts["todate"]:
        return _period(today, parts["todate"], 0)[0], today
    if parts["weekday"]:
        return _weekday(today, parts["weekday"], parts["weekday_which"])
    if parts["ago"]:
        step = _number(parts["ago"]) * (-1 if parts["way"] == "ago" else 1)
        return _period(today, parts["ago_unit"].rstrip("s"), step)
    unit = parts["unit"].rstrip("s")
    if not parts["count"]:
        step = {"this": 0, "current": 0, "next": 1, "coming": 1, "upcoming": 1}.get(parts["which"], -1)
        return _period(today, unit, step)
    count = _number(parts["count"])
    if parts["which"] in ("next", "coming", "upcoming"):
        return today, _period(today, unit, count)[1]
    return _period(today, unit, -count)[0], today


def _number(word: str) -> int:
    if word.isdigit():
        return min(int(word), 1000)
    return _NUMBER_WORDS.index(word) + 1 if word in _NUMBER_WORDS else 1


def _weekday(today: date, name: str, which: str) -> tuple[date, date]:
    ahead = (_WEEKDAYS.index(name) - today.weekday()) % 7
    if which == "last":
        ahead -= 7
    elif which == "next" and ahead == 0:
        ahead = 7
    day = today + timedelta(days=ahead)
    return day, day


def _period(today: date, unit: str, step: int) -> tuple[date, date]:
    """The whole day, week, month, quarter or year that lies `step` of them from today."""
    if unit in _PARTS_OF_DAYS:
        day = today + timedelta(days=step)
        return day, day
    if unit in ("week", "weekend"):
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
        return monday + timedelta(days=5 if unit == "weekend" else 0), monday + timedelta(days=6)
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    start = (today.year * 12 + today.month - 1) // months * months + step * months
    return _first_of(start), _first_of(start + months) - timedelta(days=1)


def _first_of(month: int) -> date:
    return date(max(1, min(9998, month // 12)), month % 12 + 1, 1)
