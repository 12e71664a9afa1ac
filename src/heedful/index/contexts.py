"""Which earlier queries mean the same as the one that is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from heedful.index.vectors import VectorIndex
from heedful.learning.contexts import SAME_NEED, Calibration, similarity
from heedful.storage import ledger, queries
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack

CANDIDATES = 1000
"""The nearest queries that are compared word by word."""

SLACK = 0.1
"""Queries that differ in case alone may lie this far below the mark."""


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier query that belongs to the context of the one asked."""

    query_id: int
    text: str
    similarity: float


class ContextIndex:
    """The queries of one dataset that signals name. A context is all of them that mean the same as a given one,
    so it needs no bookkeeping, and does not depend on which query came first."""

    def __init__(self, dataset: int, model: ModelRow, calibration: Calibration) -> None:
        self.dataset = dataset
        self.model = model
        self._calibration = calibration
        self._lock = threading.Lock()
        self._event = 0
        self._row_of: dict[int, int] = {}
        self._ids: list[int] = []
        self._texts: list[str] = []
        self.judged = np.empty(0, np.int64)
        """The facts that were ever judged, in order; all others are neutral."""
        self._vectors = VectorIndex(np.empty((0, model.dimensions), np.float32))

    def __len__(self) -> int:
        return len(self._ids)

    def follow(
        self, connection: Connection, newest: int, embed: Callable[[Sequence[str]], Vectors]
    ) -> list[tuple[int, bytes]]:
        """Takes in the queries of signals up to the event `newest`; returns vectors that had to be made, for the store
        to keep."""
        with self._lock:
            if newest <= self._event:
                return []
            named = ledger.queries_after(connection, self.dataset, self._event)
            rows = queries.load(connection, [query for query in named if query not in self._row_of])
            lacking = [row for row in rows if row[2] != self.model.id or row[3] is None]
            vectors = embed([text for _, text, _, _ in lacking])
            made = [(row[0], pack(vector)) for row, vector in zip(lacking, vectors, strict=True)]
            known = {row[0]: row[3] for row in rows if row[3] is not None} | dict(made)
            if rows:
                self._vectors.append(unpack([known[row[0]] for row in rows], self.model.dimensions))
            for query, text, _, _ in rows:
                self._row_of[query] = len(self._ids)
                self._ids.append(query)
                self._texts.append(text)
            judged = ledger.facts_after(connection, self.dataset, self._event)
            self.judged = np.union1d(self.judged, np.array(judged, np.int64))
            self._event = newest
            return made

    def matches(self, text: str, vector: Vectors) -> list[Match]:
        """The queries in the context of `text`, the most similar first."""
        with self._lock:
            if not self._ids:
                return []
            rows, cosines = self._vectors.nearest(vector, CANDIDATES, np.ones(len(self._ids), bool))
            found = []
            for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
                if cosine < self._calibration.same - SLACK:
                    break
                alike = similarity(text, self._texts[row], cosine, calibration=self._calibration)
                if alike >= SAME_NEED:
                    found.append(Match(self._ids[row], self._texts[row], round(alike, 6)))
            return sorted(found, key=lambda match: (-match.similarity, match.query_id))

    def vector_of(self, query_id: int) -> Vectors:
        """The vector of a query that a signal names."""
        with self._lock:
            return self._vectors.row(self._row_of[query_id])
