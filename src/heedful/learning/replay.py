"""What an order of facts is worth, told from ratings, how sure that is, and which weight to take.

- Self-normalised inverse-propensity weighting: Swaminathan and Joachims, "The Self-Normalized Estimator for
  Counterfactual Learning" (2015).
- Effective sample size: Kish, "Survey Sampling" (1965).
- Intervals: Efron, "Bootstrap Methods" (1979), percentiles; all orders share the resamples, so differences are paired.
- One-standard-error rule: Breiman et al., "Classification and Regression Trees" (1984), section 3.4.3.

What is corrected: where exploration drew a helpful fact into the list, its recall counts by one over the chance of
that draw. What is not: that people look at the top first. A rating proves that its fact was looked at, and dividing it
by the chance of a look would multiply its noise. What can't be: a fact that was not shown has no rating, and one that
was shown and not rated counts as not helpful. Both favour the order that was logged, so a gain is rather larger than
told. Raters are taken at their word: what all of them get wrong looks like a gain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEPTH = 10
"""The places that nDCG looks at."""

ROUNDS = 2000
"""Resamples of the bootstrap."""

ENOUGH = 20
"""Rated recalls, as an effective sample size, from which a weight is recommended."""

_AT_ONCE = 2_000_000
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
    gained = sum(1 / log2(rank + 1) for rank, fact in enumerate(order[:DEPTH], start=1) if fact in helpful)
    return gained / sum(1 / log2(rank + 1) for rank in range(1, min(len(helpful), DEPTH) + 1))


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
    """`weighted_means` of `ROUNDS` draws of as many rows, with replacement; one row a draw."""
    draw = np.random.default_rng(seed)
    rows = len(values)
    step = max(1, _AT_ONCE // rows)
    weighted = weights[:, None] * values
    found = []
    for start in range(0, ROUNDS, step):
        draws = min(step, ROUNDS - start)
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


@dataclass(frozen=True, slots=True)
class Advice:
    """The weight to take, or None where that can't be said, and why."""

    weight: float | None
    reason: str


def advice(trials: Sequence[Trial], none: Trial, rated: int, effective: float) -> Advice:
    """The smallest weight that beats relevance alone and is within one standard error of the best that does.

    A weight beats relevance alone when the interval of its gain lies above 0. The weights are tried one by one, with
    no allowance for their number: they are so alike that it would be small.
    """
    if effective < ENOUGH:
        return Advice(None, _too_few(rated, effective))
    gains = {trial.weight: interval(trial.samples - none.samples) for trial in trials}
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


def _too_few(rated: int, effective: float) -> str:
    if rated < ENOUGH:
        return f"{rated} recalls with a fact rated helpful are too few: below {ENOUGH}, chance picks the weight"
    return (
        f"{rated} recalls with a fact rated helpful say as much as {effective:.1f} equal ones, because some of the "
        f"facts were rarely drawn into their places: below {ENOUGH}, chance picks the weight"
    )


def _change(value: float, ends: tuple[float, float]) -> str:
    return f"{value:+.3f} [{ends[0]:+.3f}, {ends[1]:+.3f}]"
