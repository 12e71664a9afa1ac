"""Putting the values and dates of a new question in place of those of a proven query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from heedful.sql.reuse import reasons
from heedful.sql.reuse.evidence import OpenValue, Study
from heedful.sql.reuse.inflection import singular
from heedful.sql.reuse.query_parts import Literal
from heedful.sql.reuse.question_reading import Frame, Slot
from heedful.sql.reuse.question_words import DATE, NUMBER, is_scaled, is_slot, number
from heedful.sql.reuse.values import Column, Values, plain, split
from heedful.sql.reuse.verdict import Bound, Difference, Gate

_LONGEST_NUMBER = 100

_GENERIC = {"name", "title", "id", "code", "label", "key", "value", "text", "full", "short"}


@dataclass(frozen=True, slots=True)
class Change:
    """One value that changes."""

    old: OpenValue
    new: Slot
    word: str
    """The word that stands for the value in the frame."""


class Doubt(Exception):
    """A value can't be put in place of another with certainty."""

    def __init__(self, gate: Gate, reason: str) -> None:
        super().__init__(reason)
        self.gate = gate
        self.reason = reason


def changed_values(asked: Frame, study: Study) -> list[Change]:
    """The values in which a question differs from a proven one with the same kinds of values; raises `Doubt` when the
    SQL doesn't use one of them.

    Values of one kind are taken in their order, but for "from" and "to", which say which is which.
    """
    old, opened = study.frame.bound(), {each.start: each for each in study.open}
    new = asked.bound()
    if new.keys() != old.keys():
        old, new = study.frame.bound(by_kind=True), asked.bound(by_kind=True)
    found = []
    for word, slots in new.items():
        for slot, before in zip(slots, old[word], strict=True):
            if slot.text != before.text and number(slot.text) != (number(before.text) or before.text):
                if before.start not in opened:
                    raise Doubt("literals", reasons.unused(slot.text, before.text))
                found.append(Change(opened[before.start], slot, word))
    return found


def differences(changes: Sequence[Change]) -> tuple[Difference, ...]:
    """The changes as they are shown."""
    return tuple(Difference("value", each.new.text, each.old.text) for each in changes)


def bindings(text: str, words: Sequence[str], changes: Sequence[Change], values: Values) -> dict[int, Bound]:
    """The new value of each literal that changes; raises `Doubt` when one isn't certain."""
    made: dict[int, Bound] = {}
    for change in changes:
        if _count(words, change.new.text) != 1:
            raise Doubt("literals", reasons.repeated(change.new.text))
        for literal in change.old.literals:
            if change.old.kind == NUMBER:
                made[literal.place] = _numeric(text, change.new.text, literal.operator)
            elif change.old.kind == DATE:
                made[literal.place] = change.new.text
            else:
                made[literal.place] = _spelled(text, change, literal, values)
    return made


def ambiguous(change: Change, asked: Frame, values: Values) -> str | None:
    """What else the new value may name that the proven one can't, or None when the question settles its kind."""
    if change.old.kind in (NUMBER, DATE):
        return None
    texts = change.new.value, change.old.held or change.old.text
    new, old = ({values.kind(*column) for column in values.columns_of(text)} for text in texts)
    others = new - old - {change.old.kind}
    return ", ".join(sorted(others)) if others and not _says_kind(change, asked) else None


def says_otherwise(change: Change, asked: Frame, values: Values) -> bool:
    """Whether a word beside the value says that it is one of another column: "the Ohio river"."""
    beside = _beside(change, asked)
    own = {values.kind(*each.column) for each in change.old.literals if each.column is not None}
    others = [column for column in values.columns_of(change.new.value) if values.kind(*column) not in own]
    return any(not beside.isdisjoint(_names(column)) for column in others)


def _says_kind(change: Change, asked: Frame) -> bool:
    """Whether a word beside the value says what it is, by the name of its column or table: "the Ohio river"."""
    beside = _beside(change, asked)
    return any(not beside.isdisjoint(_names(each.column)) for each in change.old.literals if each.column is not None)


def _beside(change: Change, asked: Frame) -> set[str]:
    """The nouns that stand before a value ("the state of Ohio", but not "rivers in Ohio") and behind it."""
    words = [word for word in asked.wording if word not in ("the", "the_")]
    slots = [at for at, word in enumerate(words) if is_slot(word)]
    place = slots[asked.slots.index(change.new)]
    before = place - 2 if words[place - 1 : place] == ["of"] else place - 1
    return {singular(word) for word in (*words[max(0, before) : before + 1], *words[place + 1 : place + 2])}


def _names(column: Column) -> set[str]:
    """What the values of a column are called: by the column, or by the table when that only says "name"."""
    table, name = ({singular(part) for part in split(each.replace("_", " "))} for each in column)
    return name - _GENERIC or table


def _count(words: Sequence[str], text: str) -> int:
    wanted = split(text)
    return sum(list(words[at : at + len(wanted)]) == wanted for at in range(len(words)))


def _numeric(asked: str, text: str, operator: str) -> int | Decimal:
    value = number(text)
    if is_scaled(text) and not _is_amount(asked, text, operator):
        raise Doubt("kind", reasons.perhaps_no_number(text))
    if value is None or len(value) > _LONGEST_NUMBER:
        raise Doubt("literals", reasons.no_number(text[:_LONGEST_NUMBER]))
    if operator == "limit" and not value.isdigit():
        raise Doubt("literals", reasons.no_count(text))
    return Decimal(value) if "." in value else int(value)


def _is_amount(asked: str, text: str, operator: str) -> bool:
    """Whether "5m" is a number: not metres or minutes, nor the name of something."""
    if operator in ("eq", "neq", "in", "is"):
        return False
    return not text.endswith("m") or f"{text[:-1]}M" in asked or any(f"{sign}{text}" in asked for sign in "$€£¥")


def _spelled(asked: str, change: Change, literal: Literal, values: Values) -> str:
    """The new value as the column writes it; among several spellings, the one that the question has."""
    text, column = change.new.value, literal.column
    assert column is not None
    if change.new.held and not change.old.held:
        # A name is what it is: "Alien" is not "Aliens".
        raise Doubt("kind", reasons.no_value(change.new.text, column, text))
    spellings = values.spellings(*column, text)
    if literal.operator == "like":
        for each in change.old.literals:
            spellings = spellings or (values.spellings(*each.column, text) if each.column is not None else set())
    if not spellings:
        raise Doubt("kind", reasons.no_value(text, column))
    written = {each for each in spellings if each in asked} if len(spellings) > 1 else spellings
    if len(written) != 1:
        raise Doubt("kind", reasons.several_spellings(text, column))
    (spelling,) = written
    old = literal.searched or ""
    if literal.operator == "like":
        return literal.pattern(spelling)
    if old not in values.spellings(*column, old):
        # The SQL may compare in another case than the column is written in; keep to a form that both have.
        raise Doubt("kind", reasons.other_spelling(plain(old), column))
    return spelling


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
