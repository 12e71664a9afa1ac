"""The arithmetic of comparing variants, against exact fractions, closed forms and draws."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Invalid
from heedful.statistics.rates import probability_best, probability_better, wilson

Counts = tuple[int, int]
Polynomial = list[Fraction]

small = st.tuples(st.integers(0, 8), st.integers(0, 8))
large = st.tuples(st.integers(0, 300_000), st.integers(0, 300_000))


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    product = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            product[i + j] += left * right
    return product


def integral(of: Polynomial) -> Polynomial:
    return [Fraction(0), *(factor / (power + 1) for power, factor in enumerate(of))]


def density(up: int, down: int) -> Polynomial:
    """x^up (1-x)^down, scaled to the area 1."""
    raised = [Fraction(0)] * up + [Fraction(math.comb(down, k) * (-1) ** k) for k in range(down + 1)]
    area = sum(integral(raised))
    return [factor / area for factor in raised]


def exactly_best(counts: list[Counts]) -> list[float]:
    """The chances without any rounding: densities of whole counts are polynomials."""
    densities = [density(*each) for each in counts]
    below = [integral(each) for each in densities]
    return [
        float(sum(integral(reduce(times, [below[j] for j in range(len(counts)) if j != i], densities[i]))))
        for i in range(len(counts))
    ]


def exactly_better(a: Counts, b: Counts) -> float:
    """The sum that a comparison of two comes to, for counts that are too large for fractions."""

    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    (up, down), (up_b, down_b) = a, b
    return math.fsum(
        math.exp(
            log_beta(up_b + 1 + i, down + down_b + 2)
            - math.log(down + 1 + i)
            - log_beta(1 + i, down + 1)
            - log_beta(up_b + 1, down_b + 1)
        )
        for i in range(up + 1)
    )


@given(st.lists(small, min_size=2, max_size=4))
def test_small_counts_give_the_exact_chances(counts: list[Counts]) -> None:
    assert probability_best(counts) == pytest.approx(exactly_best(counts), abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((100, 50), (90, 60)),
        ((5_000, 5_000), (5_100, 4_900)),
        ((200_000, 100_000), (200_300, 99_700)),
        ((100_000, 1), (100_000, 2)),
        ((1_000, 0), (100_000, 10)),
        ((200_000, 100), (50, 0)),
        ((3, 0), (0, 100_000)),
    ],
)
def test_large_counts_give_what_the_closed_form_says(a: Counts, b: Counts) -> None:
    assert probability_better(a, b) == pytest.approx(exactly_better(a, b), abs=1e-8)


@pytest.mark.parametrize(
    "counts",
    [(0, 0), (1, 0), (1_000_000, 1), (1, 1_000_000), (0, 1_000_000), (500_000, 500_000), (10_000_000, 10_000_000)],
)
def test_against_a_variant_nobody_rated_the_chance_is_the_mean_rate(counts: Counts) -> None:
    up, down = counts
    assert probability_better(counts, (0, 0)) == pytest.approx((up + 1) / (up + down + 2), abs=1e-9)


def test_draws_agree() -> None:
    counts = [(430, 70), (85, 12), (9_000, 1_500), (3, 0), (0, 0)]
    draws = np.random.default_rng(7)
    rates = np.stack([draws.beta(up + 1, down + 1, 400_000) for up, down in counts])
    seen = np.bincount(rates.argmax(axis=0), minlength=len(counts)) / rates.shape[1]
    # Four standard deviations of a share of 400,000 draws.
    assert probability_best(counts) == pytest.approx(list(seen), abs=4 * 0.5 / math.sqrt(400_000))


@pytest.mark.parametrize("counts", [(0, 0), (7, 3), (1_000_000, 1), (0, 400_000)])
def test_equal_variants_have_equal_chances(counts: Counts) -> None:
    assert probability_best([counts] * 4) == pytest.approx([0.25] * 4, abs=1e-12)


@given(st.lists(large, min_size=1, max_size=6))
def test_chances_add_up_to_one_and_do_not_depend_on_the_order(counts: list[Counts]) -> None:
    chances = probability_best(counts)
    assert math.fsum(chances) == pytest.approx(1.0, abs=1e-12)
    assert all(0.0 <= chance <= 1.0 for chance in chances)
    assert probability_best(counts[::-1]) == pytest.approx(chances[::-1], abs=1e-9)


@given(large, large)
def test_one_of_two_is_better(a: Counts, b: Counts) -> None:
    assert probability_better(a, b) + probability_better(b, a) == pytest.approx(1.0, abs=1e-12)


@given(large, large)
def test_one_more_up_never_makes_a_variant_worse(a: Counts, b: Counts) -> None:
    assert probability_better((a[0] + 1, a[1]), b) >= probability_better(a, b) - 1e-9


def test_many_variants_with_very_different_counts_are_compared() -> None:
    counts = [(10 ** (number % 7), 10 ** (number % 5)) for number in range(60)]
    assert math.fsum(probability_best(counts)) == pytest.approx(1.0, abs=1e-12)


def test_one_variant_is_the_best_and_none_is_none() -> None:
    assert probability_best([(0, 5)]) == [1.0]
    assert probability_best([]) == []


@pytest.mark.parametrize("counts", [(-1, 0), (0, -1)])
def test_negative_counts_are_refused(counts: Counts) -> None:
    with pytest.raises(Invalid, match="negative") as caught:
        probability_best([(1, 1), counts])
    assert caught.value.field == "counts"


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (29, 29, (0.8830, 1.0)),
        (0, 0, (0.0, 1.0)),
    ],
)
def test_wilsons_interval_is_the_published_one(successes: int, trials: int, expected: tuple[float, float]) -> None:
    assert wilson(successes, trials) == pytest.approx(expected, abs=5e-5)


@given(st.integers(0, 1_000_000), st.integers(0, 1_000_000), st.floats(0.1, 5.0))
def test_wilsons_interval_holds_the_rate_and_mirrors(up: int, down: int, z: float) -> None:
    low, high = wilson(up, up + down, z)
    assert 0.0 <= low <= high <= 1.0
    if up + down:
        assert low <= up / (up + down) <= high
        mirrored = wilson(down, up + down, z)
        assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-12)


@given(st.integers(1, 1_000), st.integers(1, 1_000), st.floats(0.5, 4.0))
def test_the_ends_of_wilsons_interval_are_z_standard_deviations_off(up: int, down: int, z: float) -> None:
    trials = up + down
    for end in wilson(up, trials, z):
        assert abs(up / trials - end) == pytest.approx(z * math.sqrt(end * (1 - end) / trials), rel=1e-6)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_have_no_interval(successes: int, trials: int) -> None:
    with pytest.raises(Invalid):
        wilson(successes, trials)
