"""What each policy promises besides the contract that all of them keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.clock import DAY
from heedful.ledger.adaptive_policy import Adaptive, aging
from heedful.ledger.ranking_policy import most_relevant
from heedful.ledger.usefulness import WEEK, Candidate, Documented, Opinion, Policy, Ranked, Tally
from heedful.model import SIGNAL_TYPES, SignalType

NOW = 500 * DAY
FACTS = range(1, 7)

fractions = st.floats(0, 1)
relevances = st.integers(0, 1000).map(lambda number: number / 1000)
candidates = st.lists(
    st.builds(Candidate, st.sampled_from(FACTS), relevances), max_size=6, unique_by=lambda each: each.fact
)
# Opinions of one query are equally similar to the one asked.
similarities = st.lists(st.sampled_from([0.0, 0.5, 0.85, 0.9, 1.0]), min_size=4, max_size=4)


@st.composite
def opinions(draw: st.DrawFn) -> list[Opinion]:
    alike = draw(similarities)
    times = sorted(draw(st.lists(st.integers(0, 400 * DAY), max_size=15, unique=True)))
    result = []
    for at in times:
        query = draw(st.integers(0, 3))
        result.append(
            Opinion(
                fact=draw(st.sampled_from(FACTS)),
                query=query,
                signal_type=draw(st.sampled_from(SIGNAL_TYPES)),
                confidence=draw(st.sampled_from([0.0, 0.3, 1.0])),
                at=at,
                similarity=alike[query],
                rank=draw(st.none() | st.integers(1, 10)),
                author=draw(st.sampled_from([None, "ann", "bob"])),
            )
        )
    return result


def rank(
    policy: Policy[Any], candidates: Sequence[Candidate], opinions: Sequence[Opinion], weight: float, now: int
) -> list[Ranked]:
    """The candidates as recall ranks them, from opinions that are folded anew."""
    return policy.rank(candidates, policy.judge(opinions, now), weight)


def order(ranked: list[Ranked]) -> list[int]:
    return [each.fact for each in ranked]


def by_relevance(among: list[Candidate]) -> list[int]:
    return [each.fact for each in sorted(among, key=lambda each: (-each.relevance, each.fact))]


def said(kind: SignalType, confidence: float, at: int) -> Opinion:
    return Opinion(1, 1, kind, confidence, at)


class TestDocumented:
    policy = Documented()

    def fold(self, *signals: Opinion) -> Tally:
        return self.policy.fold(signals)

    def test_the_table_of_the_document(self) -> None:
        a, b = self.policy.blend(0.80, 0.90, 0.3), self.policy.blend(0.90, 0.30, 0.3)
        assert a == pytest.approx(0.83, abs=1e-12)
        assert b == pytest.approx(0.72, abs=1e-12)

    @pytest.mark.parametrize(("weight", "expected"), [(0.0, 0.2), (1.0, 0.9), (0.5, 0.55)])
    def test_the_weight_is_the_share_of_usefulness(self, weight: float, expected: float) -> None:
        assert self.policy.blend(0.2, 0.9, weight) == pytest.approx(expected)

    @given(fractions, fractions, fractions)
    def test_a_blend_lies_between_relevance_and_usefulness(
        self, relevance: float, usefulness: float, weight: float
    ) -> None:
        blended = self.policy.blend(relevance, usefulness, weight)
        assert min(relevance, usefulness) - 1e-12 <= blended <= max(relevance, usefulness) + 1e-12

    def test_steps_add_up_from_one_half(self) -> None:
        state = self.fold(said("used", 1.0, 0), said("ignored", 1.0, 0), said("helpful", 1.0, 0))
        assert state.score == pytest.approx(0.7)
        assert state.breakdown == {"used": 1, "ignored": 1, "helpful": 1, "not_helpful": 0}
        assert state.count == 3

    def test_a_score_is_what_the_document_adds_up_to(self) -> None:
        assert self.fold(*[said("used", 1.0, 0)] * 3).score == 0.8

    def test_a_score_stops_at_one_and_at_zero(self) -> None:
        best = self.fold(*[said("helpful", 1.0, 0)] * 10)
        worst = self.fold(*[said("not_helpful", 1.0, 0)] * 10)
        assert (best.score, worst.score) == (1.0, 0.0)
        assert self.policy.fold([said("not_helpful", 1.0, 0)], best).score == pytest.approx(0.9)
        assert self.policy.fold([said("used", 1.0, 0)], worst).score == pytest.approx(0.1)

    def test_a_score_fades_before_the_next_step_and_after_it(self) -> None:
        state = self.fold(said("used", 1.0, 0), said("used", 1.0, 7 * DAY))
        assert state.score == pytest.approx(0.695)
        assert state.at(14 * DAY) == pytest.approx(0.5 + 0.195 * 0.95)
        assert state.last_at == 7 * DAY

    def test_a_signal_without_confidence_counts_but_does_not_move(self) -> None:
        state = self.fold(said("helpful", 0.0, 0))
        assert (state.score, state.count) == (0.5, 1)

    def test_the_context_comes_before_the_fact_and_the_fact_before_neutral(self) -> None:
        good, bad = self.fold(said("helpful", 1.0, 0)), self.fold(said("not_helpful", 1.0, 0))
        states: list[tuple[Tally | None, Tally]] = [(good, bad), (None, bad), (Tally(), Tally())]
        result = [self.policy.usefulness(context, overall, 0) for context, overall in states]
        assert [(each.value, each.source) for each in result] == [(0.65, "context"), (0.4, "global"), (0.5, "neutral")]


class TestAdaptive:
    policy = Adaptive()

    @given(candidates, opinions(), fractions)
    def test_a_query_without_related_evidence_ranks_as_without_feedback(
        self, among: list[Candidate], said: list[Opinion], weight: float
    ) -> None:
        unrelated = [each for each in said if each.similarity <= 0.85]
        assert rank(self.policy, among, unrelated, weight, NOW) == rank(self.policy, among, [], weight, NOW)

    @given(candidates, opinions(), fractions)
    @pytest.mark.slow
    def test_facts_that_nobody_has_judged_keep_their_order(
        self, among: list[Candidate], said: list[Opinion], weight: float
    ) -> None:
        judged = {each.fact for each in said}
        silent = [fact for fact in order(rank(self.policy, among, said, weight, NOW)) if fact not in judged]
        assert silent == [fact for fact in by_relevance(among) if fact not in judged]

    @given(candidates, opinions(), fractions)
    def test_a_fact_that_nobody_has_judged_moves_no_other(
        self, among: list[Candidate], said: list[Opinion], weight: float
    ) -> None:
        judged = {each.fact for each in said}
        known = [each for each in among if each.fact in judged]
        alone = order(rank(self.policy, known, said, weight, NOW))
        assert [fact for fact in order(rank(self.policy, among, said, weight, NOW)) if fact in judged] == alone

    @given(candidates, opinions(), fractions, st.integers(1, 6))
    def test_what_is_shown_is_the_same_without_the_facts_that_cannot_be(
        self, among: list[Candidate], said: list[Opinion], weight: float, top_k: int
    ) -> None:
        by_fact = {each.fact: each for each in among}
        ordered = [by_fact[fact] for fact in by_relevance(among)]
        judged = {each.fact for each in said}
        mask = most_relevant(np.array([each.fact in judged for each in ordered], bool), top_k)
        contenders = [each for each, may_be_shown in zip(ordered, mask, strict=True) if may_be_shown]
        shown = rank(self.policy, contenders, said, weight, NOW)[:top_k]
        assert shown == rank(self.policy, among, said, weight, NOW)[:top_k]

    @given(candidates, opinions(), fractions)
    def test_a_new_fact_falls_by_one_place_at_most(
        self, among: list[Candidate], said: list[Opinion], weight: float
    ) -> None:
        judged = {each.fact for each in said}
        before, after = by_relevance(among), order(rank(self.policy, among, said, weight, NOW))
        for each in among:
            if each.fact not in judged:
                assert after.index(each.fact) <= before.index(each.fact) + 1


@pytest.mark.parametrize(("weeks", "left"), [(0, 1.0), (1, 0.95), (2, 0.9025), (-1, 1.0)])
def test_a_twentieth_of_the_evidence_fades_each_week(weeks: int, left: float) -> None:
    assert aging(weeks * WEEK) == pytest.approx(left)
