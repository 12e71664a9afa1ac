"""Why a proven query is used or not: a plain sentence for each reason, in the words that people typed.

Words of a question are in “quotes”; `written` gives them the spelling that they have there. The code of the gate that
decided is never part of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from heedful.sql.reuse.question_reading import canonical
from heedful.sql.reuse.question_words import FILLERS, SUPERLATIVES
from heedful.sql.reuse.values import places
from heedful.sql.reuse.verdict import Difference, Verdict

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

_MOST = 3  # Words that one sentence lists for each question.
_QUOTED = re.compile("“([^”]+)”")
_ENDS = (".", "!", "?", "…")


def differing(kind: str, asked: Sequence[str], proven: Sequence[str]) -> str:
    """What only one of two questions has, by the gate that it concerns; one side may be empty."""
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


def another_order(asked: str, proven: str) -> str:
    """The words of both are the same."""
    return f"The same words are in another order: you asked “{asked}”; proven is “{proven}”."


def other_values(values: Sequence[Difference], learned: Sequence[Difference]) -> str:
    """The SQL is used with other values."""
    said = ", ".join(f"“{each.asked}” for “{each.proven}”" for each in values)
    return f"Only values differ: {said}. {shown_the_same(learned)}".rstrip()


def shown_the_same(learned: Sequence[Difference]) -> str:
    """Words that mean the same by what other questions were proven with."""
    said = []
    for each in learned:
        if each.asked and each.proven:
            said.append(f"“{each.asked}” means “{each.proven}”")
        elif each.asked or each.proven:
            said.append(f"“{each.asked or each.proven}” changes nothing")
    return f"Other proven questions show that {', and that '.join(said)}." if said else ""


def first_person(*, asked: bool) -> str:
    return f"Only the {'question you asked' if asked else 'proven question'} is in the first person."


def too_long(words: int) -> str:
    return f"Questions of more than {words} words are only reused word for word."


def unused(asked: str, proven: str) -> str:
    return f"The proven SQL doesn't use “{proven}”, so it can't use “{asked}” either."


def repeated(value: str) -> str:
    return f"“{value}” appears more than once in the question."


def unplaced(value: str) -> str:
    return f"One proven question doesn't show where “{value}” goes in its SQL."


def no_number(value: str) -> str:
    return f"“{value}” is not a number."


def perhaps_no_number(value: str) -> str:
    return f"“{value}” may be a number, a unit or a name."


def no_date(value: str) -> str:
    return f"“{value}” is not a date of the calendar."


def unclear_days(period: str) -> str:
    return f"It isn't clear which days “{period}” means."


def unclear_date(text: str, periods: Sequence[str]) -> str:
    return f"It isn't clear what “{text}” of the proven SQL is for {' or '.join(f'“{each}”' for each in periods)}."


def no_year(period: str) -> str:
    return f"The proven SQL names no year, but “{period}” does."


def one_end(period: str) -> str:
    return f"The proven SQL has only one end of “{period}”."


def too_large(value: str) -> str:
    return f"“{value}” is too large a number."


def no_count(value: str) -> str:
    return f"“{value}” is not a number of rows."


def other_kinds(value: str, kinds: str) -> str:
    return f"“{value}” can also be a value of {kinds}."


def no_value(value: str, column: Sequence[str], only: str | None = None) -> str:
    return f"“{value}” is not a value of {'.'.join(column)}{'' if only is None else f'; only “{only}” is'}."


def several_spellings(value: str, column: Sequence[str]) -> str:
    return f"{'.'.join(column)} has several spellings of “{value}”."


def other_spelling(value: str, column: Sequence[str]) -> str:
    return f"The proven SQL spells “{value}” differently from {'.'.join(column)}."


def other_dates(asked: Sequence[tuple[str, date, date]], proven: Sequence[tuple[str, date, date]]) -> str:
    """Relative dates, each with its first and last day, that don't mean the same days."""
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


def difference(each: Difference) -> str:
    """One difference as a sentence."""
    if each.kind == "learned":
        return shown_the_same([each])
    return differing(each.kind, [each.asked] if each.asked else [], [each.proven] if each.proven else [])


def written(verdict: Verdict, asked: str, proven: str) -> Verdict:
    """A verdict that spells words and values as the two questions do."""
    return replace(
        verdict,
        reason=_QUOTED.sub(lambda match: f"“{as_written(match[1], asked, proven)}”", verdict.reason),
        differences=tuple(
            replace(each, asked=as_written(each.asked, asked), proven=as_written(each.proven, proven))
            for each in verdict.differences
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


def _dates(periods: Sequence[tuple[str, date, date]]) -> str:
    return ", ".join(
        f"“{words}” ({first if first == last else f'{first} to {last}'})" for words, first, last in periods
    )
