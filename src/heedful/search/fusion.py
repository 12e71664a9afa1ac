"""Relevance from its parts: meaning, words, and neighbouring facts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.model import Mode
from heedful.search.copies import Copies, Distinct
from heedful.search.vectors import Growable
from heedful.storage.filters import Allowed
from heedful.storage.vectors import Vectors

Floats = NDArray[np.float32]

VECTOR = 0.5
"""The share of meaning in a fact's own relevance; words have the rest."""

NEIGHBOUR_WEIGHT, SECOND_NEIGHBOUR_WEIGHT = 0.4, 0.2
"""What the better of the two facts beside it lends, and of the two next to those."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Relevance in [0, 1]; `relevance = VECTOR × vector + (1 − VECTOR) × words + neighbours`."""

    relevance: Floats
    neighbours: Floats


def fuse(vector: Floats, words: Floats, near: Floats, far: Floats) -> Fused:
    """The relevance of facts by meaning and words; a fact that has no neighbours keeps its own.

    An answer is often next to the words of the question: neighbours lend a share of their words, never of
    their meaning, which is vague enough by itself.
    """
    own = np.float32(VECTOR) * vector + np.float32(1 - VECTOR) * words
    relevance = 1 - (1 - own) * (1 - np.float32(NEIGHBOUR_WEIGHT) * near) * (
        1 - np.float32(SECOND_NEIGHBOUR_WEIGHT) * far
    )
    return Fused(relevance, relevance - own)


def borrowed_scores(words: Floats, beside: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """The words of the better fact at distance 1, and at distance 2, from a table of rows (-1 is nobody)."""
    found = np.where(beside >= 0, words[beside], np.float32(0))
    return found[:, :2].max(axis=1), found[:, 2:].max(axis=1)


def best(scores: Floats, count: int) -> NDArray[np.int64]:
    """The places of the `count` greatest scores above 0, in no order."""
    found = np.flatnonzero(scores > 0)
    if len(found) > count:
        found = found[np.argpartition(scores[found], len(found) - count)[len(found) - count :]]
    return found


NO_ROW = -1
STEPS = (-1, 1, -2, 2)
"""The columns of the table of neighbours: the two beside a fact, then the two next to those."""

_SPREAD = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


@lru_cache(maxsize=4096)
def _number(source: str) -> int:
    return int.from_bytes(hashlib.blake2b(source.encode(), digest_size=8).digest(), "little") | 1


def source_position(source: str | None, ordinal: int) -> int:
    """One number for a place in a source; 0 for a fact that has no source."""
    return 0 if source is None else (_number(source) + ordinal * _SPREAD) & _MASK


class Neighbours:
    """The rows beside each row, kept as facts are added. A removed fact leaves its gap."""

    def __init__(self, places: NDArray[np.uint64], table: NDArray[np.int32] | None = None) -> None:
        self._places = Growable(np.array(places))
        self._row_of: dict[int, int] | None = None
        if table is None:
            self._table = Growable(np.empty((0, len(STEPS)), np.int32))
            self._places = Growable(np.empty(0, np.uint64))
            self.append(places)
        else:
            self._table = Growable(np.array(table))

    @property
    def places(self) -> NDArray[np.uint64]:
        return self._places.rows

    @property
    def table(self) -> NDArray[np.int32]:
        return self._table.rows

    def append(self, places: NDArray[np.uint64]) -> None:
        """More rows, at these places."""
        if self._row_of is None:
            self._row_of = {spot: row for row, spot in enumerate(self.places.tolist()) if spot}
        first = len(self.places)
        self._places.append(places)
        self._table.append(np.full((len(places), len(STEPS)), NO_ROW, np.int32))
        table = self.table
        for row, spot in enumerate(places.tolist(), start=first):
            if not spot:
                continue
            self._row_of[spot] = row
            for column, step in enumerate(STEPS):
                other = self._row_of.get((spot + step * _SPREAD) & _MASK)
                if other is not None:
                    table[row, column] = other
                    # The way back: -1 and 1 are columns 0 and 1, -2 and 2 are columns 2 and 3.
                    table[other, column ^ 1] = row


POOL = 100
"""Candidates from each side; the rest of a large dataset is never looked at twice."""


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates, in no order: fact numbers, relevance in [0, 1], and its parts where the mode has them."""

    facts: NDArray[np.int64]
    relevance: Floats
    vector: Floats | None
    words: Floats | None
    neighbours: Floats | None
    copies: Mapping[int, Copies] = field(default_factory=dict)
    """The other facts with the same text, where a search finds each text once."""


Expand: TypeAlias = Callable[[Found], list[int]]
"""Is shown candidates, and names others that should join them."""


class Searcher(Protocol):
    """Searches one dataset; `follow` it before, in the transaction of the search."""

    def __len__(self) -> int:
        """How many facts it knew when it last followed."""

    def follow(self, connection: Connection, newest: int | None = None) -> None:
        """Takes in every change that was committed before `connection` looked, up to `newest` if that is known."""

    def search(
        self,
        connection: Connection,
        query: str,
        vector: Vectors | None,
        mode: Mode,
        allowed: Allowed,
        also: list[int],
        pool: int,
        expand: Expand | None = None,
        distinct: Distinct | None = None,
    ) -> Found:
        """The candidates of a query among the allowed facts, and `also` these, whatever their relevance.

        `expand` is shown the candidates and may name others, which join them if they are allowed. With `distinct`, no
        two of them have the same text.
        """

    def is_damaged(self) -> bool:
        """Whether what was kept of it for the next process is not what was kept."""

    def differences(self, connection: Connection) -> int:
        """How many facts the store and the index do not have in common."""

    def rebuild(self, connection: Connection) -> None:
        """Rebuilds what it has derived from the store; `connection` may write if that is where it keeps it."""
