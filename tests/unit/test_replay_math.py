from __future__ import annotations

from math import log2
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.ledger import replay_statistics
from heedful.ledger.ranking_policy import POLICIES
from heedful.ledger.replay import FOLDS, LoggedRecall, replay_orders
from heedful.ledger.replay_statistics import Trial
from heedful.ledger.usefulness import Candidate, Opinion
from heedful.ledger.votes import counted_votes
from heedful.model import SIGNAL_TYPES, PolicyName

HOUR = 3_600_000_000

rows = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(1, 1000)),
    min_size=1,
    max_size=30,
)


def arrays(given: list[tuple[float, float, float]]) -> tuple[replay_statistics.Floats, replay_statistics.Floats]:
    table = np.array(given)
    return table[:, :2], table[:, 2]


class TestMeasures:
    def test_by_hand(self) -> None:
        assert replay_statistics.first_rank([5, 6, 7], {7}) == 3
        assert replay_statistics.ndcg([5, 6, 7], {5, 7}) == pytest.approx((1 + 1 / 2) / (1 + 1 / log2(3)))
        assert replay_statistics.ndcg([5, 6, 7], {5, 6}) == 1

    def test_what_is_below_the_tenth_place_gains_nothing(self) -> None:
        assert replay_statistics.ndcg(range(12), {10}) == 0
        assert replay_statistics.ndcg(range(12), set(range(12))) == 1

    @given(st.permutations(range(12)), st.sets(st.integers(0, 11), min_size=1))
    def test_bounds(self, order: list[int], helpful: set[int]) -> None:
        assert 0 <= replay_statistics.ndcg(order, helpful) <= 1 + 1e-12
        assert 1 <= replay_statistics.first_rank(order, helpful) <= 13 - len(helpful)


class TestWeighting:
    def test_by_hand(self) -> None:
        # Propensities 1, 1/2 and 1/4: weights 1, 2 and 4, which add up to 7.
        weights = 1 / np.array([1.0, 0.5, 0.25])
        values = np.array([[1.0, 0.0], [0.5, 1.0], [0.25, 0.5]])
        assert replay_statistics.weighted_means(values, weights) == pytest.approx([3 / 7, 4 / 7])
        assert replay_statistics.effective_sample_size(weights) == pytest.approx(49 / 21)

    def test_it_finds_the_mean_of_a_log_that_was_drawn_unevenly(self) -> None:
        # Half of the questions are shown always, the other half one time in five.
        draw = np.random.default_rng(0)
        chance = np.where(np.arange(20_000) % 2, 1.0, 0.2)
        values = np.where(np.arange(20_000) % 2, 0.2, 0.8)
        shown = draw.random(20_000) < chance
        plain = values[shown].mean()
        (weighted,) = replay_statistics.weighted_means(values[shown][:, None], 1 / chance[shown])
        assert plain < 0.35
        assert weighted == pytest.approx(0.5, abs=0.01)

    @given(rows)
    def test_means_stay_in_the_range_of_the_values(self, given: list[tuple[float, float, float]]) -> None:
        values, weights = arrays(given)
        means = replay_statistics.weighted_means(values, weights)
        assert (means >= values.min(axis=0) - 1e-9).all()
        assert (means <= values.max(axis=0) + 1e-9).all()

    @given(rows)
    def test_the_effective_size_is_at_most_the_size(self, given: list[tuple[float, float, float]]) -> None:
        _, weights = arrays(given)
        assert 1 - 1e-9 <= replay_statistics.effective_sample_size(weights) <= len(weights) + 1e-9
        assert replay_statistics.effective_sample_size(np.full(len(weights), 3.0)) == pytest.approx(len(weights))

    @given(rows, st.floats(0.01, 100))
    @pytest.mark.slow
    def test_the_scale_of_weights_does_not_matter(self, given: list[tuple[float, float, float]], scale: float) -> None:
        values, weights = arrays(given)
        assert replay_statistics.weighted_means(values, scale * weights) == pytest.approx(
            replay_statistics.weighted_means(values, weights)
        )


class TestBootstrap:
    def test_the_interval_of_a_mean_is_about_that_of_the_normal(self) -> None:
        values = np.random.default_rng(1).random((400, 1))
        low, high = replay_statistics.interval(replay_statistics.resampled_means(values, np.ones(400), 0)[:, 0])
        error = values.std() / 20
        assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
        assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)

    def test_columns_share_their_draws(self) -> None:
        values = np.random.default_rng(1).random((50, 1))
        samples = replay_statistics.resampled_means(np.hstack([values, values + 0.25]), np.ones(50), 0)
        assert samples[:, 1] - samples[:, 0] == pytest.approx(np.full(replay_statistics.BOOTSTRAP_ROUNDS, 0.25))

    def test_seeds(self) -> None:
        values, weights = np.random.default_rng(1).random((50, 2)), np.ones(50)
        one, same, other = (replay_statistics.resampled_means(values, weights, seed) for seed in (1, 1, 2))
        assert (one == same).all()
        assert (one != other).any()


class TestAdvice:
    def trials(self, *columns: list[float]) -> list[Trial]:
        """Relevance alone, then weights of 0.1, 0.2 and so on."""
        values = np.array(columns).T
        weights = np.ones(len(values))
        means = replay_statistics.weighted_means(values, weights)
        samples = replay_statistics.resampled_means(values, weights, 0)
        return [Trial(place / 10, float(means[place]), samples[:, place]) for place in range(len(columns))]

    def test_too_few(self) -> None:
        none, *trials = self.trials([0.5] * 19, [1.0] * 19)
        found = replay_statistics.advice(trials, none, 19, 19.0)
        assert found.weight is None
        assert "19 recalls" in found.reason

    def test_enough_but_they_say_little(self) -> None:
        none, *trials = self.trials([0.5] * 40, [1.0] * 40)
        found = replay_statistics.advice(trials, none, 40, 7.25)
        assert found.weight is None
        assert "7.2" in found.reason

    def test_nothing_beats_relevance_alone(self) -> None:
        none, *trials = self.trials([0.5] * 40, [0.5] * 40, [1.0, 0.0] * 20)
        found = replay_statistics.advice(trials, none, 40, 40.0)
        assert found.weight == 0
        assert "relevance alone" in found.reason

    def test_the_smallest_of_those_that_are_as_good_as_the_best(self) -> None:
        nearly, best = [0.8, 1.0] + [1.0] * 38, [1.0, 0.85] + [1.0] * 38
        none, *trials = self.trials([0.5] * 40, [0.6] * 40, nearly, best, best)
        assert replay_statistics.advice(trials, none, 40, 40.0).weight == 0.2
        assert replay_statistics.advice([trials[0], *trials[2:]], none, 40, 40.0).weight == 0.3


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(8))
def test_folds_order_as_the_policy_does_on_what_was_known(policy: PolicyName, seed: int) -> None:
    draw = Random(seed)
    queries = range(1, 7)
    alike = {
        query: {other: draw.choice([0.86, 0.9, 0.97]) for other in queries if draw.random() < 0.5} for query in queries
    }
    for query in queries:
        alike[query][query] = 1.0
    opinions = []
    for _ in range(300):
        recorded = draw.randrange(400) * HOUR
        late = draw.randrange(100) * HOUR if draw.random() < 0.2 else 0
        opinions.append(
            (
                recorded,
                Opinion(
                    fact=draw.randrange(8),
                    query=draw.choice(queries),
                    signal_type=draw.choice(SIGNAL_TYPES),
                    confidence=draw.choice([0.5, 1.0]),
                    at=recorded - late,
                    rank=draw.choice([None, 1, 4]),
                    author=draw.choice(["ann", "bo", None]),
                ),
            )
        )
    opinions.sort(key=lambda each: each[0])
    shown = [Candidate(fact, round(draw.random(), 6)) for fact in range(8)]
    recalls = []
    for at in sorted(draw.randrange(420) * HOUR for _ in range(40)):
        query = draw.choice(queries)
        recalls.append(LoggedRecall(query, at, draw.sample(shown, 6), alike[query]))
    weights = (0.0, 0.2, 0.7)
    found = replay_orders(recalls, opinions, [FOLDS[policy]()], weights)
    for asked, orders in zip(recalls, found, strict=True):
        known = [
            Opinion(
                each.fact,
                each.query,
                each.signal_type,
                each.confidence,
                each.at,
                asked.context.get(each.query, 0.0),
                each.rank,
                each.author,
            )
            for recorded, each in opinions
            if recorded < asked.at
        ]
        known.sort(key=lambda each: each.at)
        if policy == "documented":
            known = counted_votes(known)
        for weight, order in zip(weights, orders, strict=True):
            ranked = POLICIES[policy].rank(asked.shown, POLICIES[policy].judge(known, asked.at), weight)
            assert order == [each.fact for each in ranked]
