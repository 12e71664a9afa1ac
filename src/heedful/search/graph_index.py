"""The graph of one dataset in memory, from facts to what they mention and back, and the relevance of walks through it.

It follows the feed of the store.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.storage import facts, graph
from heedful.storage.graph import Pairs
from heedful.storage.rows import AnyRow

Numbers = NDArray[np.int64]


class GraphIndex:
    """Links by fact and by entity; `follow` brings it to the state of the store that a connection sees.

    It holds numbers only. The opinions about links are read from the store when they are needed.
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
    none = np.empty(0, np.int64)
    facts_of, entities_of = [none, *(one for one, _ in pairs)], [none, *(other for _, other in pairs)]
    return np.concatenate(facts_of), np.concatenate(entities_of)


SEEDS = 20  # The facts from which a walk starts: the most relevant ones.
MAX_PATH_WEIGHT = 0.3  # The most that a path lends.
NAMED_ENTITY_RELEVANCE = 0.5  # An entity that the query names counts like one that a fact of this relevance mentions.
MAX_MENTIONS = 50  # An entity that more facts mention says too little about any of them.
FROM_QUERY = -1
_NO_PATH = (0.0, -2)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Links:
    """Links side by side: a fact, an entity it mentions, and the factor of a step over that link, by its usefulness."""

    facts: Numbers
    entities: Numbers
    factors: Floats


@dataclass(frozen=True, slots=True)
class Paths:
    """The best path to each fact that was reached: the relevance it lends, in [0, 1], the entity it leads over, and the
    fact it comes from (`FROM_QUERY` if it is the query)."""

    facts: Numbers
    borrowed: Floats
    entities: Numbers
    seeds: Numbers


def factor(usefulness: float, weight: float) -> float:
    """The factor of a step over a link of this usefulness: 1 for a neutral one, and for a weight of 0.

    >>> factor(0.5, 1.0), factor(0.9, 0.5), factor(0.0, 1.0)
    (1.0, 1.4, 0.0)
    """
    return 1.0 + weight * (2.0 * usefulness - 1.0)


def blend(relevance: NDArray[np.float32], borrowed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Relevance with what the best path lends, in [0, 1]."""
    return 1 - (1 - relevance) * (1 - np.float32(MAX_PATH_WEIGHT) * borrowed)


def best_paths(starts: Links, relevance: dict[int, float], entities: Numbers, named: set[int], ends: Links) -> Paths:
    """The best path to every fact that can be reached.

    `starts` are the links of the seeds, whose `relevance` is given, to the `entities`, which are in order; `named` are
    those that the query names; `ends` are the links of all facts to them. A path is as strong as its seed is relevant
    and its entity is rare. No fact is reached from itself.
    """
    ways: list[list[tuple[float, int]]] = [
        [(NAMED_ENTITY_RELEVANCE, FROM_QUERY)] if entity in named else [] for entity in entities.tolist()
    ]
    places: list[int] = np.searchsorted(entities, starts.entities).tolist()
    for seed, place, step in zip(starts.facts.tolist(), places, starts.factors.tolist(), strict=True):
        ways[place].append((relevance[seed] * step, seed))
    # Two ways to an entity are enough: the seed of the better one is reached by the other.
    two = [(*sorted(found, key=lambda way: (-way[0], way[1])), _NO_PATH, _NO_PATH)[:2] for found in ways]
    strength = np.array([[way[0] for way in pair] for pair in two], np.float64).reshape(-1, 2)
    origin = np.array([[way[1] for way in pair] for pair in two], np.int64).reshape(-1, 2)
    over = np.searchsorted(entities, ends.entities)
    which = (origin[over, 0] == ends.facts).astype(np.int64)
    rarity = 1 / np.sqrt(np.maximum(np.bincount(over, minlength=len(entities)), 1))
    borrowed = np.minimum(1.0, strength[over, which] * ends.factors * rarity[over])
    order = np.lexsort((ends.entities, -borrowed, ends.facts))
    order = order[borrowed[order] > 0]
    first = np.ones(len(order), bool)
    first[1:] = ends.facts[order][1:] != ends.facts[order][:-1]
    best = order[first]
    return Paths(ends.facts[best], borrowed[best], ends.entities[best], origin[over[best], which[best]])
