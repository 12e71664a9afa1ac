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
        self._sums = np.empty(0, np.uint8)

    def distances(self, codes: Words, query: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """How many bits of each row differ from the query's, in up to three words; the next call overwrites it."""
        rows = codes.shape[1]
        if rows > len(self._sums):
            self._sums = np.empty(rows + rows // 4, np.uint8)
        sums = self._sums[:rows]
        for start in range(0, rows, _SCANNED):
            part = codes[:, start : start + _SCANNED]
            differing, bits = self._words[: part.shape[1]], self._bits[: part.shape[1]]
            summed = sums[start : start + _SCANNED]
            np.bitwise_count(np.bitwise_xor(part[0], query[0], out=differing), out=summed)
            for word, query_word in zip(part[1:], query[1:], strict=True):
                np.bitwise_xor(word, query_word, out=differing)
                np.bitwise_count(differing, out=bits)
                np.add(summed, bits, out=summed)
        return sums


def nearest(
    codes: Words, query: Words, allowed: NDArray[np.bool_] | None, count: int, scratch: Scratch
) -> NDArray[np.int64]:
    """About `count` rows whose bits differ least from the query's, and all that tie with the last of them.

    A third of the bits leaves a sixteenth of the rows, and the other bits are counted for those alone.
    """
    first = min(_FIRST_WORDS, -(-len(codes) // 3))
    distance = scratch.distances(codes[:first], query[:first, 0])
    if allowed is not None:
        # Further than any row can be.
        distance[~allowed] = _NEVER
    found = np.flatnonzero(distance <= _threshold(distance, max(4 * count, len(distance) // 16)))
    further = distance[found].astype(np.uint16)
    for word, query_word in zip(codes[first:], query[first:, 0], strict=True):
        further += np.bitwise_count(word[found] ^ query_word)
    return found[_least(further, count)]


_FIRST_WORDS = 3
"""So many words of 64 bits are summed up in 8 bits, and leave room for a number beyond them."""

_NEVER = 255

_SAMPLED = 8192
"""Rows that tell how many others are near; counting all would take as long as the scan."""


def _threshold(distance: NDArray[np.uint8], count: int) -> int:
    """A distance that about `count` rows have at most; at least half as many, if there are."""
    step = max(1, len(distance) // _SAMPLED)
    threshold = int(np.searchsorted(np.cumsum(np.bincount(distance[::step])), count / step))
    while threshold < _NEVER and np.count_nonzero(distance <= threshold) < count // 2:
        threshold += 1
    return min(threshold, _NEVER - 1)


def _least(distance: NDArray[np.uint16], count: int) -> NDArray[np.int64]:
    """The places of the `count` least, and of all that tie with the last of them."""
    # There are few different distances: counting them takes a fifth of the time of a partition.
    up_to = np.cumsum(np.bincount(distance))
    last = int(np.searchsorted(up_to, min(count, len(distance))))
    return np.flatnonzero(distance <= last)
