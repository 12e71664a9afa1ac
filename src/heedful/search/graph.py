"""The graph of one dataset in memory: from facts to what they mention, and back. Follows the store's feed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.storage import facts, graph
from heedful.storage.rows import AnyRow

Numbers = NDArray[np.int64]
Pairs = tuple[Numbers, Numbers]
"""Links: the numbers of facts, and of the entity that each of them mentions."""


class GraphIndex:
    """Links by fact and by entity; `follow` brings it to the state of the store that a connection sees.

    It holds numbers only. What was said about links is read from the store when it is needed.
    """

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._change = 0
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        with self._lock:
            return sum(int(np.count_nonzero(run.live)) for run in self._runs)

    def follow(self, connection: Connection, newest: int | None = None) -> None:
        """Takes in every change that was committed before `connection` looked, up to `newest` if that is known."""
        with self._lock:
            if newest is None:
                newest = facts.last_change(connection, self.dataset)
            if newest <= self._change:
                return
            lines = facts.changes_after(connection, self.dataset, self._change) if self._change else None
            if lines is None:
                self._runs = []
                self._append(graph.pairs_in(connection, self.dataset))
            else:
                self._catch_up(connection, lines)
            self._change = newest

    def links_of(self, fact_seqs: Numbers) -> Pairs:
        """The links of these facts."""
        with self._lock:
            found = [run.links_of(fact_seqs) for run in self._runs]
        return _joined(found)

    def links_to(self, entities: Numbers, most: int) -> tuple[Pairs, Numbers]:
        """The links to those of these entities that at most `most` facts mention; and how many facts mention each
        entity that was given."""
        with self._lock:
            counts = np.zeros(len(entities), np.int64)
            for run in self._runs:
                counts += run.counts(entities)
            found = [run.links_to(entities[counts <= most]) for run in self._runs]
        return _joined(found), counts

    def _catch_up(self, connection: Connection, lines: Sequence[AnyRow]) -> None:
        touched = {line.fact_seq: line.kind for line in lines}
        changed = np.array(list(touched), np.int64)
        for run in self._runs:
            run.tombstone(changed)
        self._runs = [run if run.is_mostly_live() else _Run(*run.living()) for run in self._runs]
        there = [seq for seq, kind in touched.items() if kind != facts.REMOVED]
        self._append(graph.pairs_of(connection, there))

    def _append(self, pairs: Pairs) -> None:
        """Adds a run, and keeps runs few: each is more than twice as large as the next."""
        if len(pairs[0]):
            self._runs.append(_Run(*pairs))
        self._runs = [run for run in self._runs if len(run.facts)]
        while len(self._runs) > 1 and len(self._runs[-2].facts) <= 2 * len(self._runs[-1].facts):
            self._runs[-2:] = [_Run(*_joined([run.living() for run in self._runs[-2:]]))]


class _Run:
    """Links in the order of their facts, with their places in the order of their entities."""

    def __init__(self, fact_seqs: Numbers, entities: Numbers) -> None:
        order = np.lexsort((entities, fact_seqs))
        self.facts, self._entities = fact_seqs[order], entities[order]
        self._by_entity = np.argsort(self._entities, kind="stable")
        self._sorted_entities = self._entities[self._by_entity]
        self.live = np.ones(len(order), bool)
        self._whole = True

    def links_of(self, fact_seqs: Numbers) -> Pairs:
        return self._at(_places(self.facts, fact_seqs))

    def links_to(self, entities: Numbers) -> Pairs:
        return self._at(self._by_entity[_places(self._sorted_entities, entities)])

    def counts(self, entities: Numbers) -> Numbers:
        first = np.searchsorted(self._sorted_entities, entities, "left")
        last = np.searchsorted(self._sorted_entities, entities, "right")
        if self._whole:
            return last - first
        spans = zip(first.tolist(), last.tolist(), strict=True)
        return np.array([np.count_nonzero(self.live[self._by_entity[low:high]]) for low, high in spans], np.int64)

    def tombstone(self, fact_seqs: Numbers) -> None:
        places = _places(self.facts, fact_seqs)
        self.live[places] = False
        self._whole = self._whole and not len(places)

    def is_mostly_live(self) -> bool:
        return 2 * int(np.count_nonzero(self.live)) >= len(self.live)

    def living(self) -> Pairs:
        return self.facts[self.live], self._entities[self.live]

    def _at(self, places: Numbers) -> Pairs:
        live = places if self._whole else places[self.live[places]]
        return self.facts[live], self._entities[live]


def _places(ordered: Numbers, keys: Numbers) -> Numbers:
    """Where any of the keys are in an ordered array."""
    first = np.searchsorted(ordered, keys, "left")
    sizes = np.searchsorted(ordered, keys, "right") - first
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    found: Numbers = np.arange(total) + np.repeat(first - ends + sizes, sizes)
    return found


def _joined(pairs: Sequence[Pairs]) -> Pairs:
    if not pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([found for found, _ in pairs]), np.concatenate([entities for _, entities in pairs])
