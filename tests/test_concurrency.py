"""What threads share in memory, hammered by sixteen of them: no error, nothing stale or mixed, the same end."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cities import make_cities

from heedful import Heedful
from heedful.executions.cache import Limits, judge
from heedful.model import CacheLookup

THREADS = 16


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads take turns after every few instructions, so that what can go wrong between two of them does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def hammer(work: Callable[[int, random.Random], object], threads: int = THREADS) -> None:
    """Does the work in all threads at once, each with its number; the first error is raised."""
    start = threading.Barrier(threads)

    def run(number: int) -> None:
        start.wait()
        work(number, random.Random(number))

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, number) for number in range(threads)]:
            done.result()


COUNTRIES = [f"land{number:02}" for number in range(76)]
CITIES = "How many cities are in {}?"


LIMITS = Limits(None, 0.5, 50, only_positive_feedback=False, examples=False, explained=50)


def counting(place: int) -> str:
    """SQL that counts the cities of a country; each place has a template of its own."""
    return f"SELECT count(*) AS n{place} FROM city WHERE country = '{COUNTRIES[place]}'"


def test_the_evidence_of_the_cache(open_store: Callable[..., Heedful], tmp_path: Path) -> None:
    store = open_store()
    cities = make_cities(tmp_path)
    rows = ", ".join(f"({100 + place}, 'x', '{name}', 1)" for place, name in enumerate(COUNTRIES))
    cities.write(f"INSERT INTO city VALUES {rows}")
    store.connectors.create("geo", cities.url)
    known = [(CITIES.format(COUNTRIES[place]), counting(place)) for place in range(60)]
    store.golden_examples.import_examples([{"question": asked, "sql_query": sql} for asked, sql in known])
    for question, sql in known[:12]:
        store.executions.execute_query(sql, question=question)
    space = store._executions
    with space.workspace.read() as connection:
        geo = space.connector(connection, "geo")
    streets = "How many streets are there?"
    done = store.executions.execute_query("SELECT count(*) AS n FROM street", question=streets).execution_id

    def look(heedful: Heedful, question: str, **options: Any) -> CacheLookup:
        return heedful.chat.execution_cache_lookup(question, reuse="result", top_n=20, **options)

    def work(number: int, draw: random.Random) -> None:
        if number < 4:
            for place in [*range(60 + 4 * number, 64 + 4 * number)] * 2:
                made = store.golden_examples.create(CITIES.format(COUNTRIES[place]), counting(place))
                if draw.random() < 0.8:
                    store.golden_examples.delete(made.id)
                else:
                    store.golden_examples.update(made.id, question=f"Which is number {draw.random()}?")
        elif number == 4:
            # Only here this is rated, so that it is known what must hold.
            for _ in range(4):
                said = store.feedback.create_negative(execution_id=done)
                assert not look(store, streets).cache_hit, "it is wrong, and is served"
                store.feedback.update(said.id, is_positive=True)
                assert look(store, streets, only_positive_feedback=True).cache_hit
                store.retract(said.id)
        else:
            for _ in range(40):
                question = CITIES.format(draw.choice(COUNTRIES))
                found, _ = judge(space, geo, question, space.workspace.embed([question])[0], LIMITS, "sql")
                # Sixty of them never go, and contradict each other whatever the others do.
                assert all(each.decision == "refuse" for each in found)
                assert "conflict" in {each.gate for each in found}

    hammer(work)
    again = open_store()
    for country in COUNTRIES[::9]:
        assert look(store, CITIES.format(country)) == look(again, CITIES.format(country))
