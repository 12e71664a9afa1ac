"""What an index of millions of values costs: `python -m bench.cache_values`.

A SQLite database with one large column is connected, its values are indexed in the background as for any user, and
questions that name values from all over the column are looked up. Peers in the same run: embedding the question alone.
"""

from __future__ import annotations

import argparse
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import heedful
from bench.measure import Bar, Report, about, in_turns, say, timed, timing
from heedful.model import CacheLookup
from heedful.providers.configured import embedder_from
from heedful.sql.reuse.values import ValueIndex

SIZES = (1_000_000, 5_000_000)
ASKED = 100
SLOWER = 2.0
MEGABYTES = 150.0
ONES = "ka lo mi na pe ru sa ti vo wu ba cho de fi ge".split()  # noqa: SIM905


def name(number: int) -> str:
    """A person of two names; another one for each number.

    >>> name(0), name(123_456)
    ('Kaka Kaka', 'Lopemi Kapeti')
    """
    parts: list[str] = []
    for _ in range(2):
        word = ""
        for _ in range(2 if number < 50_625 and not parts else 3):
            number, place = divmod(number, len(ONES))
            word += ONES[place]
        parts.append(word.capitalize())
    return " ".join(parts) if not number else f"{' '.join(parts)} {number}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cache_values", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many distinct values")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where the figures go")
    given = parser.parse_args(arguments)
    report = Report("An index of the values of a large column", about())
    section = report.section(
        "One column", "values", "indexed in", "memory added", "lookup p50", "embedding p50", "ratio"
    )
    for size in given.sizes:
        figures = measure(size)
        report.figures[f"{size}"] = figures
        ratio = figures["lookup"]["p50"] / figures["embedding"]["p50"]
        section.rows.append([
            f"{size:,}", f"{figures['seconds']:.1f} s", f"{figures['megabytes']:.0f} MB",
            f"{figures['lookup']['p50']:.1f} ms", f"{figures['embedding']['p50']:.1f} ms", f"{ratio:.2f}",
        ])  # fmt: skip
        report.bars.append(Bar(f"lookup ÷ embedding, p50, {size:,} values", ratio, SLOWER, "at most"))
        report.bars.append(Bar(f"memory added, {size:,} values", figures["megabytes"], MEGABYTES, "at most", " MB"))
        report.bars.append(Bar(f"found, of {ASKED}, {size:,} values", figures["found"], ASKED, "at least"))
    report.show()
    report.save(given.out / "cache_values.json")


def measure(size: int) -> dict[str, Any]:
    """Connects a database with so many names, waits until they are indexed, and looks some of them up."""
    embedder = embedder_from("bundled")
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.sqlite"
        say(f"writing {size:,} names")
        with sqlite3.connect(file) as people:
            people.execute("CREATE TABLE person (name TEXT, town TEXT)")
            people.executemany("INSERT INTO person VALUES (?, ?)", ((name(n), f"Town {n % 500}") for n in range(size)))
            people.execute("CREATE INDEX person_name ON person (name)")
        embedder.embed(["warm"])
        with heedful.open(Path(folder) / "store.db", embedding=embedder) as memory:
            memory.connectors.create("people", f"sqlite:///{file}")
            for number in (3, size // 2, size - 1):
                person = name(number)
                done = memory.executions.execute_query(
                    f"SELECT town FROM person WHERE name = '{person}'", question=f"Where does {person} live?"
                )
                memory.feedback.create_positive(execution_id=done.execution_id)
            before, began = _megabytes(), time.perf_counter()
            memory.chat.execution_cache_lookup("Where does nobody live?")
            values = memory._project.executions.proofs._values
            connector = memory.connectors.list()[0].connector_id
            while not isinstance(values.newest(connector), ValueIndex):
                time.sleep(0.1)
            seconds = time.perf_counter() - began
            say(f"indexed in {seconds:.1f} s")
            asked = [f"Where does {name(draw.randrange(size))} live?" for _ in range(ASKED)]
            memory.chat.execution_cache_lookup(asked[0])
            hits: list[bool] = []

            def look_up(place: int) -> CacheLookup:
                found = memory.chat.execution_cache_lookup(asked[place])
                hits.append(found.cache_hit)
                return found

            taken = in_turns(
                {
                    "lookup": lambda place: timed(lambda: look_up(place))[0],
                    "embedding": lambda place: timed(lambda: embedder.embed([asked[place]]))[0],
                },
                range(ASKED),
            )
            return {
                "seconds": seconds,
                "megabytes": _megabytes() - before,
                "found": sum(hits),
                **{key: asdict(timing(spent)) for key, spent in taken.items()},
            }


def _megabytes() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
