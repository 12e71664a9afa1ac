"""What every policy can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from heedful.learning.signals import Observation
from heedful.model import UsefulnessSource

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Usefulness:
    """A score in [0, 1] and where it came from."""

    value: float
    source: UsefulnessSource


class Policy(Protocol[State]):
    """A rule that folds signals into usefulness and blends it with relevance.

    `observe` is called in the order of the signals' own time; a state is a value, so
    leaving an observation out and folding again undoes it exactly.
    """

    @property
    def name(self) -> str: ...

    def start(self) -> State:
        """The state of a fact nobody has spoken of."""
        ...

    def observe(self, state: State, signal: Observation) -> State:
        """The state after one more signal."""
        ...

    def usefulness(self, context: State | None, overall: State | None, now: int) -> Usefulness:
        """The score for one query, from the signals of its context and of all queries."""
        ...

    def blend(self, relevance: float, usefulness: float, weight: float) -> float:
        """The final score, in [0, 1] for inputs in [0, 1]."""
        ...


def fold(policy: Policy[State], signals: Iterable[Observation]) -> State:
    """All signals of one fact, in their own order, as one state."""
    state = policy.start()
    for signal in signals:
        state = policy.observe(state, signal)
    return state
