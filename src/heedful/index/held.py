"""The rows that the index of a dataset holds: vectors, words and neighbours of facts, and which rows are alive."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heedful.index import codes, postings
from heedful.index.growable import Growable
from heedful.index.neighbours import Neighbours, place
from heedful.index.vectors import VectorIndex
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import unpack

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]

FEW_DEAD = 256
"""Dead rows that are never worth a compaction."""

DEAD_SHARE = 0.5
"""Dead rows, as a share of the living, that are."""


class Held:
    """Rows by number, in the order they were added. A fact that changes leaves its row dead and gets a new one.

    It has no lock. What `Compaction.build` reads is never changed in place, so that may run beside everything else.
    """

    def __init__(
        self,
        seqs: Rows,
        vectors: VectorIndex,
        segments: list[postings.Segment],
        lengths: Floats,
        neighbours: Neighbours,
    ) -> None:
        self._seqs: Growable[np.int64] = Growable(seqs)
        self._alive: Growable[np.bool_] = Growable(np.ones(len(seqs), bool))
        self._lengths: Growable[np.float32] = Growable(lengths)
        self.vectors = vectors
        self.segments = segments
        self.neighbours = neighbours
        self.norms = np.empty(0, np.float32)
        self.living = len(seqs)
        self._kept_apart = 0
        self.settle()

    @classmethod
    def empty(cls, dimensions: int) -> Held:
        """No rows yet."""
        vectors = VectorIndex(np.empty((0, dimensions), np.float32))
        return cls(np.empty(0, np.int64), vectors, [], np.empty(0, np.float32), Neighbours(np.empty(0, np.uint64)))

    @property
    def seqs(self) -> Rows:
        """The fact of each row."""
        return self._seqs.rows

    @property
    def alive(self) -> Bools:
        """Which rows are what their fact is now."""
        return self._alive.rows

    @property
    def dead(self) -> int:
        return len(self.seqs) - self.living

    def append(self, run: Sequence[AnyRow], dimensions: int) -> None:
        """Adds facts; `settle` when there are no more."""
        segment = postings.build([row.text for row in run], len(self.seqs))
        self.segments.append(segment)
        self._merge_alike()
        self._lengths.append(segment.lengths)
        self.vectors.append(unpack([row.vector for row in run], dimensions))
        self.neighbours.append(np.array([place(row.source, row.ordinal) for row in run], np.uint64))
        self._alive.append(np.ones(len(run), bool))
        self._seqs.append(np.array([row.seq for row in run], np.int64))
        self.living += len(run)

    def bury(self, seqs: Collection[int]) -> None:
        """Leaves the rows of these facts dead."""
        rows = self.rows_of(seqs)
        self.alive[rows] = False
        self.living -= len(rows)

    def rows_of(self, seqs: Collection[int] | Rows) -> Rows:
        """The living rows of facts; those it does not have are left out."""
        wanted = seqs if isinstance(seqs, np.ndarray) else np.fromiter(seqs, np.int64, len(seqs))
        return np.flatnonzero(np.isin(self.seqs, wanted) & self.alive)

    def settle(self) -> None:
        """Brings up to date what depends on all rows."""
        self.norms = postings.length_norms(self._lengths.rows, self.alive)

    def worth_compacting(self) -> bool:
        """Whether so many rows are dead that the living ones should be copied out from among them."""
        return not self._kept_apart and self.dead > max(FEW_DEAD, DEAD_SHARE * self.living)

    def compaction(self) -> Compaction:
        """What makes a copy without the rows that are dead now."""
        self._kept_apart = len(self.segments)
        return Compaction(self, np.array(self.alive), list(self.segments), self.neighbours.places)

    def abandon(self) -> None:
        """Ends a compaction that came to nothing."""
        self._kept_apart = 0

    def _merge_alike(self) -> None:
        """Keeps runs of words few: each is more than twice as large as the next.

        The oldest stays as it is: it is the largest, and may be mapped from a file. What a compaction reads stays, too.
        """
        apart = max(1, self._kept_apart)
        while len(self.segments) > apart + 1 and len(self.segments[-2].lengths) <= 2 * len(self.segments[-1].lengths):
            self.segments[-2:] = [postings.merge(self.segments[-2:])]


@dataclass(frozen=True, slots=True)
class Compaction:
    """A copy of the living rows on its way: `build` takes long and needs no lock, `finish` is quick and needs it."""

    held: Held
    _alive: Bools
    _segments: list[postings.Segment]
    _places: NDArray[np.uint64]

    def build(self) -> Held:
        """The rows that were alive when the compaction began."""
        kept = np.flatnonzero(self._alive)
        moved = np.full(len(self._alive), -1, np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        segments = [postings.only(postings.merge(self._segments), moved)] if self._segments else []
        vectors = VectorIndex(self.held.vectors.taken(kept))
        if len(kept) > codes.EXACT_BELOW:
            vectors.coded()
        lengths = np.array(segments[0].lengths) if segments else np.empty(0, np.float32)
        return Held(self.held.seqs[kept], vectors, segments, lengths, Neighbours(self._places[kept]))

    def finish(self, built: Held) -> Held:
        """What was built, with all that was added and removed meanwhile."""
        before, held = len(self._alive), self.held
        removed = before - built.living
        built.segments += [replace(each, base=each.base - removed) for each in held.segments[len(self._segments) :]]
        added = np.arange(before, len(held.seqs))
        built.vectors.append(held.vectors.taken(added))
        built.neighbours.append(held.neighbours.places[before:])
        built._lengths.append(held._lengths.rows[before:])
        built._seqs.append(held.seqs[before:])
        built._alive = Growable(np.concatenate([held.alive[:before][self._alive], held.alive[before:]]))
        built.living = int(np.count_nonzero(built.alive))
        built.settle()
        return built
