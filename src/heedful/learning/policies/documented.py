"""The documented rule: fixed steps, clamped, fading to neutral."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.learning.decay import NEUTRAL, decayed
from heedful.learning.policies.base import Usefulness
from heedful.learning.signals import Observation, delta
from heedful.model import SIGNAL_TYPES, SignalType


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


class Documented:
    """Steps of weight × confidence × 0.1 from 0.5, clamped to [0, 1]; 5% a week back to 0.5.

    >>> rule = Documented()
    >>> round(rule.blend(0.80, 0.90, 0.3), 2), round(rule.blend(0.90, 0.30, 0.3), 2)
    (0.83, 0.72)
    """

    name = "documented"

    def start(self) -> Tally:
        return Tally()

    def observe(self, state: Tally, signal: Observation) -> Tally:
        """Decays the score to the signal's time, then takes the step."""
        score = min(1.0, max(0.0, state.at(signal.at) + delta(signal.signal_type, signal.confidence)))
        counts = state.breakdown
        counts[signal.signal_type] += 1
        last_at = signal.at if state.last_at is None else max(state.last_at, signal.at)
        return Tally(score=score, last_at=last_at, **counts)

    def usefulness(self, context: Tally | None, overall: Tally | None, now: int) -> Usefulness:
        """The context's score, else the fact's own, else neutral."""
        if context is not None and context.count:
            return Usefulness(context.at(now), "context")
        if overall is not None and overall.count:
            return Usefulness(overall.at(now), "global")
        return Usefulness(NEUTRAL, "neutral")

    def blend(self, relevance: float, usefulness: float, weight: float) -> float:
        return (1.0 - weight) * relevance + weight * usefulness
