"""How opening, recall, remember and signals slow down as a dataset grows, with as many opinions, on both kinds of
store. PostgreSQL searches the largest datasets itself, by an index of half vectors."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import opening
from bench.measure import Bar, Report, Timing, number, say, timed, timing
from bench.reads import WARM, Recalled, recalling
from bench.scale_stores import given
from bench.store import opened, write
from bench.vectors import NOTHING, Served, Vectors
from heedful.model import Signal
from heedful.providers.embedding import Embedder
from heedful.search.database_index import build_due
from heedful.storage import open_store

OPINIONS = 1000
"""Signals in one call, while a store is filled."""

SAMPLE = 10_000
"""Facts that get opinions while a store is measured."""

SETTLED = 5
"""Seconds for what a store does in the background."""

SUBLINEAR = 0.5
"""The greatest power of the number of facts that a time may grow with: its square root."""

OPENING = 300
"""Milliseconds to open a store on PostgreSQL, whatever its size."""


@dataclass(frozen=True, slots=True)
class Grown:
    """A store with so many facts."""

    store: str
    facts: int
    opened: float
    """Milliseconds to open the store and recall for the first time, in a process that has loaded modules and model."""
    bare: float
    """Milliseconds of a bare SELECT that reads the saved index; 0 if there is none to read."""
    opinions: int
    opinions_a_second: float
    recall: Timing
    remember: Timing
    signal: Timing
    filled_a_second: float
    built: float
    """Seconds that building the indexes inside the database took."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A store that was filled: facts and opinions a second, and the ids of some facts."""

    filled_a_second: float
    opinions_a_second: float
    ids: list[str]
    built: float = 0.0
    """Seconds that building the indexes inside the database took."""


def fill(
    name: str, where: str | Path, texts: Sequence[str], vectors: Vectors, model: Embedder, queries: Sequence[str]
) -> Filled:
    """Fills a new store with facts and as many opinions."""
    say(f"filling {name} with {len(texts):,} facts")
    served = Served(model, texts, vectors)
    start = time.perf_counter()
    ids = write(where, served, texts, vectors)
    filled = len(texts) / (time.perf_counter() - start)
    signals = _signals(ids, queries)
    with opened(where, served) as store:
        say(f"giving {name} {len(texts):,} opinions")
        start = time.perf_counter()
        for _ in range(0, len(texts), OPINIONS):
            store.signal(list(itertools.islice(signals, OPINIONS)))
        given_a_second = len(texts) / (time.perf_counter() - start)
    return Filled(filled, given_a_second, ids[:: max(1, len(ids) // SAMPLE)])


def build(where: str | Path) -> float:
    """Builds the indexes inside the database that are missing; returns the seconds that took, 0 if none is."""
    start = time.perf_counter()
    database = open_store(where)
    worked = build_due(database, say)
    database.close()
    return time.perf_counter() - start if worked else 0.0


def measure(name: str, where: str | Path, facts: int, filled: Filled, model: Embedder, queries: Sequence[str]) -> Grown:
    """Opens a store that was filled, and recalls, remembers and signals."""
    served = Served(model)
    with opened(where, served) as store:
        # What is kept for the next process is there after a recall, and the vectors of queries soon after it.
        store.recall(queries[0])
        time.sleep(SETTLED)
    fresh = opening.measure(where, queries[0])
    kept, remembered, signalled = Recalled(), [], []
    signals = _signals(filled.ids, queries)
    run = time.time_ns()
    with opened(where, served) as store:
        task = recalling(store, served, queries, kept, "hybrid")
        for place in range(WARM):
            store.recall(f"{queries[place]} {place}")
        for place in range(len(queries)):
            task(place)
        for place, query in enumerate(queries):
            served.spent = NOTHING
            new = f"{query} {run + place}"
            spent, _ = timed(lambda new=new, query=query: store.remember(new, source=query))  # type: ignore[misc]
            remembered.append(spent.less(served.spent))
        for _ in range(len(queries)):
            one = list(itertools.islice(signals, 1))
            signalled.append(timed(lambda one=one: store.signal(one))[0])  # type: ignore[misc]
    times = timing(kept.after), timing(remembered), timing(signalled)
    given_a_second = filled.opinions_a_second
    found = Grown(
        name, facts, 1000 * fresh.ready, 1000 * fresh.bare, facts, given_a_second, *times,
        filled.filled_a_second, filled.built,
    )  # fmt: skip
    say(
        f"opened in {found.opened:.0f} ms (a bare SELECT takes {found.bare:.0f} ms), "
        f"recall {found.recall.p50:.1f} ms, remember {found.remember.p50:.1f} ms, "
        f"signal {found.signal.p50:.1f} ms; indexes built in {found.built:.0f} s"
    )
    return found


def _signals(ids: Sequence[str], queries: Sequence[str]) -> Iterator[Signal]:
    return given(ids, [f"{query} again" for query in queries[:50]])


def tell(report: Report, found: Sequence[Grown]) -> None:
    """Adds what was measured to the report."""
    section = report.section(
        "Growth (ms)",
        "", "facts and opinions", "opened", "bare SELECT", "ratio", "recall p50", "p95", "remember p50", "p95",
        "signal p50", "p95", "facts in a second", "opinions in a second", "index built in s",
    )  # fmt: skip
    for each in found:
        calls = [each.recall, each.remember, each.signal]
        times = [
            each.opened,
            each.bare,
            each.opened / each.bare if each.bare else 0.0,
            *(time for call in calls for time in (call.p50, call.p95)),
            each.filled_a_second,
            each.opinions_a_second,
            each.built,
        ]
        section.rows.append([each.store, f"{each.facts:,}", *map(number, times)])
        if each.store == "postgresql":
            what = f"opening {each.facts:,} facts on PostgreSQL"
            report.bars.append(Bar(what, each.opened, OPENING, "at most", "ms"))
    for name in dict.fromkeys(each.store for each in found):
        sizes = [each for each in found if each.store == name]
        if len(sizes) == 1:
            continue
        for what in ("recall", "remember", "signal"):
            power = exponent(sizes, what)
            report.bars.append(Bar(f"{what} on {name} grows with facts to the power of", power, SUBLINEAR, "at most"))


def exponent(sizes: Sequence[Grown], what: str) -> float:
    """The power of the number of facts by which a time grows, from the smallest store to the greatest."""
    small, great = min(sizes, key=lambda each: each.facts), max(sizes, key=lambda each: each.facts)
    grown: Mapping[str, Timing] = {"small": getattr(small, what), "great": getattr(great, what)}
    return math.log(grown["great"].p50 / grown["small"].p50) / math.log(great.facts / small.facts)
