from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.graph_index import FROM_QUERY, NAMED_ENTITY_RELEVANCE, Links, Paths, best_paths, blend, factor

Pair = tuple[int, int]


def links(pairs: list[Pair], factors: dict[Pair, float] | None = None) -> Links:
    return Links(
        np.array([fact for fact, _ in pairs], np.int64),
        np.array([entity for _, entity in pairs], np.int64),
        np.array([(factors or {}).get(pair, 1.0) for pair in pairs]),
    )


def expanded(
    pairs: list[Pair], relevance: dict[int, float], named: set[int], factors: dict[Pair, float] | None = None
) -> Paths:
    entities = np.unique(np.array([entity for _, entity in pairs], np.int64))
    starts = [pair for pair in pairs if pair[0] in relevance]
    return best_paths(links(starts, factors), relevance, entities, named, links(pairs, factors))


def by_fact(paths: Paths) -> dict[int, tuple[float, int, int]]:
    rows = zip(*(each.tolist() for each in (paths.facts, paths.borrowed, paths.entities, paths.seeds)), strict=True)
    return {fact: (borrowed, entity, seed) for fact, borrowed, entity, seed in rows}


def test_a_fact_is_reached_from_the_best_seed_but_never_from_itself() -> None:
    found = by_fact(expanded([(1, 7), (2, 7), (3, 7), (4, 7)], {1: 0.9, 2: 0.4}, set()))
    assert {fact: (round(borrowed, 9), seed) for fact, (borrowed, _, seed) in found.items()} == {
        1: (0.2, 2),
        2: (0.45, 1),
        3: (0.45, 1),
        4: (0.45, 1),
    }


def test_the_query_leads_to_what_it_names() -> None:
    assert by_fact(expanded([(1, 7)], {}, {7})) == {1: (NAMED_ENTITY_RELEVANCE, 7, FROM_QUERY)}
    assert by_fact(expanded([(1, 7)], {1: 0.9}, {7})) == {1: (NAMED_ENTITY_RELEVANCE, 7, FROM_QUERY)}
    assert by_fact(expanded([(1, 7)], {1: 0.9}, set())) == {}


def test_the_rarer_entity_leads() -> None:
    found = by_fact(expanded([(1, 7), (1, 8), (2, 7), (2, 8), (3, 7)], {1: 0.8}, set()))
    assert found[2][1:] == (8, 1)
    assert found[3][1:] == (7, 1)


@pytest.mark.parametrize("rated", [(1, 7), (2, 7)])
def test_both_links_of_a_path_count(rated: Pair) -> None:
    pairs = [(1, 7), (2, 7)]
    plain, more, none = (
        by_fact(expanded(pairs, {1: 0.5}, set(), {rated: factor(usefulness, 1.0)})).get(2, (0.0, 0, 0))[0]
        for usefulness in (0.5, 0.9, 0.0)
    )
    assert more > plain > none == 0


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), unique=True, max_size=20),
    st.dictionaries(st.integers(1, 6), st.floats(0.01, 1), max_size=4),
    st.sets(st.integers(1, 5)),
    st.dictionaries(st.tuples(st.integers(1, 6), st.integers(1, 5)), st.floats(0, 2)),
)
def test_it_is_the_best_of_all_paths(
    pairs: list[Pair], relevance: dict[int, float], named: set[int], factors: dict[Pair, float]
) -> None:
    best: dict[int, float] = {}
    for fact, entity in pairs:
        mentions = sum(other == entity for _, other in pairs)
        ways = [
            relevance[seed] * factors.get((seed, entity), 1.0)
            for seed, other in pairs
            if other == entity and seed != fact and seed in relevance
        ]
        ways += [NAMED_ENTITY_RELEVANCE] if entity in named else []
        for way in ways:
            borrowed = min(1.0, way * factors.get((fact, entity), 1.0) / mentions**0.5)
            if borrowed > 0:
                best[fact] = max(best.get(fact, 0.0), borrowed)
    assert {
        fact: borrowed for fact, (borrowed, _, _) in by_fact(expanded(pairs, relevance, named, factors)).items()
    } == (pytest.approx(best))


@given(st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_what_is_lent_is_bounded(relevance: float, borrowed: float) -> None:
    (after,) = blend(np.array([relevance], np.float32), np.array([borrowed], np.float32)).tolist()
    assert relevance - 1e-6 <= after <= min(1.0, relevance + 0.3) + 1e-6
