"""The rules that are compared, and the adaptive one without each of its parts.

Every arm says at which rank it puts the right fact of a query. All work on the product's own classes; what is left
out is left out by constants or by a small subclass here, never by an option there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.learning_worlds import NOW, Corpus, Floats, Numbers, World
from heedful.ledger import strengths as fitting
from heedful.ledger.adaptive_policy import (
    LEAST_COSINE,
    RELATED,
    SUPPORTED,
    Adaptive,
    Affinity,
    Constants,
    Neighbour,
    Related,
    Same,
    Strengths,
    Supported,
    Verdicts,
    VoteTable,
    prefix,
    votes_per_fact,
)
from heedful.ledger.usefulness import Candidate, Documented, Opinion, Ranked, Tally, Usefulness
from heedful.model.base import NEUTRAL
from heedful.text.same_question import SAME_NEED

WEIGHT = 0.3
POOL = 250
"""Candidates by relevance, as many as a large dataset has at most; others stay where relevance puts them."""

SMALL_POOL = 5
"""Candidates by relevance in the arms that show what proof adds: where relevance finds all facts, it adds none."""

Place = Callable[[int], int | None]
"""The rank of the right fact of a query; None if it is not among the candidates."""
Arm = Callable[[Corpus, World], Place]

RULE = Documented()
PRODUCT = Adaptive()


def none(corpus: Corpus, world: World) -> Place:
    """Relevance alone."""
    return corpus.plain


def documented(weight: float, *, contexts: bool = True) -> Arm:
    """The documented rule; without contexts, its scores over all queries are all there is."""

    def arm(corpus: Corpus, world: World) -> Place:
        everything = sorted((each for said in world.opinions.values() for each in said), key=lambda each: each.at)
        overall = _tallies(everything)

        def place(query: int) -> int:
            near = [other for other in world.rated if corpus.similarity[query, other] >= SAME_NEED]
            said = sorted((each for other in near for each in world.opinions[other]), key=lambda each: each.at)
            own = _tallies(said) if contexts else {}
            useful = np.full(len(corpus.facts), NEUTRAL)
            for fact in overall:
                useful[fact] = RULE.usefulness(own.get(fact), overall[fact], NOW).value
            return _rank_of((1 - weight) * corpus.relevance[query] + weight * useful, int(corpus.answer[query]))

        return place

    return arm


@dataclass(frozen=True, slots=True)
class Variant:
    """The adaptive rule as one arm has it."""

    policy: Adaptive = PRODUCT
    weight: float = WEIGHT
    rank_correction: bool = True
    pool: int | None = None
    proof: bool = True
    lend: bool = True
    fitted: bool = True

    def __call__(self, corpus: Corpus, world: World) -> Place:
        rated = np.array(world.rated)
        tables = {query: VoteTable.of(votes_per_fact(self._seen(said))) for query, said in world.opinions.items()}
        strengths = self._strengths(corpus, world) if self.fitted else Strengths()

        def place(query: int) -> int | None:
            alike = corpus.similarity[query]
            same = [Same(float(alike[other]), tables[other]) for other in world.rated if alike[other] > 0]
            verdicts = self.policy.verdicts(same, NOW, strengths)
            supported = Supported(self._related(corpus, query, rated, tables), NOW, strengths.certainty)
            added = [*self.policy.proven(verdicts), *supported.nearest(SUPPORTED)] if self.proof else []
            own = corpus.relevance[query]
            found = list(dict.fromkeys([*np.argsort(-own, kind="stable")[: self.pool or POOL].tolist(), *added]))
            if not verdicts and not len(supported.facts):  # Then it ranks by relevance; a test holds it to that.
                rank = corpus.plain(query)
                return rank if self.pool is None or rank <= len(found) else None
            relevance = {fact: float(own[fact]) for fact in found}
            vectors = {fact: corpus.fact_vectors[fact] for fact in [*supported.facts.tolist(), *found[:2]]}
            asked = corpus.query_vectors[query]
            lifts = self.policy.affinity.lifts(supported, asked, vectors, relevance, found[:2], strengths.boldness)
            candidates = [Candidate(fact, value) for fact, value in relevance.items()]
            order = [each.fact for each in self.policy.rank(candidates, Verdicts(verdicts, lifts), self.weight)]
            right = int(corpus.answer[query])
            if right in order:
                return order.index(right) + 1
            return corpus.plain(query) if self.pool is None else None

        return place

    def _strengths(self, corpus: Corpus, world: World) -> Strengths:
        """As maintenance fits them."""
        every = sorted(
            (each for said in world.opinions.values() for each in self._seen(said)), key=lambda each: each.at
        )
        by_query: dict[int, list[Opinion]] = defaultdict(list)
        for each in every[: prefix(len(every))]:
            by_query[each.query].append(each)
        vectors = dict(enumerate(corpus.fact_vectors))
        rated = [fitting.Rated(corpus.query_vectors[query], said) for query, said in by_query.items()]
        return fitting.fit(rated, vectors, self.policy.affinity) if rated else Strengths()

    def _related(self, corpus: Corpus, query: int, rated: Numbers, tables: Mapping[int, VoteTable]) -> list[Related]:
        if not self.lend:
            return []
        cosines = corpus.query_vectors[rated] @ corpus.query_vectors[query]
        nearest = [row for row in np.argsort(-cosines, kind="stable")[:RELATED] if cosines[row] >= LEAST_COSINE]
        return [
            Related(Neighbour(other, float(cosines[row]), corpus.query_vectors[other]), tables[other])
            for row, other in zip(nearest, rated[nearest].tolist(), strict=True)
        ]

    def _seen(self, opinions: Sequence[Opinion]) -> list[Opinion]:
        return list(opinions) if self.rank_correction else [each._replace(rank=None) for each in opinions]


class Unbounded(Adaptive):
    """Facts that nobody has judged may be overtaken by any number of others."""

    def order(
        self,
        candidates: Sequence[Candidate],
        verdicts: Mapping[int, float],
        lifts: Mapping[int, float],
        weight: float,
    ) -> list[Ranked]:
        nothing = Usefulness(NEUTRAL, "neutral")
        ranked = [
            Ranked(
                each.fact,
                each.relevance,
                nothing,
                each.relevance + weight * self.boost(verdicts.get(each.fact, 0.0), lifts.get(each.fact, 0.0)),
            )
            for each in candidates
        ]
        return sorted(ranked, key=lambda each: (-each.score, -each.relevance, each.fact))


class OnlyFor(Adaptive):
    """What was said against a fact counts for nothing."""

    def boost(self, verdict: float, lift: float) -> float:
        return super().boost(max(0.0, verdict), lift)


def with_constants(**changed: float) -> Adaptive:
    """The adaptive rule with some numbers changed."""
    return Adaptive(Affinity(replace(Constants(), **changed)))


RULES: dict[str, Arm] = {
    "none": none,
    "global": documented(WEIGHT, contexts=False),
    "documented, w = .1": documented(0.1),
    "documented, w = .3": documented(0.3),
    "documented, w = .5": documented(0.5),
    "adaptive": Variant(),
}

PARTS: dict[str, Arm] = {
    "evidence against a fact": Variant(OnlyFor()),
    "rank correction": Variant(rank_correction=False),
    "displacement bound": Variant(Unbounded()),
    "related questions": Variant(lend=False),
    "fitted strengths": Variant(fitted=False),
    "lead of the nearest question": Variant(with_constants(lead=0.0)),
    "likeness to all that it helped with": Variant(with_constants(likeness=0.0)),
    "lean to the fact that is first": Variant(with_constants(lean=0.0)),
}
"""The adaptive rule without each part."""

POOLED: dict[str, Arm] = {
    f"none, {SMALL_POOL} candidates": Variant(weight=0.0, pool=SMALL_POOL, proof=False),
    f"adaptive, {SMALL_POOL} candidates": Variant(pool=SMALL_POOL),
    "without candidates by proof": Variant(pool=SMALL_POOL, proof=False),
}
"""What proof adds where relevance finds few candidates; compared with the first of these."""


def reciprocal_ranks(arm: Arm, corpus: Corpus, world: World) -> Floats:
    """1 / rank of the right fact of each query asked; 0 where it was not found."""
    place = arm(corpus, world)
    ranks = [place(query) for query in world.asked]
    return np.array([0.0 if rank is None else 1 / rank for rank in ranks])


def _tallies(opinions: Iterable[Opinion]) -> dict[int, Tally]:
    by_fact: dict[int, list[Opinion]] = defaultdict(list)
    for each in opinions:
        by_fact[each.fact].append(each)
    return {fact: RULE.fold(observations) for fact, observations in by_fact.items()}


def _rank_of(scores: Floats, right: int) -> int:
    own = scores[right]
    return int(np.count_nonzero(scores > own) + np.count_nonzero(scores[:right] == own)) + 1
