"""What related questions do for a fact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import fsum
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.ledger.adaptive_policy import (
    CAUTION,
    MAX_SUPPORTED,
    Adaptive,
    Affinity,
    FactVotes,
    Neighbour,
    Related,
    Same,
    Strengths,
    Supported,
    Vector,
    VoteTable,
    cosines,
    supports,
    votes_per_fact,
)
from heedful.ledger.usefulness import WEEK, Opinion
from heedful.model import SignalType

RULE = Affinity()


def unit(*parts: float) -> Vector:
    vector = np.array([*parts, *[0.0] * (5 - len(parts))])
    found: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return found


ASKED = unit(1.0, 0.3, 0.3)
FACTS = {1: unit(0.5, 1.0), 2: unit(0.5, 0.0, 1.0), 3: unit(0.0, 0.2, 0.0, 1.0)}
"""The first two are about as like the question; the third is not."""


def question(vector: Vector, *said: tuple[int, SignalType, str], number: int = 1) -> Related:
    """A rated question; each opinion is (fact, kind, author)."""
    opinions = [Opinion(fact, number, kind, 1.0, 0, author=author) for fact, kind, author in said]
    cosine = float(cosines([ASKED], [vector])[0, 0])
    return Related(Neighbour(number, cosine, vector), VoteTable.of(votes_per_fact(opinions)))


NEAR, FARTHER, FAR = unit(1.0, 0.3, 0.3, 0.9), unit(1.0, 0.3, 0.3, 1.2), unit(0.1, 0.2, 0.1, 0.0, 1.0)


def lifts(near: Sequence[Related], boldness: float = 0.0, error: float = 0.03) -> dict[int, float]:
    """The first fact is the most relevant, then the second."""
    return RULE.lifts(Supported(near, 0, Strengths(error=error).certainty), ASKED, FACTS, FACTS, [1, 2], boldness)


def test_nothing_related_lifts_nothing() -> None:
    assert lifts([]) == {}


def test_a_fact_that_helped_next_door_is_lifted_the_more_the_nearer() -> None:
    near, farther = (lifts([question(each, (2, "helpful", "ann"))])[2] for each in (NEAR, FARTHER))
    assert near > farther > 0
    assert lifts([question(FAR, (2, "helpful", "ann"))]) == {}


@pytest.mark.parametrize("like", [0.3, 0.6, 0.9])
def test_what_questions_have_in_common_with_the_fact_makes_them_no_more_alike(like: float) -> None:
    alone = RULE.values(*map(np.array, ([[1.0]], [0.5], [[1.0]], [[0.0], [0.0]], [[0.0], [0.0]])))
    cosine = like**2 + 0.5 * (1 - like**2)
    beside = RULE.values(*map(np.array, ([[1.0]], [cosine], [[1.0]], [[like], [like]], [[like], [like]])))
    assert beside.lift == pytest.approx(alone.lift)


def test_a_rival_that_helped_as_near_takes_its_lead() -> None:
    alone = lifts([question(NEAR, (2, "helpful", "ann"))])
    rivalled = lifts([question(NEAR, (2, "helpful", "ann")), question(FARTHER, (1, "helpful", "ann"), number=2)])
    assert rivalled.get(2, 0.0) < alone[2]


def test_a_question_that_leans_to_the_first_fact_more_than_the_rated_one_did_is_another() -> None:
    leant = question(unit(1.0, 0.1, 0.5, 0.9), (2, "helpful", "ann"))
    assert lifts([leant]).get(2, 0.0) < lifts([question(NEAR, (2, "helpful", "ann"))])[2]


def test_where_raters_err_more_it_takes_more_of_them() -> None:
    one = [question(FARTHER, (2, "helpful", "ann"))]
    three = [question(FARTHER, *((2, "helpful", each) for each in ("ann", "bob", "cy")))]
    assert lifts(one, error=0.3).get(2, 0.0) < lifts(one)[2]
    assert lifts(three, error=0.3)[2] > lifts(one, error=0.3).get(2, 0.0)


def test_a_fact_that_was_forgotten_meanwhile_is_no_rival() -> None:
    supported = Supported([question(NEAR, (2, "helpful", "ann"))], 0, Strengths().certainty)
    assert RULE.lifts(supported, ASKED, {2: FACTS[2]}, [1, 2], [1, 2], 0.0)[2] > 0


def test_boldness_is_added() -> None:
    near = [question(FARTHER, (2, "helpful", "ann"))]
    assert lifts(near, boldness=-0.2)[2] == pytest.approx(lifts(near, boldness=-0.3)[2] + 0.1)


def test_what_failed_next_door_lifts_and_lowers_nothing() -> None:
    assert lifts([question(NEAR, (2, "not_helpful", "ann"))]) == {}


def test_a_table_follows_changes_of_some_facts() -> None:
    said: list[tuple[int, SignalType, str]] = [(1, "used", "ann"), (3, "helpful", "bob"), (2, "ignored", "cy")]
    table = question(NEAR, *said).votes
    assert table.facts.tolist() == [1, 2, 3]
    changed = table.replaced([2, 3, 4], votes_per_fact([Opinion(4, 1, "used", 1.0, 0)]))
    assert changed.facts.tolist() == [1, 4]
    assert table.replaced([1, 2, 3], {}).counts is False


def test_a_cosine_depends_on_no_other_row() -> None:
    draw = np.random.default_rng(3)
    vectors = [unit(*draw.normal(size=5)) for _ in range(9)]
    whole = cosines(vectors, vectors)
    assert all(
        cosines([one], [other])[0, 0] == whole[i, j] for i, one in enumerate(vectors) for j, other in enumerate(vectors)
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from([NEAR, FARTHER, FAR, ASKED]).map(tuple),
            st.lists(
                st.tuples(
                    st.integers(1, 3),
                    st.sampled_from(["used", "helpful", "ignored", "not_helpful"]),
                    st.sampled_from(["ann", "bob", "cy"]),
                ),
                min_size=1,
                max_size=6,
            ),
        ),
        max_size=5,
    )
)
def test_a_lift_lies_between_0_and_1_and_does_not_depend_on_the_order(
    said: list[tuple[tuple[float, ...], list[tuple[int, SignalType, str]]]],
) -> None:
    near = [
        question(np.array(vector, np.float32), *opinions, number=number)
        for number, (vector, opinions) in enumerate(said)
    ]
    found = lifts(near)
    assert all(0 < lift <= 1 for lift in found.values())
    assert lifts(near[::-1]) == pytest.approx(found)


def test_a_recall_looks_at_a_bounded_number_of_facts_those_of_the_nearest_questions() -> None:
    many = [(fact, "helpful", "ann") for fact in range(1000, 1000 + 2 * MAX_SUPPORTED)]
    far, near = question(unit(1.0, 0.0, 0.0, 1.0), *many), question(NEAR, (2, "helpful", "ann"), number=2)  # type: ignore[arg-type]
    supported = Supported([far, near], 0, Strengths().certainty)
    assert len(supported.facts) == MAX_SUPPORTED
    assert supported.nearest(1) == [2]
    assert supported.support.shape == (2, MAX_SUPPORTED)


SMALL = 1e-12
votes_drawn = st.lists(
    st.dictionaries(
        st.integers(1, 12), st.tuples(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 1.0, 3.0]), st.integers(0, 3))
    ),
    min_size=1,
    max_size=5,
)


def table(votes: dict[int, tuple[float, int]]) -> VoteTable:
    return VoteTable.of({fact: FactVotes(net, week * WEEK) for fact, (net, week) in votes.items()})


@given(votes_drawn, st.integers(1, 12))
def test_facts_that_cannot_be_among_the_nearest_change_nothing(
    said: list[dict[int, tuple[float, int]]], most: int
) -> None:
    near = [Related(Neighbour(number, 0.9 - number / 10, NEAR), table(votes)) for number, votes in enumerate(said)]
    certainty, now = Strengths().certainty, 5 * WEEK
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("heedful.ledger.adaptive_policy.MAX_SUPPORTED", most)
        found = Supported(near, now, certainty)
    support: dict[int, list[float]] = defaultdict(lambda: [0.0] * len(near))
    for row, question in enumerate(near):
        values = supports(question.votes.at(now), certainty).tolist()
        for fact, value in zip(question.votes.facts.tolist(), values, strict=True):
            if value > 0:
                support[fact][row] = value
    best = {fact: max(map(mul, values, found.cosines)) for fact, values in support.items()}
    order = sorted(best, key=lambda fact: (-best[fact], fact))[:most]
    assert found.facts.tolist() == sorted(order)
    assert found.support.T.tolist() == [support[fact] for fact in sorted(order)]
    assert found.nearest(most) == order


@given(votes_drawn, st.lists(st.sampled_from([0.9, 0.95, 0.98, 1.0]), min_size=5, max_size=5))
def test_votes_of_questions_that_are_the_same_add_up_in_any_order(
    said: list[dict[int, tuple[float, int]]], similar: list[float]
) -> None:
    rule, strengths, now = Adaptive(), Strengths(), 5 * WEEK
    same = [Same(likeness, table(votes)) for likeness, votes in zip(similar, said, strict=False)]
    found = rule.verdicts(same, now, strengths)
    assert rule.verdicts(same[::-1], now, strengths) == found
    sums: dict[int, list[float]] = defaultdict(list)
    for question in same:
        for fact, net in zip(question.votes.facts.tolist(), question.votes.at(now).tolist(), strict=True):
            weight = 1.0 if net > 0 or question.similarity == 1.0 else CAUTION
            sums[fact].append(rule.kernel(question.similarity) * weight * net)
    expected = supports(np.array([fsum(own) for own in sums.values()]), strengths.certainty).tolist()
    assert {fact: own for fact, own in found.items() if abs(own) > SMALL} == pytest.approx(
        {fact: own for fact, own in zip(sums, expected, strict=True) if abs(own) > SMALL}, abs=1e-12
    )
    assert rule.proven(found) == sorted((fact for fact in found if found[fact] > 0), key=lambda f: (-found[f], f))[:5]
