"""Vectors of the texts, made once with the bundled model and kept, because that takes minutes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.measure import Spent, timed
from heedful.providers.embedding import Embedder, bundled
from heedful.text.same_question import Calibration

Vectors = NDArray[np.float32]
Say = Callable[[str], None]

CHUNK = 4096
NOTHING = Spent(0.0, 0.0)


class Served:
    """The bundled model, with vectors of known texts ready; it counts what it spends on others.

    A store that was filled through it is an ordinary store: name, dimensions and vectors are the model's own.
    """

    def __init__(self, model: Embedder, texts: Sequence[str] = (), vectors: Vectors | None = None) -> None:
        self._model = model
        self._place = {text: place for place, text in enumerate(texts)}
        self._vectors = vectors
        self.spent = NOTHING

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dimensions(self) -> int:
        return self._model.dimensions

    @property
    def calibration(self) -> Calibration:
        return self._model.calibration

    def embed(self, texts: Sequence[str]) -> Vectors:
        places = [self._place.get(text, -1) for text in texts]
        if self._vectors is not None and places and min(places) >= 0:
            return self._vectors[places]
        spent, made = timed(lambda: self._model.embed(texts))
        self.spent = Spent(self.spent.wall + spent.wall, self.spent.processor + spent.processor)
        return made


def embedded(texts: Sequence[str], folder: Path, say: Say) -> Vectors:
    """One vector a text, from a file in `folder` if these texts were embedded before."""
    model = bundled()
    joined = "\0".join([model.name, *texts])
    file = folder / f"vectors-{hashlib.blake2b(joined.encode(), digest_size=8).hexdigest()}.npy"
    if file.is_file():
        found: Vectors = np.load(file)
        return found
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.empty((len(texts), model.dimensions), np.float32)
    start = time.perf_counter()
    for first in range(0, len(texts), CHUNK):
        vectors[first : first + CHUNK] = model.embed(texts[first : first + CHUNK])
        done = min(first + CHUNK, len(texts))
        rate = done / (time.perf_counter() - start)
        say(f"embedding {done:,} of {len(texts):,} texts ({rate:,.0f}/s; kept for the next run)")
    unfinished = file.with_suffix(".tmp.npy")
    np.save(unfinished, vectors)
    unfinished.replace(file)
    return vectors


def exact_top(vectors: Vectors, queries: Vectors, count: int) -> tuple[NDArray[np.int64], Vectors]:
    """The rows with the greatest cosines of each query, best first, and the least of those cosines."""
    rows = np.empty((len(queries), count), np.int64)
    least = np.empty(len(queries), np.float32)
    for place, query in enumerate(queries):
        cosines = vectors @ query
        top = np.argpartition(cosines, len(cosines) - count)[len(cosines) - count :]
        rows[place] = top[np.argsort(-cosines[top])]
        least[place] = cosines[rows[place, -1]]
    return rows, least


def share_found(vectors: Vectors, queries: Vectors, least: Vectors, found: Sequence[Sequence[int]]) -> float:
    """The share of the exact nearest rows that were found; rows as near as the last of them count as well."""
    hits = 0
    total = 0
    for query, limit, rows in zip(queries, least, found, strict=True):
        cosines = vectors[list(rows)] @ query if len(rows) else np.empty(0, np.float32)
        hits += int(np.count_nonzero(cosines >= limit - 1e-6))
        total += 10
    return hits / total
