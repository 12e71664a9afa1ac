"""Did a rate change, and since when: found where there is one, and rarely where there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Invalid
from heedful.statistics.change import MIN_EVENTS, MIN_FACTOR, SIGNIFICANCE, Change, arithmetic, change, describe

series = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), min_size=0, max_size=40)


def ones(days: int) -> list[float]:
    return [1.0] * days


def changed(events: list[int], exposure: list[float] | None = None, tests: int = 1) -> Change:
    found = change(range(len(events)), events, exposure or ones(len(events)), tests=tests)
    assert found is not None
    return found


def test_the_day_and_the_sums_are_found() -> None:
    found = changed([1, 2, 0, 1, 1, 2, 1, 1, 1, 2, 4, 5, 4, 4, 4])
    assert (found.since, found.before_events, found.before_days) == (10, 12, 10)
    assert (found.after_events, found.after_days) == (21, 5)
    assert found.ratio == pytest.approx(3.5)
    assert found.splits == 13  # All days but the first two.


def test_days_are_told_by_their_own_numbers() -> None:
    found = change([100, 101, 105, 106, 107, 108], [1, 1, 1, 1, 15, 15], ones(6))
    assert found is not None
    assert found.since == 107


def test_the_p_value_is_that_of_a_coin_times_what_was_looked_at() -> None:
    # All 12 events on 2 of 6 days; 4 splits are tried, in both directions, in 4 series.
    found = changed([0, 0, 0, 0, 6, 6], tests=4)
    assert found.p_value == pytest.approx(float(Fraction(1, 3) ** 12) * 2 * 4 * 4)
    # Where both sides have some: the whole tail.
    found = changed([1, 0, 1, 1, 9, 9])
    tail = sum(math.comb(21, k) * Fraction(1, 3) ** k * Fraction(2, 3) ** (21 - k) for k in range(18, 22))
    assert found.p_value == pytest.approx(float(tail) * 2 * 4)


def test_more_ratings_are_no_change_of_their_share() -> None:
    events, ratings = [2, 2, 2, 2, 2, 20, 20, 20], [10.0] * 5 + [100.0] * 3
    assert change(range(8), events, ratings) is None
    assert change(range(8), events, ones(8)) is not None


def test_an_old_change_does_not_move_the_day_of_a_new_one() -> None:
    found = changed([0, 0, 0, 90, 90, 90, 90, 90, 90, 200, 200])
    assert found.since == 9
    assert (found.before_events, found.before_days) == (540, 6)


def test_a_fall_is_found_as_a_rise_is() -> None:
    found = changed([9, 8, 10, 9, 9, 1, 1, 1])
    assert found.since == 5
    assert found.ratio == pytest.approx(1 / 9)


def test_days_without_exposure_do_not_move_the_day() -> None:
    found = changed([1, 1, 1, 1, 1, 0, 0, 12, 14], [20, 20, 20, 20, 20, 0, 0, 20, 20])
    assert found.since == 7


@pytest.mark.parametrize(
    "events",
    [
        [],
        [50],
        [0, 50],
        [0] * 14,
        [0, 0, 0, 0, 0, MIN_EVENTS - 1],
        [1000, 1000, 1000, 1000, 1400, 1400],
        [0, 0, 90, 90, 90, 90, 90, 90, 90, 90],
    ],
    ids=["none", "one day", "two days", "nothing", "few", "by too little", "in the first half"],
)
def test_nothing_is_told_of(events: list[int]) -> None:
    assert change(range(len(events)), events, ones(len(events))) is None


def test_a_change_on_the_day_in_the_middle_is_told() -> None:
    found = change(range(15), [1] * 7 + [10] * 8, [20.0] * 15)
    assert found is not None
    assert found.since == 7


def test_what_is_a_change_alone_may_be_luck_among_many() -> None:
    events = [3, 4, 2, 3, 3, 4, 3, 3, 9, 9]
    assert change(range(10), events, ones(10)) is not None
    assert change(range(10), events, ones(10), tests=50) is None


@pytest.mark.parametrize("rate", [0.3, 1.5, 6.0, 40.0])
def test_quiet_series_alarm_rarely(rate: float) -> None:
    draws = np.random.default_rng(3)
    quiet = draws.poisson(rate, (400, 14)).tolist()
    assert sum(change(range(14), each, ones(14)) is not None for each in quiet) <= SIGNIFICANCE * 400


@pytest.mark.parametrize("rate", [1.5, 6.0, 40.0])
def test_series_of_bursts_alarm_rarely(rate: float) -> None:
    draws = np.random.default_rng(6)
    # With three times the variance of a Poisson count.
    bursts = draws.negative_binomial(rate / 2, 1 / 3, (400, 14)).tolist()
    assert sum(change(range(14), each, ones(14)) is not None for each in bursts) <= 1.5 * SIGNIFICANCE * 400


def test_one_burst_is_no_change() -> None:
    assert change(range(10), [1, 0, 1, 1, 0, 1, 1, 12, 0, 0], ones(10)) is None


def test_quiet_series_looked_at_together_alarm_as_rarely() -> None:
    draws = np.random.default_rng(4)
    ratings = draws.integers(5, 40, (400, 6, 28))
    downs = draws.binomial(ratings, 0.2)
    alarms = [
        any(change(range(28), down, rated, tests=6) for down, rated in zip(*both, strict=True))
        for both in zip(downs.tolist(), ratings.tolist(), strict=True)
    ]
    assert sum(alarms) <= SIGNIFICANCE * 400


def test_a_tripled_rate_is_found_near_its_day() -> None:
    draws = np.random.default_rng(5)
    result = [change(range(14), draws.poisson([2.0] * 9 + [6.0] * 5).tolist(), ones(14)) for _ in range(100)]
    near = [each for each in result if each is not None and abs(each.since - 9) <= 1]
    assert len(near) >= 60


@given(series, st.floats(1e-6, 1e6))
@pytest.mark.slow
def test_the_unit_of_exposure_changes_nothing(days: list[tuple[int, int]], unit: float) -> None:
    events, exposure = [each[0] for each in days], [float(each[1]) for each in days]
    found = change(range(len(days)), events, exposure)
    scaled = change(range(len(days)), events, [unit * each for each in exposure])
    assert (found is None) == (scaled is None)
    if found is not None and scaled is not None:
        assert scaled.since == found.since
        assert scaled.ratio == pytest.approx(found.ratio)
        assert scaled.p_value == pytest.approx(found.p_value)


@given(series)
def test_what_is_told_keeps_to_its_bounds(days: list[tuple[int, int]]) -> None:
    events, exposure = [each[0] for each in days], [float(each[1]) for each in days]
    found = change(range(len(days)), events, exposure)
    if found is None:
        return
    assert found.after_events == sum(events[found.since :])
    assert found.before_days + found.after_days <= len(days)
    assert 2 * found.after_days <= len(days)
    assert found.p_value <= SIGNIFICANCE
    assert found.ratio >= MIN_FACTOR or found.ratio <= 1 / MIN_FACTOR
    assert (found.after_events if found.ratio > 1 else found.before_events) >= MIN_EVENTS
    assert describe(found, "down-votes", "Monday")
    assert all(arithmetic(found))


def test_large_counts_are_no_trouble() -> None:
    found = changed([1_000_000] * 10 + [2_000_000] * 4)
    assert found.since == 10
    assert found.p_value == 0.0


@pytest.mark.parametrize(
    ("ratio", "message"),
    [
        (1.5, "grew ×1.5"),
        (1.9, "doubled"),
        (2.5, "grew ×2.5"),
        (3.1, "tripled"),
        (4.2, "quadrupled"),
        (12.4, "grew ×12"),
        (1400.0, "grew ×1,400"),
        (0.62, "fell to 62% of the earlier level"),
        (0.5, "halved"),
        (0.33, "fell to a third"),
        (0.25, "fell to a quarter"),
        (0.043, "fell to 4.3% of the earlier level"),
    ],
)
def test_a_ratio_is_said_in_words(ratio: float, message: str) -> None:
    some = replace(changed([1, 1, 1, 1, 9, 9]), ratio=ratio)
    assert describe(some, "down-votes", "Tuesday 10 November") == f"down-votes {message} since Tuesday 10 November"


def test_what_is_new_and_what_has_ended_is_said_so() -> None:
    new = changed([0, 0, 0, 0, 4, 5])
    assert new.ratio == math.inf
    assert describe(new, "down-votes", "Friday") == "new: 9 down-votes since Friday"
    assert arithmetic(new)[0] == "9 in 2 days, 4.5 a day, against 0 in 4 days, 0 a day"
    ended = changed([4, 5, 4, 5, 0, 0])
    assert ended.ratio == 0
    assert describe(ended, "down-votes", "Friday") == "no down-votes since Friday, 18 before"


def test_the_figures_of_a_share_name_both_counts() -> None:
    found = changed([2, 2, 2, 2, 2, 9], [20.0] * 5 + [18.0])
    assert arithmetic(found) == [
        "9 of 18 in 1 day (50%), against 10 of 100 in 5 days (10%): ratio 5",
        "by luck alone: about 1 in 131, with 4 days × 1 series looked at",
    ]


@pytest.mark.parametrize(
    ("days", "events", "exposure", "tests", "field"),
    [
        ([1, 2], [1], [1.0, 1.0], 1, "days"),
        ([2, 1], [1, 1], [1.0, 1.0], 1, "days"),
        ([1, 1], [1, 1], [1.0, 1.0], 1, "days"),
        ([1, 2], [1, -1], [1.0, 1.0], 1, "events"),
        ([1, 2], [1, 1], [1.0, 0.0], 1, "exposure"),
        ([1, 2], [0, 0], [1.0, -1.0], 1, "exposure"),
        ([1, 2], [0, 0], [1.0, math.nan], 1, "exposure"),
        ([1, 2], [1, 1], [1.0, 1.0], 0, "tests"),
    ],
)
def test_what_makes_no_sense_is_refused(
    days: list[int], events: list[int], exposure: list[float], tests: int, field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        change(days, events, exposure, tests=tests)
    assert caught.value.field == field
