"""Verdicts on the reuse of a proven query, and a plain sentence for each reason, in the words that people typed.

Words of a question are in “quotes”; `written` gives them the spelling that they have there. The code of the gate that
decided is never part of a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from heedful.sql.reuse.question_reading import canonical
from heedful.sql.reuse.question_words import FILLERS, SUPERLATIVES, places
from heedful.text.regex import regex

SAME = "The question is the same."
NOTHING_ASKED = "The question has no words."
OTHER_WORDS = "The words differ."
UNREADABLE = "The proven SQL can't be read as one statement with all its values."
UNCLEAR_PLACES = "The question doesn't show which value belongs where in the proven SQL."
SEVERAL_READINGS = "The values of the question can be read in several ways."
CONTRADICTION = "Proven questions that mean the same have different SQL."
DISPUTED = "The same words are also proven with different SQL."
WRONG = "Somebody marked this SQL as wrong."
_OWNER = "for the author who proved it, or in the chat session where it was proven."
ANOTHER_ASKER = f"A question in the first person is only reused {_OWNER}"
ANOTHER_OWNER = f"The SQL has a value that the question doesn't name, so it is only reused {_OWNER}"
NOTHING_SIMILAR = "No stored question is similar."
OTHER_SCHEMA = "The schema has changed since this SQL ran."
INCOMPLETE = "The stored result is not complete."
TOO_OLD = "The stored result is too old."
OTHER_DATA = "The data have changed since this SQL ran."
UNKNOWN_DATA = "The data may have changed since this SQL ran."
CHANGING_DATA = "The data changed just before this SQL ran, and may have changed again."
NO_RESULT = "There is no stored result for other values."
DELETED = "The stored execution was deleted meanwhile."
NOT_RUN = "The SQL could not be run now."

FIRST_PERSON = {
    True: "Only the question you asked is in the first person.",
    False: "Only the proven question is in the first person.",
}
"""By whether the question that was asked is."""

# Sentences about what goes into their gaps.
ANOTHER_ORDER = "The same words are in another order: you asked “{}”; proven is “{}”."
TOO_LONG = "Questions of more than {} words are only reused word for word."
UNUSED = "The proven SQL doesn't use “{1}”, so it can't use “{0}” either."
REPEATED = "“{}” appears more than once in the question."
UNPLACED = "One proven question doesn't show where “{}” goes in its SQL."
NO_NUMBER = "“{}” is not a number."
PERHAPS_NO_NUMBER = "“{}” may be a number, a unit or a name."
NO_DATE = "“{}” is not a date of the calendar."
UNCLEAR_DAYS = "It isn't clear which days “{}” means."
NO_YEAR = "The proven SQL names no year, but “{}” does."
ONE_END = "The proven SQL has only one end of “{}”."
TOO_LARGE = "“{}” is too large a number."
NO_COUNT = "“{}” is not a number of rows."
SEVERAL_SPELLINGS = "{}.{} has several spellings of “{}”."
OTHER_SPELLING = "The proven SQL spells “{}” differently from {}.{}."
OTHER_KINDS = "“{}” can also be a value of {}."

Days = tuple[str, tuple[date, date]]
"""The words for a period, with its first and last day."""

_MOST = 3  # Words that one sentence lists for each question.
_QUOTED = regex("“([^”]+)”")
_ENDS = (".", "!", "?", "…")


def differing(kind: str, asked: Sequence[str], proven: Sequence[str]) -> str:
    """Says which words only one of two questions has, by the gate that they concern; one side may be empty."""
    if kind == "form":
        return f"Only the {_which(asked)} expects yes or no."
    if not asked or not proven:
        return f"Only the {_which(asked)} {'names' if kind == 'literals' else 'says'} {_list(asked or proven)}."
    if kind in ("literals", "value"):
        return f"You asked about {_list(asked)}; proven is {_list(proven)}."
    if kind == "operators":
        return f"You asked for {_list(asked, the=True)}; proven is {_list(proven, the=True)}."
    if kind == "aggregate":
        return f"You asked {_list(asked, the=True)}; proven is {_list(proven, the=True)}."
    return f"You said {_list(asked)}; the proven question says {_list(proven)}."


def other_values(values: Sequence[Difference], learned: Sequence[Difference]) -> str:
    """The SQL is used with other values."""
    said = ", ".join(f"“{value.asked}” for “{value.proven}”" for value in values)
    return f"Only values differ: {said}. {shown_the_same(learned)}".rstrip()


def shown_the_same(learned: Sequence[Difference]) -> str:
    """Words that mean the same by what other questions were proven with."""
    said = []
    for words in learned:
        if words.asked and words.proven:
            said.append(f"“{words.asked}” means “{words.proven}”")
        elif words.asked or words.proven:
            said.append(f"“{words.asked or words.proven}” changes nothing")
    return f"Other proven questions show that {', and that '.join(dict.fromkeys(said))}." if said else ""


def unclear_date(text: str, periods: Sequence[str]) -> str:
    return f"It isn't clear what “{text}” of the proven SQL is for {' or '.join(f'“{period}”' for period in periods)}."


def no_value(value: str, column: Sequence[str], only: str | None = None) -> str:
    return f"“{value}” is not a value of {'.'.join(column)}{'' if only is None else f'; only “{only}” is'}."


def other_dates(asked: Sequence[Days], proven: Sequence[Days]) -> str:
    """Relative dates that don't mean the same days."""
    if not asked or not proven:
        return f"Only the {_which(asked)} names {_dates(asked or proven)}."
    return f"You asked about {_dates(asked)}; proven is {_dates(proven)}."


def outdated(text: str, proven_at: datetime, *, by_minute: bool) -> str:
    """A date or time of the SQL that only held when it was proven."""
    when = (
        f"in the minute it was proven, {proven_at:%H:%M}"
        if by_minute
        else f"on the day it was proven, {proven_at:%Y-%m-%d}"
    )
    return f"The SQL has “{text}”, which the question doesn't name, so it is only used {when} (UTC)."


def marked_wrong(comment: str | None) -> str:
    said = f": “{comment}”" if comment else ""
    return f"Somebody marked this SQL, or the same SQL with other values, as wrong{said}."


def sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(_ENDS) else ".")


def difference(part: Difference) -> str:
    """One difference as a sentence."""
    if part.kind == "learned":
        return shown_the_same([part])
    return differing(part.kind, [part.asked] if part.asked else [], [part.proven] if part.proven else [])


def written(verdict: Verdict, asked: str, proven: str) -> Verdict:
    """A verdict that spells words and values as the two questions do."""
    return replace(
        verdict,
        reason=_QUOTED.sub(lambda match: f"“{as_written(match[1], asked, proven)}”", verdict.reason),
        differences=tuple(
            replace(part, asked=as_written(part.asked, asked), proven=as_written(part.proven, proven))
            for part in verdict.differences
        ),
    )


def as_written(said: str, *texts: str) -> str:
    """Words in the spelling of the first text that has them, with small words that stand between them.

    >>> as_written("live new york", "Who does live in New York?")
    'live in New York'
    """
    wanted = said.split()
    for text in texts if wanted else ():
        found = places(text)
        for start in range(len(found)):
            at = end = start
            for word in wanted:
                while at > start and at < len(found) and found[at][0] != word and found[at][0] in FILLERS:
                    at += 1
                if at == len(found) or found[at][0] != word:
                    break
                at = end = at + 1
            else:
                return text[found[start][1] : found[end - 1][2]]
    return said


def _which(asked: Sequence[object]) -> str:
    return "question you asked" if asked else "proven question"


def _list(texts: Sequence[str], *, the: bool = False) -> str:
    quoted = [f"{'the ' if the and _is_superlative(text) else ''}“{text}”" for text in texts[:_MOST]]
    if len(texts) > _MOST:
        quoted.append("more")
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _is_superlative(text: str) -> bool:
    return not SUPERLATIVES.isdisjoint(canonical(tuple(text.split()[:1])))


def _dates(periods: Sequence[Days]) -> str:
    return ", ".join(
        f"“{words}” ({first if first == last else f'{first} to {last}'})" for words, (first, last) in periods
    )


Decision = Literal["serve", "rebind", "refuse"]
Gate = Literal[
    "same",
    "rebind",
    "literals",
    "operators",
    "negation",
    "form",
    "aggregate",
    "scope",
    "argument_order",
    "relative_dates",
    "words",
    "kind",
    "conflict",
    "sql",
    "asker",
]


class Inline(str):
    """A date or time that is written into the SQL where the proven one is: its type depends on its place."""

    __slots__ = ()


Bound = str | int | Decimal


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the two questions part; a side that says nothing there is empty.

    `kind` is the gate it concerns, or `value` (rebound) or `learned` (other proven questions show it is the same).
    """

    kind: Gate | Literal["value", "learned"]
    asked: str
    proven: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a proven query answers what was asked.

    `gate` is the stable code of the gate that decided and `reason` a sentence for people. `sql` is the statement to
    run, with `:p1` and so on where `parameters` go, and `display` the same with its values written out. Both are None
    when refused.
    """

    decision: Decision
    gate: Gate
    reason: str
    differences: tuple[Difference, ...] = ()
    sql: str | None = None
    parameters: Mapping[str, Bound] = field(default_factory=dict)
    display: str | None = None
    suggested: Verdict | None = None
    """When it is refused: what it would be if the question meant the same, where that is the only likely reading."""
