"""Words: BM25 over immutable segments, exact whatever was added or removed since."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.text.words import terms

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """The words of a run of facts: for each term, the rows that have it and how often."""

    base: int
    terms: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: Floats
    lengths: Floats

    def postings(self, term: int) -> tuple[NDArray[np.int32], Floats] | None:
        """The rows with a term, counted from the segment's own first row."""
        index = int(np.searchsorted(self.terms, np.uint64(term)))
        if index == len(self.terms) or self.terms[index] != term:
            return None
        run = slice(self.offsets[index], self.offsets[index + 1])
        return self.rows[run], self.counts[run]


def build(texts: Sequence[str], base: int) -> Segment:
    """The segment of texts whose first row is `base`."""
    hashes: list[int] = []
    lengths = np.zeros(len(texts), np.float32)
    for row, text in enumerate(texts):
        found = terms(text)
        hashes.extend(found)
        lengths[row] = len(found)
    rows = np.repeat(np.arange(len(texts), dtype=np.int32), lengths.astype(np.int64))
    return _grouped(base, np.array(hashes, np.uint64), rows, np.ones(len(hashes), np.float32), lengths)


def merge(segments: Sequence[Segment]) -> Segment:
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
    base: int, every_term: NDArray[np.uint64], rows: NDArray[np.int32], counts: Floats, lengths: Floats
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
    bound = 0.0
    for term in dict.fromkeys(terms(query)):
        postings = []
        holders = 0
        for segment in segments:
            posting = segment.postings(term)
            if posting is not None:
                rows = posting[0] + segment.base if segment.base else posting[0]
                postings.append((rows, posting[1]))
                holders += len(rows) if living == len(live) else int(np.count_nonzero(live[rows]))
        weight = rarity(living, holders)
        bound += weight
        for rows, counts in postings:
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
B = 0.3
"""Small, because facts are short: length says little about them."""


def rarity(living: int, holders: int) -> float:
    """The weight of a word that `holders` of the `living` texts have."""
    return math.log(1 + (living - holders + 0.5) / (holders + 0.5))


def gains(weight: float, counts: Floats, norms: Floats) -> Floats:
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
