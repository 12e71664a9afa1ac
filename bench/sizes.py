"""What a recall costs as the number of facts grows, without the embedding of the query."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.measure import Timing, say, timing
from bench.reads import WARM, Recalled, recalling
from bench.store import opened, write
from bench.vectors import Served, Vectors
from heedful.engine import Heedful
from heedful.providers.embedding import Embedder


@dataclass(frozen=True, slots=True)
class Size:
    """A number of facts and what a hybrid recall of them takes after embedding."""

    facts: int
    time: Timing
    made: bool
    """Whether the facts were made from others, because there are not enough real ones."""


def multiplied(texts: Sequence[str], vectors: Vectors, size: int, seed: int = 0) -> tuple[list[str], Vectors]:
    """Made facts that lie about like real ones: two short parts of texts, and the mixture of two vectors."""
    random = np.random.default_rng(seed)
    first, second = random.integers(0, len(texts), (2, size))
    parts = [" ".join(text.split()[:5]) for text in texts]
    made = [
        f"{parts[one]} {parts[other]} {place}" for place, (one, other) in enumerate(zip(first, second, strict=True))
    ]
    mixed = np.empty((size, vectors.shape[1]), np.float32)
    for start in range(0, size, 50_000):
        stop = start + 50_000
        some = vectors[first[start:stop]] + np.float32(0.6) * vectors[second[start:stop]]
        mixed[start:stop] = some / np.linalg.norm(some, axis=1, keepdims=True)
    return made, mixed


def measure(
    texts: Sequence[str], vectors: Vectors, model: Embedder, queries: Sequence[str], folder: Path, *, made: bool
) -> Size:
    """Fills a store with the facts and recalls from it."""
    say(f"filling a store with {len(texts):,} facts")
    served = Served(model, texts, vectors)
    kept = Recalled()
    with tempfile.TemporaryDirectory(dir=folder) as home:
        file = Path(home) / "store.db"
        write(file, served, texts, vectors)
        with opened(file, served) as store:
            _recall(store, served, queries, kept)
    return Size(len(texts), timing(kept.after), made)


def _recall(store: Heedful, served: Served, queries: Sequence[str], kept: Recalled) -> None:
    for place in range(WARM):
        store.recall(f"{queries[place]} {place}")
    task = recalling(store, served, queries, kept, "hybrid")
    for place in range(len(queries)):
        task(place)
