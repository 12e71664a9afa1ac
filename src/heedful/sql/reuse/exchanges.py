"""Words that proven questions show to mean the same, where two questions differ in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from heedful.caching import cache_short
from heedful.ranking.similarity import difference
from heedful.sql.reuse.evidence import Evidence, Study, Words
from heedful.sql.reuse.question_reading import Frame
from heedful.sql.reuse.question_words import AGGREGATES, NEGATIONS, OPERATORS, SCOPES, is_slot, number

_NEAR = 8  # Words in which two frames may differ before they are held apart without looking closer.
_FIXED = NEGATIONS | AGGREGATES
_MAX_COMPARED = 200  # Words of two frames: where these differ is found in steps of the third power of their number.

MAX_SWAPS = 2
"""Places where learned words may differ."""

MIN_WITNESSES = 2
"""Pairs of proven questions, in other places or with other SQL, that show that words are interchangeable."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Words that may be exchanged, as far as can be said without knowing the SQL."""

    new: Words
    old: Words
    places: Counter[str]

    def is_shown_for(self, known: Study) -> bool:
        """Whether proven questions show that they mean the same; those that compare, within this SQL template."""
        if has_deciding_word((*self.new, *self.old)):
            return self.places[known.template] >= MIN_WITNESSES
        # To know the template takes long, and most of them don't depend on it.
        return len(self.places) >= MIN_WITNESSES or self.places[known.template] >= MIN_WITNESSES


def learned_readings(
    frames: Sequence[Frame], proven: Frame, evidence: Evidence
) -> Iterator[tuple[Frame, list[Exchange]]]:
    """The readings that may meet a proven frame when words are exchanged that are known to mean the same."""
    for frame in frames:
        swaps = exchanges(frame.words, proven.words)
        if len(swaps) <= MAX_SWAPS:
            found = [_exchange(*swap, evidence) for swap in swaps]
            if all(found):
                yield frame, [each for each in found if each is not None]


def _exchange(new: Words, old: Words, evidence: Evidence) -> Exchange | None:
    """Words that may be exchanged in some SQL."""
    if any(map(is_slot, (*new, *old))) or is_never_exchanged(new, old):
        return None
    swap = evidence.swap(old, new)
    enough = swap.places.total() >= MIN_WITNESSES
    return Exchange(new, old, swap.places) if swap.shared and enough else None


def opcodes(asked: Words, proven: Words) -> list[tuple[str, int, int, int, int]]:
    """Where two frames differ, as difflib tells it; of long ones, only that they do."""
    if len(asked) + len(proven) > _MAX_COMPARED:
        return [("equal" if asked == proven else "replace", 0, len(asked), 0, len(proven))]
    return [*SequenceMatcher(None, asked, proven, autojunk=False).get_opcodes()]


@cache_short(entries=16_384, characters=600)
def exchanges(asked: Words, proven: Words) -> list[tuple[Words, Words]]:
    """The changes as exchanges: words that are only added or left out are taken together with the word beside them."""
    found = []
    for tag, a, b, c, d in opcodes(asked, proven):
        if tag == "equal":
            continue
        if a == b or c == d:
            if a > 0 and c > 0 and not is_slot(asked[a - 1]):
                a, c = a - 1, c - 1
            elif b < len(asked) and d < len(proven) and not is_slot(asked[b]):
                b, d = b + 1, d + 1
        found.append((asked[a:b], proven[c:d]))
    return found


def nearby(asked: Words, proven: Words) -> set[str] | None:
    """The words in which two frames with the same slots differ; None if they are too many to be worth comparing, or no
    evidence makes them interchangeable."""
    differing = set(asked).symmetric_difference(proven)
    if len(differing) > _NEAR or not _FIXED.isdisjoint(differing) or any(map(is_slot, differing)):
        return None
    return differing


@cache_short(entries=16_384, characters=600)
def is_never_exchanged(new: Words, old: Words) -> bool:
    """Whether words negate, count, name numbers or are opposites: what no evidence makes interchangeable."""
    if any(word in _FIXED or number(word) is not None for word in (*new, *old)):
        return True
    return difference(" ".join(new), " ".join(old)) is not None


def has_deciding_word(words: Sequence[str]) -> bool:
    """Whether one of the words compares or says how much is meant."""
    return any(word in OPERATORS or word in SCOPES for word in words)
