"""Ten thousand projects in one store: does any of them pay for the others?

`python -m bench.scale_projects ALONE CROWDED [PROJECTS]` measures it in two new stores, which may be on a cluster.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from bench.measure import Bar, Report, Spent, Timing, in_turns, number, say, timed, timing
from heedful.store import Store
from heedful.testing import WordEmbedder

FACTS = 20
RATIO = 1.5
"""What a project may cost in a store of many, against one in a store of its own."""


def measure(
    addresses: Mapping[str, tuple[str | Path, str | Path]], projects: int, calls: int
) -> dict[str, list[Timing]]:
    """By store: opening and recalling in one project of a store of its own, and in any of many."""
    result = {}
    for name, (alone, crowded) in addresses.items():
        with_one, with_many = Store(alone, embedding=WordEmbedder()), Store(crowded, embedding=WordEmbedder())
        say(f"making {projects:,} projects in {name}")
        _fill(with_one, 1)
        _fill(with_many, projects)
        chosen = random.Random(7).sample(range(projects), calls)
        tasks = {"one": _task(with_one, [0] * calls), "many": _task(with_many, chosen)}
        for task in tasks.values():
            task(0)
        spent = in_turns(tasks, range(calls))
        result[name] = [timing(spent["one"]), timing(spent["many"])]
        with_one.close()
        with_many.close()
    return result


def _fill(opened: Store, projects: int) -> None:
    for place in range(projects):
        with opened.open(f"project {place}") as store:
            store.remember([f"fact {line} of project {place}, about {line * 7 % 13}" for line in range(FACTS)])


def _task(opened: Store, places: list[int]) -> Callable[[int], Spent]:
    def work(turn: int) -> None:
        with opened.open(f"project {places[turn]}") as store:
            assert len(store.recall("what is it about?", top_k=5)) == 5

    return lambda turn: timed(lambda: work(turn))[0]


def tell(report: Report, found: Mapping[str, list[Timing]], projects: int) -> None:
    """Adds what was measured to the report."""
    section = report.section(
        f"Opening a project of {FACTS} facts, and a first recall there (ms)",
        "",
        "alone p50",
        "p95",
        f"among {projects:,} p50",
        "p95",
        "ratio",
    )
    for name, (one, many) in found.items():
        cells = [number(value) for value in (one.p50, one.p95, many.p50, many.p95)]
        section.rows.append([name, *cells, f"{many.p50 / one.p50:.2f}"])
        report.bars.append(Bar(f"a project among {projects:,}, {name}", many.p50 / one.p50, RATIO, "at most", "×"))
    section.notes.append("The store is open; a quick model for tests embeds the texts.")
    report.figures["projects"] = {name: [asdict(each) for each in both] for name, both in found.items()}


if __name__ == "__main__":
    projects = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    report = Report("Projects", {})
    tell(report, measure({"store": (sys.argv[1], sys.argv[2])}, projects, min(300, projects)), projects)
    report.show()
