"""Which earlier queries mean the same as the one that is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from sqlalchemy import Connection

from heedful.ranking.contexts import SAME_NEED, Calibration, normal, similarity
from heedful.search.vectors import VectorIndex
from heedful.storage import ledger, queries
from heedful.storage.queries import Row
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack

CANDIDATES = 1000
"""The nearest queries that are compared word by word."""

SLACK = 0.1
"""Queries that differ in case alone may lie this far below the mark."""

MAX_EMBEDDED = 32
"""New queries that a recall embeds itself."""

BATCH_SIZE = 64
"""Queries that are embedded in one call of the model when there are many."""

Embed = Callable[[Sequence[str]], Vectors]
Load = Callable[[Sequence[int]], list[Row]]
"""Reads queries of these numbers from the store."""

StoredVectors = list[tuple[int, bytes]]
"""Queries and their vectors, as the store keeps them."""


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier query that belongs to the context of the one asked."""

    query_id: int
    text: str
    similarity: float


class ContextIndex:
    """The queries of one dataset that signals name. A context is all of them that mean the same as a given one,
    so it needs no bookkeeping, and does not depend on which query came first.

    Of many queries that are new at once, the newest are embedded at once, and the others wait for `embed_waiting`.
    Until then they match by their words alone. Models are asked outside the lock that searches need.
    """

    def __init__(self, dataset: int, model: ModelRow, calibration: Calibration) -> None:
        self.dataset = dataset
        self.model = model
        self._calibration = calibration
        self._following = threading.Lock()
        self._lock = threading.Lock()
        self._event = 0
        self._row_of: dict[int, int] = {}
        self._ids: list[int] = []
        self._texts: list[str] = []
        self._waiting: dict[int, str] = {}
        self._waiting_words: dict[str, set[int]] = {}
        self.judged = np.empty(0, np.int64)
        """The facts that were ever judged, in order; all others are neutral."""
        self._vectors = VectorIndex(np.empty((0, model.dimensions), np.float32))

    def __len__(self) -> int:
        return len(self._ids) + len(self._waiting)

    def follow(self, connection: Connection, newest: int, embed: Embed) -> StoredVectors:
        """Takes in the queries of signals up to the event `newest`; returns vectors that had to be made, for the store
        to keep."""
        if newest <= self._event:
            return []
        # Whoever comes meanwhile needs what is embedded here, which is little.
        with self._following:
            if newest <= self._event:
                return []
            named = ledger.queries_after(connection, self.dataset, self._event)
            unknown = [query for query in named if query not in self._row_of and query not in self._waiting]
            rows = queries.load(connection, unknown)
            known = {row[0]: row[3] for row in rows if row[2] == self.model.id and row[3] is not None}
            lacking = sorted(row[0] for row in rows if row[0] not in known)
            texts = {row[0]: row[1] for row in rows}
            made = self._made({query: texts[query] for query in lacking[-MAX_EMBEDDED:]}, embed)
            judged = ledger.facts_after(connection, self.dataset, self._event)
            with self._lock:
                self._add([(query, texts[query], vector) for query, vector in [*known.items(), *made]])
                for query in lacking[:-MAX_EMBEDDED]:
                    self._waiting[query] = texts[query]
                    self._waiting_words.setdefault(normal(texts[query]), set()).add(query)
                self.judged = np.union1d(self.judged, np.array(judged, np.int64))
                self._event = newest
            return made

    @property
    def waits(self) -> bool:
        """Whether queries wait to be embedded."""
        return bool(self._waiting)

    def embed_waiting(self, load: Load, embed: Embed, wanted: Collection[int] | None = None) -> StoredVectors | None:
        """Embeds some of the queries that wait, or of those that are `wanted`; returns vectors that had to be made, and
        None when no query waits. What somebody else has embedded is loaded from the store."""
        with self._lock:
            waiting = self._waiting if wanted is None else {query: "" for query in wanted if query in self._waiting}
            taken = list(islice(waiting, BATCH_SIZE))
        if not taken:
            return None
        rows = {row[0]: row for row in load(taken)}
        known = [(query, row[3]) for query, row in rows.items() if row[2] == self.model.id and row[3] is not None]
        ready = {query for query, _ in known}
        made = self._made({query: row[1] for query, row in rows.items() if query not in ready}, embed)
        with self._lock:
            for query in taken:
                text = self._waiting.pop(query, None)
                if text is not None:
                    self._waiting_words[normal(text)].discard(query)
                    if not self._waiting_words[normal(text)]:
                        del self._waiting_words[normal(text)]
            self._add([(query, rows[query][1], vector) for query, vector in [*known, *made]])
        return made

    def matches(self, text: str, vector: Vectors) -> list[Match]:
        """The queries in the context of `text`, the most similar first."""
        with self._lock:
            found = [Match(query, self._waiting[query], 1.0) for query in self._waiting_words.get(normal(text), ())]
            if self._ids:
                found += self._near(text, vector)
        return sorted(found, key=lambda match: (-match.similarity, match.query_id))

    def vector_of(self, query_id: int) -> Vectors:
        """The vector of a query that a signal names and that does not wait."""
        with self._lock:
            return self._vectors.row(self._row_of[query_id])

    def _near(self, text: str, vector: Vectors) -> list[Match]:
        rows, cosines = self._vectors.nearest(vector, CANDIDATES, np.ones(len(self._ids), bool))
        found = []
        for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
            if cosine < self._calibration.same - SLACK:
                break
            alike = similarity(text, self._texts[row], cosine, calibration=self._calibration)
            if alike >= SAME_NEED:
                found.append(Match(self._ids[row], self._texts[row], round(alike, 6)))
        return found

    def _made(self, texts: Mapping[int, str], embed: Embed) -> StoredVectors:
        if not texts:
            return []
        vectors = embed(list(texts.values()))
        return [(query, pack(vector)) for query, vector in zip(texts, vectors, strict=True)]

    def _add(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        new = [row for row in rows if row[0] not in self._row_of]
        if not new:
            return
        self._vectors.append(unpack([vector for _, _, vector in new], self.model.dimensions))
        for query, text, _ in new:
            self._row_of[query] = len(self._ids)
            self._ids.append(query)
            self._texts.append(text)
