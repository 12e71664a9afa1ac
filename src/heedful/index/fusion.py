"""Relevance from its parts: meaning, words, and what stands beside a fact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

VECTOR = 0.5
"""The share of meaning in a fact's own relevance; words have the rest."""

NEAR, FAR = 0.4, 0.2
"""What the better of the two facts beside it lends, and of the two next to those."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Relevance in [0, 1]; `relevance = VECTOR × vector + (1 − VECTOR) × words + neighbours`."""

    relevance: Floats
    neighbours: Floats


def fuse(vector: Floats, words: Floats, near: Floats, far: Floats) -> Fused:
    """The relevance of facts by meaning and words; a fact that has no neighbours keeps its own.

    An answer often stands beside the words that were asked for: neighbours lend a share of their words, never of
    their meaning, which is vague enough by itself.
    """
    own = np.float32(VECTOR) * vector + np.float32(1 - VECTOR) * words
    relevance = 1 - (1 - own) * (1 - np.float32(NEAR) * near) * (1 - np.float32(FAR) * far)
    return Fused(relevance, relevance - own)


def lent(words: Floats, beside: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """The words of the better fact at distance 1, and at distance 2, from a table of rows (-1 is nobody)."""
    found = np.where(beside >= 0, words[beside], np.float32(0))
    return found[:, :2].max(axis=1), found[:, 2:].max(axis=1)


def best(scores: Floats, count: int) -> NDArray[np.int64]:
    """The places of the `count` greatest scores above 0, in no order."""
    found = np.flatnonzero(scores > 0)
    if len(found) > count:
        found = found[np.argpartition(scores[found], len(found) - count)[len(found) - count :]]
    return found
