"""What every policy can do, and the values it works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from heedful.model import UsefulnessSource
from heedful.ranking.signals import Opinion


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that might be shown, with its relevance in [0, 1]."""

    fact: int
    relevance: float


@dataclass(frozen=True, slots=True)
class Usefulness:
    """A score in [0, 1] and where it came from."""

    value: float
    source: UsefulnessSource


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place, with the numbers that put it there."""

    fact: int
    relevance: float
    usefulness: Usefulness
    score: float


class Policy(Protocol):
    """A rule that folds opinions into usefulness and blends it with relevance.

    A policy is a pure function of the active opinions: leaving one out undoes it exactly, and the order in which
    they arrived does not matter, but only the order in which they were given.
    """

    @property
    def name(self) -> str: ...

    def rank(
        self, candidates: Sequence[Candidate], opinions: Sequence[Opinion], weight: float, now: int
    ) -> list[Ranked]:
        """All candidates, best first. `weight` bounds the influence of usefulness; 0 ranks by relevance alone."""
        ...
