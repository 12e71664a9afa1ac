from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.relevance import VECTOR, best, borrowed_scores, fuse

fractions = st.floats(0, 1, width=32)


def one(value: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array([value], np.float32)


@given(fractions, fractions, fractions, fractions)
def test_relevance_is_bounded_and_its_parts_add_up(vector: float, words: float, near: float, far: float) -> None:
    relevance, neighbours = (float(part[0]) for part in fuse(one(vector), one(words), one(near), one(far)))
    assert neighbours >= -1e-6
    assert -1e-6 <= relevance <= 1 + 1e-6
    assert relevance == pytest.approx(VECTOR * vector + (1 - VECTOR) * words + neighbours, abs=1e-6)


@given(fractions, fractions)
def test_a_fact_without_neighbours_keeps_its_own_relevance(vector: float, words: float) -> None:
    relevance, neighbours = fuse(one(vector), one(words), one(0), one(0))
    assert float(relevance[0]) == pytest.approx(VECTOR * vector + (1 - VECTOR) * words, abs=1e-6)
    assert float(neighbours[0]) == pytest.approx(0, abs=1e-6)


@given(fractions, fractions, fractions, fractions, fractions)
def test_better_neighbours_never_lower_a_fact(vector: float, words: float, low: float, high: float, far: float) -> None:
    low, high = sorted((low, high))
    worse = fuse(one(vector), one(words), one(low), one(far))[0][0]
    better = fuse(one(vector), one(words), one(high), one(far))[0][0]
    assert worse <= better + 1e-6


def test_neighbours_lend_the_better_of_each_distance() -> None:
    words = np.array([0.1, 0.9, 0.4, 0.7], np.float32)
    near, far = borrowed_scores(words, np.array([[0, 1, 2, -1], [-1, -1, -1, 3], [-1, -1, -1, -1]], np.int32))
    assert near.tolist() == pytest.approx([0.9, 0.0, 0.0])
    assert far.tolist() == pytest.approx([0.4, 0.7, 0.0])


@given(st.lists(fractions, max_size=30), st.integers(1, 40))
def test_the_best_are_the_greatest_above_zero(scores: list[float], count: int) -> None:
    found = best(np.array(scores, np.float32), count)
    positive = sorted((score for score in np.array(scores, np.float32).tolist() if score > 0), reverse=True)
    assert sorted((scores[place] for place in found), reverse=True) == pytest.approx(positive[:count])
