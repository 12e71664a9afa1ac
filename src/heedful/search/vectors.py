"""The vectors of a dataset: a mapped part that was saved, and a part in memory that grows."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from heedful.search import codes

Vectors = NDArray[np.float32]
Totals = NDArray[np.float64]
Bools = NDArray[np.bool_]


MAX_DRIFT = 0.1
"""The centre of the sign bits is moved when the mean lies further from it than this share of the variance. Recall falls
from about a fifth on, and a smaller share would encode all rows more often."""


def cosine_similarity(vectors: Vectors, query: Vectors) -> Vectors:
    """The cosine of each row to a query. It depends on nothing but these two: a matrix product rounds by the number of
    rows and their place in memory, and a score would change with what is stored around it."""
    found: Vectors = np.vecdot(vectors, query, dtype=np.float64).astype(np.float32)
    return found


class VectorIndex:
    """Finds the rows nearest to a query by cosine; all vectors have length 1."""

    def __init__(
        self,
        saved: Vectors,
        mean: Vectors | None = None,
        bits: codes.Words | None = None,
        total: Totals | None = None,
    ) -> None:
        """`mean`, `bits` and `total` are what `coded` and `total` gave for the saved rows."""
        self._saved = saved
        self._tail = Growable(np.empty((0, saved.shape[1]), np.float32))
        self._mean = mean
        self._codes = None if bits is None else Growable(np.array(bits), last=True)
        self._total = saved.sum(axis=0, dtype=np.float64) if total is None else np.array(total)
        self._scratch = codes.Scratch()

    def __len__(self) -> int:
        return len(self._saved) + len(self._tail.rows)

    def reserve(self, rows: int) -> None:
        """Makes room for so many rows more, so that adding them copies nothing."""
        self._tail.reserve(rows)

    def append(self, vectors: Vectors) -> None:
        if not len(vectors):
            return
        self._tail.append(vectors)
        self._total += vectors.sum(axis=0, dtype=np.float64)
        if self._codes is None or self._mean is None:
            return
        if self._is_far_from(self._mean):
            self._encode()
        else:
            self._codes.append(codes.encode(vectors, self._mean))

    @property
    def total(self) -> Totals:
        """The sum of all vectors."""
        return self._total

    def row(self, row: int) -> Vectors:
        """One vector."""
        boundary = len(self._saved)
        found: Vectors = self._saved[row] if row < boundary else self._tail.rows[row - boundary]
        return found

    def taken(self, rows: NDArray[np.int64]) -> Vectors:
        """These vectors, copied."""
        boundary, tail = len(self._saved), self._tail.rows
        if not len(tail):
            return self._saved[rows]
        found = np.empty((len(rows), self._saved.shape[1]), np.float32)
        in_saved = rows < boundary
        found[in_saved] = self._saved[rows[in_saved]]
        found[~in_saved] = tail[rows[~in_saved] - boundary]
        return found

    def all(self) -> Vectors:
        """Every vector, in order."""
        return np.concatenate([self._saved, self._tail.rows]) if len(self._tail.rows) else self._saved

    def coded(self) -> tuple[Vectors, codes.Words]:
        """The centre and the sign bits, made when they are first needed."""
        if self._codes is None or self._mean is None:
            return self._encode()
        return self._mean, self._codes.rows

    def _is_far_from(self, centre: Vectors) -> bool:
        """Whether what is stored has drifted away from the centre of the sign bits."""
        mean = self._total / len(self)
        away = mean - centre
        return float(away @ away) > MAX_DRIFT * (1 - float(mean @ mean))

    def _encode(self) -> tuple[Vectors, codes.Words]:
        self._mean = (self._total / max(1, len(self))).astype(np.float32)
        bits = np.concatenate([codes.encode(part, self._mean) for part in (self._saved, self._tail.rows)], axis=1)
        self._codes = Growable(bits, last=True)
        return self._mean, bits

    def cosines(self, query: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """The cosine of each of these rows, in [0, 1]."""
        clipped: Vectors = np.clip(cosine_similarity(self.taken(rows), query), 0, 1)
        return clipped

    def nearest(self, query: Vectors, count: int, allowed: Bools) -> tuple[NDArray[np.int64], Vectors]:
        """Up to `count` allowed rows with the greatest cosines, and those, best first."""
        permitted = int(np.count_nonzero(allowed))
        if permitted <= codes.EXACT_BELOW:
            rows = np.flatnonzero(allowed)
        else:
            mean, words = self.coded()
            mask = None if permitted == len(allowed) else allowed
            bits = codes.encode(query[None], mean)
            rows = codes.nearest(words, bits, mask, max(codes.RESCORE_COUNT, 2 * count), self._scratch)
        if len(rows) > count:
            rough = np.vecdot(self.taken(rows), query)
            rows = rows[np.argpartition(rough, len(rows) - count)[len(rows) - count :]]
        found = self.cosines(query, rows)
        order = np.lexsort((rows, -found))
        return rows[order], found[order]


Kind = TypeVar("Kind", bound=np.generic)


class Growable(Generic[Kind]):
    """Rows in one block of memory that doubles when it is full; the last axis grows if `last` is set."""

    def __init__(self, rows: NDArray[Kind], *, last: bool = False) -> None:
        self._axis = rows.ndim - 1 if last else 0
        self._block = rows
        self._size = rows.shape[self._axis]

    @property
    def rows(self) -> NDArray[Kind]:
        """What is there now; writing to it changes it."""
        return self._block[(slice(None),) * self._axis + (slice(0, self._size),)]

    def reserve(self, more: int) -> None:
        """Makes room for so many more, so that appending them copies nothing."""
        if self._size + more > self._block.shape[self._axis]:
            self._move(self._size + more)

    def append(self, more: NDArray[Any]) -> None:
        added = more.shape[self._axis]
        if self._size + added > self._block.shape[self._axis]:
            self._move(max(1024, 2 * (self._size + added)))
        place = slice(self._size, self._size + added)
        self._block[(slice(None),) * self._axis + (place,)] = more
        self._size += added

    def _move(self, room: int) -> None:
        shape = list(self._block.shape)
        shape[self._axis] = room
        block: NDArray[Kind] = np.empty(shape, self._block.dtype)
        block[(slice(None),) * self._axis + (slice(0, self._size),)] = self.rows
        self._block = block
