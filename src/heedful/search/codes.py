"""Meaning: sign bits find the candidates, the vectors themselves decide.

Each vector, less the mean, is kept as one bit a dimension; the bits that differ from the query's are counted for all
rows, and the nearest are scored exactly. There is no graph to build, and rows come and go freely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Words = NDArray[np.uint64]

EXACT_BELOW = 2048
"""Up to this many rows, scoring all of them costs less than finding candidates."""

RESCORE_COUNT = 500
"""Candidates that are scored exactly."""

_BATCH_SIZE = 8192
"""Rows that are encoded at once, so that it takes little room."""

_SCANNED = 16384
"""Rows that are compared at once, so that what lies between two steps stays in the processor's cache."""


def encode(vectors: Vectors, mean: Vectors) -> Words:
    """Sign bits as 64-bit words: one row of words a group of 64 dimensions, one column a vector."""
    groups = -(-vectors.shape[1] // 64)
    found = np.empty((groups, len(vectors)), np.uint64)
    for start in range(0, len(vectors), _BATCH_SIZE):
        bits = np.packbits(vectors[start : start + _BATCH_SIZE] > mean, axis=1)
        padding = 8 * groups - bits.shape[1]
        if padding:
            bits = np.pad(bits, ((0, 0), (0, padding)))
        found[:, start : start + _BATCH_SIZE] = bits.view(np.uint64).T
    return found


class Scratch:
    """Room for one scan at a time, kept because asking the system for it takes as long as the scan."""

    def __init__(self) -> None:
        self._words = np.empty(_SCANNED, np.uint64)
        self._bits = np.empty(_SCANNED, np.uint8)
        self._sums = np.empty(0, np.uint16)

    def distances(self, codes: Words, query: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """How many bits of each row differ from the query's; it is overwritten by the next call."""
        rows = codes.shape[1]
        if rows > len(self._sums):
            self._sums = np.empty(rows + rows // 4, np.uint16)
        sums = self._sums[:rows]
        for start in range(0, rows, _SCANNED):
            part = codes[:, start : start + _SCANNED]
            differing, bits = self._words[: part.shape[1]], self._bits[: part.shape[1]]
            summed = sums[start : start + _SCANNED]
            summed[:] = 0
            for word, query_word in zip(part, query, strict=True):
                np.bitwise_xor(word, query_word, out=differing)
                np.bitwise_count(differing, out=bits)
                np.add(summed, bits, out=summed)
        return sums


def nearest(
    codes: Words, query: Words, allowed: NDArray[np.bool_] | None, count: int, scratch: Scratch
) -> NDArray[np.int64]:
    """About `count` rows whose bits differ least from the query's, and all that tie with the last of them.

    A third of the bits leaves a tenth of the rows, and the other bits are counted for those alone.
    """
    first = -(-len(codes) // 3)
    distance = scratch.distances(codes[:first], query[:first, 0])
    if allowed is not None:
        # Further than any row can be.
        distance[~allowed] = 64 * len(codes) + 1
    found = _least(distance, max(4 * count, len(distance) // 10))
    further = distance[found]
    for word, query_word in zip(codes[first:], query[first:, 0], strict=True):
        further += np.bitwise_count(word[found] ^ query_word)
    found = found[_least(further, count)]
    return found if allowed is None else found[allowed[found]]


def _least(distance: NDArray[np.uint16], count: int) -> NDArray[np.int64]:
    """The places of the `count` least, and of all that tie with the last of them."""
    # There are few different distances: counting them takes a fifth of the time of a partition.
    up_to = np.cumsum(np.bincount(distance))
    last = int(np.searchsorted(up_to, min(count, len(distance))))
    return np.flatnonzero(distance <= last)
