"""How good an order of facts is, judged by ratings, with what confidence, and which weight to choose.

- Self-normalised inverse-propensity weighting: Swaminathan and Joachims, "The Self-Normalized Estimator for
  Counterfactual Learning" (2015).
- Effective sample size: Kish, "Survey Sampling" (1965).
- Intervals: Efron, "Bootstrap Methods" (1979), percentiles; all orders share the resamples, so differences are paired.
- One-standard-error rule: Breiman et al., "Classification and Regression Trees" (1984), section 3.4.3.

What is corrected: where exploration drew a helpful fact into the list, its recall counts by one over the chance of
that draw. What is not: that people look at the top first. A rating proves that its fact was looked at, and dividing it
by the chance of a look would multiply its noise. What can't be: a fact that was not shown has no rating, and one that
was shown and not rated counts as not helpful. Both favour the order that was logged, so a gain is likely larger than
reported. Ratings are taken as true: what all raters get wrong looks like a gain.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log2
from operator import attrgetter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heedful.model import PolicyName
from heedful.ranking.affinity import (
    RELATED,
    Neighbour,
    Related,
    Strengths,
    Supported,
    Vector,
    VoteTable,
    rivals,
)
from heedful.ranking.evidence import votes_per_fact
from heedful.ranking.policies import Adaptive, Candidate, Documented, Tally
from heedful.ranking.policies.adaptive import Same
from heedful.ranking.signals import Observation, Opinion, effective_vote

Floats = NDArray[np.float64]

NDCG_DEPTH = 10
"""The places that nDCG looks at."""

BOOTSTRAP_ROUNDS = 2000
"""Resamples of the bootstrap."""

MIN_SAMPLE_SIZE = 20
"""Rated recalls, as an effective sample size, from which a weight is recommended."""

_MAX_DRAWS = 2_000_000
"""Numbers that are drawn in one go."""

_NOTHING = 1e-9
"""A gain that arithmetic alone could make."""


def first_rank(order: Sequence[int], helpful: Collection[int]) -> int:
    """The rank of the first helpful fact, from 1; there must be one.

    >>> first_rank([7, 8, 9], {9, 8})
    2
    """
    return next(rank for rank, fact in enumerate(order, start=1) if fact in helpful)


def ndcg(order: Sequence[int], helpful: Collection[int]) -> float:
    """The discounted gain of the helpful facts among the first ten, as a share of the best possible.

    >>> round(ndcg([7, 8, 9], {8}), 4)
    0.6309
    """
    gained = sum(1 / log2(rank + 1) for rank, fact in enumerate(order[:NDCG_DEPTH], start=1) if fact in helpful)
    return gained / sum(1 / log2(rank + 1) for rank in range(1, min(len(helpful), NDCG_DEPTH) + 1))


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """The mean of each column of `values`, whose rows count by `weights`: self-normalised, so in their range."""
    means: Floats = weights @ values / weights.sum()
    return means


def effective_sample_size(weights: Floats) -> float:
    """How many equal weights would say as much.

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def resampled_means(values: Floats, weights: Floats, seed: int) -> Floats:
    """`weighted_means` of `BOOTSTRAP_ROUNDS` draws of as many rows, with replacement; one row a draw."""
    draw = np.random.default_rng(seed)
    rows = len(values)
    step = max(1, _MAX_DRAWS // rows)
    weighted = weights[:, None] * values
    found = []
    for start in range(0, BOOTSTRAP_ROUNDS, step):
        draws = min(step, BOOTSTRAP_ROUNDS - start)
        drawn = draw.integers(0, rows, size=(draws, rows)) + rows * np.arange(draws)[:, None]
        times = np.bincount(drawn.ravel(), minlength=draws * rows).reshape(draws, rows).astype(np.float64)
        found.append(times @ weighted / (times @ weights)[:, None])
    return np.concatenate(found)


def interval(samples: Floats) -> tuple[float, float]:
    """The ends between which 95% of the samples lie."""
    low, high = np.percentile(samples, [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Trial:
    """One weight of a policy: its mean, and the means of the resamples."""

    weight: float
    mean: float
    samples: Floats


def simultaneous(trials: Sequence[Trial], none: Trial) -> list[tuple[float, float]]:
    """Intervals of the gains of all trials that hold together with 95%: by the largest deviation of a resample, in
    standard errors (Westfall and Young, 1993)."""
    gains = np.array([trial.mean - none.mean for trial in trials])
    deviations = np.stack([trial.samples - none.samples for trial in trials]) - gains[:, None]
    errors = deviations.std(axis=1)
    scaled = np.abs(deviations[errors > _NOTHING]) / errors[errors > _NOTHING, None]
    width = float(np.percentile(scaled.max(axis=0), 95)) if len(scaled) else 0.0
    lows, highs = gains - width * errors, gains + width * errors
    return list(zip(lows.tolist(), highs.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Advice:
    """The weight to take, or None where that can't be said, and why."""

    weight: float | None
    reason: str


def advice(trials: Sequence[Trial], none: Trial, rated: int, effective: float) -> Advice:
    """The smallest weight that beats relevance alone and is within one standard error of the best that does.

    A weight beats relevance alone when the interval of its gain lies above 0. The intervals hold for all weights at
    once: who tries many must not find one by chance.
    """
    if effective < MIN_SAMPLE_SIZE:
        return Advice(None, _too_few(rated, effective))
    gains = dict(zip([trial.weight for trial in trials], simultaneous(trials, none), strict=True))
    beating = [trial for trial in trials if gains[trial.weight][0] > _NOTHING]
    if not beating:
        best = max(trials, key=lambda trial: (trial.mean, -trial.weight))
        return Advice(
            0.0,
            f"no weight surely beats relevance alone: the best, {best.weight:g}, changes MRR by "
            f"{_change(best.mean - none.mean, gains[best.weight])}",
        )
    best = max(beating, key=lambda trial: (trial.mean, -trial.weight))
    close = [
        trial for trial in beating if best.mean - trial.mean <= float(np.std(best.samples - trial.samples)) + _NOTHING
    ]
    chosen = min(close, key=lambda trial: trial.weight)
    reason = f"MRR {_change(chosen.mean - none.mean, gains[chosen.weight])} over relevance alone"
    if chosen is best:
        return Advice(chosen.weight, f"{reason}, the best of those tried")
    return Advice(chosen.weight, f"{reason}; {best.weight:g} is better by less than one standard error")


SURE = 0.95
"""The share of resamples from which a change is worth making."""


def verdict(name: str, change: float, certainty: float, better: int, worse: int) -> str:
    """What to do about the best order, in words.

    >>> verdict("adaptive with a weight of 0.3", 0.05, 0.99, 12, 3)
    'adaptive with a weight of 0.3 would have ranked better: MRR +0.050, certain to 99%; 12 queries better, 3 worse'
    """
    queries = f"{better} quer{'y' if better == 1 else 'ies'} better, {worse} worse"
    if certainty >= SURE:
        return f"{name} would have ranked better: MRR {change:+.3f}, certain to {certainty:.0%}; {queries}"
    return f"keep what you have: {name} is the best of those tried, MRR {change:+.3f}, certain to {certainty:.0%} only"


def _too_few(rated: int, effective: float) -> str:
    if rated < MIN_SAMPLE_SIZE:
        return (
            f"{rated} recalls with a fact rated helpful are too few: below {MIN_SAMPLE_SIZE}, chance picks the weight"
        )
    return (
        f"{rated} recalls with a fact rated helpful say as much as {effective:.1f} equal ones, because some of the "
        f"facts were rarely drawn into their places: below {MIN_SAMPLE_SIZE}, chance picks the weight"
    )


def _change(value: float, ends: tuple[float, float]) -> str:
    return f"{value:+.3f} [{ends[0]:+.3f}, {ends[1]:+.3f}]"


_by_time = attrgetter("at")

Order = list[int]
"""Facts, best first."""


@dataclass(frozen=True, slots=True)
class LoggedRecall:
    """A recall of the past."""

    query: int
    at: int
    shown: Sequence[Candidate]
    context: Mapping[int, float]
    """The queries that mean the same, and how alike they are; the same for every recall of a query."""
    neighbours: Sequence[Neighbour] = ()
    """The queries nearest to it, the nearest first."""
    vector: Vector | None = None
    """Of the query."""
    vectors: Mapping[int, Vector] = field(default_factory=dict)
    """Of facts."""


class Fold(Protocol):
    """A policy that hears opinions one by one, as they became known."""

    def add(self, opinion: Opinion) -> None: ...

    def orders(self, recall: LoggedRecall, weights: Sequence[float]) -> list[Order]:
        """What was shown, as the policy orders it with each of the weights by the opinions it has taken in."""
        ...


def replay_orders(
    recalls: Iterable[LoggedRecall],
    opinions: Iterable[tuple[int, Opinion]],
    folds: Sequence[Fold],
    weights: Sequence[float],
) -> Iterator[list[Order]]:
    """For each recall, in order of time, the orders of each fold with each weight.

    `opinions` come as (when it was recorded, opinion), in that order; also those that their author replaced later,
    because until then they counted. One that was recorded in the very moment of a recall is not known to it.
    """
    coming = iter(opinions)
    following = next(coming, None)
    for recall in recalls:
        while following is not None and following[0] < recall.at:
            for fold in folds:
                fold.add(following[1])
            following = next(coming, None)
        yield [order for fold in folds for order in fold.orders(recall, weights)]


class _Growing:
    """A tally that takes observations in any order, and folds them in the order they were given."""

    __slots__ = ("_folded", "_observations", "_tally")

    def __init__(self) -> None:
        self._observations: list[Observation] = []
        self._tally = Tally()
        self._folded = 0

    def add(self, observation: Observation) -> None:
        if self._folded and observation.at < self._observations[self._folded - 1].at:
            self._tally, self._folded = Tally(), 0
        insort(self._observations, observation, key=_by_time)

    def remove(self, observation: Observation) -> None:
        self._observations.remove(observation)
        self._tally, self._folded = Tally(), 0

    def __len__(self) -> int:
        return len(self._observations)

    def tally(self, policy: Documented) -> Tally:
        for observation in self._observations[self._folded :]:
            self._tally = policy.observe(self._tally, observation)
        self._folded = len(self._observations)
        return self._tally


@dataclass(slots=True)
class _Context:
    """The tallies of the queries that mean the same as one, and how much of what was said for each is in them."""

    taken: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tallies: dict[int, _Growing] = field(default_factory=lambda: defaultdict(_Growing))


class DocumentedFold:
    """The documented rule."""

    def __init__(self) -> None:
        self._policy = Documented()
        self._evidence = 0
        self._voters: dict[tuple[int, int, str], list[Opinion]] = defaultdict(list)
        self._opinions: dict[int, list[tuple[int, Opinion]]] = defaultdict(list)
        self._overall: dict[int, _Growing] = defaultdict(_Growing)
        self._contexts: dict[int, _Context] = defaultdict(_Context)

    def add(self, opinion: Opinion) -> None:
        before, after = self._replaced(opinion)
        if before is not None:
            self._remove(before)
        if after is not None:
            self._evidence += 1
            self._opinions[after.query].append((self._evidence, after))
            self._overall[after.fact].add(_observation(after))

    def _replaced(self, opinion: Opinion) -> tuple[Opinion | None, Opinion | None]:
        """The opinion that no longer counts, and the one that does now, when this one comes."""
        if opinion.author is None:
            return None, opinion
        own = self._voters[opinion.fact, opinion.query, opinion.author]
        before = own[effective_vote([(each.signal_type, each.confidence) for each in own])] if own else None
        insort(own, opinion, key=_by_time)
        after = own[effective_vote([(each.signal_type, each.confidence) for each in own])]
        return (None, None) if after is before else (before, after)

    def _remove(self, opinion: Opinion) -> None:
        theirs = self._opinions[opinion.query]
        del theirs[next(place for place, (_, each) in enumerate(theirs) if each is opinion)]
        self._overall[opinion.fact].remove(_observation(opinion))
        if not self._overall[opinion.fact]:
            del self._overall[opinion.fact]
        self._contexts.clear()

    def orders(self, recall: LoggedRecall, weights: Sequence[float]) -> list[Order]:
        context = self._contexts[recall.query]
        self._follow(context, recall.context)
        usefulness = {
            each.fact: self._policy.usefulness(
                self._tally(context.tallies, each.fact), self._tally(self._overall, each.fact), recall.at
            )
            for each in recall.shown
        }
        return [[each.fact for each in self._policy.order(recall.shown, usefulness, weight)] for weight in weights]

    def _follow(self, context: _Context, queries: Iterable[int]) -> None:
        new: list[tuple[int, Opinion]] = []
        for query in queries:
            opinions = self._opinions.get(query, ())
            new += opinions[context.taken[query] :]
            context.taken[query] = len(opinions)
        for _, opinion in sorted(new, key=lambda each: (each[1].at, each[0])):
            context.tallies[opinion.fact].add(_observation(opinion))

    def _tally(self, tallies: Mapping[int, _Growing], fact: int) -> Tally | None:
        return tallies[fact].tally(self._policy) if fact in tallies else None


class AdaptiveFold:
    """The adaptive rule, with the strengths of a store that has fitted none."""

    def __init__(self) -> None:
        self._policy = Adaptive()
        self._strengths = Strengths()
        self._opinions: dict[int, list[Opinion]] = defaultdict(list)
        self._tables: dict[int, VoteTable] = {}

    def add(self, opinion: Opinion) -> None:
        insort(self._opinions[opinion.query], opinion, key=_by_time)
        self._tables.pop(opinion.query, None)

    def orders(self, recall: LoggedRecall, weights: Sequence[float]) -> list[Order]:
        same = [
            Same(similarity, self._table(query))
            for query, similarity in recall.context.items()
            if query in self._opinions
        ]
        verdicts = self._policy.verdicts(same, recall.at, self._strengths)
        known = (Related(each, self._table(each.query)) for each in recall.neighbours if each.query in self._opinions)
        related = list(islice((each for each in known if each.votes.counts), RELATED))
        lifts: dict[int, float] = {}
        if related and recall.vector is not None:
            supported = Supported(related, recall.at, self._strengths.certainty)
            relevance = {each.fact: each.relevance for each in recall.shown}
            first = rivals(relevance)
            lifts = self._policy.affinity.lifts(supported, recall.vector, recall.vectors, relevance, first, 0.0)
        return [[each.fact for each in self._policy.order(recall.shown, verdicts, lifts, weight)] for weight in weights]

    def _table(self, query: int) -> VoteTable:
        if query not in self._tables:
            self._tables[query] = VoteTable.of(votes_per_fact(self._opinions[query]))
        return self._tables[query]


def _observation(opinion: Opinion) -> Observation:
    return Observation(opinion.signal_type, opinion.confidence, opinion.at)


FOLDS: Mapping[PolicyName, Callable[[], Fold]] = {"documented": DocumentedFold, "adaptive": AdaptiveFold}
