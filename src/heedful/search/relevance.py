"""Relevance from its parts: words, by BM25 over immutable segments, exact whatever was added or removed since; meaning;
and neighbouring facts. Of copies, one is found."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from heedful.model import Mode
from heedful.search.vector_index import Growable
from heedful.storage.filters import Allowed
from heedful.storage.vectors import Vectors
from heedful.text.words import terms

Floats = NDArray[np.float32]
Counts = NDArray[np.float32] | NDArray[np.uint8]
Rows = NDArray[np.int64]
Keys = NDArray[np.uint64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """The words of a run of facts: for each term, the rows that have it and how often."""

    base: int
    terms: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: Counts
    lengths: Floats

    def postings(self, terms: NDArray[np.uint64]) -> Iterator[tuple[int, NDArray[np.int32], Counts]]:
        """The place of each of these terms that any row has, those rows, counted from the segment's own first one, and
        how often they have it."""
        if not len(self.terms):
            return
        # Beyond the last is the last, which is another term.
        indexes = np.searchsorted(self.terms[:-1], terms)
        for place in np.flatnonzero(self.terms[indexes] == terms).tolist():
            run = slice(self.offsets[indexes[place]], self.offsets[indexes[place] + 1])
            yield place, self.rows[run], self.counts[run]


def build_segment(texts: Sequence[str], base: int) -> Segment:
    """The segment of texts whose first row is `base`."""
    hashes: list[int] = []
    lengths = np.zeros(len(texts), np.float32)
    for row, text in enumerate(texts):
        found = terms(text)
        hashes.extend(found)
        lengths[row] = len(found)
    rows = np.repeat(np.arange(len(texts), dtype=np.int32), lengths.astype(np.int64))
    return _grouped(base, np.array(hashes, np.uint64), rows, np.ones(len(hashes), np.float32), lengths)


def merge_segments(segments: Sequence[Segment]) -> Segment:
    """Neighbouring segments as one."""
    base = segments[0].base
    every_term = np.concatenate([np.repeat(part.terms, np.diff(part.offsets)) for part in segments])
    rows = np.concatenate([part.rows + np.int32(part.base - base) for part in segments])
    counts = np.concatenate([part.counts for part in segments])
    lengths = np.concatenate([part.lengths for part in segments])
    return _grouped(base, every_term, rows, counts, lengths)


def keep_only(segment: Segment, moved: NDArray[np.int32]) -> Segment:
    """The segment without the rows that moved to -1, the others at their new places."""
    mask = moved >= 0
    every_term = np.repeat(segment.terms, np.diff(segment.offsets))
    places = moved[segment.rows]
    living = places >= 0
    return _grouped(segment.base, every_term[living], places[living], segment.counts[living], segment.lengths[mask])


def _grouped(
    base: int, every_term: NDArray[np.uint64], rows: NDArray[np.int32], counts: Counts, lengths: Floats
) -> Segment:
    order = np.lexsort((rows, every_term))
    every_term, rows, counts = every_term[order], rows[order], counts[order]
    first = np.ones(len(rows), bool)
    first[1:] = (every_term[1:] != every_term[:-1]) | (rows[1:] != rows[:-1])
    starts = np.flatnonzero(first)
    summed = np.add.reduceat(counts, starts) if len(starts) else counts
    unique_terms, offsets = np.unique(every_term[starts], return_index=True)
    ends = np.append(offsets, len(starts)).astype(np.int64)
    return Segment(base, unique_terms, ends, rows[starts], summed.astype(np.float32), lengths)


def coverage(segments: Sequence[Segment], query: str, live: Bools, norms: Floats) -> Floats:
    """How much of a query each row's words cover, in [0, 1]; removed rows have 0."""
    total = np.zeros(len(live), np.float32)
    living = int(np.count_nonzero(live))
    asked = list(dict.fromkeys(terms(query)))
    postings: list[list[tuple[NDArray[np.int32], Counts]]] = [[] for _ in asked]
    for segment in segments:
        for place, rows, counts in segment.postings(np.array(asked, np.uint64)):
            postings[place].append((rows + segment.base if segment.base else rows, counts))
    bound = 0.0
    for of_term in postings:
        holders = sum(len(rows) if living == len(live) else int(np.count_nonzero(live[rows])) for rows, _ in of_term)
        weight = rarity(living, holders)
        bound += weight
        for rows, counts in of_term:
            total[rows] += gains(weight, counts, norms[rows])
    to_coverage(total, bound)
    if living < len(live):
        total[~live] = 0
    return total


def length_norms(lengths: Floats, live: Bools) -> Floats:
    """The part of BM25 that depends on how long a text is, for every row."""
    living = lengths[live]
    return norms(lengths, float(living.mean(dtype=np.float64)) if len(living) else 1.0)


K1 = 1.2
B = 0.3  # Small, because facts are short: length says little about them.


def rarity(living: int, holders: int) -> float:
    """The weight of a word that `holders` of the `living` texts have."""
    return math.log(1 + (living - holders + 0.5) / (holders + 0.5))


def gains(weight: float, counts: Counts, norms: Floats) -> Floats:
    """The gain of texts that have a word of this weight so many times."""
    gained: Floats = np.float32(weight * (K1 + 1)) * counts / (counts + norms)
    return gained


def norms(lengths: Floats, mean: float) -> Floats:
    """The part that depends on how long texts are, beside the mean of all."""
    found: Floats = (K1 * (1 - B + B * lengths / max(mean, 1.0))).astype(np.float32)
    return found


def to_coverage(total: Floats, bound: float) -> Floats:
    """Sums of gains over the sum of all weights, in [0, 1]; changes what it is given.

    A word that no text has counts in the bound too: when half of a query is unknown, words can say at most half.
    """
    if bound:
        total *= np.float32(1 / bound)
        np.minimum(total, 1, out=total)
    return total


VECTOR = 0.5  # The share of meaning in a fact's own relevance; words have the rest.
NEIGHBOUR_WEIGHT, SECOND_NEIGHBOUR_WEIGHT = 0.4, 0.2
"""The shares that the better of the two facts beside it lends, and the better of the two next to those."""


def fuse(vector: Floats, words: Floats, near: Floats, far: Floats) -> tuple[Floats, Floats]:
    """The relevance of facts by meaning and words, in [0, 1], and the part of it that neighbours lend:
    `relevance = VECTOR × vector + (1 − VECTOR) × words + neighbours`.

    An answer is often next to the words of the question: neighbours lend a share of their words, never of
    their meaning, which is vague enough by itself.
    """
    own = np.float32(VECTOR) * vector + np.float32(1 - VECTOR) * words
    first, second = np.float32(NEIGHBOUR_WEIGHT) * near, np.float32(SECOND_NEIGHBOUR_WEIGHT) * far
    relevance = 1 - (1 - own) * (1 - first) * (1 - second)
    return relevance, relevance - own


def borrowed_scores(words: Floats, beside: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """The words of the better fact at distance 1, and at distance 2, from a table of rows (-1 is nobody)."""
    scores = np.where(beside >= 0, words[beside], np.float32(0))
    return scores[:, :2].max(axis=1), scores[:, 2:].max(axis=1)


def best(scores: Floats, count: int) -> NDArray[np.int64]:
    """The places of the `count` greatest scores above 0, in no order."""
    places = np.flatnonzero(scores > 0)
    if len(places) > count:
        places = places[np.argpartition(scores[places], len(places) - count)[len(places) - count :]]
    return places


NO_ROW = -1
STEPS = (-1, 1, -2, 2)  # The columns of the table of neighbours: the two beside a fact, then the two next to those.
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
        """Adds rows at these places."""
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


POOL = 100  # Candidates from each side; the rest of a large dataset is never looked at twice.


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


def scored(
    facts: Rows, cosines: Floats | None, words: Floats | None, lent: Callable[[], tuple[Floats, Floats]]
) -> Found:
    """Candidates with their relevance, by the parts that the mode has; `lent` reads the words of their neighbours."""
    if cosines is not None and words is not None:
        relevance, neighbours = fuse(cosines, words, *lent())
        return Found(facts, relevance, cosines, words, neighbours)
    only = cosines if words is None else words
    assert only is not None
    return Found(facts, only, cosines, words, None)


Expand: TypeAlias = Callable[[Found], list[int]]
"""Is shown candidates, and names others that should join them."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a dataset."""

    query: str
    vector: Vectors | None
    mode: Mode
    pool: int
    """The candidates from each side, and never fewer than `POOL`."""
    allowed: Allowed = field(default_factory=Allowed)
    also: Sequence[int] = ()
    """Facts that are candidates, too, if they are allowed, whatever their relevance."""
    expand: Expand | None = None
    """May name facts that join the candidates, if they are allowed."""
    distinct: Distinct | None = None
    """Given, no two candidates have the same text."""

    @property
    def wanted(self) -> int:
        return max(POOL, self.pool)

    @property
    def by_meaning(self) -> Vectors | None:
        """The vector, where the mode compares meanings."""
        return None if self.mode == "lexical" else self.vector

    @property
    def by_words(self) -> bool:
        return self.mode != "semantic"


NAMED = 9  # Copies of a text that are named; all are counted.


@dataclass(frozen=True, slots=True)
class Distinct:
    """A search that finds each text once: of several copies the one that `one_of_each` prefers."""

    judged: Callable[[], Rows]
    shown: Sequence[int] = ()
    """The facts whose texts are not to be found."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The other facts with the text of one that was found."""

    count: int
    facts: list[int]
    """The first of them."""


def key(text: str) -> int:
    """The same for texts that differ in case and spaces only."""
    plain = " ".join(normalize("NFC", text).casefold().split())
    return int.from_bytes(hashlib.blake2b(plain.encode(), digest_size=8).digest(), "little")


def one_of_each(
    seqs: Rows, keys: Keys, lent: Floats, judged: Rows, also: Collection[int]
) -> tuple[Rows, dict[int, Copies]]:
    """The places of the facts to search, one for each key, and the copies by fact.

    Preferred are those in `also`, then those that were judged: what was said about a text counts even if other copies
    come and go. Then those that others lend most relevance to, then the oldest.
    """
    wanted = np.isin(seqs, np.fromiter(also, np.int64, len(also)))
    order = np.lexsort((seqs, -lent, ~np.isin(seqs, judged), ~wanted, keys))
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(starts, append=len(order))
    repeated = sizes > 1
    copies: dict[int, Copies] = {}
    for start, size in zip(starts[repeated].tolist(), sizes[repeated].tolist(), strict=True):
        first, *others = seqs[order[start : start + min(size, NAMED + 1)]].tolist()
        copies[first] = Copies(size - 1, others)
    return order[starts], copies
