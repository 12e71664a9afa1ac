"""Plain rankings to compare with: BM25 as in the textbook, and the usual fusion of two rankings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[^\W_]+")

Floats = NDArray[np.float64]


def words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; no stop words, no stems."""
    return _WORD.findall(text.lower())


class Bm25:
    """BM25 with k1 = 1.2 and b = 0.75 over a list of texts.

    >>> Bm25(["a cat", "a dog", "a dog and a cat"]).scores("dog").argmax()
    np.int64(1)
    """

    def __init__(self, texts: Sequence[str], k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], np.float64)
        norms = k1 * (1 - b + b * lengths / lengths.mean())
        holders = Counter(word for count in counts for word in count)
        self._size = len(texts)
        self._parts: dict[str, tuple[list[int], list[float]]] = {}
        for row, count in enumerate(counts):
            for word, times in count.items():
                rarity = np.log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5))
                rows, parts = self._parts.setdefault(word, ([], []))
                rows.append(row)
                parts.append(float(rarity * times * (k1 + 1) / (times + norms[row])))

    def scores(self, query: str) -> Floats:
        """The score of every text."""
        total = np.zeros(self._size)
        for word in dict.fromkeys(words(query)):
            rows, parts = self._parts.get(word, ([], []))
            total[rows] += parts
        return total


def reciprocal_rank_fusion(scores: Sequence[NDArray[Any]], k: int = 60) -> Floats:
    """The sum over rankings of 1 / (k + rank).

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
    Methods" (2009).
    """
    fused = np.zeros(len(scores[0]))
    for score in scores:
        order = np.argsort(-score, kind="stable")
        fused[order] += 1 / (k + 1 + np.arange(len(order)))
    return fused
