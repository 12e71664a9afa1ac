"""An embedder that keeps the vectors of the last questions: what is asked often is embedded once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b

from cachetools import LRUCache

from heedful.providers.embedding.contract import Calibration, Embedder, Vectors

KEPT = 1_000
"""Vectors that are kept, of texts that were embedded by themselves."""


class RecentVectors(Embedder):
    """Another embedder, asked once for texts that come again. Only their hashes are held, not the texts."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: LRUCache[bytes, Vectors] = LRUCache(KEPT)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def calibration(self) -> Calibration:
        return self._embedder.calibration

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1:
            return self._embedder.embed(texts)
        key = blake2b(texts[0].encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            found = self._embedder.embed(texts)
            with self._lock:
                self._kept[key] = found
        return found.copy()
