"""Doubles for tests of programs that use Heedful: a model that needs no files, and a clock that stands still."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from heedful.embedding.base import Calibration, Vectors, normalised
from heedful.learning.contexts import PLAIN

__all__ = ["ManualClock", "WordEmbedder"]


class WordEmbedder:
    """Each word is a fixed random direction: texts with the same words are alike, in microseconds."""

    name = "words-for-tests"
    calibration: Calibration = PLAIN

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
                vectors[row] += np.random.default_rng(seed).standard_normal(self.dimensions, np.float32)
        return normalised(vectors)


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        """Moves on by a duration, as `timedelta` takes it: `advance(days=7)`."""
        self.now += timedelta(**duration)
