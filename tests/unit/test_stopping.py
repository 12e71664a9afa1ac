"""When a test of variants stops: the rule, how long it takes, and what daily looks cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Invalid
from heedful.statistics.rates import (
    EQUIVALENCE_LOSS,
    MAX_LOSS,
    MAX_RATINGS,
    MIN_PROBABILITY,
    MIN_RATINGS,
    Rates,
    probability_best,
    stopping,
)

Counts = tuple[int, int]

several = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), min_size=2, max_size=5)


def test_losses_are_what_draws_lose() -> None:
    counts = [(430, 70), (85, 12), (900, 150), (3, 0), (0, 0)]
    draws = np.random.default_rng(11)
    rates = np.stack([draws.beta(up + 1, down + 1, 400_000) for up, down in counts])
    lost = (rates.max(axis=0) - rates).mean(axis=1)
    assert Rates(counts).losses() == pytest.approx(lost, abs=0.002)


def test_losses_of_a_known_pair_are_exact() -> None:
    # Against an even rate: the mean of the greater of two even rates is 2/3, and each is 1/2 by itself.
    assert Rates([(0, 0), (0, 0)]).losses() == pytest.approx([1 / 6, 1 / 6], abs=1e-9)


def test_a_clear_lead_is_decided() -> None:
    found = stopping([(60, 40), (90, 10)])
    assert (found.decided, found.best, found.needed) == (True, 1, None)
    assert found.probability >= MIN_PROBABILITY
    assert found.reason.startswith("B is better than A with a probability of more than 0.99")


def test_few_ratings_decide_nothing_however_clear() -> None:
    found = stopping([(MIN_RATINGS - 1, 0), (0, 500)])
    assert not found.decided
    assert found.probability > 0.999
    assert found.needed == 2  # Every second rating is one for the first.
    assert "one has 19" in found.reason


def test_equal_variants_are_told_to_be_alike_once_that_is_sure() -> None:
    found = stopping([(80_000, 80_000), (80_010, 80_000)])
    assert found.decided
    assert found.probability < MIN_PROBABILITY
    assert found.reason.startswith("They are alike, take any")


def test_what_would_take_too_long_is_said_to() -> None:
    found = stopping([(100, 100)] * 8)
    assert (found.decided, found.needed) == (False, None)
    assert f"{MAX_RATINGS:,} more ratings would not decide it" in found.reason
    assert "the best of 8" in found.reason


def test_names_are_used_and_have_to_fit() -> None:
    assert stopping([(90, 10), (60, 40)], ["brief", "long"]).reason.startswith("brief is better than long")
    with pytest.raises(Invalid, match="names must be 2") as caught:
        stopping([(1, 1), (1, 1)], ["brief"])
    assert caught.value.field == "names"


def test_more_variants_than_letters_have_names() -> None:
    counts = [(50, 50)] * 27 + [(100, 0)]
    assert stopping(counts).reason.startswith("variant 28 is the best of 28")


@pytest.mark.parametrize("counts", [[], [(3, 4)], [(3, 4), (-1, 0)]])
def test_what_can_not_be_compared_is_refused(counts: list[Counts]) -> None:
    with pytest.raises(Invalid) as caught:
        stopping(counts)
    assert caught.value.field == "counts"


def test_a_probability_is_not_rounded_up_to_the_limit() -> None:
    found = stopping([(5, 1), (2, 4)])
    assert 0.945 < found.probability < MIN_PROBABILITY
    assert "probability of 0.94;" in found.reason


@given(several)
@pytest.mark.slow
def test_the_rule_is_what_it_is_said_to_be(counts: list[Counts]) -> None:
    found = stopping(counts)
    losses, chances = Rates(counts).losses(), probability_best(counts)
    enough = min(map(sum, counts)) >= MIN_RATINGS
    sure = max(chances) >= MIN_PROBABILITY and losses[found.best] <= MAX_LOSS
    assert found.decided == (enough and (sure or max(losses) <= EQUIVALENCE_LOSS))
    assert found.probability == max(chances)
    assert found.expected_loss == losses[found.best]
    assert found.needed is None or (not found.decided and 0 < found.needed <= MAX_RATINGS)


@given(several)
@pytest.mark.slow
def test_the_order_of_variants_changes_nothing(counts: list[Counts]) -> None:
    found, mirrored = stopping(counts), stopping(counts[::-1])
    assert found.probability == pytest.approx(mirrored.probability, abs=1e-9)
    assert found.decided == mirrored.decided


@pytest.mark.parametrize("counts", [[(30, 10), (27, 13)], [(5, 1), (2, 4)], [(40, 20), (35, 25), (20, 40)]])
def test_as_many_ratings_as_needed_decide_and_half_as_many_do_not(counts: list[Counts]) -> None:
    needed = stopping(counts).needed
    assert needed is not None
    for more, decided in ((needed * 1.05 + 6, True), (needed / 2, False)):
        each = more / len(counts)
        rates = [(up + 1) / (up + down + 2) for up, down in counts]
        later = [
            (round(up + each * rate), round(down + each * (1 - rate)))
            for (up, down), rate in zip(counts, rates, strict=True)
        ]
        assert stopping(later).decided == decided


def looked_at_daily(rates: tuple[float, float], tests: int, *, days: int = 30, daily: int = 20) -> list[int | None]:
    """Which variant each of some tests names, if its counts are looked at every evening; None if it names none."""
    draws = np.random.default_rng(5)
    return [_named(draws.binomial(daily, rates, (days, 2)), daily) for _ in range(tests)]


def _named(ups: np.ndarray[tuple[int, ...], np.dtype[np.int64]], daily: int) -> int | None:
    for day, up in enumerate(ups.cumsum(axis=0).tolist(), start=1):
        counts = [(each, day * daily - each) for each in up]
        # Far from the limits there is nothing to find out.
        if max(probability_best(counts)) >= MIN_PROBABILITY:
            found = stopping(counts)
            if found.decided:
                return found.best
    return None


@pytest.mark.parametrize("gap", [0.02, 0.05, 0.1])
@pytest.mark.slow
def test_looking_daily_loses_next_to_nothing_on_average(gap: float) -> None:
    tests = 60
    wrong = looked_at_daily((0.8, 0.8 - gap), tests).count(1)
    assert gap * wrong / tests <= MAX_LOSS


@pytest.mark.slow
def test_looking_daily_names_no_variant_that_is_much_worse() -> None:
    assert looked_at_daily((0.8, 0.6), 60).count(1) <= 1


@pytest.mark.slow
def test_looking_daily_at_equal_variants_favours_neither() -> None:
    named = looked_at_daily((0.8, 0.8), 60)
    # The share is large, as the module says: it is the loss that is limited, and it is 0 here.
    assert named.count(None) >= 20
    assert abs(named.count(0) - named.count(1)) <= 12
