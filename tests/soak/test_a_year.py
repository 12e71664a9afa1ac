"""A simulated year on real servers: what is left is as right as on the first day, and no larger than it has to be.

With HEEDFUL_SOAK_MINUTES in the environment (`make test-soak`), the year takes that long, half of it on each kind of
store, and how quick the servers are is compared, too.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import heedful
from bench.soak.traffic import MEASURED
from bench.soak.year import MOST_BYTES, MOST_MEMORY, SLOWER, Year, live
from heedful.clock import from_stored
from heedful.ledger.usefulness import Opinion
from heedful.ledger.votes import counted_votes
from heedful.model import SignalType
from heedful.storage.opening import open_store
from heedful.storage.schema import events, facts
from heedful.testing import ManualClock, WordEmbedder

MINUTES = os.environ.get("HEEDFUL_SOAK_MINUTES")
SHORT = 30.0
"""Seconds of traffic on each store when nobody says how long."""
WARMING = 1.25
"""How much a process may grow that has not run all of its code yet, or does so seldom."""

Event = tuple[SignalType, float, datetime]
Score = Callable[[Iterable[Event], datetime], float]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that is made by whoever opens it first, or of a new database."""
    if request.param == "sqlite":
        return str(tmp_path / "year.db")
    url: str = request.getfixturevalue("bare_database")
    return url


def test_a_year_of_traffic_leaves_a_store_right_small_and_quick(
    new_store: str, tmp_path: Path, documented_score: Score
) -> None:
    seconds = SHORT if MINUTES is None else 30 * float(MINUTES)
    servers = 2 if new_store.startswith("postgresql") else 1
    year = live(new_store, tmp_path, servers, seconds, print)
    assert year.wrongs == []
    assert wrong_scores(new_store, documented_score) == {}
    assert grown(year, year.processes, WARMING) == {}
    if MINUTES is not None:
        assert grown(year, [name for name in year.processes if name.startswith("server")], MOST_MEMORY) == {}
    assert year.bytes_per_new_opinion <= MOST_BYTES
    if MINUTES is not None:
        slower = {name: year.p95(name, 9) / year.p95(name, 0) for name in MEASURED}
        assert {name: ratio for name, ratio in slower.items() if not ratio <= SLOWER} == {}


def grown(year: Year, processes: Sequence[str], most: float) -> dict[str, float]:
    """Those of the processes whose memory in the last tenth is more than this many times that after the first."""
    result = {name: year.megabytes(name, 9) / year.megabytes(name, 1) for name in processes}
    return {name: ratio for name, ratio in result.items() if ratio > most}


def wrong_scores(store: str, score: Score) -> dict[str, tuple[float, float]]:
    """The facts whose score is not what the document's rule, written a second time, makes of the ledger."""
    database = open_store(store, create=False)
    with database.read() as connection:
        active = set(connection.execute(select(facts.c.id)).scalars())
        ledger = connection.execute(select(events).order_by(events.c.at, events.c.seq)).all()
    database.close()
    retracted = {row.target_id for row in ledger if row.kind == "retraction"}
    about: dict[str, list[Any]] = defaultdict(list)
    for row in ledger:
        if row.kind == "signal" and row.target_id in active and row.id not in retracted:
            about[row.target_id].append(row)
    clock = ManualClock(from_stored(ledger[-1].at))
    assert about
    wrong = {}
    with heedful.open(store, clock=clock, embedding=WordEmbedder(), worker=False) as opened:
        for fact, given in about.items():
            opinions = [Opinion(0, row.query_id, row.value, row.confidence, row.at, author=row.author) for row in given]
            votes = counted_votes(opinions)
            folded = score([(vote.signal_type, vote.confidence, from_stored(vote.at)) for vote in votes], clock.now)
            kept = opened.fact_stats(fact).overall_usefulness
            if kept != pytest.approx(folded, abs=1e-9):
                wrong[fact] = (kept, folded)
    return wrong
