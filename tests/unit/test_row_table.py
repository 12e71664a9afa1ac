"""Rows of facts by number, whether facts have changed since or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.dataset import RowTable
from heedful.storage.vectors import pack

DIMENSIONS = 8
VECTOR = pack(np.ones(DIMENSIONS, np.float32))


def rows(*seqs: int) -> list[Any]:
    return [SimpleNamespace(seq=seq, text=f"fact {seq}", vector=VECTOR, source=None, ordinal=0) for seq in seqs]


@given(
    st.lists(st.integers(2, 60), max_size=5, unique=True),
    st.lists(st.integers(2, 60), max_size=5, unique=True),
    st.lists(st.integers(0, 70), max_size=8),
)
def test_the_living_rows_of_a_few_facts(removed: list[int], changed: list[int], asked: list[int]) -> None:
    table = RowTable.empty(DIMENSIONS)
    table.append(rows(*range(2, 32)), DIMENSIONS)
    table.append(rows(*range(32, 61)), DIMENSIONS)
    table.tombstone([*removed, *changed])
    if changed:
        table.append(rows(*changed), DIMENSIONS)
    living = {seq for seq in range(2, 61) if seq not in removed or seq in changed}
    found = table.rows_of(asked)
    assert sorted(table.seqs[found].tolist()) == sorted(living & set(asked))
    assert table.live[found].all()
