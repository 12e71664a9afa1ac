"""The gates between two questions: each finds one way in which they ask for different things."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from difflib import SequenceMatcher

from heedful.learning.differences import difference
from heedful.learning.reuse import lexicon
from heedful.learning.reuse.dates import relative_dates
from heedful.learning.reuse.queries import follows_clock, names_dates
from heedful.learning.reuse.reading import Frame, is_slot, number, quoted
from heedful.learning.reuse.values import plain
from heedful.learning.reuse.verdict import Difference, Gate

Words = tuple[str, ...]
_ORDER: tuple[tuple[Gate, frozenset[str]], ...] = (
    ("negation", lexicon.NEGATIONS),
    ("aggregate", lexicon.AGGREGATES),
    ("operators", lexicon.OPERATORS),
    ("scope", lexicon.SCOPES),
)
_PRESENT = frozenset(("now", "nowadays", "currently"))  # What is so when the SQL runs, unless it names a date.
_NEAR = 8  # Words in which two frames may differ before they are held apart without looking closer.
_FIXED = lexicon.NEGATIONS | lexicon.AGGREGATES
_SAYS: dict[Gate, str] = {
    "literals": "values differ",
    "negation": "only one of them negates",
    "aggregate": "they ask for different figures",
    "operators": "they compare differently",
    "scope": "their scope differs",
    "words": "the words differ",
}


def changes(asked: Words, proven: Words) -> list[tuple[Words, Words]]:
    """The runs of words that differ, as (asked, proven)."""
    codes = SequenceMatcher(None, asked, proven, autojunk=False).get_opcodes()
    return [(asked[a:b], proven[c:d]) for tag, a, b, c, d in codes if tag != "equal"]


def exchanges(asked: Words, proven: Words) -> list[tuple[Words, Words]]:
    """The changes as exchanges: words that are only added or left out are taken together with the word beside them."""
    found = []
    for tag, a, b, c, d in SequenceMatcher(None, asked, proven, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if a == b or c == d:
            if a > 0 and c > 0 and not is_slot(asked[a - 1]):
                a, c = a - 1, c - 1
            elif b < len(asked) and d < len(proven) and not is_slot(asked[b]):
                b, d = b + 1, d + 1
        found.append((asked[a:b], proven[c:d]))
    return found


def near(asked: Words, proven: Words) -> bool:
    """Whether two frames with the same slots differ in few enough words to be worth comparing."""
    differing = set(asked).symmetric_difference(proven)
    return len(differing) <= _NEAR and not any(map(is_slot, differing))


def unquoted(asked: str, proven: str, frames: Sequence[Frame], frame: Frame) -> str | None:
    """A text that one question quotes, that is no value of its frame and that the other one doesn't say."""
    for own, other, read in ((asked, proven, frames), (proven, asked, [frame])):
        slots = {slot.text for each in read for slot in each.slots}
        for text in sorted(quoted(own) - slots):
            if f" {text} " not in f" {plain(other)} ":
                return text
    return None


def refusal(readings: Sequence[Frame], proven: Frame) -> tuple[Gate, str, tuple[Difference, ...]]:
    """Why no reading of a question meets a proven frame: gate, sentence and differences."""
    asked = min(readings, key=lambda frame: len(set(frame.words).symmetric_difference(proven.words)))
    values = {slot.text for slot in (*asked.slots, *proven.slots)}
    runs = changes(_shown(asked), _shown(proven))
    found = tuple(Difference(_gate((*left, *right), values), " ".join(left), " ".join(right)) for left, right in runs)
    if sorted(asked.words) == sorted(proven.words):
        return "argument_order", f"the same words stand in another order: {_sentence(found)}", found
    kinds = [each.kind for each in found]
    gate: Gate = next((name for name in _SAYS if name in kinds), "words")
    return gate, f"{_SAYS[gate]}: {_sentence([each for each in found if each.kind == gate])}", found


def never_exchanged(new: Words, old: Words) -> bool:
    """Whether words negate, count, name numbers or are opposites: what no evidence makes interchangeable."""
    if any(word in _FIXED or number(word) is not None for word in (*new, *old)):
        return True
    return difference(" ".join(new), " ".join(old)) is not None


def decides(words: Sequence[str]) -> bool:
    """Whether one of the words compares or says how much is meant."""
    return any(word in lexicon.OPERATORS or word in lexicon.SCOPES for word in words)


def dated(asked: str, proven: str, sql: str, dialect: str, now: datetime, proven_at: datetime) -> str | None:
    """Why the relative dates of two questions don't mean the same days, or None when they do."""
    new, old = relative_dates(asked, now), relative_dates(proven, proven_at)
    if not new and not old:
        return None
    if all(period.words in _PRESENT for period in (*new, *old)) and not names_dates(sql, dialect):
        return None
    if [period.words for period in new] == [period.words for period in old] and follows_clock(sql, dialect):
        return None
    if [period[1:] for period in new] == [period[1:] for period in old] and not follows_clock(sql, dialect):
        return None

    def shown(periods: Sequence[tuple[str, object, object]]) -> str:
        return ", ".join(f"“{words}” is {first} to {last}" for words, first, last in periods) or "no such date"

    return f"dates differ: asked {shown(new)}; proven {shown(old)}"


def _shown(frame: Frame) -> Words:
    slots = iter(frame.slots)
    return tuple(next(slots).text if is_slot(word) else word for word in frame.words)


def _gate(words: Sequence[str], values: Collection[str]) -> Gate:
    for gate, deciding in _ORDER:
        if any(word in deciding for word in words):
            return gate
    return "literals" if any(word in values or number(word) is not None for word in words) else "words"


def _sentence(found: Sequence[Difference]) -> str:
    return "; ".join(f"asked “{each.asked}”, proven “{each.proven}”" for each in found)
