"""What counts of up and down say about true rates: intervals, and the chance of being the best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heedful.errors import Invalid
from heedful.learning.rates import Rates

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
