"""What is known of several true rates from counts of up and down: their distributions on one grid.

A rate of which `up` and `down` were seen has the distribution Beta(up + 1, down + 1). It is integrated over its
log-odds, where that is one smooth hump whatever the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Invalid

NODES = 12
"""Points in each panel of the grid."""
NEGLIGIBLE = 45.0
"""A density is left out where it is below its peak by this much, in natural logarithms."""

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)

Array = NDArray[np.float64]


class Rates:
    """The true rates of one or more variants, each given as (up, down).

    >>> rates = Rates([(90, 10), (80, 20), (0, 0)])
    >>> rates.chances().round(4).tolist()
    [0.8715, 0.0212, 0.1074]
    >>> rates.losses().round(4).tolist()
    [0.0067, 0.1047, 0.3988]
    """

    def __init__(self, counts: Sequence[tuple[float, float]]) -> None:
        for up, down in counts:
            if up < 0 or down < 0:
                raise Invalid(f"counts must not be negative, got {(up, down)}", field="counts", value=(up, down))
        a = np.array([[up + 1.0] for up, _ in counts])
        b = np.array([[down + 1.0] for _, down in counts])
        odds, steps = _grid(a.ravel(), b.ravel())
        self._points = 1 / (1 + np.exp(-odds))
        self._mass = _mass(a, b, odds, steps)
        # Where the best rate lies, and whose it is.
        self._best = self._mass * _product_of_others(_below(self._mass))

    def chances(self) -> Array:
        """The chance of each variant that its rate is the greatest."""
        chances: Array = self._best.sum(axis=1)
        chances /= chances.sum()
        return chances

    def losses(self) -> Array:
        """How far each variant's rate is below the greatest one on average; 0 where it is surely the greatest."""
        greatest = self._best.sum(axis=0) @ self._points / self._best.sum()
        losses: Array = np.maximum(greatest - self._mass @ self._points, 0.0)
        return losses


def _grid(a: Array, b: Array) -> tuple[Array, Array]:
    """The points to integrate at, as log-odds, and the weight of each."""
    starts, ends = _panels(a, b)
    half = (ends - starts)[:, None] / 2
    return (((starts + ends)[:, None] / 2) + half * _POINTS).ravel(), (half * _WEIGHTS).ravel()


def _panels(a: Array, b: Array) -> tuple[Array, Array]:
    """Where to integrate: panels over all humps, none wider than the hump's own width."""
    peak, width = np.log(a / b), np.sqrt(1 / a + 1 / b)
    # Near its peak the density falls like a normal one, and further out like exp(a·t) and exp(-b·t).
    first, last = peak - 10 * width - NEGLIGIBLE / a, peak + 10 * width + NEGLIGIBLE / b
    starts: list[float] = []
    ends: list[float] = []
    at, end = float(first.min()), float(last.max())
    while at < end:
        inside, ahead = (first <= at) & (at < last), first > at
        to = float(first[ahead].min()) if ahead.any() else end
        if inside.any():
            to = min(to, at + float(width[inside].min()))
            starts.append(at)
            ends.append(to)
        at = to
    return np.array(starts), np.array(ends)


def _mass(a: Array, b: Array, odds: Array, steps: Array) -> Array:
    """The probability of each variant at each point of the grid; a row adds up to 1."""
    peak = np.log(a / b)
    height = a * np.logaddexp(0, -peak) + b * np.logaddexp(0, peak)
    density = np.exp(height - a * np.logaddexp(0, -odds) - b * np.logaddexp(0, odds))
    mass: Array = density * steps
    mass /= mass.sum(axis=1, keepdims=True)
    return mass


def _below(mass: Array) -> Array:
    """The probability of each variant below each point."""
    panels = mass.reshape(len(mass), -1, NODES)
    whole = panels.sum(axis=2)
    before = np.cumsum(whole, axis=1) - whole
    below: Array = np.clip(before[:, :, None] + panels @ _INSIDE.T, 0.0, 1.0)
    return below.reshape(mass.shape)


def _product_of_others(values: Array) -> Array:
    """For each row, the product of all other rows; without dividing, since rows have zeros."""
    ones = np.ones((1, values.shape[1]))
    left = np.cumprod(np.concatenate([ones, values[:-1]]), axis=0)
    right = np.cumprod(np.concatenate([ones, values[:0:-1]]), axis=0)[::-1]
    product: Array = left * right
    return product


def _inside() -> Array:
    """The matrix that makes the mass of a panel's points into the mass below each of them."""
    legendre = np.polynomial.legendre
    degrees = np.arange(NODES)
    # The Legendre series through the values at the points, and the integral of each of its terms from -1 on.
    series = (legendre.legvander(_POINTS, NODES - 1) * _WEIGHTS[:, None]).T * (degrees[:, None] + 0.5)
    integrals = np.stack([legendre.legval(_POINTS, legendre.legint(row, lbnd=-1)) for row in np.eye(NODES)], axis=1)
    matrix: Array = integrals @ series / _WEIGHTS
    return matrix


_INSIDE = _inside()


Z_95 = 1.959963984540054
"""How many standard deviations hold 95% of a normal distribution."""


def wilson(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """The interval that a rate lies in (Wilson's score interval), by default with 95% confidence.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if not 0 <= successes <= trials:
        raise Invalid(
            f"successes must be from 0 to trials, got {successes} of {trials}", field="successes", value=successes
        )
    if trials == 0:
        return (0.0, 1.0)
    rate, share = successes / trials, z * z / trials
    centre = rate + share / 2
    reach = z * math.sqrt(rate * (1 - rate) / trials + share / (4 * trials))
    # At the ends the bound is the end itself; rounding must not move it.
    low = 0.0 if successes == 0 else (centre - reach) / (1 + share)
    high = 1.0 if successes == trials else (centre + reach) / (1 + share)
    return (low, high)


def probability_better(a: tuple[int, int], b: tuple[int, int]) -> float:
    """The chance that `a` has a greater true rate than `b`; each is (up, down).

    >>> round(probability_better((8, 2), (5, 5)), 4)
    0.9087
    """
    return probability_best([a, b])[0]


def probability_best(counts: Sequence[tuple[int, int]]) -> list[float]:
    """The chance that each of several variants, given as (up, down), has the greatest true rate.

    >>> [round(chance, 4) for chance in probability_best([(90, 10), (80, 20), (0, 0)])]
    [0.8715, 0.0212, 0.1074]
    >>> probability_best([(3, 4)])
    [1.0]
    """
    return Rates(counts).chances().tolist() if counts else []
