"""A store in which all has happened that can happen: for tests that move or maintain it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import queues
import scenario
from postgresql import Stores, copied, create, make_template
from sharing import make_once

import heedful
from heedful import Heedful, Signal
from heedful.model.base import SIGNAL_TYPES
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import copy

TEXTS = [
    "Ada Lovelace worked with Charles Babbage.",
    "Charles Babbage designed the Analytical Engine.",
    "The Analytical Engine was never built in London.",
    "Ada Lovelace wrote notes about the Analytical Engine.",
]
QUESTION = "Who worked with Charles Babbage?"
MOVED = "Where is the Analytical Engine?"


@pytest.fixture(scope="session")
def lived_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store, and the databases that its connectors name."""
    return make_once(tmp_path_factory, "lived", _fill)


def _fill(folder: Path) -> None:
    world = scenario.make_world(folder)
    clock = ManualClock()
    with heedful.open(
        folder / "lived.db",
        clock=clock,
        embedding=WordEmbedder(),
        language_model=scenario.model(),
        feedback_hook=scenario.hook(),
    ) as store:
        life = scenario.Life(store, clock, world)
        for part in (
            *(scenario.memory, scenario.opinions, scenario.sessions, scenario.answers, scenario.ratings),
            *(scenario.connectors, scenario.executions, scenario.execution_feedback, scenario.examples),
            *(scenario.chat, scenario.keys),
        ):
            part(life)
    with heedful.open(folder / "lived.db", project="other", clock=clock, embedding=WordEmbedder()) as store:
        _live(store)


def _live(store: Heedful) -> None:
    """What the scenario leaves out: answers that were found by links, and things that are gone."""
    store.set_policy("adaptive")
    ids = store.remember(TEXTS, source="history", metadata={"century": 19}).fact_ids
    removed = store.remember(["Paris is a city.", "Rome is a city."], dataset="geography").fact_ids
    store.signal([Signal(fact_id=removed[0], signal_type="helpful", query="city", context="Paris it was")])
    store.forget(dataset="geography")
    store.sessions.create("tour", metadata={"variant": "B", "tags": ["x", "y"]})
    for question in (QUESTION, MOVED):
        result = store.recall(question, mode="graph", answer=True, session_id="tour")
        assert result.qa_id is not None
        store.sessions.add_feedback("tour", result.qa_id, "Thanks", 5, author="Ida")
    store.improve()
    for fact, kind in zip(ids, SIGNAL_TYPES, strict=True):
        store.signal([Signal(fact_id=fact, signal_type=kind, query=QUESTION, author="Bo")])
    wrong = store.signal([Signal(fact_id=ids[1], signal_type="not_helpful", query=MOVED, context="no")]).event_ids[0]
    store.retract(wrong)
    store.supersede(ids[2], "The Analytical Engine was never built.")
    store.signal([Signal(fact_id=ids[0], signal_type="helpful", query=MOVED, context="It says who.")])
    (last,) = store.remember("This line goes.").fact_ids
    store.forget(last)
    store.sessions.add_entry("tour", "When?", "In 1843.", external_id="run-1")
    store.sessions.rate("run-1", "POSITIVE", author="Ida")
    store.sessions.rate("run-2", 2, comment="Too early.", author="Ida")
    queues.fill(store)
    store.improve()


@pytest.fixture
def lived(lived_folder: Path, tmp_path: Path) -> Path:
    """A file of one's own with all that in it."""
    return Path(shutil.copy(lived_folder / "lived.db", tmp_path / "lived.db"))


@pytest.fixture(scope="session")
def lived_template(
    stores: Stores, postgresql_template: str, lived_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A database on a server with all that in it, to be copied."""

    def make(name: str) -> None:
        copy(lived_folder / "lived.db", create(stores, name, postgresql_template))

    return make_template(tmp_path_factory, stores, "lived", make)


@pytest.fixture
def lived_database(stores: Stores, lived_template: str) -> Iterator[str]:
    """A database of one's own with all that in it."""
    with copied(stores, lived_template) as url:
        yield url


def dumped(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables of a file but for jobs, and the numbers that it would give next."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: sorted((row for row in connection.execute(f'SELECT * FROM "{table}"') if row[0] != "jobs"), key=repr)
            for table in tables
            if table != "jobs"
        }


Place = Callable[[str], str]


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """The address of a new, empty place for a store of a kind; two of each kind at most."""
    free = {"sqlite": [str(tmp_path / f"new{number}.db") for number in range(9)], "postgresql": []}

    def new(kind: str) -> str:
        if kind == "postgresql" and not free[kind]:
            free[kind] = [request.getfixturevalue("bare_database"), request.getfixturevalue("empty_database")]
        return free[kind].pop(0)

    return new
