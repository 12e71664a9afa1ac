"""What every policy must hold to, and what the documented one promises besides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.clock import DAY
from heedful.learning.policies import Documented, Policy
from heedful.learning.policies.base import fold
from heedful.learning.signals import Observation
from heedful.model import SIGNAL_TYPES

POLICIES: list[Policy[Any]] = [Documented()]

every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
fractions = st.floats(0, 1)
observations = st.builds(
    Observation,
    signal_type=st.sampled_from(SIGNAL_TYPES),
    confidence=fractions,
    at=st.integers(0, 400 * DAY),
)
signals = st.lists(observations, max_size=20)
signals_at_distinct_times = st.lists(observations, max_size=20, unique_by=lambda observation: observation.at)


def in_time(given_signals: list[Observation]) -> list[Observation]:
    return sorted(given_signals, key=lambda observation: observation.at)


@every_policy
@given(given_signals=signals, now=st.integers(0, 800 * DAY))
def test_influence_is_bounded(policy: Policy[Any], given_signals: list[Observation], now: int) -> None:
    state = fold(policy, in_time(given_signals))
    assert 0.0 <= policy.usefulness(state, None, now).value <= 1.0
    assert 0.0 <= policy.usefulness(None, state, now).value <= 1.0


@every_policy
@given(relevance=fractions, usefulness=fractions, weight=fractions)
def test_a_blend_lies_between_relevance_and_usefulness(
    policy: Policy[Any], relevance: float, usefulness: float, weight: float
) -> None:
    blended = policy.blend(relevance, usefulness, weight)
    assert min(relevance, usefulness) - 1e-12 <= blended <= max(relevance, usefulness) + 1e-12


@every_policy
@given(relevance=fractions, low=fractions, high=fractions, weight=fractions)
def test_more_usefulness_never_ranks_lower(
    policy: Policy[Any], relevance: float, low: float, high: float, weight: float
) -> None:
    low, high = sorted((low, high))
    assert policy.blend(relevance, low, weight) <= policy.blend(relevance, high, weight)


@every_policy
@given(given_signals=signals_at_distinct_times, data=st.data())
def test_the_order_of_arrival_does_not_matter(
    policy: Policy[Any], given_signals: list[Observation], data: st.DataObject
) -> None:
    arrived = data.draw(st.permutations(given_signals))
    assert fold(policy, in_time(arrived)) == fold(policy, in_time(given_signals))


@every_policy
@given(given_signals=signals_at_distinct_times, extra=observations)
def test_leaving_a_signal_out_undoes_it_exactly(
    policy: Policy[Any], given_signals: list[Observation], extra: Observation
) -> None:
    others = [one for one in given_signals if one.at != extra.at]
    without = fold(policy, in_time(others))
    with_it = in_time([*others, extra])
    fold(policy, with_it)
    assert fold(policy, [one for one in with_it if one != extra]) == without


@every_policy
@given(given_signals=signals)
def test_a_state_is_a_value(policy: Policy[Any], given_signals: list[Observation]) -> None:
    ordered = in_time(given_signals)
    start = policy.start()
    assert fold(policy, ordered) == fold(policy, ordered)
    assert policy.start() == start


@every_policy
def test_nothing_said_is_neutral(policy: Policy[Any]) -> None:
    for state in (None, policy.start()):
        found = policy.usefulness(state, state, 0)
        assert (found.value, found.source) == (0.5, "neutral")


@every_policy
def test_the_context_comes_before_the_fact_and_the_fact_before_neutral(policy: Policy[Any]) -> None:
    good = fold(policy, [Observation("helpful", 1.0, 0)])
    bad = fold(policy, [Observation("not_helpful", 1.0, 0)])
    assert policy.usefulness(good, bad, 0).source == "context"
    assert policy.usefulness(good, bad, 0).value > 0.5
    assert policy.usefulness(None, bad, 0).source == "global"
    assert policy.usefulness(None, bad, 0).value < 0.5


class TestDocumented:
    policy = Documented()

    def test_the_table_of_the_document(self) -> None:
        a, b = self.policy.blend(0.80, 0.90, 0.3), self.policy.blend(0.90, 0.30, 0.3)
        assert a == pytest.approx(0.83, abs=1e-12)
        assert b == pytest.approx(0.72, abs=1e-12)

    @pytest.mark.parametrize(("weight", "expected"), [(0.0, 0.2), (1.0, 0.9), (0.5, 0.55)])
    def test_the_weight_is_the_share_of_usefulness(self, weight: float, expected: float) -> None:
        assert self.policy.blend(0.2, 0.9, weight) == pytest.approx(expected)

    def test_steps_add_up_from_one_half(self) -> None:
        state = fold(self.policy, [Observation(kind, 1.0, 0) for kind in ("used", "ignored", "helpful")])
        assert state.score == pytest.approx(0.7)
        assert state.breakdown == {"used": 1, "ignored": 1, "helpful": 1, "not_helpful": 0}
        assert state.count == 3

    def test_a_score_is_what_the_document_adds_up_to(self) -> None:
        assert fold(self.policy, [Observation("used", 1.0, 0)] * 3).score == 0.8

    def test_a_score_stops_at_one_and_at_zero(self) -> None:
        best = fold(self.policy, [Observation("helpful", 1.0, 0)] * 10)
        worst = fold(self.policy, [Observation("not_helpful", 1.0, 0)] * 10)
        assert (best.score, worst.score) == (1.0, 0.0)
        assert self.policy.observe(best, Observation("not_helpful", 1.0, 0)).score == pytest.approx(0.9)
        assert self.policy.observe(worst, Observation("used", 1.0, 0)).score == pytest.approx(0.1)

    def test_a_score_fades_before_the_next_step_and_after_it(self) -> None:
        state = fold(self.policy, [Observation("used", 1.0, 0), Observation("used", 1.0, 7 * DAY)])
        assert state.score == pytest.approx(0.695)
        assert state.at(14 * DAY) == pytest.approx(0.5 + 0.195 * 0.95)
        assert state.last_at == 7 * DAY

    def test_a_signal_without_confidence_counts_but_does_not_move(self) -> None:
        state = fold(self.policy, [Observation("helpful", 0.0, 0)])
        assert (state.score, state.count) == (0.5, 1)
