"""`min_usefulness`: the same facts as by looking at each, without looking at each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some
from sqlalchemy import Engine, update
from sqlalchemy.event import listen, remove

from heedful import Heedful
from heedful.model import SIGNAL_TYPES, SignalType
from heedful.storage.schema import scores
from heedful.testing import ManualClock

QUERIES = ["who leads sales", "Who leads sales?", "pizza toppings"]
Step = tuple[int, SignalType, float, str, int]
steps = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(SIGNAL_TYPES),
        st.sampled_from([0.25, 1.0]),
        st.sampled_from(QUERIES),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=15,
)


@some(1 / 5)
@given(
    steps=steps, taken_back=st.lists(st.integers(0, 24), max_size=6), limits=st.lists(st.floats(0.01, 1), max_size=4)
)
@pytest.mark.slow
def test_the_same_facts_pass_as_by_the_score_of_each(
    steps: list[Step], taken_back: list[int], limits: list[float], new_store: Callable[..., Heedful]
) -> None:
    clock = ManualClock()
    with new_store(clock) as store:
        ids = store.remember([f"{name} leads sales" for name in ("Ada", "Bo", "Cy", "Di", "Ed", "Flo")]).fact_ids
        clock.advance(days=30)
        events: list[str] = []
        for fact, kind, confidence, query, day in steps:
            about = {"fact_id": ids[fact], "signal_type": kind, "confidence": confidence, "query": query}
            events += store.signal([{**about, "at": clock() - timedelta(days=day)}]).event_ids
            if len(events) % 5 == 0:
                _agree(store, [0.5, 0.6])
        for place in taken_back:
            store.retract(events[place % len(events)])
        clock.advance(days=9)
        _agree(store, [*limits, 0.5, 0.45, 0.55, 1.0])


def _agree(store: Heedful, limits: list[float]) -> None:
    for query in ("who leads sales", "leads sales"):
        every = store.recall(query, boost_by_usefulness=True, mode="lexical", top_k=50)
        exactly = {hit.usefulness for hit in every}
        for least in [*limits, *{value for value in exactly if value > 0}]:
            result = store.recall(query, boost_by_usefulness=True, min_usefulness=least, mode="lexical", top_k=50)
            expected = {hit.fact_id for hit in every if hit.usefulness >= least - 1e-9}
            assert {hit.fact_id for hit in result} == expected


@pytest.mark.slow
def test_not_every_judged_fact_is_read(store: Heedful) -> None:
    ids = store.remember([f"fact number {place}" for place in range(1500)]).fact_ids
    store.signal(
        [{"fact_id": fact, "signal_type": "used", "query": f"number {place}"} for place, fact in enumerate(ids)]
    )
    most: list[int] = []

    def note(_connection: object, _cursor: object, _statement: str, parameters: Any, *_: object) -> None:
        most.append(len(parameters))

    store.recall("another thing", boost_by_usefulness=True, min_usefulness=0.6)
    listen(Engine, "before_cursor_execute", note)
    try:
        result = store.recall("another thing", boost_by_usefulness=True, min_usefulness=0.6)
    finally:
        remove(Engine, "before_cursor_execute", note)
    assert len(result.hits) == 10
    assert max(most) < 500


def test_scores_that_were_repaired_count_at_once(store: Heedful) -> None:
    (fact,) = store.remember("Ada leads sales").fact_ids
    store.signal([{"fact_id": fact, "signal_type": "used", "query": "pizza"}])

    def found() -> int:
        return len(store.recall("who leads sales", boost_by_usefulness=True, min_usefulness=0.6).hits)

    with store._workspace.write() as connection:
        connection.execute(update(scores).values(score=0.1))
    assert found() == 0
    assert any(check.repaired for check in store.doctor())
    assert found() == 1
