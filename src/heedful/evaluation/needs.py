"""Which questions ask for the same thing: the phrasings of one need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.providers.embedding import Embedder, Vectors
from heedful.text.same_question import SAME_NEED, Calibration, normal, similarity

STEP = 256  # Texts that are embedded, and compared with all others, in one step.

SLACK = 0.1  # Equal texts but for case may lie this far below the mark.


def needs_of(embedder: Embedder, texts: Sequence[str], report: Callable[[int, int], object] | None = None) -> list[str]:
    """The need of each text, as a short name that is the same whatever the order they come in.

    Two questions belong to one need if they mean the same, or if a chain of others that do leads from one to the other.
    `report` gets the number of distinct texts that were embedded, and how many there are.
    """
    plain = list({normal(text): text for text in sorted(texts, reverse=True)}.values())
    vectors = np.empty((len(plain), embedder.dimensions), np.float32)
    for start in range(0, len(plain), STEP):
        vectors[start : start + STEP] = embedder.embed(plain[start : start + STEP])
        if report is not None:
            report(min(start + STEP, len(plain)), len(plain))
    names = dict(zip(map(normal, plain), needs_of_vectors(plain, vectors, embedder.calibration), strict=True))
    return [names[normal(text)] for text in texts]


def needs_of_vectors(texts: Sequence[str], vectors: Vectors, calibration: Calibration) -> list[str]:
    """The same of texts that are embedded already."""
    distinct = {normal(texts[place]): place for place in sorted(range(len(texts)), key=texts.__getitem__, reverse=True)}
    order = sorted(distinct)
    places = [distinct[words] for words in order]
    first = grouped([texts[place] for place in places], vectors[places], calibration)
    names = {words: _name(order[own]) for words, own in zip(order, first, strict=True)}
    return [names[normal(text)] for text in texts]


def _name(words: str) -> str:
    return hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def grouped(texts: Sequence[str], vectors: Vectors, calibration: Calibration) -> list[int]:
    """For each text, the place of the first one of its need; `vectors` has a row of length 1 for each.

    >>> vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    >>> grouped(["a price", "the price", "a name"], vectors, Calibration(0.4, 0.8))
    [0, 0, 2]
    """
    first = list(range(len(texts)))

    def root(place: int) -> int:
        while first[place] != place:
            first[place] = first[first[place]]
            place = first[place]
        return place

    for a, b, cosine in _alike(vectors, calibration.same - SLACK):
        one, other = sorted((root(a), root(b)))
        if one != other and similarity(texts[a], texts[b], cosine, calibration=calibration) >= SAME_NEED:
            first[other] = one
    return [root(place) for place in range(len(texts))]


def _alike(vectors: Vectors, least: float) -> Iterator[tuple[int, int, float]]:
    """The pairs whose cosine is at least so much; memory grows with their number in a step, not with all pairs."""
    for start in range(0, len(vectors), STEP):
        cosines: NDArray[np.float32] = vectors[start : start + STEP] @ vectors[start:].T
        rows, columns = np.nonzero(cosines >= least)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            if column > row:
                yield start + row, start + column, float(cosines[row, column])
