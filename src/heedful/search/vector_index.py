"""The vectors of a dataset: a mapped part that was saved, and a part in memory that grows.

Sign bits find the candidates, the vectors themselves decide.
"""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Totals = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.int64]


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
        self, saved: Saved, mean: Vectors | None = None, bits: Words | None = None, total: Totals | None = None
    ) -> None:
        """`mean`, `bits` and `total` are what `coded` and `total` gave for the saved rows; `ReadLater` needs them."""
        self._saved = saved
        self.later = saved if isinstance(saved, ReadLater) else None
        """The saved rows, where they are still to be read."""
        self._tail = Growable(np.empty((0, saved.shape[1]), np.float32))
        self._mean = mean
        self._codes = None if bits is None else Growable(np.array(bits), last=True)
        self.total: Totals = saved[:].sum(axis=0, dtype=np.float64) if total is None else np.array(total)
        """The sum of all vectors."""
        self._scratch = Scratch()

    def __len__(self) -> int:
        return len(self._saved) + len(self._tail.rows)

    def reserve(self, rows: int) -> None:
        """Makes room for so many rows more, so that adding them copies nothing."""
        self._tail.reserve(rows)

    def append(self, vectors: Vectors) -> None:
        if not len(vectors):
            return
        self._tail.append(vectors)
        self.total += vectors.sum(axis=0, dtype=np.float64)
        if self._codes is None or self._mean is None:
            return
        # Encoded again where the mean has drifted away from the centre of the sign bits.
        mean = self.total / len(self)
        away = mean - self._mean
        if float(away @ away) > MAX_DRIFT * (1 - float(mean @ mean)):
            self._codes = None
        else:
            self._codes.append(encode(vectors, self._mean))

    @property
    def is_encoded(self) -> bool:
        """Whether there are sign bits; making them takes all vectors."""
        return self._codes is not None

    def row(self, row: int) -> Vectors:
        """One vector."""
        boundary = len(self._saved)
        found: Vectors = self._saved[row] if row < boundary else self._tail.rows[row - boundary]
        return found

    def taken(self, rows: Rows) -> Vectors:
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
        return np.concatenate([self._saved[:], self._tail.rows]) if len(self._tail.rows) else self._saved[:]

    def coded(self) -> tuple[Vectors, Words]:
        """The centre and the sign bits, made when they are first needed."""
        if self._codes is None or self._mean is None:
            return self._encode()
        return self._mean, self._codes.rows

    def _encode(self) -> tuple[Vectors, Words]:
        self._mean = (self.total / max(1, len(self))).astype(np.float32)
        bits = np.concatenate([encode(part, self._mean) for part in (self._saved[:], self._tail.rows)], axis=1)
        self._codes = Growable(bits, last=True)
        return self._mean, bits

    def cosines(self, query: Vectors, rows: Rows) -> Vectors:
        """The cosine of each of these rows, in [0, 1]."""
        similarity = cosine_similarity(self.taken(rows), query)
        return np.minimum(np.maximum(similarity, 0, out=similarity), 1, out=similarity)

    def nearest(self, query: Vectors, count: int, allowed: Bools) -> tuple[Rows, Vectors]:
        """Up to `count` allowed rows with the greatest cosines, and those, best first."""
        rows = self.closest(query, count, self.candidates(query, count, allowed))
        found = self.cosines(query, rows)
        order = np.lexsort((rows, -found))
        return rows[order], found[order]

    def candidates(self, query: Vectors, count: int, allowed: Bools) -> Rows:
        """The allowed rows that may be nearest, most of which are not."""
        permitted = int(np.count_nonzero(allowed))
        if permitted <= EXACT_BELOW:
            return np.flatnonzero(allowed)
        mean, words = self.coded()
        mask = None if permitted == len(allowed) else allowed
        return nearest(words, encode(query[None], mean), mask, max(RESCORE_COUNT, 2 * count), self._scratch)

    def closest(self, query: Vectors, count: int, rows: Rows) -> Rows:
        """The nearest of these rows, in no order."""
        if len(rows) <= count:
            return rows
        if 2 * len(rows) < len(self) or isinstance(self._saved, ReadLater):
            rough = np.vecdot(self.taken(rows), query)
        else:
            # Most of them: that of the others costs less than copying these.
            rough = np.concatenate([np.vecdot(part, query) for part in (self._saved, self._tail.rows)])[rows]
        return rows[np.argpartition(rough, len(rows) - count)[len(rows) - count :]]


class ReadLater:
    """The vectors of rows that are in the database, read a few at a time when they are needed, and kept."""

    def __init__(self, rows: int, dimensions: int) -> None:
        self.shape = (rows, dimensions)
        self._places = np.full(rows, -1, np.int32)
        # In the order they are read: memory that nothing was written to yet takes no room.
        self._vectors = Growable(np.empty((0, dimensions), np.float32))
        self._vectors.reserve(rows)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, rows: Rows | slice | int) -> Vectors:
        places = self._places[rows]
        assert (places >= 0).all(), "they are to be read first"
        found: Vectors = self._vectors.rows[places]
        return found

    @property
    def is_unfinished(self) -> bool:
        """Whether some rows were not read yet."""
        return len(self._vectors.rows) < len(self._places)

    def unread(self, rows: Rows | None = None) -> Rows:
        """Those of these rows, or of all, that were not read yet."""
        if rows is None:
            return np.flatnonzero(self._places < 0)
        saved = rows[rows < len(self._places)]
        return saved[self._places[saved] < 0]

    def read(self, rows: Rows, vectors: Vectors) -> None:
        """Takes the vectors of rows; those that were read meanwhile stay."""
        new = self._places[rows] < 0
        self._places[rows[new]] = np.arange(np.count_nonzero(new)) + len(self._vectors.rows)
        self._vectors.append(vectors[new])


Saved: TypeAlias = Vectors | ReadLater
Kind = TypeVar("Kind", bound=np.generic)


class Growable(Generic[Kind]):
    """Rows in one block of memory that doubles when it is full; the last axis grows if `last` is set."""

    def __init__(self, rows: NDArray[Kind], *, last: bool = False) -> None:
        self._axis = rows.ndim - 1 if last else 0
        self._block = rows
        self._size = rows.shape[self._axis]

    @property
    def rows(self) -> NDArray[Kind]:
        """The rows so far; writing to them changes them."""
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


Words = NDArray[np.uint64]

EXACT_BELOW = 2048  # Up to this many rows, scoring all of them costs less than finding candidates.
RESCORE_COUNT = 500  # Candidates that are scored exactly.
_BATCH_SIZE = 8192  # Rows that are encoded at once, so that it takes little room.
_SCANNED = 16384  # Rows that are compared at once, so that what lies between two steps stays in the processor's cache.


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
        """How far each row is from the query, in bits of up to three words; the next call overwrites it."""
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


_FIRST_WORDS = 3  # So many words of 64 bits are summed up in 8 bits, and leave room for a number beyond them.
_NEVER = 255

_SAMPLED = 8192  # Rows that tell how many others are near; counting all would take as long as the scan.


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
