from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.clock import DAY
from heedful.ledger.usefulness import WEIGHTS, decayed, delta
from heedful.model import SIGNAL_TYPES, SignalType

fractions = st.floats(0, 1)


def test_the_weights_are_those_of_the_document() -> None:
    assert dict(WEIGHTS) == {"used": 1.0, "ignored": -0.5, "helpful": 1.5, "not_helpful": -1.0}
    assert set(WEIGHTS) == set(SIGNAL_TYPES)


@pytest.mark.parametrize(
    ("kind", "effect"), [("used", 0.10), ("ignored", -0.05), ("helpful", 0.15), ("not_helpful", -0.10)]
)
def test_a_sure_signal_has_the_effect_of_the_table(kind: SignalType, effect: float) -> None:
    assert delta(kind, 1.0) == effect


@pytest.mark.parametrize(("confidence", "effect"), [(0.0, 0.0), (0.5, 0.05), (0.7, 0.07), (1.0, 0.1)])
def test_confidence_scales_the_effect(confidence: float, effect: float) -> None:
    assert delta("used", confidence) == effect


@pytest.mark.parametrize(
    ("score", "days", "expected"),
    [
        (0.6, 7, 0.595),
        (0.4, 7, 0.405),
        (1.0, 7, 0.975),
        (0.0, 7, 0.025),
        (1.0, 14, 0.95125),
        (0.9, 0, 0.9),
        (0.5, 365, 0.5),
        (0.6, 3.5, 0.5 + 0.1 * 0.95**0.5),
    ],
)
def test_a_score_fades_by_five_percent_a_week(score: float, days: float, expected: float) -> None:
    assert decayed(score, int(days * DAY)) == pytest.approx(expected, abs=1e-15)


def test_one_used_signal_is_0_595_after_a_week() -> None:
    assert decayed(0.5 + delta("used", 1.0), 7 * DAY) == 0.595


def test_a_clock_that_stepped_back_changes_nothing() -> None:
    assert decayed(0.8, -DAY) == 0.8


def test_a_day_is_a_day() -> None:
    assert timedelta(days=1) // timedelta(microseconds=1) == DAY


@given(fractions, st.integers(0, 10_000 * DAY), st.integers(0, 10_000 * DAY))
def test_fading_only_brings_a_score_nearer_to_neutral(score: float, first: int, second: int) -> None:
    once = decayed(score, first)
    assert abs(once - 0.5) <= abs(score - 0.5) + 1e-12
    assert (once - 0.5) * (score - 0.5) >= 0
    assert decayed(once, second) == pytest.approx(decayed(score, first + second), abs=1e-9)
