"""Signals as the policies see them: what one is worth, how it decays, and who gave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from heedful.clock import DAY
from heedful.model import VISITOR, AuthorKind, SignalType

WEIGHTS = MappingProxyType[SignalType, float]({"used": 1.0, "ignored": -0.5, "helpful": 1.5, "not_helpful": -1.0})
STEP = 0.1
"""How far a signal of weight 1 and full confidence moves a score."""


class Observation(NamedTuple):
    """A signal as the folds see it: what was said, how surely, and when (stored time)."""

    signal_type: SignalType
    confidence: float
    at: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """An active signal, as seen from the query that is asked."""

    fact: int
    query: int
    signal_type: SignalType
    confidence: float
    at: int
    """When it was given, in stored time; opinions come in this order."""
    similarity: float = 0.0
    """How surely its query asks for the same as the one asked, in [0, 1]."""
    rank: int | None = None
    """Where the fact was shown when it was judged."""
    author: str | None = None


def delta(signal_type: SignalType, confidence: float) -> float:
    """The change of score that one signal asks for.

    >>> delta("helpful", 1.0)
    0.15
    >>> delta("ignored", 0.5)
    -0.025
    """
    return round(WEIGHTS[signal_type] * confidence * STEP, 12)


NEUTRAL = 0.5
KEPT_PER_WEEK = 0.95
WEEK = 7 * DAY


def decayed(score: float, elapsed: int) -> float:
    """`score` after `elapsed` stored time without a signal; a clock that stepped back changes nothing.

    >>> decayed(0.6, 7 * DAY)
    0.595
    """
    if elapsed <= 0 or score == NEUTRAL:
        return score
    remaining: float = KEPT_PER_WEEK ** (elapsed / WEEK)
    return NEUTRAL + (score - NEUTRAL) * remaining


ANYONE = f"{VISITOR}anyone"
"""The one vote of all visitors without a subject."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How many authors must agree; the program is one of them, and visitors are none."""

    authors_to_teach: int = 2
    """To create a fact from a correction, or from an answer."""
    authors_to_veto: int = 1
    """To keep SQL from being used again."""


def kind_of(author: str | None) -> AuthorKind:
    """The kind of author that a name stands for.

    >>> kind_of(None), kind_of("ann"), kind_of("visitor-anyone")
    ('program', 'named', 'visitor')
    """
    if author is None:
        return "program"
    return "visitor" if author.startswith(VISITOR) else "named"


def suffices(votes: Iterable[tuple[AuthorKind, str | None]], authors: int) -> bool:
    """Whether so many authors agree. The program, which has no name, is one of them; visitors are none.

    >>> suffices([("named", "ann"), ("named", "ann")], 2), suffices([("named", "ann"), ("program", None)], 2)
    (False, True)
    >>> suffices([("visitor", f"visitor-{n}") for n in range(10)], 1), suffices([("program", None)], 1)
    (False, True)
    """
    return len({author for kind, author in votes if kind != "visitor"}) >= authors


RATINGS: frozenset[SignalType] = frozenset({"helpful", "not_helpful"})

Vote = TypeVar("Vote")
SignalValue = tuple[SignalType, float]
"""The signal and its confidence."""


def counted_votes(
    votes: Iterable[Vote], voter: Callable[[Vote], Hashable | None], value_of: Callable[[Vote], SignalValue]
) -> list[Vote]:
    """The votes that count, in their order, which is that of their time. `voter` is the author with the fact and the
    query, or None for votes that all count."""
    listed = list(votes)
    of_voter: dict[Hashable, list[int]] = defaultdict(list)
    for index, vote in enumerate(listed):
        name = voter(vote)
        if name is not None:
            of_voter[name].append(index)
    dropped: set[int] = set()
    for indexes in of_voter.values():
        if len(indexes) > 1:
            dropped.update(indexes)
            dropped.discard(indexes[effective_vote([value_of(listed[index]) for index in indexes])])
    return [vote for index, vote in enumerate(listed) if index not in dropped] if dropped else listed


def effective_vote(values: Sequence[SignalValue]) -> int:
    """The index of the vote that counts among those of one author, oldest first.

    >>> effective_vote([("used", 1.0), ("helpful", 1.0), ("used", 1.0), ("not_helpful", 0.5), ("not_helpful", 0.5)])
    3
    >>> effective_vote([("ignored", 1.0), ("used", 1.0)])
    1
    """
    indexes = [index for index, (kind, _) in enumerate(values) if kind in RATINGS] or list(range(len(values)))
    found = indexes[-1]
    for index in reversed(indexes):
        if values[index] != values[found]:
            break
        found = index
    return found
