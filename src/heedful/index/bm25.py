"""How much of a query the words of a text cover: the formulas, wherever the words are counted.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.3
"""Small, because facts are short: length says little about them."""

Floats = NDArray[np.float32]


def rarity(living: int, holders: int) -> float:
    """The weight of a word that `holders` of the `living` texts have."""
    return math.log(1 + (living - holders + 0.5) / (holders + 0.5))


def gains(weight: float, counts: Floats, norms: Floats) -> Floats:
    """What a word of this weight adds to texts that have it so many times."""
    found: Floats = np.float32(weight * (K1 + 1)) * counts / (counts + norms)
    return found


def norms(lengths: Floats, mean: float) -> Floats:
    """The part that depends on how long texts are, beside the mean of all."""
    found: Floats = (K1 * (1 - B + B * lengths / max(mean, 1.0))).astype(np.float32)
    return found


def covered(total: Floats, bound: float) -> Floats:
    """Sums of gains over the sum of all weights, in [0, 1]; changes what it is given.

    A word that no text has counts in the bound too: when half of a query is unknown, words can say at most half.
    """
    if bound:
        total *= np.float32(1 / bound)
        np.minimum(total, 1, out=total)
    return total
