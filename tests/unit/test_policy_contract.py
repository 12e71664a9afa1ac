"""What every policy must hold to, and what all but the documented one must hold to besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heedful.clock import DAY, to_stored
from heedful.ledger.ranking_policy import POLICIES
from heedful.ledger.usefulness import Candidate, Opinion, Policy, Ranked
from heedful.model import POLICY_NAMES, SIGNAL_TYPES

EXEMPT = {"documented"}
"""Its numbers are given by its document, and its global fallback moves queries that nobody rated."""

every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
careful_policies = pytest.mark.parametrize(
    "policy",
    [policy for name, policy in POLICIES.items() if name not in EXEMPT],
    ids=[name for name in POLICIES if name not in EXEMPT],
)

NOW = 1000 * DAY
ROUNDING = 1e-9

weights = st.floats(0.01, 1)
SOME = settings(max_examples=30)
relevances = st.integers(0, 100).map(lambda whole: whole / 100)


def rank(
    policy: Policy[Any], candidates: Sequence[Candidate], opinions: Sequence[Opinion], weight: float, now: int
) -> list[Ranked]:
    """The candidates as recall ranks them, from opinions that are folded anew."""
    return policy.rank(candidates, policy.judge(opinions, now), weight)


@dataclass(frozen=True)
class Scene:
    """Candidates, of which only the first few were judged, and what was said, in the order it was given."""

    candidates: list[Candidate]
    opinions: list[Opinion]


@st.composite
def scenes(draw: st.DrawFn, most_similar: float = 1.0) -> Scene:
    count = draw(st.integers(1, 7))
    judged = draw(st.integers(1, count))
    own = draw(st.lists(relevances, min_size=count, max_size=count))
    similar = draw(st.lists(st.floats(0, most_similar), min_size=1, max_size=4))
    times = draw(st.lists(st.integers(0, NOW), max_size=9, unique=True))
    opinions = []
    for at in sorted(times):
        query = draw(st.integers(0, len(similar) - 1))
        opinions.append(
            Opinion(
                fact=draw(st.integers(0, judged - 1)),
                query=query,
                signal_type=draw(st.sampled_from(SIGNAL_TYPES)),
                confidence=draw(st.sampled_from([0.0, 0.3, 1.0])),
                at=at,
                similarity=similar[query],
                rank=draw(st.sampled_from([None, 1, 2, 10])),
                author=draw(st.sampled_from([None, "ann", "bob", "cy"])),
            )
        )
    return Scene([Candidate(fact, relevance) for fact, relevance in enumerate(own)], opinions)


def in_time(opinions: list[Opinion]) -> list[Opinion]:
    return sorted(opinions, key=lambda opinion: opinion.at)


def facts(ranked: list[Ranked]) -> list[int]:
    return [each.fact for each in ranked]


def by_relevance(candidates: list[Candidate]) -> list[int]:
    return [each.fact for each in sorted(candidates, key=lambda each: (-each.relevance, each.fact))]


def test_there_is_one_policy_for_each_name() -> None:
    assert set(POLICIES) == set(POLICY_NAMES)
    assert all(policy.name == name for name, policy in POLICIES.items())


FIRST, LAST = to_stored(datetime.min), to_stored(datetime.max)


@every_policy
@given(scene=scenes(), now=st.integers(FIRST, LAST), shift=st.integers(FIRST, LAST - NOW), weight=weights)
def test_any_clock_gives_finite_numbers(policy: Policy[Any], scene: Scene, now: int, shift: int, weight: float) -> None:
    opinions = [opinion._replace(at=opinion.at + shift) for opinion in scene.opinions]
    for ranked in rank(policy, scene.candidates, opinions, weight, now):
        assert isfinite(ranked.score)
        assert 0 <= ranked.usefulness.value <= 1


@careful_policies
@SOME
@given(scene=scenes(), ahead=st.integers(0, 100 * DAY), weight=weights)
def test_an_opinion_from_a_clock_ahead_weighs_as_one_of_now(
    policy: Policy[Any], scene: Scene, ahead: int, weight: float
) -> None:
    late = [opinion._replace(at=NOW + ahead + place) for place, opinion in enumerate(scene.opinions)]
    current = [opinion._replace(at=NOW) for opinion in scene.opinions]
    assert rank(policy, scene.candidates, late, weight, NOW) == rank(policy, scene.candidates, current, weight, NOW)


@every_policy
@SOME
@given(scene=scenes(), weight=weights)
def test_influence_is_bounded_by_the_weight(policy: Policy[Any], scene: Scene, weight: float) -> None:
    for each in rank(policy, scene.candidates, scene.opinions, weight, NOW):
        assert abs(each.score - each.relevance) <= weight + ROUNDING
        assert 0 <= each.score <= 1
        assert 0 <= each.usefulness.value <= 1


@every_policy
@SOME
@given(scene=scenes(), weight=weights)
def test_all_candidates_are_ranked_once_with_their_relevance(policy: Policy[Any], scene: Scene, weight: float) -> None:
    ranked = rank(policy, scene.candidates, scene.opinions, weight, NOW)
    assert {each.fact: each.relevance for each in ranked} == {each.fact: each.relevance for each in scene.candidates}
    assert len(ranked) == len(scene.candidates)


@every_policy
@SOME
@given(scene=scenes(), weight=weights)
def test_scores_fall_along_the_order(policy: Policy[Any], scene: Scene, weight: float) -> None:
    scores = [each.score for each in rank(policy, scene.candidates, scene.opinions, weight, NOW)]
    assert scores == sorted(scores, reverse=True)


@every_policy
@SOME
@given(scene=scenes(), weight=weights, data=st.data())
def test_the_order_of_arrival_does_not_matter(
    policy: Policy[Any], scene: Scene, weight: float, data: st.DataObject
) -> None:
    arrived = data.draw(st.permutations(scene.opinions))
    listed = data.draw(st.permutations(scene.candidates))
    expected = rank(policy, scene.candidates, scene.opinions, weight, NOW)
    assert rank(policy, listed, in_time(arrived), weight, NOW) == expected


@every_policy
@SOME
@given(scene=scenes(), weight=weights, data=st.data())
def test_undo_is_exact(policy: Policy[Any], scene: Scene, weight: float, data: st.DataObject) -> None:
    assume(scene.opinions)
    taken_back = data.draw(st.sampled_from(scene.opinions))
    others = [opinion for opinion in scene.opinions if opinion is not taken_back]
    never_given = rank(policy, scene.candidates, others, weight, NOW)
    rank(policy, scene.candidates, scene.opinions, weight, NOW)
    remaining = [opinion for opinion in scene.opinions if opinion.at != taken_back.at]
    assert rank(policy, scene.candidates, remaining, weight, NOW) == never_given


@every_policy
@SOME
@given(scene=scenes(), weight=weights)
def test_the_same_inputs_give_the_same_ranks(policy: Policy[Any], scene: Scene, weight: float) -> None:
    before = (list(scene.candidates), list(scene.opinions))
    first = rank(policy, scene.candidates, scene.opinions, weight, NOW)
    assert rank(policy, scene.candidates, scene.opinions, weight, NOW) == first
    assert (scene.candidates, scene.opinions) == before


@every_policy
@SOME
@given(scene=scenes())
def test_weight_0_ranks_by_relevance(policy: Policy[Any], scene: Scene) -> None:
    ranked = rank(policy, scene.candidates, scene.opinions, 0.0, NOW)
    assert facts(ranked) == by_relevance(scene.candidates)
    assert all(each.score == each.relevance for each in ranked)


@every_policy
@SOME
@given(scene=scenes(), weight=st.floats(0.01, 0.9))
def test_without_opinions_the_order_is_that_of_relevance(policy: Policy[Any], scene: Scene, weight: float) -> None:
    ranked = rank(policy, scene.candidates, [], weight, NOW)
    assert facts(ranked) == by_relevance(scene.candidates)
    assert {each.usefulness.source for each in ranked} == {"neutral"}


@every_policy
@SOME
@given(scene=scenes(), weight=st.floats(0.01, 0.9))
def test_opinions_without_confidence_say_nothing(policy: Policy[Any], scene: Scene, weight: float) -> None:
    silent = [opinion._replace(confidence=0.0) for opinion in scene.opinions]
    assert facts(rank(policy, scene.candidates, silent, weight, NOW)) == by_relevance(scene.candidates)


@every_policy
def test_praise_for_this_very_question_lifts_a_fact_and_blame_sinks_it(policy: Policy[Any]) -> None:
    candidates = [Candidate(0, 0.5), Candidate(1, 0.5), Candidate(2, 0.5)]
    praise = [
        Opinion(2, 0, "helpful", 1.0, at, similarity=1.0, author=author) for at, author in enumerate(["ann", "bob"])
    ]
    blame = [opinion._replace(fact=0, signal_type="not_helpful") for opinion in praise]
    assert facts(rank(policy, candidates, [*praise, *blame], 0.3, NOW)) == [2, 1, 0]


# What the documented rule is exempt from.


@careful_policies
@SOME
@given(scene=scenes(), weight=weights)
def test_a_neutral_fact_moves_no_other(policy: Policy[Any], scene: Scene, weight: float) -> None:
    judged = {opinion.fact for opinion in scene.opinions}
    everybody = rank(policy, scene.candidates, scene.opinions, weight, NOW)
    for neutral in [each for each in scene.candidates if each.fact not in judged]:
        others = [each for each in scene.candidates if each is not neutral]
        without = rank(policy, others, scene.opinions, weight, NOW)
        assert facts(without) == [fact for fact in facts(everybody) if fact != neutral.fact]


@careful_policies
@SOME
@given(scene=scenes(), weight=weights)
def test_a_neutral_fact_leaves_the_usefulness_of_others_and_shows_its_relevance(
    policy: Policy[Any], scene: Scene, weight: float
) -> None:
    judged = {opinion.fact for opinion in scene.opinions}
    everybody = rank(policy, scene.candidates, scene.opinions, weight, NOW)
    known = [each for each in scene.candidates if each.fact in judged]
    alone = {each.fact: each for each in rank(policy, known, scene.opinions, weight, NOW)}
    for each in everybody:
        if each.fact in judged:
            assert each.usefulness == alone[each.fact].usefulness
            # One that stands behind a protected fact shows no more than that one's score.
            assert each.score <= alone[each.fact].score + ROUNDING
        else:
            assert each.usefulness.source == "neutral"


@careful_policies
@SOME
@given(scene=scenes(most_similar=0.85), weight=weights)
def test_a_query_without_related_evidence_ranks_exactly_as_without_feedback(
    policy: Policy[Any], scene: Scene, weight: float
) -> None:
    assert rank(policy, scene.candidates, scene.opinions, weight, NOW) == rank(
        policy, scene.candidates, [], weight, NOW
    )


@careful_policies
@SOME
@given(scene=scenes(), weight=weights)
def test_a_fact_without_evidence_falls_by_one_place_at_most(policy: Policy[Any], scene: Scene, weight: float) -> None:
    judged = {opinion.fact for opinion in scene.opinions}
    ranked = facts(rank(policy, scene.candidates, scene.opinions, weight, NOW))
    plain = by_relevance(scene.candidates)
    for fact in set(plain) - judged:
        assert ranked.index(fact) <= plain.index(fact) + 1


@careful_policies
@given(
    many=st.integers(3, 15),
    share=st.floats(0, 1),
    repeats=st.integers(1, 12),
    relevance=st.floats(0.05, 1),
    ahead=st.floats(0, 0.05),
    weight=st.sampled_from([0.3, 0.5, 1.0]),
)
def test_a_coordinated_minority_flips_no_fact_that_many_support(
    policy: Policy[Any], many: int, share: float, repeats: int, relevance: float, ahead: float, weight: float
) -> None:
    few = round(share * ((many - 1) // 2))
    candidates = [Candidate(0, relevance - ahead), Candidate(1, relevance), Candidate(2, relevance / 2)]
    opinions = [
        Opinion(0, 0, "helpful", 1.0, NOW - DAY + place, similarity=1.0, author=f"supporter {place}")
        for place in range(many)
    ]
    assume(facts(rank(policy, candidates, opinions, weight, NOW))[0] == 0)
    for _ in range(repeats):
        for attacker in range(few):
            for fact in (0, 1):
                kind = SIGNAL_TYPES[2 if fact else 3]
                at = NOW - DAY + len(opinions)
                opinions.append(Opinion(fact, 0, kind, 1.0, at, similarity=1.0, author=f"attacker {attacker}"))
    assert facts(rank(policy, candidates, opinions, weight, NOW))[0] == 0
