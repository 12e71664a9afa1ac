"""The same work on SQLite and on PostgreSQL, in turns: recall, remember, signals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from bench.measure import Report, Spent, Timing, in_turns, number, say, timed, timing
from bench.reads import WARM, Recalled, recalling
from bench.store import fill
from bench.vectors import Served
from heedful.engine import Heedful
from heedful.model import SIGNAL_TYPES, Signal

BATCH = 100
WORDS = {
    "recall": "hybrid recall after embedding",
    "boosted": "the same, boosted, with signals in the store",
    "remember": "remember one fact, vector given",
    "signal": "one signal",
    "signals": f"{BATCH} signals in one call",
}


def measure(
    stores: Mapping[str, Heedful], served: Served, facts: Sequence[str], queries: Sequence[str], calls: int
) -> tuple[dict[str, float], dict[str, dict[str, Timing]], dict[str, list[str]]]:
    """Facts a second when filling, the times of each kind of call, and the ids of the facts, by store."""
    filled: dict[str, float] = {}
    ids: dict[str, list[str]] = {}
    for name, store in stores.items():
        say(f"filling {name} with {len(facts):,} facts")
        start = time.perf_counter()
        ids[name] = fill(store, facts)
        filled[name] = len(facts) / (time.perf_counter() - start)
        for place in range(WARM):
            store.recall(f"{queries[place]} {place}")
    say("calling both in turns")
    times: dict[str, dict[str, Timing]] = {name: {} for name in stores}
    asked = queries[:calls]
    for kind in ("recall", "remember", "signal", "signals", "boosted"):
        recalled = {name: Recalled() for name in stores}
        tasks = {name: _task(kind, store, served, asked, ids[name], recalled[name]) for name, store in stores.items()}
        for name, spent in in_turns(tasks, range(calls)).items():
            times[name][kind] = timing(recalled[name].after or spent)
    return filled, times, ids


def _task(
    kind: str, store: Heedful, served: Served, asked: Sequence[str], ids: Sequence[str], kept: Recalled
) -> Callable[[int], Spent]:
    if kind in ("recall", "boosted"):
        return recalling(store, served, asked, kept, "hybrid", boost=kind == "boosted")
    if kind == "remember":
        return lambda place: timed(lambda: store.remember(asked[place], source=f"asked {place}"))[0]
    size = 1 if kind == "signal" else BATCH
    signals = given(ids, asked)
    return lambda place: timed(lambda: store.signal([next(signals) for _ in range(size)]))[0]


def given(ids: Sequence[str], asked: Sequence[str]) -> Iterator[Signal]:
    """Signals without end, over all facts and queries in turn."""
    place = 0
    while True:
        yield Signal(
            fact_id=ids[place * 7919 % len(ids)],
            signal_type=SIGNAL_TYPES[place % len(SIGNAL_TYPES)],
            query=asked[place % len(asked)],
        )
        place += 1


def tell(report: Report, filled: Mapping[str, float], times: Mapping[str, Mapping[str, Timing]]) -> None:
    """Adds what was measured to the report."""
    section = report.section(
        "SQLite and PostgreSQL, one process (ms)", "", "SQLite p50", "p95", "PostgreSQL p50", "p95", "ratio"
    )
    lite, server = times["sqlite"], times["postgresql"]
    for kind, words in WORDS.items():
        one, other = lite[kind], server[kind]
        cells = [number(value) for value in (one.p50, one.p95, other.p50, other.p95)]
        section.rows.append([words, *cells, f"{other.p50 / one.p50:.2f}"])
    section.notes.append(
        f"Filling, a source of 1,000 facts at a time: {filled['sqlite']:,.0f} facts a second on SQLite, "
        f"{filled['postgresql']:,.0f} on PostgreSQL."
    )
    report.figures["stores"] = {
        name: {"filled_a_second": filled[name], **{kind: asdict(each) for kind, each in kinds.items()}}
        for name, kinds in times.items()
    }
