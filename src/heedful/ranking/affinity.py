"""How well a question fits those that a fact helped with, beyond what their words and meaning explain anyway.

Two questions of one need lie near each other, but how near differs from store to store. What does not differ is the
comparison: how near a question is to those that a fact helped with, against how much both are like the fact itself.
The share of wrong opinions is estimated from people who disagree about the same fact for the same question (Dawid and
Skene, 1979).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, log, sqrt

import numpy as np
from numpy.typing import NDArray

from heedful.ranking.evidence import FoldedVotes, aging

RELATED = 16
"""The nearest rated questions that are asked for evidence."""

LEAST_COSINE = 0.3
"""The cosine from which a question is related at all."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers of the rule, chosen on one half of the needs of COVID-Q and CLINC150."""

    gate: float = 0.22
    """The affinity up to which nothing is lent."""
    slope: float = 2.0
    """The lift for affinity beyond the gate, in units of the weight."""
    relevance: float = 0.43
    """What the fact's relevance for the question takes off the affinity."""
    fit: float = 0.40
    """What its likeness to the questions that it helped with takes off."""
    prior: float = 0.25
    """The probability that a fact is right, before anybody said so."""
    doubt: float = 30.0
    """The log-odds that a gap of relevance takes off."""
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
class Related:
    """A rated question near the one that is asked, and what was said for it."""

    neighbour: Neighbour
    votes: FoldedVotes
    fits: Mapping[int, float]
    """The cosine of each fact that it speaks for."""


@dataclass(frozen=True, slots=True)
class Lift:
    """What related questions do for a fact."""

    amount: float
    """What is added to its relevance, for a weight of 1."""
    probability: float
    """The probability that it is right, by what was said near the question."""


@dataclass(slots=True)
class Support:
    """What related questions say of one fact. Sums are weighted by what was said for it."""

    log_odds: float
    """That it is right."""
    centre: NDArray[np.float64] | None = None
    """The sum of the questions that it helped with."""
    cosines: float = 0.0
    """The sum of their cosines."""
    fits: float = 0.0
    """The sum of the fact's cosines to them."""
    weight: float = 0.0
    best: float = 0.0
    """The cosine of the nearest of them."""


class Affinity:
    """The rule."""

    def __init__(self, constants: Constants | None = None) -> None:
        self.constants = constants or Constants()

    def lifts(self, relevance: Mapping[int, float], supports: Mapping[int, Support]) -> dict[int, Lift]:
        """The lift of each candidate that earns one; `relevance` has all candidates."""
        own = self.constants
        top = max(relevance.values(), default=0.0)
        found = {}
        for fact, each in supports.items():
            if fact not in relevance:
                continue
            assert each.centre is not None
            affinity = (
                each.cosines / sqrt(float(each.centre @ each.centre))
                - own.relevance * relevance[fact]
                - own.fit * each.fits / each.weight
            )
            certain = 2 * _chance(each.log_odds - own.doubt * (top - relevance[fact])) - 1
            if affinity > own.gate and certain > 0:
                amount = min(1.0, own.slope * (affinity - own.gate)) * certain
                found[fact] = Lift(amount, _chance(each.log_odds))
        return found

    def supports(self, near: Sequence[Related], trusted: Mapping[str, float], now: int) -> dict[int, Support]:
        """What these questions say of each fact that they speak for."""
        own = self.constants
        faded = aging(now)
        certainty = self._certainty(near)
        start = log(own.prior / (1 - own.prior))
        found: dict[int, Support] = defaultdict(lambda: Support(start))
        for question in near:
            by_fact: dict[int, list[float]] = defaultdict(list)
            for vote in question.votes.votes:
                weight = trusted.get(vote.author, 1.0) * faded
                by_fact[vote.fact].append(weight * (vote.positive - vote.negative))
            cosine, vector = question.neighbour.cosine, question.neighbour.vector.astype(np.float64)
            helped, failed = _ramp(cosine, own.helped), _ramp(cosine, own.failed)
            for fact, votes in by_fact.items():
                net = fsum(votes)
                each = found[fact]
                each.log_odds += certainty * net * (helped if net > 0 else failed)
                if net > 0 and fact in question.fits:
                    each.centre = net * vector if each.centre is None else each.centre + net * vector
                    each.cosines += net * cosine
                    each.fits += net * question.fits[fact]
                    each.weight += net
                    each.best = max(each.best, cosine)
        return {fact: each for fact, each in found.items() if each.weight}

    def _certainty(self, near: Sequence[Related]) -> float:
        """The log-odds of one opinion, by the share of wrong ones among those who judged the same."""
        own = self.constants
        pairs = sum(question.votes.pairs for question in near)
        differ = sum(question.votes.differ for question in near)
        usual = 2 * own.error * (1 - own.error)
        share = min(0.48, (differ + usual * own.pairs) / (pairs + own.pairs))
        error = (1 - sqrt(1 - 2 * share)) / 2
        return log((1 - error) / error)


def _ramp(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _chance(log_odds: float) -> float:
    return 1 / (1 + exp(-max(-30.0, min(30.0, log_odds))))
