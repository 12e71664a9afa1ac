"""Putting the values and dates of a new question in place of those of a proven query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from heedful.sql.reuse import reasons
from heedful.sql.reuse.dated_literals import Unclear, rebound_dates
from heedful.sql.reuse.evidence import OpenValue, Study
from heedful.sql.reuse.inflection import singular
from heedful.sql.reuse.periods import Period
from heedful.sql.reuse.periods import periods as periods_of
from heedful.sql.reuse.query_parts import Literal
from heedful.sql.reuse.question_reading import Frame, Slot
from heedful.sql.reuse.question_words import DATE, NUMBER, is_scaled, is_slot, number
from heedful.sql.reuse.values import Column, Values, plain, split
from heedful.sql.reuse.verdict import Bound, Difference, Gate, Inline

_LONGEST_NUMBER = 100
_LONGEST_INTEGER = 18  # Databases have 64 bits.

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
    SQL doesn't use one of them."""
    opened = {each.start: each for each in study.open}
    found = []
    for word, slot, before in pairs(asked, study.frame):
        if slot.text != before.text and number(slot.text) != (number(before.text) or before.text):
            if before.start not in opened:
                raise Doubt("literals", reasons.unused(slot.text, before.text))
            found.append(Change(opened[before.start], slot, word))
    return found


def pairs(asked: Frame, proven: Frame) -> Iterator[tuple[str, Slot, Slot]]:
    """Each slot of a question with that of a proven one, and the word that stands for it.

    Values of one kind are taken in their order, but for "from" and "to", which say which is which.
    """
    new, old = asked.bound(), proven.bound()
    if new.keys() != old.keys():
        new, old = asked.bound(by_kind=True), proven.bound(by_kind=True)
    for word, slots in new.items():
        yield from ((word, slot, before) for slot, before in zip(slots, old[word], strict=True))


def differences(changes: Sequence[Change]) -> tuple[Difference, ...]:
    """The changes as they are shown."""
    return tuple(Difference("value", each.new.text, each.old.text) for each in changes)


def bindings(text: str, words: Sequence[str], changes: Sequence[Change], values: Values) -> dict[int, Bound]:
    """The new value of each literal that changes; raises `Doubt` when one isn't certain."""
    made: dict[int, Bound] = {}
    for change in changes:
        if change.old.kind == DATE:
            continue
        if _count(words, change.new.text) != 1:
            raise Doubt("literals", reasons.repeated(change.new.text))
        for literal in change.old.literals:
            if change.old.kind == NUMBER:
                made[literal.place] = _numeric(text, change.new.text, literal.operator)
            else:
                made[literal.place] = _spelled(text, change, literal, values)
    return made


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates of a statement that follow from the periods of a question."""

    bound: dict[int, Inline]
    """What each of these literals is now, by its place."""
    moved: Sequence[tuple[str, str]]
    """Those that were others in the proven statement, as (new, old)."""
    named: frozenset[tuple[str, str]]
    """Those that the question names by that, each with the part of a date that it is."""


def dates(asked: Frame, study: Study, named: Mapping[int, Period], now: datetime) -> Dates:
    """The dates for the periods of a question, given by their first words; raises `Doubt` when one isn't certain. Words
    that are the same may still be right on the day they were proven: then there are none."""
    opened = [each for each in study.open if each.kind == DATE]
    places = {each.start: place for place, each in enumerate(opened)}
    found = [(slot, before) for _, slot, before in pairs(asked, study.frame) if slot.kind == DATE]
    periods = {places[before.start]: named[slot.start] for slot, before in found}
    for slot, before in found:
        period = named[slot.start]
        if not (period.names_year or period.follows_clock) and _names_year(before.text):
            raise Doubt("relative_dates", reasons.unclear_days(period.words))  # "In March" of which year?
    try:
        bound = rebound_dates(study.dated, periods, now, asked.words)
    except Unclear as unclear:
        if any(slot.text != before.text for slot, before in found):
            raise Doubt("relative_dates", str(unclear)) from unclear
        bound = {}
    literals = study.query.literals
    moved = [(text, literals[place].text) for place, text in bound.items() if text != literals[place].text]
    own = {(str(bound[each.literal.place]), each.part) for each in study.dated if each.literal.place in bound}
    return Dates(bound, moved, frozenset(own))


def _names_year(text: str) -> bool:
    return any(each.names_year for each in periods_of(tuple(text.split())))


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
    if "." not in value and len(value.lstrip("-")) > _LONGEST_INTEGER:
        raise Doubt("literals", reasons.too_large(text))
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
