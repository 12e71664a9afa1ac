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
from heedful.ranking.affinity import LEAST_COSINE, RELATED, Affinity, Neighbour, Related, Supports, VoteTable
from heedful.ranking.affinity import Constants as AffinityConstants
from heedful.ranking.evidence import POSITIVE, FoldedVotes, QueryVotes, mass, votes_per_fact
from heedful.ranking.policies import Adaptive, Candidate, Documented, Ranked, Tally, Usefulness
from heedful.ranking.policies.adaptive import Constants, Counts, QueryEvidence, dataset_rate
from heedful.ranking.signals import NEUTRAL, Observation, Opinion
from heedful.ranking.similarity import SAME_NEED

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
    trust: bool = True
    rank_correction: bool = True
    base_rate: bool = True
    pool: int | None = None
    proof: bool = True
    lend: bool = True

    def __call__(self, corpus: Corpus, world: World) -> Place:
        result = {query: self._evidence(opinions) for query, opinions in world.opinions.items()}
        every = [each for opinions in world.opinions.values() for each in self._seen(opinions)]
        positive = sum(mass(each) for each in every if each.signal_type in POSITIVE)
        negative = sum(mass(each) for each in every if each.signal_type not in POSITIVE)
        rate = round(dataset_rate(positive, negative), 9) if self.base_rate else NEUTRAL

        rated = np.array(world.rated)
        tables = {query: self._table(corpus, query, opinions) for query, opinions in world.opinions.items()}

        def place(query: int) -> int | None:
            alike = corpus.similarity[query]
            near = [
                QueryEvidence(float(alike[other]), result[other])
                for other in world.rated
                if self.policy.kernel(float(alike[other])) > 0
            ]
            counts = self.policy.counts(near, NOW)
            supports = self.policy.affinity.supports(self._related(corpus, query, rated, tables), NOW)
            candidates = self._candidates(corpus, query, near, counts, supports)
            if not near and not len(supports.facts):  # Then all rules rank by relevance; a test holds them to it.
                rank = corpus.plain(query)
                return rank if self.pool is None or rank <= len(candidates) else None
            ranked = self.policy.order(candidates, counts, rate, self.weight, supports)
            order = [each.fact for each in ranked]
            right = int(corpus.answer[query])
            if right in order:
                return order.index(right) + 1
            return corpus.plain(query) if self.pool is None else None

        return place

    def _table(self, corpus: Corpus, query: int, opinions: Sequence[Opinion]) -> VoteTable:
        votes = votes_per_fact(self._seen(opinions))
        facts = sorted(votes)
        fits = corpus.fact_vectors[facts] @ corpus.query_vectors[query]
        return VoteTable.of(votes, dict(zip(facts, fits.tolist(), strict=True)))

    def _related(self, corpus: Corpus, query: int, rated: Numbers, tables: Mapping[int, VoteTable]) -> list[Related]:
        if not self.lend:
            return []
        cosines = corpus.query_vectors[rated] @ corpus.query_vectors[query]
        nearest = [row for row in np.argsort(-cosines, kind="stable")[:RELATED] if cosines[row] >= LEAST_COSINE]
        return [
            Related(Neighbour(other, float(cosines[row]), corpus.query_vectors[other]), tables[other])
            for row, other in zip(nearest, rated[nearest].tolist(), strict=True)
        ]

    def _seen(self, opinions: Sequence[Opinion]) -> Iterable[Opinion]:
        return opinions if self.rank_correction else [replace(each, rank=None) for each in opinions]

    def _evidence(self, opinions: Sequence[Opinion]) -> FoldedVotes:
        known = QueryVotes(self._seen(opinions)).folded()
        return known if self.trust else replace(known, agreement={})

    def _candidates(
        self,
        corpus: Corpus,
        query: int,
        near: Sequence[QueryEvidence],
        counts: Mapping[int, Counts],
        supports: Supports,
    ) -> list[Candidate]:
        own = corpus.relevance[query]
        found = np.argsort(-own, kind="stable")[: self.pool or POOL].tolist()
        if self.proof:
            found = list(dict.fromkeys([*found, *self.policy.proven(near, counts, supports, NOW)]))
        return [Candidate(fact, float(own[fact])) for fact in found]


class Step(Adaptive):
    """All evidence or none, from the mark of the documented rule on."""

    def kernel(self, similarity: float) -> float:
        return float(similarity >= SAME_NEED)


class Unbounded(Adaptive):
    """Facts that nobody has judged may be overtaken by any number of others."""

    def order(
        self,
        candidates: Sequence[Candidate],
        counts: Mapping[int, Counts],
        rate: float,
        weight: float,
        supports: Supports | None = None,
    ) -> list[Ranked]:
        counted = {fact: each for fact, each in counts.items() if each.total > 0}
        boosted = self.boosted(candidates, counted, rate, supports or Supports())
        nothing = Usefulness(NEUTRAL, "neutral")
        ranked = [
            Ranked(
                each.fact,
                each.relevance,
                nothing,
                min(1.0, max(0.0, each.relevance + weight * boosted.get(each.fact, (0.0, 0.0))[0])),
            )
            for each in candidates
        ]
        return sorted(ranked, key=lambda each: (-each.score, -each.relevance, each.fact))


def with_affinity(constants: AffinityConstants) -> Adaptive:
    """The adaptive rule with other numbers of its affinity."""
    return Adaptive(affinity=Affinity(constants))


def with_constants(**changed: float) -> Adaptive:
    """The adaptive rule with some numbers changed."""
    return Adaptive(replace(Constants(), **changed))


NEVER_MOVES = 1e9
"""So many opinions that a prior stays where it is."""

RULES: dict[str, Arm] = {
    "none": none,
    "global": documented(WEIGHT, contexts=False),
    "documented, w = .1": documented(0.1),
    "documented, w = .3": documented(0.3),
    "documented, w = .5": documented(0.5),
    "adaptive": Variant(),
}

PARTS: dict[str, Arm] = {
    "gate (lends from .5 on)": Variant(with_constants(gate=0.5)),
    "kernel (a step at .85)": Variant(Step()),
    "shrinkage (held by .05 opinions)": Variant(with_constants(fact=0.05)),
    "context prior": Variant(with_constants(context=NEVER_MOVES)),
    "base rate (neutral instead)": Variant(with_constants(context=NEVER_MOVES), base_rate=False),
    "evidence against a fact": Variant(with_constants(caution=0.0)),
    "rank correction": Variant(rank_correction=False),
    "trust": Variant(trust=False),
    "displacement bound": Variant(Unbounded()),
    "related questions": Variant(lend=False),
    "relevance in the affinity": Variant(with_affinity(AffinityConstants(relevance=0.0, gate=0.43))),
    "likeness of the fact in it": Variant(with_affinity(AffinityConstants(fit=0.0, gate=0.42))),
    "doubt by the gap of relevance": Variant(with_affinity(AffinityConstants(doubt=0.0))),
    "the most that opinions earn": Variant(with_affinity(AffinityConstants(sure=NEVER_MOVES))),
    "nearness of the nearest question": Variant(with_affinity(AffinityConstants(near=(0.0, LEAST_COSINE)))),
    "the share of wrong opinions": Variant(with_affinity(AffinityConstants(pairs=NEVER_MOVES))),
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
    by_fact: dict[int, list[Observation]] = defaultdict(list)
    for each in opinions:
        by_fact[each.fact].append(Observation(each.signal_type, each.confidence, each.at))
    return {fact: RULE.fold(observations) for fact, observations in by_fact.items()}


def _rank_of(scores: Floats, right: int) -> int:
    own = scores[right]
    return int(np.count_nonzero(scores > own) + np.count_nonzero(scores[:right] == own)) + 1
