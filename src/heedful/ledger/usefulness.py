"""How useful opinions make a fact: the documented policy with its formula; what every policy works on; whose opinions
count; and ratings of any form on one scale.

An opinion moves a score by its weight × its confidence × 0.1; without opinions, 5% of the distance to 0.5 goes a week.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from heedful.clock import DAY
from heedful.errors import Invalid, quoted
from heedful.model import SIGNAL_TYPES, VISITOR, AuthorKind, NormalisedRating, Rating, SignalType, UsefulnessSource
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


@dataclass(frozen=True, slots=True)
class Opinion:
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
        """The judgement of all opinions, folded anew. A store keeps the same folded."""

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


ANYONE = f"{VISITOR}anyone"  # The one vote of all visitors without a subject.


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


def counted_votes(opinions: Iterable[Opinion]) -> list[Opinion]:
    """The opinions that count, in their order, which is that of their time: of those that a named author gave about a
    fact for a query, one."""
    listed = list(opinions)
    by_voter: dict[tuple[int, int, str], list[Opinion]] = defaultdict(list)
    for opinion in listed:
        if opinion.author is not None:
            by_voter[opinion.fact, opinion.query, opinion.author].append(opinion)
    replaced: set[int] = set()
    for own in by_voter.values():
        if len(own) > 1:
            replaced.update(map(id, own))
            replaced.discard(id(effective_vote(own)))
    return [opinion for opinion in listed if id(opinion) not in replaced] if replaced else listed


def effective_vote(opinions: Sequence[Opinion]) -> Opinion:
    """The opinion that counts among those of one author about a fact for a query, oldest first: the last rating, or the
    last signal if there is no rating; of equal ones in a row, the first.

    >>> kinds = "used helpful used not_helpful not_helpful".split()
    >>> effective_vote([Opinion(1, 1, kind, 1.0, at) for at, kind in enumerate(kinds)]).at
    3
    >>> effective_vote([Opinion(1, 1, "ignored", 1.0, 0), Opinion(1, 1, "used", 1.0, 1)]).at
    1
    """
    candidates = [opinion for opinion in opinions if opinion.signal_type in RATINGS] or opinions
    effective = candidates[-1]
    for opinion in reversed(candidates):
        if (opinion.signal_type, opinion.confidence) != (effective.signal_type, effective.confidence):
            break
        effective = opinion
    return effective


STARS = (1, 5)

_WORDS = {
    **dict.fromkeys(("up", "thumbs up", "\N{THUMBS UP SIGN}", "like", "very positive"), 1.0),
    **dict.fromkeys(("down", "thumbs down", "\N{THUMBS DOWN SIGN}", "dislike", "very negative"), 0.0),
    "positive": 0.75,
    "neutral": 0.5,
    "negative": 0.25,
}


def normalise_rating(
    value: Any, *, scale: Sequence[float] | None = None, labels: Mapping[str, Any] | None = None
) -> NormalisedRating:
    """A rating of any common form: a boolean, a word such as "up" or "VERY_NEGATIVE", or a number.

    `scale` is the worst and the best number, such as (0, 1), (1, 5) or (-1, 1). Without one, a number is read on the
    only one of these that it fits, and is refused if it fits several: 1 is the best of two of them and the worst of the
    third. `labels` says what categories of your own mean, in any of these forms.

    >>> normalise_rating("VERY_NEGATIVE").score, normalise_rating(0.8).score, normalise_rating(-1).rating
    (1, 4, 'down')
    >>> normalise_rating(1, scale=(0, 1)).rating, normalise_rating("meh", labels={"meh": 2}).score
    ('up', 2)
    """
    meant = labels[value] if labels is not None and isinstance(value, str) and value in labels else value
    if meant is None:
        return NormalisedRating(original=value)
    number = _number(meant, value, scale)
    score = min(5, math.floor(1.5 + 4 * number))
    rating: Rating | None = "up" if score > 3 else "down" if score < 3 else None
    return NormalisedRating(value=number, score=score, rating=rating, original=value)


def _number(meant: Any, original: Any, scale: Sequence[float] | None) -> float:
    if isinstance(meant, bool):
        return float(meant)
    if isinstance(meant, str):
        word = " ".join(meant.replace("_", " ").replace("-", " ").split()).lower()
        if word in _WORDS:
            return _WORDS[word]
    if not isinstance(meant, int | float) or not math.isfinite(meant):
        raise Invalid(
            f"invalid rating {quoted(original)}",
            field="rating",
            value=original,
            remedy='Use "up", "down", "neutral", True, False, or a number; labels says what other words mean',
        )
    worst, best = _inferred(meant) if scale is None else _checked(scale)
    if not min(worst, best) <= meant <= max(worst, best):
        raise Invalid(
            f"rating {quoted(original)} is not between {worst:g} and {best:g}", field="rating", value=original
        )
    return (meant - worst) / (best - worst)


def _inferred(number: float) -> tuple[float, float]:
    if 0 < number < 1:
        return 0, 1
    if -1 <= number < 0:
        return -1, 1
    if 1 < number <= STARS[1]:
        return STARS
    raise Invalid(
        f"rating {quoted(number)} could be on several scales, or on none",
        field="scale",
        value=number,
        remedy="Pass scale: the worst and the best number, such as (0, 1), (1, 5) or (-1, 1)",
    )


def _checked(scale: Sequence[float]) -> tuple[float, float]:
    numbers = list(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    sound = len(numbers) == 2 and all(
        isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in numbers
    )
    if not sound or numbers[0] == numbers[1]:
        raise Invalid(
            f"scale must be two different numbers, got {quoted(scale)}",
            field="scale",
            value=scale,
            remedy="Pass the worst and the best number, such as (1, 5)",
        )
    return float(numbers[0]), float(numbers[1])
