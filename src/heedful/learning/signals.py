"""Signals as the policies see them, and what one is worth."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from heedful.model import SignalType

WEIGHTS = MappingProxyType[SignalType, float]({"used": 1.0, "ignored": -0.5, "helpful": 1.5, "not_helpful": -1.0})
STEP = 0.1
"""How far a signal of weight 1 and full confidence moves a score."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A signal as the folds see it: what was said, how surely, and when (stored time)."""

    signal_type: SignalType
    confidence: float
    at: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """A signal that stands, as seen from the query that is asked."""

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
