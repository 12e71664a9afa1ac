"""True rates of variants from their counts of up and down: their distributions on one grid, and when a test of variants
can stop.

A rate of which `up` and `down` were seen has the distribution Beta(up + 1, down + 1). It is integrated over its
log-odds, where that is one smooth hump whatever the counts.

A test stops when one variant is very probably the best and taking it loses next to nothing on average, or when it
loses next to nothing whichever is taken. Both are asked of the posterior distributions, Beta(up + 1, down + 1).

Looking every day is all right, up to a limit. What is limited, however often one looks, is what a decision costs: over
many tests, whatever their true rates are, about `MAX_LOSS` of satisfaction on average, less where they differ much.
What is not limited is how often one of two equal variants is named the better one: with daily looks for two months,
nearly every second time. That costs nothing, since they are equally good, but "better" is then no proof that they
differ. Decide by it which one to take, not what to believe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Invalid

NODES = 12  # Points in each panel of the grid.
NEGLIGIBLE = 45.0  # A density is left out where it is below its peak by this much, in natural logarithms.

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


Z_95 = 1.959963984540054  # How many standard deviations hold 95% of a normal distribution.


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


MIN_PROBABILITY = 0.95  # The probability of being the best from which a variant is taken.
MAX_LOSS = 0.005  # The loss on average that taking the best one may have, as a share of satisfaction.
EQUIVALENCE_LOSS = 0.001  # Variants are alike when taking any of them loses at most this on average.
MIN_RATINGS = 20  # Ratings that every variant needs.
MAX_RATINGS = 1_000_000  # More ratings than this are not waited for.

Counts = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stopping:
    """Whether a test can stop.

    `best` is the index of the variant with the greatest chance, `probability`, of being the best. Taking it loses
    `expected_loss` of satisfaction on average: nothing if it is the best, else what the best one has more.
    `needed` is about how many more ratings, in equal shares, decide the test if the rates stay; None when it is decided
    or `MAX_RATINGS` would not do. `reason` says all of it in words.
    """

    decided: bool
    best: int
    probability: float
    expected_loss: float
    needed: int | None
    reason: str


def stopping(counts: Sequence[tuple[int, int]], names: Sequence[str] = ()) -> Stopping:
    """Whether to stop a test of variants that have (up, down) each; `names` are for the reason.

    >>> found = stopping([(180, 20), (166, 34)])
    >>> found.decided, found.best, found.needed
    (True, 0, None)
    >>> print(found.reason)
    A is better than B with a probability of 0.97; the expected loss of taking A is 0.026 points of satisfaction
    >>> print(stopping([(30, 10), (27, 13)], ["short", "long"]).reason)  # doctest: +NORMALIZE_WHITESPACE
    short is better than long with a probability of 0.76; the expected loss of taking short is 1.4 points of
    satisfaction. About 358 more ratings decide it at these rates
    """
    if len(counts) < 2:
        raise Invalid(f"counts must be of 2 variants or more, got {len(counts)}", field="counts", value=counts)
    if names and len(names) != len(counts):
        raise Invalid(f"names must be {len(counts)}, one a variant, got {len(names)}", field="names", value=names)
    state = _State(counts)
    needed = None if state.decided else _needed(counts)
    reason = _reason(state, names or _letters(len(counts)), needed)
    return Stopping(state.decided, state.best, state.probability, state.loss, needed, reason)


class _State:
    """The figures that the rule looks at."""

    def __init__(self, counts: Sequence[Counts]) -> None:
        rates = Rates(counts)
        chances, losses = rates.chances(), rates.losses()
        self.best = int(chances.argmax())
        self.probability = float(chances[self.best])
        self.loss = float(losses[self.best])
        self.least = min(up + down for up, down in counts)
        self.alike = self.least >= MIN_RATINGS and float(losses.max()) <= EQUIVALENCE_LOSS
        self.sure = self.least >= MIN_RATINGS and self.probability >= MIN_PROBABILITY and self.loss <= MAX_LOSS
        self.decided = self.alike or self.sure


def _needed(counts: Sequence[tuple[int, int]]) -> int | None:
    """How many more ratings decide it if they come in equal shares, and at the rates so far."""

    def decided(more: int) -> bool:
        share = more / len(counts)
        rates = [(up + 1) / (up + down + 2) for up, down in counts]
        later = zip(counts, rates, strict=True)
        return _State([(up + share * rate, down + share * (1 - rate)) for (up, down), rate in later]).decided

    undecided, enough = 0, 1
    while not decided(enough):
        if enough == MAX_RATINGS:
            return None
        undecided, enough = enough, min(2 * enough, MAX_RATINGS)
    while enough - undecided > max(1, enough // 100):
        between = (undecided + enough) // 2
        undecided, enough = (undecided, between) if decided(between) else (between, enough)
    return enough


def _reason(state: _State, names: Sequence[str], needed: int | None) -> str:
    best = names[state.best]
    cost = f"the expected loss of taking {best} is {_points(state.loss)} points of satisfaction"
    if state.alike and not state.sure:
        return f"They are alike, take any; {cost}"
    others = f"better than {names[1 - state.best]}" if len(names) == 2 else f"the best of {len(names)}"
    found = f"{best} is {others} with a probability of {_chance(state.probability)}; {cost}"
    if state.sure:
        return found
    if needed is None:
        return f"{found}. They are so alike that {MAX_RATINGS:,} more ratings would not decide it at these rates"
    if state.least < MIN_RATINGS:
        found += f". Every variant needs {MIN_RATINGS} ratings, and one has {state.least:.0f}"
    return f"{found}. About {needed:,} more ratings decide it at these rates"


def _chance(probability: float) -> str:
    """A probability, never rounded up: 0.9499 has not reached 0.95."""
    hundredths = math.floor(probability * 100)
    return "more than 0.99" if hundredths >= 99 else f"{hundredths / 100:.2f}"


def _points(loss: float) -> str:
    points = 100 * loss
    return f"{points:.2g}" if points >= 0.01 else "less than 0.01"


def _letters(count: int) -> list[str]:
    return [*ascii_uppercase[:count], *(f"variant {number}" for number in range(len(ascii_uppercase) + 1, count + 1))]
