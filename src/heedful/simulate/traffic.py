"""Two weeks of a web shop's help desk in a store, so that there is something to look at."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from heedful import settings
from heedful.bootstrap import open as open_store
from heedful.bootstrap import store_file
from heedful.clock import from_stored, system_clock, to_stored
from heedful.engine import Heedful
from heedful.errors import Conflict, Invalid
from heedful.model import Metadata
from heedful.providers.configured import configured_embedder
from heedful.providers.embedding import Embedder, Vectors
from heedful.simulate import people, shop
from heedful.simulate.people import Clerk
from heedful.simulate.shop import CORRECTION, FACTS, HELP, STAFF_WANTS, WANTS
from heedful.simulate.visits import CONNECTOR, Analysts, HelpDesk, Reviewer, Timeline, Truth, arrivals
from heedful.text.same_question import Calibration

__all__ = ["Embedding", "Filled", "Progress", "fill", "is_filled"]

Embedding = str | Embedder | None
Progress = Callable[[int, int], None]

FINISHED: Metadata = {"filled_by": "heedful demo"}
"""The metadata of a dataset after all the rest is done."""

DAYS = 14
SESSIONS = 280
EXECUTIONS = 40

PRICE_CHANGES = 2.0
"""The day on which a price changes, from the start; nobody tells the help desk."""
REVIEW = 7 + 8.5 / 24
"""The day on which somebody opens the review queue: early in the second week."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The content that was put into a store."""

    project: str
    since: datetime
    until: datetime
    counts: dict[str, int]
    """The counts of facts, sessions, entries, ratings, comments, signals, executions and so on."""


class CachingEmbedder:
    """An embedder that does what it will be asked all at once, and nothing twice."""

    def __init__(self, inner: Embedder, texts: Sequence[str]) -> None:
        self._inner = inner
        self.name: str = inner.name
        self.dimensions: int = inner.dimensions
        self.calibration: Calibration = inner.calibration
        self._known: dict[str, Vectors] = {}
        self.embed(texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._known |= zip(new, self._inner.embed(new), strict=True)
        return np.stack([self._known[text] for text in texts]) if texts else self._inner.embed(texts)


def fill(
    path_or_url: str | Path,
    *,
    project: str = "demo",
    days: float = DAYS,
    seed: int = 1,
    sessions: int = SESSIONS,
    until: datetime | None = None,
    embedding: Embedding = None,
    progress: Progress | None = None,
) -> Filled:
    """Fills a project with the traffic of simulated users in the `days` before `until`, which is now if left out.

    The same seed and `until` give the same traffic. The project must be new. The shop's database, shop.sqlite, is put
    beside a store that is a file, else into a temporary folder. `progress` gets how much is done, of how much.
    """
    if days <= 0 or sessions < 0:
        message, remedy = f"days is {days} and sessions is {sessions}", "Fill at least a part of a day"
        raise Invalid(message, field="days", remedy=remedy)
    end = from_stored(to_stored(until or system_clock()))
    start = end - timedelta(days=days)
    timeline = Timeline(start, end)
    clerk = Clerk({question: report.sql for report in shop.REPORTS for question in report.questions})
    embedder = CachingEmbedder(configured_embedder(settings.load(), embedding), _texts())
    with open_store(
        path_or_url, project=project, clock=timeline, embedding=embedder, language_model=clerk, worker=False
    ) as memory:
        if memory.datasets():
            message, remedy = f"project {project!r} has facts already", "Name a project that is new, or another store"
            raise Conflict(message, field="project", value=project, remedy=remedy)
        traffic = _Traffic(memory, timeline, clerk, seed, progress or (lambda done, total: None))
        traffic.stock(warehouse_file(path_or_url))
        traffic.plan(start, end, sessions)
        timeline.run()
        memory.create_dataset(HELP, metadata=FINISHED)
        return Filled(project, start, end, dict(traffic.counts))


def is_filled(memory: Heedful) -> bool:
    """Whether a project was filled to the end."""
    return HELP in memory.datasets() and memory.get_dataset(HELP).metadata.items() >= FINISHED.items()


def warehouse_file(path_or_url: str | Path) -> Path:
    """The file of the shop's database: beside the store, if that is a file."""
    file = store_file(path_or_url)
    if file is None:
        return Path(tempfile.mkdtemp(prefix="heedful-shop-")) / shop.FILE
    return file.expanduser().absolute().parent / shop.FILE


def _texts() -> list[str]:
    """All that is known beforehand to be embedded."""
    facts = [text for texts in FACTS.values() for text in texts.values()]
    questions = [query for want in (*WANTS, *STAFF_WANTS) for query in want.queries]
    reports = [question for report in shop.REPORTS for question in report.questions]
    return list(dict.fromkeys([*facts, CORRECTION, *questions, *reports]))


@dataclass(slots=True)
class _Traffic:
    """The plan of what happens when."""

    memory: Heedful
    timeline: Timeline
    clerk: Clerk
    seed: int
    progress: Progress
    facts: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def stock(self, file: Path) -> None:
        """Puts in what is there before anybody comes: facts, and the shop's database."""
        for dataset, facts in FACTS.items():
            stored = self.memory.remember(
                list(facts.values()),
                dataset=dataset,
                metadata=[{"topic": key.partition("-")[0]} for key in facts],
                source="handbook.md" if dataset != HELP else "help-pages",
            )
            self.facts |= zip(facts, stored.fact_ids, strict=True)
            self.counts["facts"] += stored.added
        file.unlink(missing_ok=True)
        shop.build(file, self.timeline.until, self._random("warehouse"))
        self.memory.connectors.create(CONNECTOR, f"sqlite:///{file}")

    def plan(self, start: datetime, end: datetime, sessions: int) -> None:
        """Puts all that happens on the timeline."""
        at, length = self.timeline.at, end - start
        truth = Truth(self.facts, self.timeline, start + timedelta(days=PRICE_CHANGES))
        customers = people.customers(self._random("people"))
        desk = HelpDesk(self.memory, self.timeline, self.clerk, truth, customers, self.counts)
        for number, moment in enumerate(arrivals(start, end, sessions, self._random("arrivals"))):
            at(moment, partial(self._visit, desk, number, sessions))
        counters = Analysts(self.memory, self.clerk, self.counts)
        at(start + length / DAYS, counters.give_examples)
        at(start + length / 2, counters.promote)
        executions = round(EXECUTIONS * min(1, sessions / SESSIONS))
        for number, moment in enumerate(arrivals(start, end, executions, self._random("figures"))):
            at(moment, partial(counters.ask, self._random(f"figures/{number}")))
        reviewer = Reviewer(self.memory, truth, self.counts)
        at(start + timedelta(days=REVIEW), reviewer.work)
        at(end, reviewer.ask_again)
        night = start.replace(hour=3, minute=0, second=0, microsecond=0)
        while (night := night + timedelta(days=1)) < end:
            at(night, self._improve)

    def _visit(self, desk: HelpDesk, number: int, sessions: int) -> None:
        self.progress(number, sessions)
        # One of each variant wants the same, so that no variant has the easier questions.
        desk.visit(number, self._random(f"visit/{number}"), self._random(f"wishes/{number // 2}"))

    def _improve(self) -> None:
        for dataset in FACTS:
            done = self.memory.improve(dataset)
            self.counts["learnt facts"] += len(done.learnt) - len(done.forgotten)
        self.counts["improvements"] += 1

    def _random(self, purpose: str) -> Random:
        return Random(f"{self.seed}/{purpose}")
