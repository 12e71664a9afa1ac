from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.relevance import NO_ROW, STEPS, Neighbours, source_position

spots = st.lists(
    st.tuples(st.sampled_from(["a.txt", "b.txt", None]), st.integers(0, 8)),
    max_size=20,
    unique_by=lambda spot: spot if spot[0] else object(),
)


def places(given_spots: list[tuple[str | None, int]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([source_position(source, ordinal) for source, ordinal in given_spots], np.uint64)


@given(spots, st.integers(0, 20))
def test_the_rows_beside_a_row_are_those_at_the_next_places_of_its_source(
    given_spots: list[tuple[str | None, int]], cut: int
) -> None:
    found = Neighbours(places(given_spots[:cut]))
    found.append(places(given_spots[cut:]))
    rows = {spot: row for row, spot in enumerate(given_spots) if spot[0] is not None}
    for row, (source, ordinal) in enumerate(given_spots):
        expected = [NO_ROW if source is None else rows.get((source, ordinal + step), NO_ROW) for step in STEPS]
        assert found.table[row].tolist() == expected


@given(spots)
def test_a_saved_table_grows_like_the_one_that_was_saved(given_spots: list[tuple[str | None, int]]) -> None:
    half = len(given_spots) // 2
    first = Neighbours(places(given_spots[:half]))
    loaded = Neighbours(first.places, first.table)
    loaded.append(places(given_spots[half:]))
    assert loaded.table.tolist() == Neighbours(places(given_spots)).table.tolist()


def test_a_fact_without_a_source_has_no_place() -> None:
    assert source_position(None, 3) == 0
    assert source_position("a", 0) != 0
