"""Meaning: the nearest by sign bits against the nearest by exact cosines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful.search.vector_index import EXACT_BELOW, Growable, Scratch, VectorIndex, encode, nearest
from heedful.storage.vectors import pack, unpack

Vectors = NDArray[np.float32]
DIMENSIONS = 96
ROWS = 12_000


def unit(vectors: Vectors) -> Vectors:
    scaled: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


@pytest.fixture(scope="module")
def cloud() -> Vectors:
    """Vectors in clusters around a common direction, as sentence models give them."""
    random = np.random.default_rng(7)
    centres = random.standard_normal((60, DIMENSIONS), np.float32)
    shift = random.standard_normal(DIMENSIONS, np.float32)
    spread = random.standard_normal((ROWS, DIMENSIONS), np.float32)
    return unit(centres[random.integers(0, 60, ROWS)] + spread + shift)


def exact(vectors: Vectors, query: Vectors, count: int, allowed: NDArray[np.bool_]) -> set[int]:
    cosines = np.where(allowed, vectors @ query, -2)
    return {int(row) for row in np.argsort(-cosines)[:count] if allowed[row]}


def test_sign_bits_find_the_nearest(cloud: Vectors) -> None:
    index = VectorIndex(cloud)
    allowed = np.ones(ROWS, bool)
    found = 0
    for query in cloud[:50]:
        rows, _ = index.nearest(query, 10, allowed)
        found += len(exact(cloud, query, 10, allowed) & set(rows.tolist()))
    assert found / 500 >= 0.98


def test_only_allowed_rows_are_found(cloud: Vectors) -> None:
    index = VectorIndex(cloud)
    allowed = np.arange(ROWS) % 5 != 0
    assert np.count_nonzero(allowed) > EXACT_BELOW
    found = 0
    for query in cloud[:20]:
        rows, _ = index.nearest(query, 10, allowed)
        assert allowed[rows].all()
        found += len(exact(cloud, query, 10, allowed) & set(rows.tolist()))
    assert found / 200 >= 0.98


def test_few_allowed_rows_are_searched_exactly(cloud: Vectors) -> None:
    index = VectorIndex(cloud)
    allowed = np.zeros(ROWS, bool)
    allowed[[3, 500, 11_000]] = True
    rows, cosines = index.nearest(cloud[0], 10, allowed)
    assert set(rows.tolist()) == {3, 500, 11_000}
    assert list(cosines) == sorted(cosines, reverse=True)


@pytest.mark.parametrize("rows", [*range(1, 9), 500])
def test_a_cosine_depends_on_no_other_row_and_no_place(cloud: Vectors, rows: int) -> None:
    alone = [VectorIndex(row[None]).cosines(cloud[0], np.zeros(1, np.int64))[0] for row in cloud[:rows]]
    for saved in {0, 1, rows // 2, rows}:
        index = VectorIndex(cloud[:saved])
        index.append(cloud[saved:rows])
        backwards = np.arange(rows)[::-1]
        assert index.cosines(cloud[0], backwards).tolist() == alone[::-1]
        found, cosines = index.nearest(cloud[0], rows, np.ones(rows, bool))
        assert cosines.tolist() == [alone[row] for row in found]


def test_nothing_allowed_finds_nothing(cloud: Vectors) -> None:
    rows, cosines = VectorIndex(cloud).nearest(cloud[0], 10, np.zeros(ROWS, bool))
    assert len(rows) == len(cosines) == 0


def test_appended_rows_are_found_like_the_first_ones(cloud: Vectors) -> None:
    whole = VectorIndex(cloud)
    grown = VectorIndex(cloud[:9000])
    grown.coded()
    grown.append(cloud[9000:11_000])
    grown.append(cloud[11_000:])
    allowed = np.ones(ROWS, bool)
    np.testing.assert_array_equal(grown.all(), cloud)
    for query in (cloud[5], cloud[9500], cloud[11_900]):
        rows, cosines = grown.nearest(query, 10, allowed)
        assert rows[0] == whole.nearest(query, 10, allowed)[0][0]
        assert cosines[0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
def test_what_drifts_away_is_found_as_if_it_had_been_there_from_the_start() -> None:
    """Against a centre that stayed where the first rows were, a third less of the nearest are found."""
    random = np.random.default_rng(1)
    first, then = unit(random.standard_normal((2, DIMENSIONS), np.float32))

    def around(centre: Vectors, count: int) -> Vectors:
        return unit(centre + random.standard_normal((count, DIMENSIONS), np.float32) / np.sqrt(DIMENSIONS))

    index = VectorIndex(around(first, 2500))
    index.coded()
    for _ in range(12):
        index.append(around(then, 1500))
    every, allowed = index.all(), np.ones(len(index), bool)
    centre = every[:2500].mean(axis=0)
    fixed = VectorIndex(every, centre, encode(every, centre))
    result = {"fixed": 0, "moved": 0, "fresh": 0}
    for query in around(then, 40):
        nearest = exact(every, query, 100, allowed)
        for name, each in (("fixed", fixed), ("moved", index), ("fresh", VectorIndex(every))):
            result[name] += len(nearest & set(each.nearest(query, 100, allowed)[0].tolist()))
    assert result["moved"] >= 0.97 * result["fresh"]
    assert result["moved"] >= 1.2 * result["fixed"], result


def test_a_row_is_the_vector_that_was_put_there(cloud: Vectors) -> None:
    index = VectorIndex(cloud[:10])
    index.append(cloud[10:20])
    for place in (0, 9, 10, 19):
        np.testing.assert_array_equal(index.row(place), cloud[place])


def test_a_cosine_is_never_below_zero_or_above_one(cloud: Vectors) -> None:
    index = VectorIndex(cloud[:100])
    index.append(-cloud[:100])
    found = index.cosines(cloud[0], np.arange(200))
    assert found.min() >= 0
    assert found.max() <= 1


@given(st.integers(1, 200), st.integers(1, 130))
@example(rows=40_000, dimensions=100)
def test_bits_that_differ_are_counted_whatever_the_width(rows: int, dimensions: int) -> None:
    random = np.random.default_rng(rows * 1000 + dimensions)
    vectors = random.standard_normal((rows, dimensions), np.float32)
    query = random.standard_normal((1, dimensions), np.float32)
    mean = np.zeros(dimensions, np.float32)
    # So many are asked for that no row is left out after the first third of the bits.
    count = rows // 4 + 1
    distance = ((vectors > 0) != (query > 0)).sum(axis=1)
    limit = sorted(distance.tolist())[count - 1]
    found = nearest(encode(vectors, mean), encode(query, mean), None, count, Scratch())
    assert set(found.tolist()) == {row for row in range(rows) if distance[row] <= limit}


def test_stored_vectors_come_back_to_half_precision(cloud: Vectors) -> None:
    back = unpack([pack(vector) for vector in cloud[:5]], DIMENSIONS)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, cloud[:5], atol=1e-3)


@given(st.lists(st.integers(0, 40), max_size=8))
def test_a_growable_array_holds_what_was_appended(sizes: list[int]) -> None:
    grown: Growable[np.int64] = Growable(np.arange(3, dtype=np.int64))
    expected = [0, 1, 2]
    for size in sizes:
        more = np.arange(size, dtype=np.int64) + len(expected)
        grown.append(more)
        expected += more.tolist()
    assert grown.rows.tolist() == expected
