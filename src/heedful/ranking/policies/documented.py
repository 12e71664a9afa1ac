"""The documented rule: fixed steps, clamped, fading to neutral."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heedful.model import SIGNAL_TYPES, SignalType
from heedful.ranking.policies.base import Candidate, Ranked, Usefulness
from heedful.ranking.signals import NEUTRAL, Observation, Opinion, decayed, delta
from heedful.ranking.similarity import SAME_NEED


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

    def observe(self, state: Tally, signal: Observation) -> Tally:
        """Decays the score to the signal's time, then takes the step."""
        return self.fold([signal], state)

    def fold(self, signals: Iterable[Observation], state: Tally = NO_SIGNALS) -> Tally:
        """The tally after these signals, which are in the order they were given, and come after `state`."""
        score, last_at, counts = state.score, state.last_at, state.breakdown
        for kind, confidence, at in signals:
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
        return Usefulness(NEUTRAL, "neutral")

    def blend(self, relevance: float, usefulness: float, weight: float) -> float:
        """The final score, in [0, 1] for inputs in [0, 1]."""
        return (1.0 - weight) * relevance + weight * usefulness

    def rank(
        self, candidates: Sequence[Candidate], opinions: Sequence[Opinion], weight: float, now: int
    ) -> list[Ranked]:
        in_context: dict[int, list[Observation]] = defaultdict(list)
        overall: dict[int, list[Observation]] = defaultdict(list)
        for opinion in opinions:
            observation = Observation(opinion.signal_type, opinion.confidence, opinion.at)
            overall[opinion.fact].append(observation)
            if opinion.similarity >= SAME_NEED:
                in_context[opinion.fact].append(observation)
        return self.order(
            candidates,
            {
                each.fact: self.usefulness(self.fold(in_context[each.fact]), self.fold(overall[each.fact]), now)
                for each in candidates
            },
            weight,
        )

    def order(self, candidates: Sequence[Candidate], usefulness: dict[int, Usefulness], weight: float) -> list[Ranked]:
        """Candidates by their blended score; of equals, the older fact comes first."""
        ranked = [
            Ranked(
                each.fact,
                each.relevance,
                usefulness[each.fact],
                self.blend(each.relevance, usefulness[each.fact].value, weight),
            )
            for each in candidates
        ]
        return sorted(ranked, key=lambda each: (-each.score, each.fact))
