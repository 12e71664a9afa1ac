"""How useful opinions make a fact: the documented policy with its formula; and what every policy works on.

An opinion moves a score by its weight × its confidence × 0.1; without opinions, 5% of the distance to 0.5 goes a week.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

from heedful.clock import DAY
from heedful.model import SIGNAL_TYPES, AuthorKind, SignalType, UsefulnessSource
from heedful.model.base import NEUTRAL
from heedful.text.same_question import SAME_NEED

WEIGHTS = MappingProxyType[SignalType, float]({"used": 1.0, "ignored": -0.5, "helpful": 1.5, "not_helpful": -1.0})
STEP = 0.1  # How far a signal of weight 1 and full confidence moves a score.

KEPT_PER_WEEK = 0.95
WEEK = 7 * DAY


def delta(signal_type: SignalType, confidence: float) -> float:
    """The change of score that one signal asks for.

    >>> delta("helpful", 1.0)
    0.15
    >>> delta("ignored", 0.5)
    -0.025
    """
    return round(WEIGHTS[signal_type] * confidence * STEP, 12)


def decayed(score: float, elapsed: int) -> float:
    """`score` after `elapsed` stored time without a signal; a clock that stepped back changes nothing.

    >>> decayed(0.6, 7 * DAY)
    0.595
    """
    if elapsed <= 0 or score == NEUTRAL:
        return score
    remaining: float = KEPT_PER_WEEK ** (elapsed / WEEK)
    return NEUTRAL + (score - NEUTRAL) * remaining


class Opinion(NamedTuple):
    """A signal that counts for a fact, as seen from the query that is asked."""

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
    id: str = ""
    author_kind: AuthorKind = "named"
    seq: int = 0
    """Its number in the ledger."""


class Candidate(NamedTuple):
    """A fact that might be shown, with its relevance in [0, 1]."""

    fact: int
    relevance: float


@dataclass(frozen=True, slots=True)
class Usefulness:
    """A score in [0, 1] and where it came from."""

    value: float
    source: UsefulnessSource


UNKNOWN = Usefulness(NEUTRAL, "neutral")  # That of a fact that nobody has judged.


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place, with the numbers that put it there."""

    fact: int
    relevance: float
    usefulness: Usefulness
    score: float


Judgement = TypeVar("Judgement")  # The result of a policy for the opinions about facts, for one query.


class Policy(Protocol[Judgement]):
    """A rule that folds opinions into a judgement and blends it with relevance.

    A policy is a pure function of the active opinions: leaving one out undoes it exactly, and the order in which
    they arrived does not matter, but only the order in which they were given.
    """

    @property
    def name(self) -> str: ...

    def judge(self, opinions: Sequence[Opinion], now: int) -> Judgement:
        """The judgement of all opinions, folded from the first. A store keeps the result."""

    def rank(self, candidates: Sequence[Candidate], judgement: Judgement, weight: float) -> list[Ranked]:
        """All candidates, best first. `weight` bounds the influence of usefulness; 0 ranks by relevance alone."""


@dataclass(frozen=True, slots=True)
class Tally:
    """A score as it stood at its last signal, and how many signals of each type made it."""

    score: float = NEUTRAL
    last_at: int | None = None
    used: int = 0
    ignored: int = 0
    helpful: int = 0
    not_helpful: int = 0

    @property
    def count(self) -> int:
        return self.used + self.ignored + self.helpful + self.not_helpful

    @property
    def breakdown(self) -> dict[SignalType, int]:
        return {kind: getattr(self, kind) for kind in SIGNAL_TYPES}

    def at(self, now: int) -> float:
        """The score decayed to `now`."""
        return self.score if self.last_at is None else decayed(self.score, now - self.last_at)


NO_SIGNALS = Tally()


class Documented:
    """Steps of weight × confidence × 0.1 from 0.5, clamped to [0, 1]; 5% a week back to 0.5.

    >>> rule = Documented()
    >>> round(rule.blend(0.80, 0.90, 0.3), 2), round(rule.blend(0.90, 0.30, 0.3), 2)
    (0.83, 0.72)
    """

    name = "documented"

    def fold(self, signals: Iterable[Opinion], state: Tally = NO_SIGNALS) -> Tally:
        """The tally after these signals, which are in the order they were given, and come after `state`: for each, the
        score decays to its time, then takes the step."""
        score, last_at, counts = state.score, state.last_at, state.breakdown
        for signal in signals:
            kind, confidence, at = signal.signal_type, signal.confidence, signal.at
            if last_at is not None:
                score = decayed(score, at - last_at)
            # Rounded, so that three steps of 0.1 from 0.5 are 0.8 and not a little less.
            score = min(1.0, max(0.0, round(score + delta(kind, confidence), 12)))
            last_at = at if last_at is None or at > last_at else last_at
            counts[kind] += 1
        return Tally(score, last_at, **counts)

    def usefulness(self, context: Tally | None, overall: Tally | None, now: int) -> Usefulness:
        """The context's score, else the fact's own, else neutral."""
        if context is not None and context.count:
            return Usefulness(context.at(now), "context")
        if overall is not None and overall.count:
            return Usefulness(overall.at(now), "global")
        return UNKNOWN

    def blend(self, relevance: float, usefulness: float, weight: float) -> float:
        """The final score, in [0, 1] for inputs in [0, 1]."""
        return (1.0 - weight) * relevance + weight * usefulness

    def judge(self, opinions: Sequence[Opinion], now: int) -> dict[int, Usefulness]:
        in_context: dict[int, list[Opinion]] = defaultdict(list)
        overall: dict[int, list[Opinion]] = defaultdict(list)
        for opinion in opinions:
            overall[opinion.fact].append(opinion)
            if opinion.similarity >= SAME_NEED:
                in_context[opinion.fact].append(opinion)
        return {
            fact: self.usefulness(self.fold(in_context[fact]), self.fold(signals), now)
            for fact, signals in overall.items()
        }

    def rank(self, candidates: Sequence[Candidate], judgement: Mapping[int, Usefulness], weight: float) -> list[Ranked]:
        """Candidates by their blended score; of equals, the older fact comes first."""
        ranked = []
        for fact, relevance in candidates:
            usefulness = judgement.get(fact, UNKNOWN)
            ranked.append(Ranked(fact, relevance, usefulness, self.blend(relevance, usefulness.value, weight)))
        return sorted(ranked, key=lambda candidate: (-candidate.score, candidate.fact))
