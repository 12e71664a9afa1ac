"""Meaning: sign bits find the candidates, the vectors themselves decide.

Each vector, less the mean, is kept as one bit a dimension; the bits that differ from the query's are counted for
all rows, and the nearest are scored exactly. There is no graph to build, and rows come and go freely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Words = NDArray[np.uint64]

EXACT_BELOW = 8192
"""Up to this many rows, scoring all of them costs less than finding candidates."""

RESCORED = 1000
"""Candidates that are scored exactly."""

_FAR = np.uint16(65535)


def encode(vectors: Vectors, mean: Vectors) -> Words:
    """Sign bits as 64-bit words: one row of words a group of 64 dimensions, one column a vector."""
    bits = np.packbits((vectors - mean) > 0, axis=1)
    padding = -bits.shape[1] % 8
    if padding:
        bits = np.pad(bits, ((0, 0), (0, padding)))
    return np.ascontiguousarray(bits.view(np.uint64).T)


def nearest(codes: Words, query: Words, allowed: NDArray[np.bool_] | None, count: int) -> NDArray[np.int64]:
    """The rows whose bits differ least from the query's: `count` of them, and all that tie with the last."""
    rows = codes.shape[1]
    differing = np.empty(rows, np.uint64)
    bits = np.empty(rows, np.uint8)
    distance = np.zeros(rows, np.uint16)
    for word, wanted in zip(codes, query[:, 0], strict=True):
        np.bitwise_xor(word, wanted, out=differing)
        np.bitwise_count(differing, out=bits)
        np.add(distance, bits, out=distance)
    if allowed is not None:
        distance[~allowed] = _FAR
    limit = np.partition(distance, min(count, rows) - 1)[min(count, rows) - 1]
    found = np.flatnonzero(distance <= limit)
    return found[distance[found] != _FAR] if limit == _FAR else found
