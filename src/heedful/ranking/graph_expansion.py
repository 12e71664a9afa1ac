"""From facts that answer, over what they mention, to other facts: how relevant a walk through the graph makes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEEDS = 20
"""The facts from which a walk starts: the most relevant ones."""

MAX_PATH_WEIGHT = 0.3
"""What a path lends at most."""

NAMED_ENTITY_RELEVANCE = 0.5
"""An entity that the query names counts like one that a fact of this relevance mentions."""

MAX_MENTIONS = 50
"""An entity that more facts mention says too little about any of them."""

FROM_QUERY = -1
_NO_PATH = (0.0, -2)

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Links:
    """Links side by side: a fact, an entity it mentions, and what that link's usefulness makes of a step over it."""

    facts: Numbers
    entities: Numbers
    factors: Floats


@dataclass(frozen=True, slots=True)
class Paths:
    """The best path to each fact that was reached: what it lends, in [0, 1], the entity it leads over, and the fact it
    comes from (`FROM_QUERY` if it is the query)."""

    facts: Numbers
    borrowed: Floats
    entities: Numbers
    seeds: Numbers


def factor(usefulness: float, weight: float) -> float:
    """What the usefulness of a link makes of a step over it: 1 for a neutral one, and for a weight of 0.

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
    steps = zip(starts.facts.tolist(), _places(entities, starts.entities), starts.factors.tolist(), strict=True)
    for seed, place, step in steps:
        ways[place].append((relevance[seed] * step, seed))
    # Two ways to an entity are enough: the seed of the better one is reached by the other.
    two = [(*sorted(each, key=lambda way: (-way[0], way[1])), _NO_PATH, _NO_PATH)[:2] for each in ways]
    strength = np.array([[way[0] for way in each] for each in two], np.float64).reshape(-1, 2)
    origin = np.array([[way[1] for way in each] for each in two], np.int64).reshape(-1, 2)
    places = np.searchsorted(entities, ends.entities)
    which = (origin[places, 0] == ends.facts).astype(np.int64)
    rarity = 1 / np.sqrt(np.maximum(np.bincount(places, minlength=len(entities)), 1))
    borrowed = np.minimum(1.0, strength[places, which] * ends.factors * rarity[places])
    order = np.lexsort((ends.entities, -borrowed, ends.facts))
    order = order[borrowed[order] > 0]
    first = np.ones(len(order), bool)
    first[1:] = ends.facts[order][1:] != ends.facts[order][:-1]
    best = order[first]
    return Paths(ends.facts[best], borrowed[best], ends.entities[best], origin[places[best], which[best]])


def _places(entities: Numbers, keys: Numbers) -> list[int]:
    found: list[int] = np.searchsorted(entities, keys).tolist()
    return found
