"""What related questions lend to a fact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.model import SignalType
from heedful.ranking.affinity import Affinity, Lift, Neighbour, Related, VoteTable
from heedful.ranking.evidence import votes_per_fact
from heedful.ranking.signals import Opinion

RULE = Affinity()
ASKED = np.array([1.0, 0.0, 0.0], np.float32)


def at(cosine: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A question at this cosine to the one asked."""
    return np.array([cosine, (1 - cosine**2) ** 0.5, 0.0], np.float32)


def question(cosine: float, *said: tuple[int, SignalType, str], fit: float = 0.4, number: int = 1) -> Related:
    """A rated question; each opinion is (fact, kind, author)."""
    opinions = [Opinion(fact, number, kind, 1.0, 0, author=author) for fact, kind, author in said]
    fits = {fact: fit for fact, kind, _ in said if kind in ("used", "helpful")}
    return Related(Neighbour(number, cosine, at(cosine)), VoteTable.of(votes_per_fact(opinions), fits))


def lifts(near: Sequence[Related], relevance: dict[int, float] | None = None) -> dict[int, Lift]:
    return RULE.lifts(relevance or {1: 0.5, 2: 0.48, 3: 0.3}, RULE.supports(near, 0))


def amount(near: Sequence[Related], fact: int = 2, relevance: dict[int, float] | None = None) -> float:
    found = lifts(near, relevance).get(fact)
    return 0.0 if found is None else found.amount


def test_nothing_related_lends_nothing() -> None:
    assert lifts([]) == {}


def test_a_fact_that_helped_next_door_is_lifted_the_more_the_nearer() -> None:
    near, far = (amount([question(cosine, (2, "helpful", "ann"))]) for cosine in (0.95, 0.75))
    assert near > far > 0
    assert amount([question(0.45, (2, "helpful", "ann"))]) == 0


def test_a_fact_that_is_like_both_questions_anyway_is_not() -> None:
    alike = [question(0.7, (2, "helpful", "ann"), fit=0.9)]
    assert amount([question(0.7, (2, "helpful", "ann"), fit=0.3)]) > amount(alike)
    assert amount(alike, relevance={1: 0.8, 2: 0.8}) == 0


def test_more_who_say_so_lift_it_higher() -> None:
    one = amount([question(0.8, (2, "helpful", "ann"))])
    assert amount([question(0.8, (2, "helpful", "ann"), (2, "helpful", "bob"))]) > one


def test_a_fact_far_behind_needs_more_evidence() -> None:
    behind = {1: 0.5, 3: 0.35}
    assert amount([question(0.9, (3, "helpful", "ann"))], fact=3, relevance=behind) == 0
    crowd: list[tuple[int, SignalType, str]] = [(3, "helpful", f"user {each}") for each in range(50)]
    assert amount([question(0.9, *crowd[:3])], fact=3, relevance=behind) > 0
    assert amount([question(0.9, *crowd)], fact=3, relevance={1: 0.6, 3: 0.35}) == 0


def test_people_who_disagree_about_the_same_count_less() -> None:
    agreed = [question(0.8, (2, "helpful", "ann"), (2, "helpful", "bob"), (1, "used", "ann"), (1, "used", "bob"))]
    disagreed = [question(0.8, (2, "helpful", "ann"), (2, "helpful", "bob"), (1, "used", "ann"), (1, "ignored", "bob"))]
    assert amount(agreed) > amount(disagreed)


def test_what_failed_next_door_says_little() -> None:
    helped = question(0.7, (2, "helpful", "ann"), number=1)
    failed = question(0.65, (2, "not_helpful", "bob"), number=2)
    assert amount([helped]) > amount([helped, failed]) > 0.7 * amount([helped])


def test_a_fact_that_was_only_blamed_is_not_touched() -> None:
    assert lifts([question(0.95, (2, "not_helpful", "ann"))]) == {}


def test_how_often_a_fact_helped_elsewhere_does_not_matter() -> None:
    elsewhere = [question(0.35, *((2, "helpful", f"user {each}") for each in range(50)))]
    assert lifts(elsewhere) == {}


def test_a_table_follows_changes_of_some_facts() -> None:
    said: list[tuple[int, SignalType, str]] = [(1, "used", "ann"), (3, "helpful", "bob"), (2, "ignored", "cy")]
    table = question(0.8, *said).votes
    assert table.facts.tolist() == [1, 2, 3]
    changed = table.replaced([2, 3, 4], votes_per_fact([Opinion(4, 1, "used", 1.0, 0)]))
    assert changed.facts.tolist() == [1, 4]
    assert changed.lacking().tolist() == [4]
    assert changed.with_fits({4: 0.5}).lacking().tolist() == []


@given(
    st.lists(
        st.tuples(
            st.floats(0.3, 1.0),
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
    said: list[tuple[float, list[tuple[int, SignalType, str]]]],
) -> None:
    near = [question(cosine, *opinions, number=number) for number, (cosine, opinions) in enumerate(said)]
    found = lifts(near)
    for lift in found.values():
        assert 0 <= lift.amount <= 1
        assert 0.5 < lift.probability <= 1
    reverse = lifts(near[::-1])
    assert found.keys() == reverse.keys()
    for fact, lift in found.items():
        assert lift.amount == pytest.approx(reverse[fact].amount)
