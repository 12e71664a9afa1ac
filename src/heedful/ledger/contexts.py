"""Contexts: the earlier queries that mean the same as one, found as the ledger grows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.ledger import events
from heedful.ledger.adaptive_policy import LEAST_COSINE, Neighbour
from heedful.ledger.events import QueryRow
from heedful.search.vector_index import Growable, VectorIndex
from heedful.storage.vectors import ModelRow, Vectors, pack, unpack
from heedful.text.same_question import SAME_NEED, Calibration, difference, normal, similarity

Seqs = NDArray[np.int64]

CANDIDATES = 1000  # The nearest queries that are looked at.

MAX_COMPARED = 100_000
"""Characters of the nearest queries that are compared word by word; others match if they are equal."""

SLACK = 0.1  # Queries that differ in case alone may lie this far below the mark.

MAX_CHARACTERS = 1_000
"""Characters of queries that are embedded in one step, unless a single query has more: a model reads about as many of a
text. A recall embeds no more than this of queries that are new."""

MAX_QUERIES = 32  # Queries that are embedded in one step.

Embed = Callable[[Sequence[str]], Vectors]
Load = Callable[[Sequence[int]], list[QueryRow]]  # Reads queries of these numbers from the store.
StoredVectors = list[tuple[int, bytes]]  # Queries and their vectors, as the store keeps them.


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier query that belongs to the context of the one asked."""

    query_id: int
    text: str
    similarity: float


class ContextIndex:
    """The queries of one dataset with signals that count. A context is all of them that mean the same as a given one,
    so it needs no bookkeeping, and does not depend on which query came first.

    Queries that are new without a vector wait for `embed`. Until then they match by their words alone. Models are asked
    without a lock: nobody waits for others to embed.
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
        self._unrated: set[int] = set()
        """Queries whose signals were all retracted."""
        self._is_rated: Growable[np.bool_] = Growable(np.empty(0, bool))
        self._waiting: dict[int, str] = {}
        self._waiting_words: dict[str, set[int]] = {}
        self._newest: Sequence[int] = ()
        """Of the queries that came last, those that are embedded in one step."""
        self._judged: Seqs = np.empty(0, np.int64)
        self._judged_until = 0
        self._vectors = VectorIndex(np.empty((0, model.dimensions), np.float32))

    def __len__(self) -> int:
        return len(self._ids) + len(self._waiting)

    def follow(self, connection: Connection, newest: int) -> None:
        """Takes in the queries of signals up to the event `newest`."""
        if newest <= self._event:
            return
        with self._following:
            if newest <= self._event:
                return
            named = events.queries_after(connection, self.dataset, self._event)
            unrated = events.unrated_after(connection, self.dataset, self._event)
            unknown = named - unrated - self._row_of.keys() - self._waiting.keys()
            rows = events.load_queries(connection, sorted(unknown))
            known = {row.id: row.vector for row in rows if row.model_id == self.model.id and row.vector is not None}
            texts = {row.id: row.text for row in rows}
            lacking = {query: texts[query] for query in sorted(texts.keys() - known.keys())}
            with self._lock:
                self._unrated = (self._unrated - named) | unrated
                for query in (named | unrated) & self._row_of.keys():
                    self._is_rated.rows[self._row_of[query]] = query not in unrated
                self._add([(query, texts[query], vector) for query, vector in known.items()])
                for query, text in lacking.items():
                    self._waiting[query] = text
                    self._waiting_words.setdefault(normal(text), set()).add(query)
                if lacking:
                    last = next(_steps(dict(reversed(lacking.items()))))
                    self._newest = last if sum(len(texts[query]) for query in last) <= MAX_CHARACTERS else ()
                self._event = newest

    def judged(self, connection: Connection, newest: int) -> Seqs:
        """The facts that were ever judged up to the event `newest`, the last that `connection` sees, in order; all
        others are neutral. They are read when they are first asked for: few recalls need them."""
        with self._following:
            if newest > self._judged_until:
                more = events.facts_after(connection, self.dataset, self._judged_until)
                self._judged = np.union1d(self._judged, np.array(more, np.int64))
                self._judged_until = newest
            return self._judged

    @property
    def waits(self) -> bool:
        """Whether queries wait to be embedded."""
        return bool(self._waiting)

    def steps(self, wanted: Iterable[int] | None = None) -> list[list[int]]:
        """The queries that wait, or those of them that are `wanted`, in runs that are embedded in one step."""
        with self._lock:
            among = self._waiting if wanted is None else wanted
            return list(_steps({query: self._waiting[query] for query in among if query in self._waiting}))

    def newest(self) -> list[list[int]]:
        """The same of those that came last, in one step at most; none, if they are too long."""
        return self.steps(self._newest)

    def embed(self, step: Sequence[int], load: Load, embed: Embed) -> StoredVectors:
        """Embeds queries that wait; returns the new vectors, for the store to keep. Vectors that others have made are
        loaded from the store."""
        with self._lock:
            taken = [query for query in step if query in self._waiting]
        rows = load(taken) if taken else []
        texts = {row.id: row.text for row in rows}
        known = {row.id: row.vector for row in rows if row.model_id == self.model.id and row.vector is not None}
        lacking = [query for query in texts if query not in known]
        made: StoredVectors = []
        if lacking:
            vectors = embed([texts[query] for query in lacking])
            made = [(query, pack(vector)) for query, vector in zip(lacking, vectors, strict=True)]
        with self._lock:
            for query in taken:
                text = self._waiting.pop(query, None)
                if text is not None:
                    self._waiting_words[normal(text)].discard(query)
                    if not self._waiting_words[normal(text)]:
                        del self._waiting_words[normal(text)]
            self._add([(query, texts[query], vector) for query, vector in [*known.items(), *made]])
        return made

    def near(self, text: str, vector: Vectors) -> tuple[list[Match], Iterator[Neighbour]]:
        """The queries in the context of `text`, the most similar first, and those related to it, the nearest first."""
        neighbours: Iterator[Neighbour] = iter(())
        with self._lock:
            waiting = self._waiting_words.get(normal(text), set()) - self._unrated
            matches = [Match(query, self._waiting[query], 1.0) for query in waiting]
            if self._ids:
                rows, cosines = self._vectors.nearest(vector, CANDIDATES, self._is_rated.rows)
                matches += self._alike(text, rows, cosines)
                neighbours = self._neighbours(text, rows, cosines)
        return sorted(matches, key=lambda match: (-match.similarity, match.query_id)), neighbours

    def _neighbours(self, text: str, rows: Seqs, cosines: Vectors) -> Iterator[Neighbour]:
        # Without the lock: rows are added, and never changed.
        for cosine, alike in groupby(zip(cosines.tolist(), rows.tolist(), strict=True), itemgetter(0)):
            if cosine < LEAST_COSINE:
                return
            # By their words, which are the same in every process and for every order of arrival.
            for row in sorted((row for _, row in alike), key=self._texts.__getitem__):
                # What is so near and asks for something else is not related, but easily mistaken.
                if cosine >= self._calibration.same - SLACK and difference(text, self._texts[row]):
                    continue
                yield Neighbour(self._ids[row], round(cosine, 6), self._vectors.row(row))

    def vector_of(self, query_id: int) -> Vectors:
        """The vector of a query that a signal names and that does not wait."""
        with self._lock:
            return self._vectors.row(self._row_of[query_id])

    def grouped(self, texts: Mapping[int, str]) -> list[list[int]]:
        """Queries by context: the first that has none yet makes the next one."""
        with self._lock:
            vectors = {query: self._vectors.row(self._row_of[query]) for query in texts if query in self._row_of}
        words = {query: normal(text) for query, text in texts.items()}

        def are_one(a: int, b: int) -> bool:
            if words[a] == words[b] or a not in vectors or b not in vectors:
                return words[a] == words[b]
            cosine = float(vectors[a] @ vectors[b])
            if cosine < self._calibration.same - SLACK:
                return False
            return similarity(texts[a], texts[b], cosine, calibration=self._calibration) >= SAME_NEED

        groups: list[list[int]] = []
        left = list(texts)
        while left:
            groups.append([query for query in left if are_one(left[0], query)])
            left = [query for query in left if query not in groups[-1]]
        return groups

    def _alike(self, text: str, rows: Seqs, cosines: Vectors) -> list[Match]:
        matches = []
        compared = 0
        for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
            if cosine < self._calibration.same - SLACK:
                break
            other = self._texts[row]
            compared += len(other)
            if compared > MAX_COMPARED and other != text:
                continue
            alike = similarity(text, other, cosine, calibration=self._calibration)
            if alike >= SAME_NEED:
                matches.append(Match(self._ids[row], other, round(alike, 6)))
        return matches

    def _add(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        new = [row for row in rows if row[0] not in self._row_of]
        if not new:
            return
        self._vectors.append(unpack([vector for _, _, vector in new], self.model.dimensions))
        self._is_rated.append(np.array([query not in self._unrated for query, _, _ in new]))
        for query, text, _ in new:
            self._row_of[query] = len(self._ids)
            self._ids.append(query)
            self._texts.append(text)


def _steps(texts: Mapping[int, str]) -> Iterator[list[int]]:
    """Queries in order, as many at a time as are embedded in one step."""
    step: list[int] = []
    characters = 0
    for query, text in texts.items():
        if step and (len(step) == MAX_QUERIES or characters + len(text) > MAX_CHARACTERS):
            yield step
            step, characters = [], 0
        step.append(query)
        characters += len(text)
    if step:
        yield step
