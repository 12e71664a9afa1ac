"""What every embedder can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heedful.ranking.similarity import Calibration

__all__ = ["Calibration", "Embedder", "Vectors", "normalize"]

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors; the same text gives the same vector."""

    @property
    def name(self) -> str:
        """Stored with every vector: embedders of the same name give the same vectors."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def calibration(self) -> Calibration:
        """How this model's cosines map to "the same question"."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order."""
        ...


def normalize(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit
