"""How good an order of facts is, judged by ratings, with what confidence, and which weight to choose.

- Self-normalised inverse-propensity weighting: Swaminathan and Joachims, "The Self-Normalized Estimator for
  Counterfactual Learning" (2015).
- Effective sample size: Kish, "Survey Sampling" (1965).
- Intervals: Efron, "Bootstrap Methods" (1979), percentiles; all orders share the resamples, so differences are paired.
- One-standard-error rule: Breiman et al., "Classification and Regression Trees" (1984), section 3.4.3.

Corrected: where exploration drew a helpful fact into the list, its recall counts by one over the chance of that draw.
Not corrected: people look at the top first. A rating proves that its fact was looked at, and dividing it by the chance
of a look would multiply its noise. Not correctable: a fact that was not shown has no rating, and one that was shown and
not rated counts as not helpful. Both favour the order that was logged, so a gain is likely larger than reported.
Ratings are taken as true: an error of all raters looks like a gain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NDCG_DEPTH = 10  # The places that nDCG looks at.
BOOTSTRAP_ROUNDS = 2000  # Resamples of the bootstrap.
MIN_SAMPLE_SIZE = 20  # Rated recalls, as an effective sample size, from which a weight is recommended.
_MAX_DRAWS = 2_000_000  # Numbers that are drawn in one go.
_NOTHING = 1e-9  # A gain that arithmetic alone could make.


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
    """The number of equal weights that would say as much.

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
    means = []
    for start in range(0, BOOTSTRAP_ROUNDS, step):
        draws = min(step, BOOTSTRAP_ROUNDS - start)
        drawn = draw.integers(0, rows, size=(draws, rows)) + rows * np.arange(draws)[:, None]
        times = np.bincount(drawn.ravel(), minlength=draws * rows).reshape(draws, rows).astype(np.float64)
        means.append(times @ weighted / (times @ weights)[:, None])
    return np.concatenate(means)


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


SURE = 0.95  # The share of resamples from which a change is worth making.


def verdict(name: str, change: float, certainty: float, better: int, worse: int) -> str:
    """The recommendation about the best order, in words.

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
