"""Beyond one machine: `python -m bench.scale [--facts 100000] [--data FOLDER] [--out FOLDER] [--quick]`.

SQLite beside PostgreSQL for the same work, processes that share PostgreSQL, growth up to a million facts, ten
thousand projects in one store, and export and import of a million opinions. The PostgreSQL server is the benchmark's
own, on the same machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from bench import data, plots, scale_growth, scale_projects, scale_stores, scale_transfer, scale_workers
from bench.measure import Report, about, console, load, say
from bench.postgresql import Server, serving
from bench.sizes import multiplied
from bench.store import opened
from bench.vectors import Served, Vectors, embedded
from heedful.providers.embedding import bundled

STORES = ("sqlite", "postgresql")
PARTS = ("stores", "workers", "projects", "transfer", "growth")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    facts: int
    calls: int
    processes: tuple[int, ...]
    seconds: float
    sizes: tuple[int, ...]
    projects: int
    opinions: int
    stores: tuple[str, ...] = STORES
    """The stores that grow."""


def plan(facts: int, quick: bool) -> Plan:
    """All of it, or enough to see that it runs."""
    if quick:
        return Plan(min(facts, 3000), 50, (1, 2), 2, (1000, 3000), 100, 2000)
    return Plan(facts, 200, (1, 2, 4), 8, (10_000, 100_000, 1_000_000), 10_000, 1_000_000)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--facts", type=int, default=100_000, help="facts in the stores that are compared (100000)")
    parser.add_argument("--data", help=f"folder with the data sets; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures, pictures and caches go")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part, not all of them")
    parser.add_argument("--sizes", type=int, nargs="*", help="facts in the stores that grow (10000 100000 1000000)")
    parser.add_argument("--opinions", type=int, help="opinions that are exported and imported (1000000)")
    parser.add_argument("--store", choices=STORES, action="append", help="have only stores of this kind grow")
    parser.add_argument(
        "--keep", type=Path, help="keep the stores that grow in this folder; those it has are not filled"
    )
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    options = parser.parse_args(arguments)
    wanted = plan(options.facts, options.quick)
    if options.sizes:
        wanted = replace(wanted, sizes=tuple(options.sizes))
    if options.store:
        wanted = replace(wanted, stores=tuple(options.store))
    if options.opinions:
        wanted = replace(wanted, opinions=options.opinions)
    corpus = data.corpus(data.folder(options.data), wanted.facts)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    report = Report("Scale", about(facts=f"{len(corpus.facts):,}", texts=corpus.origin))
    with (
        tempfile.TemporaryDirectory(dir=options.out, prefix="scale-") as name,
        # The server runs as another user, who must get to its data.
        tempfile.TemporaryDirectory(prefix="heedful-") as home,
        serving((options.keep or Path(home)) / "postgresql", keep=options.keep is not None) as server,
    ):
        run = Run(corpus, wanted, options.out, options.keep or Path(name), server, report)
        for part in options.only or PARTS:
            getattr(run, part)()
            report.save(options.out / "scale.json")
    report.about["load at the end"] = load()
    report.show()
    report.save(options.out / "scale.json")
    if "growth" in report.figures:
        say(f"picture written to {plots.scale(report.figures['growth'], options.out / 'scale.png')}")


class Run:
    """One run: each part adds its figures to the report."""

    def __init__(
        self, corpus: data.Corpus, wanted: Plan, out: Path, home: Path, server: Server, report: Report
    ) -> None:
        self._corpus = corpus
        self._out = out
        self._plan = wanted
        self._home = home
        self._server = server
        self._report = report
        self._model = bundled()
        self._vectors = embedded(corpus.facts, out, say)
        self._asked = corpus.queries[: wanted.calls]
        self._asked_vectors = embedded(corpus.queries, out, say)[: wanted.calls]

    def stores(self) -> None:
        served = Served(
            self._model,
            [*self._corpus.facts, *self._asked],
            np.concatenate([self._vectors, self._asked_vectors]),
        )
        with (
            opened(self._home / "compared.db", served) as lite,
            opened(self._server.database("compared"), served) as server,
        ):
            both = {"sqlite": lite, "postgresql": server}
            filled, times, _ = scale_stores.measure(both, served, self._corpus.facts, self._asked, self._plan.calls)
        scale_stores.tell(self._report, filled, times)

    def workers(self) -> None:
        url = self._server.database("shared")
        by_processes = scale_workers.measure(url, self._plan.processes, self._plan.seconds)
        scale_workers.tell(self._report, by_processes, scale_workers.measure_threads(url, self._plan.seconds))

    def growth(self) -> None:
        result = []
        for size in self._plan.sizes:
            places: dict[str, str | Path] = {
                "sqlite": self._home / f"grown-{size}.db",
                "postgresql": self._server.database(f"grown_{size}"),
            }
            for name in self._plan.stores:
                where = places[name]
                note = self._home / f"{name}-{size}.json"
                if not note.is_file():
                    texts, vectors = self._grown(size)
                    filled = scale_growth.fill(name, where, texts, vectors, self._model, self._asked)
                    note.write_text(json.dumps(asdict(filled)))
                filled = scale_growth.Filled(**json.loads(note.read_text()))
                filled = replace(filled, built=scale_growth.build(where) or filled.built)
                note.write_text(json.dumps(asdict(filled)))
                result.append(scale_growth.measure(name, where, size, filled, self._model, self._asked))
        scale_growth.tell(self._report, result)
        # With those that an earlier run measured: stores of a million facts are measured one by one.
        file = self._out / "growth.json"
        before = json.loads(file.read_text()) if file.is_file() else []
        grown = {(each["store"], each["facts"]): each for each in [*before, *map(asdict, result)]}
        self._report.figures["growth"] = [grown[key] for key in sorted(grown)]
        file.write_text(json.dumps(self._report.figures["growth"], indent=2) + "\n")

    def projects(self) -> None:
        addresses: dict[str, tuple[str | Path, str | Path]] = {
            "sqlite": (self._home / "alone.db", self._home / "crowded.db"),
            "postgresql": (self._server.database("alone"), self._server.database("crowded")),
        }
        found = scale_projects.measure(addresses, self._plan.projects, min(self._plan.calls, self._plan.projects))
        scale_projects.tell(self._report, found, self._plan.projects)

    def transfer(self) -> None:
        pairs: dict[str, tuple[str | Path, str | Path]] = {
            "sqlite": (self._home / "exported.db", self._home / "imported.db"),
            "postgresql": (self._server.database("exported"), self._server.database("imported")),
        }
        scale_transfer.tell(self._report, scale_transfer.measure(pairs, self._plan.opinions, self._home))

    def _grown(self, size: int) -> tuple[Sequence[str], Vectors]:
        if size <= len(self._corpus.facts):
            return self._corpus.facts[:size], self._vectors[:size]
        return multiplied(self._corpus.facts, self._vectors, size)


if __name__ == "__main__":
    console.print("PostgreSQL is started for the benchmark, and stopped at its end.", highlight=False)
    main()
