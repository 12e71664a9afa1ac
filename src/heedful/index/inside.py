"""Search inside PostgreSQL, for datasets that are too large for the memory of every process.

Its indexes find candidates, by vectors (HNSW) and by words (GIN); the formulas that score them are those of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.index import bm25, grouping
from heedful.index.fusion import best, fuse
from heedful.index.searcher import POOL, Floats, Found, Reach
from heedful.model import Mode
from heedful.storage import searching, words
from heedful.storage.filters import Allowed
from heedful.storage.searching import Counted
from heedful.storage.vectors import ModelRow, Vectors, pack
from heedful.storage.words import Searched

EFFORT = 200
"""The vectors that a search in the graph keeps at hand, at least; the more, the surer and slower."""

NEAR, FAR = 1, 2
"""Steps to the facts that stand beside a fact, and to those next to them."""


class DatabaseIndex:
    """A dataset that the database searches. There is nothing to follow: a transaction sees what it sees."""

    def __init__(self, dataset: int, model: ModelRow, known: Searched) -> None:
        self.dataset = dataset
        self.model = model
        self._known = known

    def __len__(self) -> int:
        return self._known.facts

    def follow(self, connection: Connection, newest: int | None = None) -> None:
        """Nothing has to be done."""

    def is_damaged(self) -> bool:
        return False

    def differences(self, connection: Connection) -> int:
        return words.differing(connection, self.dataset)

    def rebuild(self, connection: Connection) -> None:
        words.remove_stale(connection, self.dataset)
        words.fill_all(connection, self.dataset)
        words.count(connection, self.dataset)

    def search(
        self,
        connection: Connection,
        query: str,
        vector: Vectors | None,
        mode: Mode,
        allowed: Allowed,
        also: list[int],
        pool: int,
        reach: Reach | None = None,
    ) -> Found:
        allowed = searching.narrowed(connection, self.dataset, allowed)
        count = max(POOL, pool)
        question = _Question(connection, self.dataset, self.model, self._known, query, vector, mode)
        chosen: set[int] = set()
        if question.by_meaning:
            chosen.update(question.nearest(count, allowed))
        joining = list(also)
        if question.by_words:
            worded = question.best_words(count, allowed)
            chosen.update(worded)
            if question.by_meaning:
                joining += [other for _, other, _ in searching.beside(connection, self.dataset, worded, FAR)]
        chosen.update(searching.permitted(connection, self.dataset, joining, allowed))
        found = question.scored(chosen)
        further = [] if reach is None else reach(found)
        if further:
            chosen.update(searching.permitted(connection, self.dataset, further, allowed))
            found = question.scored(chosen)
        return found


class _Question:
    """One search, with what it knows of facts so far."""

    def __init__(
        self,
        connection: Connection,
        dataset: int,
        model: ModelRow,
        known: Searched,
        query: str,
        vector: Vectors | None,
        mode: Mode,
    ) -> None:
        self._connection = connection
        self._dataset = dataset
        self._model = model
        self._known = known
        self._vector = b"" if vector is None else pack(vector)
        self.by_meaning = vector is not None and mode != "lexical"
        self.by_words = mode != "semantic"
        self._cosines: dict[int, float] = {}
        self._words: dict[int, float] = {}
        self._terms: list[int] = []
        if self.by_words:
            self._holders = searching.holders(connection, dataset, list(dict.fromkeys(words.numbers(query))))
            self._terms = grouping.rarest(self._holders)
            living = max([known.facts, *self._holders.values()])
            self._weights = {term: bm25.rarity(living, count) for term, count in self._holders.items()}

    def nearest(self, count: int, allowed: Allowed) -> Iterable[int]:
        """The allowed facts that are nearest in meaning."""
        if allowed.only is None or len(allowed.only) > searching.FEW:
            effort = min(1000, max(count, EFFORT))
            self._cosines |= searching.nearest(
                self._connection, self._dataset, self._model, self._vector, count, effort, allowed
            )
            return list(self._cosines)
        passing = searching.permitted(self._connection, self._dataset, list(allowed.only), allowed)
        self._learn_cosines(passing)
        return sorted(passing, key=lambda fact: (-self._cosines.get(fact, 0.0), fact))[:count]

    def best_words(self, count: int, allowed: Allowed) -> list[int]:
        """The allowed facts whose words cover most of the query."""
        if not self._terms:
            return []
        if allowed.only is None or len(allowed.only) > searching.FEW:
            groups = grouping.groups(self._terms, self._holders, self._known.facts)
            counted = searching.with_terms(
                self._connection, self._dataset, self._terms, groups, 2 * grouping.ENOUGH, allowed
            )
        else:
            passing = searching.permitted(self._connection, self._dataset, list(allowed.only), allowed)
            counted = searching.counted(self._connection, self._terms, passing)
        covered = self._learn_words(counted)
        return [counted.facts[place] for place in best(covered, count).tolist()]

    def scored(self, chosen: set[int]) -> Found:
        """Candidates with their relevance."""
        order = sorted(chosen)
        seqs = np.array(order, np.int64)
        cosines = own = None
        if self.by_meaning:
            self._learn_cosines(order)
            cosines = np.clip(_row(self._cosines, order), 0, 1)
        if self.by_words:
            self._look_up(order)
            own = _row(self._words, order)
        if own is None:
            assert cosines is not None
            return Found(seqs, cosines, cosines, None, None)
        if cosines is None:
            return Found(seqs, own, None, own, None)
        near, far = self._lent(order)
        fused = fuse(cosines, own, near, far)
        return Found(seqs, fused.relevance, cosines, own, fused.neighbours)

    def _lent(self, order: Sequence[int]) -> tuple[Floats, Floats]:
        """The words of the better fact at distance 1, and at distance 2."""
        lent = np.zeros((FAR, len(order)), np.float32)
        if self._terms:
            places = {fact: place for place, fact in enumerate(order)}
            links = searching.beside(self._connection, self._dataset, order, FAR)
            self._look_up([other for _, other, _ in links])
            # A later fact takes the place of an earlier one, as in memory.
            at = {(fact, step): other for fact, other, step in links}
            for (fact, step), other in at.items():
                row, place = abs(step) - NEAR, places[fact]
                lent[row, place] = max(lent[row, place], self._words[other])
        return lent[0], lent[1]

    def _look_up(self, seqs: Sequence[int]) -> None:
        """Learns how much of the query is covered by facts that are not known yet."""
        lacking = [fact for fact in dict.fromkeys(seqs) if fact not in self._words]
        self._words |= dict.fromkeys(lacking, 0.0)
        self._learn_words(searching.counted(self._connection, self._terms, lacking))

    def _learn_words(self, counted: Counted) -> Floats:
        counts = np.array(counted.counts, np.float32).reshape(len(counted.facts), len(self._terms))
        norms = bm25.norms(np.array(counted.lengths, np.float32), self._known.length)
        total: NDArray[np.float32] = np.zeros(len(counted.facts), np.float32)
        for column, term in enumerate(self._terms):
            total += bm25.gains(self._weights[term], counts[:, column], norms)
        covered = bm25.covered(total, sum(self._weights.values()))
        self._words |= zip(counted.facts, covered.tolist(), strict=True)
        return covered

    def _learn_cosines(self, seqs: Sequence[int]) -> None:
        lacking = [fact for fact in seqs if fact not in self._cosines]
        self._cosines |= searching.cosines(self._connection, self._model, self._vector, lacking)


def _row(known: dict[int, float], order: Sequence[int]) -> Floats:
    return np.array([known.get(fact, 0.0) for fact in order], np.float32)
