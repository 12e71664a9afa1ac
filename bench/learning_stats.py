"""What an arm changes against another, with intervals from a paired bootstrap that resamples whole needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.learning_worlds import Floats, Numbers

DRAWS = 2000
LESS = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """A relative change of the mean reciprocal rank, in per cent, with its 95% interval."""

    before: float
    after: float
    change: float
    low: float
    high: float
    worse: float
    """Per cent of single queries whose right fact sank."""
    queries: int

    def __str__(self) -> str:
        return f"{self.change:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def change(before: Floats, after: Floats, needs: Numbers) -> Change:
    """From one mean to another; questions about one need are no independent witnesses, so needs are resampled."""
    sums, drawn = _resampled(needs, before, after)
    low, high = np.quantile(100 * (drawn[1] / drawn[0] - 1), [0.025, 0.975])
    return Change(
        before=float(before.mean()),
        after=float(after.mean()),
        change=float(100 * (sums[1] / sums[0] - 1)),
        low=float(low),
        high=float(high),
        worse=float(100 * np.mean(after < before - LESS)),
        queries=len(before),
    )


def ratio(base: Floats, one: Floats, other: Floats, needs: Numbers) -> tuple[float, float, float]:
    """How many times the gain of `other` over `base` the gain of `one` is, and its interval."""
    sums, drawn = _resampled(needs, base, one, other)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.nanquantile((drawn[1] - drawn[0]) / (drawn[2] - drawn[0]), [0.025, 0.975])
        return float((sums[1] - sums[0]) / (sums[2] - sums[0])), float(low), float(high)


def difference(base: Floats, one: Floats, other: Floats, needs: Numbers) -> tuple[float, float, float]:
    """How much more `other` gains than `one`, in per cent of `base`, and its interval."""
    sums, drawn = _resampled(needs, base, one, other)
    low, high = np.quantile(100 * (drawn[2] - drawn[1]) / drawn[0], [0.025, 0.975])
    return float(100 * (sums[2] - sums[1]) / sums[0]), float(low), float(high)


def _resampled(needs: Numbers, *values: Floats) -> tuple[list[float], list[Floats]]:
    """The sums over all queries, and those over resampled needs, the same needs for all values."""
    ids, place = np.unique(needs, return_inverse=True)
    drawn = np.random.default_rng(0).integers(len(ids), size=(DRAWS, len(ids)))
    by_need = [np.bincount(place, each, minlength=len(ids)) for each in values]
    return [float(each.sum()) for each in values], [each[drawn].sum(axis=1) for each in by_need]
