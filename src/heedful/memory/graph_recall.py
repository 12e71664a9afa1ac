"""Recall by the graph: the hits of a hybrid search, and what is reached from them over the entities they mention."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from sqlalchemy import Connection

from heedful.ranking.graph_expansion import FROM_QUERY, MAX_MENTIONS, SEEDS, Links, Paths, best_paths, blend, factor
from heedful.ranking.policies import Tally
from heedful.search.graph import GraphIndex, Pairs
from heedful.search.searcher import Found
from heedful.storage import graph, link_scores
from heedful.text.entities import mentions

MAX_ADDED = 100
"""The facts that a walk may add to the candidates: those that are lent most."""


@dataclass(frozen=True, slots=True)
class Path:
    """The way by which a fact was reached."""

    entity: int
    seed: int | None
    """The fact it came from; None if the query itself names the entity."""
    added: float
    """What it added to relevance."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """Candidates, and the paths that made some of them more relevant."""

    found: Found
    paths: dict[int, Path] = field(default_factory=dict)


class GraphExpansion:
    """The graph expansion of one recall: `expand` from what a search finds, then `take` adds the paths."""

    def __init__(
        self, connection: Connection, index: GraphIndex, dataset: int, query: str, weight: float, now: int
    ) -> None:
        self._connection = connection
        self._index = index
        self._named = graph.entity_numbers(connection, dataset, mentions(query))
        self._weight = weight
        self._now = now
        self._paths: Paths | None = None

    def expand(self, found: Found) -> list[int]:
        """The facts that paths from the most relevant of those found lead to, as far as they are not among them."""
        order = np.lexsort((found.facts, -found.relevance))[:SEEDS]
        seeds = found.facts[order]
        starts = self._index.links_of(seeds)
        entities = np.union1d(starts[1], np.fromiter(self._named.values(), np.int64))
        ends, counts = self._index.links_to(entities, MAX_MENTIONS)
        entities = entities[counts <= MAX_MENTIONS]
        kept = np.isin(starts[1], entities)
        # The facts that the walk starts from are among those it can end at.
        said = link_scores.rated(self._connection, np.unique(ends[0]).tolist()) if self._weight else {}
        paths = best_paths(
            self._with_factors((starts[0][kept], starts[1][kept]), said),
            dict(zip(seeds.tolist(), found.relevance[order].tolist(), strict=True)),
            entities,
            set(self._named.values()),
            self._with_factors(ends, said),
        )
        self._paths = paths
        new = np.flatnonzero(~np.isin(paths.facts, found.facts))
        most = new[np.lexsort((paths.facts[new], -paths.borrowed[new]))][:MAX_ADDED]
        reached: list[int] = paths.facts[most].tolist()
        return reached

    def take(self, found: Found) -> Expanded:
        """The candidates with what the best path to each of them lends."""
        paths = self._paths
        if paths is None or not len(paths.facts):
            return Expanded(found)
        places = np.minimum(np.searchsorted(paths.facts, found.facts), len(paths.facts) - 1)
        hit = paths.facts[places] == found.facts
        borrowed = np.where(hit, paths.borrowed[places], 0).astype(np.float32)
        relevance = blend(found.relevance, borrowed)
        added = (relevance - found.relevance).tolist()
        ways = {
            int(found.facts[row]): Path(
                int(paths.entities[place]),
                None if paths.seeds[place] == FROM_QUERY else int(paths.seeds[place]),
                added[row],
            )
            for row, place in zip(np.flatnonzero(hit).tolist(), places[hit].tolist(), strict=True)
        }
        return Expanded(replace(found, relevance=relevance), ways)

    def _with_factors(self, pairs: Pairs, said: dict[link_scores.Key, Tally]) -> Links:
        factors = np.ones(len(pairs[0]))
        for (fact, entity), tally in said.items():
            factors[(pairs[0] == fact) & (pairs[1] == entity)] = factor(tally.at(self._now), self._weight)
        return Links(*pairs, factors)
