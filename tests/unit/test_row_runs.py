"""Runs of rows that one transaction writes."""

from __future__ import annotations

import pytest

from heedful.storage.rows import weighed


@pytest.mark.parametrize(
    ("rows", "runs"),
    [([3, 2], [[3, 2]]), ([3, 2, 1], [[3, 2], [1]]), ([6], [[6]]), ([6, 5], [[6], [5]]), ([1, 6, 1], [[1], [6], [1]])],
)
def test_a_run_has_five_rows_at_most_or_one_item(rows: list[int], runs: list[list[int]]) -> None:
    assert list(weighed(zip(rows, rows, strict=True), 5)) == runs
