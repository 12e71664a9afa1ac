"""Policies in the past: each recall is ranked by what had been said before it, and nothing of what came later.

A fold gives what `Policy.rank` gives for the opinions it has heard, but takes each opinion in once.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

from heedful.learning.evidence import POSITIVE, agreement, mass, voices
from heedful.learning.policies import Adaptive, Candidate, Documented, Tally
from heedful.learning.policies.adaptive import Heard, dataset_rate
from heedful.learning.signals import Observation, Opinion
from heedful.model import PolicyName

_given = attrgetter("at")

Order = list[int]
"""Facts, best first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A recall of the past."""

    query: int
    at: int
    shown: Sequence[Candidate]
    context: Mapping[int, float]
    """The queries that mean the same, and how alike they are; the same for every recall of a query."""


class Fold(Protocol):
    """A policy that hears opinions one by one, as they became known."""

    def hear(self, opinion: Opinion) -> None: ...

    def orders(self, asked: Asked, weights: Sequence[float]) -> list[Order]:
        """What was shown, as the policy orders it with each of the weights by what it has heard."""
        ...


def replayed(
    recalls: Iterable[Asked],
    opinions: Iterable[tuple[int, Opinion]],
    folds: Sequence[Fold],
    weights: Sequence[float],
) -> Iterator[list[Order]]:
    """For each recall, in order of time, the orders of each fold with each weight.

    `opinions` come as (when it was recorded, opinion), in that order. One that was recorded in the very moment of a
    recall is not known to it.
    """
    coming = iter(opinions)
    following = next(coming, None)
    for asked in recalls:
        while following is not None and following[0] < asked.at:
            for fold in folds:
                fold.hear(following[1])
            following = next(coming, None)
        yield [order for fold in folds for order in fold.orders(asked, weights)]


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
        insort(self._observations, observation, key=_given)

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
        self._heard = 0
        self._said: dict[int, list[tuple[int, Opinion]]] = defaultdict(list)
        self._overall: dict[int, _Growing] = defaultdict(_Growing)
        self._contexts: dict[int, _Context] = defaultdict(_Context)

    def hear(self, opinion: Opinion) -> None:
        self._heard += 1
        self._said[opinion.query].append((self._heard, opinion))
        self._overall[opinion.fact].add(_observation(opinion))

    def orders(self, asked: Asked, weights: Sequence[float]) -> list[Order]:
        context = self._contexts[asked.query]
        self._follow(context, asked.context)
        usefulness = {
            each.fact: self._policy.usefulness(
                self._tally(context.tallies, each.fact), self._tally(self._overall, each.fact), asked.at
            )
            for each in asked.shown
        }
        return [[each.fact for each in self._policy.order(asked.shown, usefulness, weight)] for weight in weights]

    def _follow(self, context: _Context, queries: Iterable[int]) -> None:
        new: list[tuple[int, Opinion]] = []
        for query in queries:
            said = self._said.get(query, ())
            new += said[context.taken[query] :]
            context.taken[query] = len(said)
        for _, opinion in sorted(new, key=lambda each: (each[1].at, each[0])):
            context.tallies[opinion.fact].add(_observation(opinion))

    def _tally(self, tallies: Mapping[int, _Growing], fact: int) -> Tally | None:
        return tallies[fact].tally(self._policy) if fact in tallies else None


class AdaptiveFold:
    """The adaptive rule."""

    def __init__(self) -> None:
        self._policy = Adaptive()
        self._masses = [0.0, 0.0]
        self._said: dict[int, list[Opinion]] = defaultdict(list)
        self._kept: dict[int, Heard] = {}

    def hear(self, opinion: Opinion) -> None:
        self._masses[opinion.signal_type not in POSITIVE] += mass(opinion)
        insort(self._said[opinion.query], opinion, key=_given)
        self._kept.pop(opinion.query, None)

    def orders(self, asked: Asked, weights: Sequence[float]) -> list[Order]:
        near = [self._near(query, alike) for query, alike in asked.context.items() if query in self._said]
        counts = self._policy.counts(near, asked.at)
        rate = dataset_rate(*self._masses)
        return [[each.fact for each in self._policy.order(asked.shown, counts, rate, weight)] for weight in weights]

    def _near(self, query: int, similarity: float) -> Heard:
        if query not in self._kept:
            said = voices(self._said[query])
            self._kept[query] = Heard(1.0, said, agreement(said))
        kept = self._kept[query]
        return Heard(similarity, kept.voices, kept.agreement)


def _observation(opinion: Opinion) -> Observation:
    return Observation(opinion.signal_type, opinion.confidence, opinion.at)


FOLDS: Mapping[PolicyName, Callable[[], Fold]] = {"documented": DocumentedFold, "adaptive": AdaptiveFold}
