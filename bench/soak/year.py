"""The simulated year itself: day after day of traffic, a worker that keeps the store in order, and what is measured."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.soak.fleet import Fleet, running
from bench.soak.judge import Sizes, sizes, wrongs
from bench.soak.traffic import Tally, Traffic

DAYS = 365
WARM_UP = 0.1
"""Of a year, before it begins: what is active, and what is retained for a while, reach their level."""
HISTORY = 40
"""Opinions in the ledger before it begins, for each second that it takes: a first day on which all caches are cold and
small would show how they fill, and not how they grow."""
STEPS = (30, 360)
"""In how many steps the clock goes through the year, at least and at most; between, each takes `LONG` seconds."""
LONG = 3.0
CALLERS = 3

MOST_MEMORY = 1.05
"""What a server may have in the last tenth, as a multiple of what it had when the first was over."""
SLOWER = 1.3
"""What the 95th percentile of a call may be in the last tenth, as a multiple of that in the first."""
MOST_BYTES = 4_000
"""What one more opinion may take in the store, all that was kept of the calls around it included."""

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Step:
    """A day, or some days at once."""

    megabytes: dict[str, float]
    milliseconds: dict[str, list[float]]
    calls: int


@dataclass(slots=True)
class Year:
    """What a year left."""

    steps: list[Step] = field(default_factory=list)
    sizes: list[Sizes] = field(default_factory=list)
    """At the end of each tenth."""
    calls: Counter[str] = field(default_factory=Counter)
    gone: int = 0
    wrongs: list[str] = field(default_factory=list)
    """What is not as it should be at the end, in words."""

    def p95(self, name: str, tenth: int) -> float:
        """Milliseconds of a call in one tenth: the median over slices of it, so that a moment in which the machine was
        busy does not decide."""
        slices = [some for some in _parts([step.milliseconds.get(name, []) for step in self._tenth(tenth)], 6) if some]
        # A year that is over too soon may have none.
        return statistics.median(float(np.percentile(some, 95)) for some in slices) if slices else math.nan

    def megabytes(self, process: str, tenth: int) -> float:
        """The median of a process in one tenth."""
        return statistics.median(step.megabytes[process] for step in self._tenth(tenth))

    @property
    def processes(self) -> list[str]:
        return list(self.steps[-1].megabytes)

    @property
    def bytes_per_new_opinion(self) -> float:
        """What each opinion after the first tenth took."""
        first, last = self.sizes[0], self.sizes[-1]
        return (last.bytes - first.bytes) / max(1, last.opinions - first.opinions)

    def _tenth(self, number: int) -> list[Step]:
        size = len(self.steps) / 10
        return self.steps[round(number * size) : round((number + 1) * size)]


def live(
    store: str, folder: Path, servers: int, seconds: float, say: Callable[[str], object] = lambda text: None
) -> Year:
    """Has a store live through a year in so many seconds, and looks at what is left."""
    count = min(STEPS[1], max(STEPS[0], int(seconds / LONG / 10) * 10))
    warm = int(count * WARM_UP)
    pause = seconds / (count + warm)
    year = Year()
    with ExitStack() as stack:
        fleet = stack.enter_context(running(store, folder, servers))
        clients = [stack.enter_context(closing(each)) for each in fleet.clients()]
        traffic = Traffic(clients, folder)
        traffic.begin(int(HISTORY * seconds))
        begun = time.monotonic()
        for number in range(-warm, count):
            due = begun + (number + warm + 1) * pause
            done = _step(fleet, traffic, DAYS / count, due, pause / 2, number)
            year.calls += done.calls
            year.gone += done.gone
            if done.failures:
                year.wrongs = [*done.failures, fleet.log()]
                return year
            if number >= 0:
                year.steps.append(Step(fleet.megabytes(), done.milliseconds, done.calls.total()))
            if number >= 0 and (number + 1) % (count // 10) == 0:
                year.sizes.append(sizes(store))
                say(f"tenth {len(year.sizes)}: {year.sizes[-1].opinions:,} opinions, {_told(year.steps[-1])}")
        _maintain(fleet)
        year.wrongs = wrongs(store, fleet, clients)
    return year


def _step(fleet: Fleet, traffic: Traffic, days: float, due: float, least: float, number: int) -> Tally:
    """Some days: the clock jumps, and then people call until the step is `due`, or for as long as they should at least.
    Nobody calls while the clock jumps, so that no call takes a day."""
    fleet.clock.jump(days=days)
    with closing(fleet.dashboard()) as page, ThreadPoolExecutor(CALLERS) as callers:
        traffic.page = page
        fleet.ask_worker()
        until = max(due, time.monotonic() + least)
        for caller in range(CALLERS):
            callers.submit(traffic.work, until, f"step {number} of {caller}")
    fleet.hear_worker()
    return traffic.taken()


def _maintain(fleet: Fleet) -> None:
    """Once more, an hour later, so that nothing is left to do."""
    fleet.clock.jump(hours=2)
    fleet.ask_worker()
    fleet.hear_worker()


def _told(step: Step) -> str:
    return ", ".join(f"{name} {megabytes:.0f} MB" for name, megabytes in step.megabytes.items())


def _parts(days: Sequence[list[float]], count: int) -> list[list[float]]:
    """The days in so many parts, one after the other."""
    bounds = [round(place * len(days) / count) for place in range(count + 1)]
    return [[each for day in days[low:high] for each in day] for low, high in pairwise(bounds)]
