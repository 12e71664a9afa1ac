"""How well a question fits those that a fact helped with, beyond what their words and meaning explain anyway.

Two questions of one need lie near each other, but how near differs from store to store. What does not differ is the
comparison: how near a question is to those that a fact helped with, against how much both are like the fact itself.
The share of wrong opinions is estimated from people who disagree about the same fact for the same question (Dawid and
Skene, 1979).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from heedful.ranking.evidence import FactVotes
from heedful.ranking.signals import KEPT_PER_WEEK, WEEK

RELATED = 16
"""The nearest rated questions that are asked for evidence."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

LEAST_COSINE = 0.3
"""The cosine from which a question is related at all."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers of the rule, chosen on one half of the needs of COVID-Q and CLINC150."""

    gate: float = 0.22
    """The affinity up to which nothing is lent."""
    slope: float = 3.0
    """The lift for affinity beyond the gate, in units of the weight."""
    relevance: float = 0.43
    """What the fact's relevance for the question takes off the affinity."""
    fit: float = 0.40
    """What its likeness to the questions that it helped with takes off."""
    prior: float = 0.25
    """The probability that a fact is right, before anybody said so."""
    doubt: float = 30.0
    """The log-odds that a gap of relevance takes off."""
    sure: float = 6.0
    """The most log-odds that opinions earn: however many agree, a fact far behind in relevance stays there."""
    near: tuple[float, float] = (0.5, 0.8)
    """The cosines of the nearest question from and to which a fact is lifted more."""
    helped: tuple[float, float] = (0.4, 0.6)
    """The cosines from and to which a question lends more of what was said for a fact."""
    failed: tuple[float, float] = (0.6, 0.9)
    """The same of what was said against it: what failed next door says little."""
    error: float = 0.03
    """The share of wrong opinions before raters disagree."""
    pairs: float = 10.0
    """The pairs of opinions that hold the share of wrong ones there."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A rated question near another."""

    query: int
    cosine: float
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VoteTable:
    """What was said for one question: a row for each fact, in order. Arrays, because a store has many of them."""

    facts: Numbers
    net: Floats
    """For the fact, less against it; as of `last`, and fading from then on."""
    pairs: NDArray[np.int32]
    """Pairs of authors who are for or against it."""
    differ: NDArray[np.int32]
    """Those of them who disagree."""
    last: Numbers
    """When the last of them spoke of it."""
    fits: NDArray[np.float32]
    """Its cosine to the question; not a number where it is not known."""

    @classmethod
    def of(cls, votes: Mapping[int, FactVotes], fits: Mapping[int, float] | None = None) -> VoteTable:
        """The table of these votes, with the cosines that are known."""
        facts = sorted(votes)
        known = fits or {}
        return cls(
            np.array(facts, np.int64),
            np.array([votes[fact].net for fact in facts], np.float64),
            np.array([votes[fact].pairs for fact in facts], np.int32),
            np.array([votes[fact].differ for fact in facts], np.int32),
            np.array([votes[fact].last for fact in facts], np.int64),
            np.array([known.get(fact, np.nan) for fact in facts], np.float32),
        )

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def counts(self) -> bool:
        """Whether it speaks for or against any fact."""
        return bool(self.net.any() or self.pairs.any())

    def replaced(self, facts: Iterable[int], votes: Mapping[int, FactVotes]) -> VoteTable:
        """The table with other votes about these facts."""
        stays = ~np.isin(self.facts, np.fromiter(facts, np.int64))
        new = VoteTable.of(votes)
        order = np.argsort(np.concatenate([self.facts[stays], new.facts]), kind="stable")
        return VoteTable(
            np.concatenate([self.facts[stays], new.facts])[order],
            np.concatenate([self.net[stays], new.net])[order],
            np.concatenate([self.pairs[stays], new.pairs])[order],
            np.concatenate([self.differ[stays], new.differ])[order],
            np.concatenate([self.last[stays], new.last])[order],
            np.concatenate([self.fits[stays], new.fits])[order],
        )

    def without(self, facts: Iterable[int]) -> VoteTable:
        """The table without votes about these facts."""
        return self.replaced(facts, {})

    def lacking(self) -> Numbers:
        """The facts that it speaks for, and whose cosine is not known."""
        return self.facts[(self.net > 0) & np.isnan(self.fits)]

    def with_fits(self, fits: Mapping[int, float]) -> VoteTable:
        """The table with these cosines, too."""
        new = np.array([fits.get(fact, np.nan) for fact in self.facts.tolist()], np.float32)
        return replace(self, fits=np.where(np.isnan(new), self.fits, new))


@dataclass(frozen=True, slots=True)
class Related:
    """A rated question near the one that is asked, and what was said for it."""

    neighbour: Neighbour
    votes: VoteTable


@dataclass(frozen=True, slots=True)
class Lift:
    """What related questions do for a fact."""

    amount: float
    """What is added to its relevance, for a weight of 1."""
    probability: float
    """The probability that it is right, by what was said near the question."""


@dataclass(frozen=True, slots=True)
class Supports:
    """What related questions say of the facts that they speak for, in order."""

    facts: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    log_odds: Floats = field(default_factory=lambda: np.empty(0))
    """That a fact is right."""
    closeness: Floats = field(default_factory=lambda: np.empty(0))
    """The cosine of the question and the centre of those that it helped with."""
    fits: Floats = field(default_factory=lambda: np.empty(0))
    """The mean cosine of the fact and those."""
    best: Floats = field(default_factory=lambda: np.empty(0))
    """The cosine of the nearest of those."""

    def nearest(self, count: int) -> list[int]:
        """The facts with the nearest questions."""
        return [int(fact) for fact in self.facts[np.lexsort((self.facts, -self.best))[:count]]]


class Affinity:
    """The rule."""

    def __init__(self, constants: Constants | None = None) -> None:
        self.constants = constants or Constants()

    def lifts(self, relevance: Mapping[int, float], supports: Supports) -> dict[int, Lift]:
        """The lift of each candidate that earns one; `relevance` has all candidates."""
        if not len(supports.facts):
            return {}
        own = self.constants
        top = max(relevance.values(), default=0.0)
        near = _ramp(supports.best, own.near)
        found = {}
        for row in np.flatnonzero(np.isin(supports.facts, np.fromiter(relevance, np.int64))).tolist():
            fact, log_odds = int(supports.facts[row]), float(supports.log_odds[row])
            affinity = float(supports.closeness[row] - own.fit * supports.fits[row]) - own.relevance * relevance[fact]
            certain = 2 * _chance(log_odds - own.doubt * (top - relevance[fact])) - 1
            lift = min(1.0, own.slope * (affinity - own.gate)) * certain * float(near[row])
            if affinity > own.gate and certain > 0 and lift > 0:
                found[fact] = Lift(lift, _chance(log_odds))
        return found

    def supports(self, near: Sequence[Related], now: int) -> Supports:
        """What these questions say of each fact that they speak for."""
        if not near:
            return Supports()
        own = self.constants
        cosines = np.array([each.neighbour.cosine for each in near])
        sizes = [len(each.votes.facts) for each in near]
        question = np.repeat(np.arange(len(near)), sizes)
        named, place = np.unique(np.concatenate([each.votes.facts for each in near]), return_inverse=True)
        elapsed = np.maximum(now - np.concatenate([each.votes.last for each in near]), 0)
        net = np.concatenate([each.votes.net for each in near]) * KEPT_PER_WEEK ** (elapsed / WEEK)
        fits = np.concatenate([each.votes.fits for each in near]).astype(np.float64)
        lent = np.where(net > 0, _ramp(cosines, own.helped)[question], _ramp(cosines, own.failed)[question])
        said = np.bincount(place, self._certainty(near) * net * lent, len(named)).astype(np.float64)
        helps = (net > 0) & ~np.isnan(fits)
        weights = np.zeros((len(named), len(near)))
        weights[place[helps], question[helps]] = net[helps]
        total = weights.sum(axis=1)
        spoken = np.flatnonzero(total > 0)
        weights, total = weights[spoken], total[spoken]
        vectors = np.stack([each.neighbour.vector for each in near]).astype(np.float64)
        lengths = np.sqrt(np.einsum("fi,ij,fj->f", weights, vectors @ vectors.T, weights))
        summed = np.bincount(place[helps], net[helps] * fits[helps], len(named))[spoken]
        return Supports(
            named[spoken],
            np.minimum(own.sure, log(own.prior / (1 - own.prior)) + said[spoken]),
            weights @ cosines / np.maximum(lengths, 1e-12),
            summed / total,
            np.where(weights > 0, cosines, -1.0).max(axis=1, initial=-1.0),
        )

    def _certainty(self, near: Sequence[Related]) -> float:
        """The log-odds of one opinion, by the share of wrong ones among those who judged the same."""
        own = self.constants
        pairs = sum(int(each.votes.pairs.sum()) for each in near)
        differ = sum(int(each.votes.differ.sum()) for each in near)
        usual = 2 * own.error * (1 - own.error)
        share = min(0.48, (differ + usual * own.pairs) / (pairs + own.pairs))
        error = (1 - sqrt(1 - 2 * share)) / 2
        return log((1 - error) / error)


def _ramp(values: Floats, bounds: tuple[float, float]) -> Floats:
    low, high = bounds
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def _chance(log_odds: float) -> float:
    return 1 / (1 + exp(-max(-30.0, min(30.0, log_odds))))
