"""Putting the values of a new question in place of a proven query's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from heedful.learning.differences import root
from heedful.learning.reuse.reading import DATE, NUMBER, Frame, Slot, is_slot, number
from heedful.learning.reuse.studies import Open, Study
from heedful.learning.reuse.values import Column, Values, plain, split
from heedful.learning.reuse.verdict import Bound, Difference, Gate

_LONGEST_NUMBER = 100

_GENERIC = {root(word) for word in ("name", "title", "id", "code", "label", "key", "value", "text", "full", "short")}


@dataclass(frozen=True, slots=True)
class Change:
    """One value that changes."""

    old: Open
    new: Slot
    word: str
    """The word that stands for the value in the frame."""


class Doubt(Exception):
    """A value can't be put in place of another with certainty."""

    def __init__(self, gate: Gate, reason: str) -> None:
        super().__init__(reason)
        self.gate = gate
        self.reason = reason


def changed(asked: Frame, study: Study) -> list[Change]:
    """The values in which a question differs from a proven one with the same frame."""
    old, opened = study.frame.bound(), {each.start: each for each in study.open}
    found = []
    for word, slots in asked.bound().items():
        for new, slot in zip(slots, old[word], strict=True):
            if new.text != slot.text and number(new.text) != (number(slot.text) or slot.text):
                found.append(Change(opened[slot.start], new, word))
    return found


def differences(changes: Sequence[Change]) -> tuple[Difference, ...]:
    """The changes as they are shown."""
    return tuple(Difference("value", each.new.text, each.old.text) for each in changes)


def bindings(words: Sequence[str], changes: Sequence[Change], values: Values) -> dict[int, Bound]:
    """The new value of each literal that changes; raises `Doubt` when one isn't certain."""
    made: dict[int, Bound] = {}
    for change in changes:
        if _count(words, change.new.text) != 1:
            raise Doubt("literals", f"“{change.new.text}” stands more than once in the question")
        for literal in change.old.literals:
            if change.old.kind == NUMBER:
                made[literal.place] = _numeric(change.new.text, literal.operator)
            elif change.old.kind == DATE:
                made[literal.place] = change.new.text
            else:
                assert literal.column is not None
                made[literal.place] = _spelled(change.new.text, literal.text, literal.column, values)
    return made


def ambiguous(change: Change, asked: Frame, values: Values) -> str | None:
    """What else the new value may name that the proven one can't, or None when the question settles its kind."""
    if change.old.kind in (NUMBER, DATE):
        return None
    new, old = ({values.kind(*column) for column in values.columns_of(each.text)} for each in (change.new, change.old))
    others = new - old - {change.old.kind}
    return ", ".join(sorted(others)) if others and not _says_kind(change, asked) else None


def _says_kind(change: Change, asked: Frame) -> bool:
    """Whether a word beside the value says what it is, by the name of its column or table: "the Ohio river"."""
    place = asked.words.index(change.word)
    beside = {word for word in asked.words[max(0, place - 1) : place + 2] if not is_slot(word)}
    return any(not beside.isdisjoint(_names(each.column)) for each in change.old.literals if each.column is not None)


def _names(column: Column) -> set[str]:
    """What the values of a column are called: by the column, or by the table when that only says "name"."""
    table, name = ({root(part) for part in split(each.replace("_", " "))} for each in column)
    return name - _GENERIC or table


def _count(words: Sequence[str], text: str) -> int:
    wanted = split(text)
    return sum(list(words[at : at + len(wanted)]) == wanted for at in range(len(words)))


def _numeric(text: str, operator: str) -> int | Decimal:
    value = number(text)
    if value is None or len(value) > _LONGEST_NUMBER:
        raise Doubt("literals", f"“{text[:_LONGEST_NUMBER]}” is no number")
    if operator == "limit" and not value.isdigit():
        raise Doubt("literals", f"“{text}” is no count of rows")
    return Decimal(value) if "." in value else int(value)


def _spelled(text: str, old: str, column: tuple[str, str], values: Values) -> str:
    spellings = values.spellings(*column, text)
    if not spellings:
        raise Doubt("kind", f"“{text}” is no value of {'.'.join(column)}")
    if len(spellings) > 1:
        raise Doubt("kind", f"{'.'.join(column)} writes “{text}” in several ways")
    (spelling,) = spellings
    if old not in values.spellings(*column, old):
        # The SQL may compare in another case than the column is written in; keep to a form that both have.
        raise Doubt("kind", f"the proven value “{plain(old)}” is not as {'.'.join(column)} writes it")
    return spelling
