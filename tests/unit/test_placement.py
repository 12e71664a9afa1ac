"""Who may overtake whom, and who is tried now and then."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.ledger.adaptive_policy import merge
from heedful.ledger.ranking_policy import explore

Place = tuple[float, float]
"""relevance, boost"""

tenths = st.integers(0, 10).map(lambda whole: whole / 10)
places = st.lists(st.tuples(tenths, st.integers(-5, 5).map(lambda whole: whole / 10)), max_size=12)


def order(given_places: list[Place]) -> list[int]:
    return merge(
        [relevance for relevance, _ in given_places],
        [relevance + boost for relevance, boost in given_places],
        [boost > 0 for _, boost in given_places],
    )


def plain(given_places: list[Place]) -> list[int]:
    return sorted(range(len(given_places)), key=lambda place: (-given_places[place][0], place))


@given(places)
def test_every_place_comes_once(given_places: list[Place]) -> None:
    assert sorted(order(given_places)) == list(range(len(given_places)))


@given(places)
def test_one_that_nobody_spoke_against_loses_one_place_at_most(given_places: list[Place]) -> None:
    now, before = order(given_places), plain(given_places)
    for place, (_, boost) in enumerate(given_places):
        if boost == 0:
            assert now.index(place) <= before.index(place) + 1


@given(places)
def test_those_without_evidence_keep_their_order_by_relevance(given_places: list[Place]) -> None:
    def unknown(found: list[int]) -> list[int]:
        return [place for place in found if given_places[place][1] == 0]

    assert unknown(order(given_places)) == unknown(plain(given_places))


@given(places, st.integers(0, 11), st.integers(1, 5).map(lambda whole: whole / 10))
def test_more_for_one_never_lowers_it_and_more_against_it_never_raises_it(
    given_places: list[Place], place: int, more: float
) -> None:
    if place >= len(given_places):
        return
    relevance, boost = given_places[place]
    higher = [*given_places[:place], (relevance, boost + more), *given_places[place + 1 :]]
    assert order(higher).index(place) <= order(given_places).index(place)


def test_a_lifted_one_overtakes_any_number_but_two_do_not_overtake_the_same() -> None:
    assert merge([0.9, 0.8, 0.7, 0.1], [0.9, 0.8, 0.7, 1.0], [False, False, False, True]) == [3, 0, 1, 2]
    assert merge([0.5, 0.4, 0.3], [0.5, 0.9, 0.8], [False, True, True]) == [1, 0, 2]


def test_of_equals_the_more_relevant_comes_first_then_the_lower_place() -> None:
    assert merge([0.4, 0.5, 0.3], [0.7, 0.7, 0.7], [True] * 3) == [1, 0, 2]
    assert merge([0.5, 0.5, 0.5], [0.7, 0.7, 0.7], [True] * 3) == [0, 1, 2]


def test_without_a_share_nothing_is_explored() -> None:
    assert explore([3, 1, 2, 0], [False] * 4, 2, 0.0, seed=1) == ([3, 1, 2, 0], 1.0)


def test_where_all_are_known_or_shown_nothing_is_explored() -> None:
    assert explore([0, 1, 2, 3], [True] * 4, 2, 1.0, seed=1) == ([0, 1, 2, 3], 1.0)
    assert explore([0, 1], [False] * 2, 2, 1.0, seed=1) == ([0, 1], 1.0)


def test_an_explored_one_takes_the_last_place_shown_and_the_others_move_on() -> None:
    found, chance = explore([0, 1, 2, 3, 4, 5], [True, True, True, True, False, True], 3, 1.0, seed=1)
    assert (found, chance) == ([0, 1, 4, 2, 3, 5], 1.0)


def test_only_the_next_places_are_explored() -> None:
    assert explore([0, 1, 2, 3, 4], [True, True, True, True, False], 2, 1.0, seed=1)[1] == 1.0
    assert explore([0, 1, 2, 3, 4], [True, True, True, True, False], 2, 1.0, seed=1)[0] == [0, 1, 2, 3, 4]


@given(seed=st.integers(0, 2**64), share=st.floats(0, 1))
def test_the_same_seed_explores_the_same(seed: int, share: float) -> None:
    first = explore(list(range(8)), [False] * 8, 3, share, seed)
    assert explore(list(range(8)), [False] * 8, 3, share, seed) == first
    assert sorted(first[0]) == list(range(8))
    assert first[0][:2] == [0, 1]


def test_the_propensity_is_the_chance_with_which_each_one_is_shown_there() -> None:
    share, draws = 0.4, 4000
    shown, named = Counter[int](), {}
    for seed in range(draws):
        found, chance = explore([0, 1, 2, 3, 4, 5], [True, True, True, False, True, False], 3, share, seed)
        shown[found[2]] += 1
        named[found[2]] = chance
    assert named == pytest.approx({2: 0.6, 3: 0.2, 5: 0.2})
    assert {place: count / draws for place, count in shown.items()} == pytest.approx(named, abs=0.03)
