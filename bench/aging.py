"""What a long life does to a store: `python -m bench.aging [--minutes N] [--out FOLDER] [--quick]`.

A simulated year of mixed traffic on SQLite with one server and on PostgreSQL with two: the first tenth beside the last.
Then what used to grow with use, a part at a time.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import heedful
from bench import aging_memory, aging_rows
from bench.measure import Bar, Report, about, load, number, say
from bench.postgresql import serving
from bench.soak.traffic import MEASURED
from bench.soak.year import MOST_BYTES, MOST_MEMORY, SLOWER, Year, live
from heedful.testing import ManualClock, WordEmbedder

STORES = {"SQLite": 1, "PostgreSQL": 2}
"""And how many servers share each."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.aging", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="of traffic, half on each store; 20 if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    options = parser.parse_args(arguments)
    minutes = 1.0 if options.quick else options.minutes
    report = Report("A long life", about(minutes=minutes))
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out, prefix="aging-") as name:
        folder = Path(name).resolve()
        _tell_parts(report, folder, quick=options.quick)
        for kind, servers in STORES.items():
            say(f"a year on {kind}")
            with _store(kind, folder) as store:
                own = folder / f"year on {kind}"
                own.mkdir()
                _tell_year(report, kind, live(store, own, servers, 30 * minutes, say))
    report.about["load at the end"] = load()
    report.show()
    report.save(options.out / "aging.json")


@contextmanager
def _store(kind: str, folder: Path) -> Iterator[str]:
    if kind == "SQLite":
        yield str(folder / "year.db")
        return
    with serving(folder / "postgresql") as server:
        yield server.database("year")


def _tell_year(report: Report, kind: str, year: Year) -> None:
    if len(year.sizes) < 10:
        raise RuntimeError(f"the year on {kind} came to an early end: {year.wrongs}")
    title = f"A year on {kind}: {year.calls.total():,} calls, {year.sizes[-1].opinions:,} opinions in the ledger"
    section = report.section(title, "", "first tenth", "last tenth", "ratio", "limit")

    def row(name: str, first: float, last: float, most: float | None = None) -> None:
        limit = "" if most is None else f"≤ {most}"
        section.rows.append([name, number(first), number(last), f"{last / first:.2f}", limit])
        if most is not None:
            report.bars.append(Bar(f"{kind}: {name}, last tenth ÷ first", last / first, most, "at most"))

    for name in MEASURED:
        row(f"{name}, p95 ms", year.p95(name, 0), year.p95(name, 9), SLOWER)
    for process in year.processes:
        # The second: what is in memory after the first tenth.
        most = MOST_MEMORY if process.startswith("server") else None
        row(f"{process}, MB (second tenth)", year.megabytes(process, 1), year.megabytes(process, 9), most)
    sizes = year.sizes
    row("opinions in the ledger", sizes[0].opinions, sizes[-1].opinions)
    row("the store, MB", sizes[0].bytes / 1e6, sizes[-1].bytes / 1e6)
    row("bytes for each opinion", sizes[0].bytes / sizes[0].opinions, sizes[-1].bytes / sizes[-1].opinions)
    report.bars.append(Bar(f"{kind}: one more opinion", year.bytes_per_new_opinion, MOST_BYTES, "at most", "bytes"))
    report.bars.append(Bar(f"{kind}: things that are wrong or kept too long", len(year.wrongs), 0, "at most"))
    section.notes += year.wrongs
    report.figures[kind] = {
        "calls": dict(year.calls),
        "milliseconds": {name: [year.p95(name, tenth) for tenth in range(10)] for name in MEASURED},
        "megabytes": {name: [year.megabytes(name, tenth) for tenth in range(10)] for name in year.processes},
        "sizes": [[each.bytes, each.opinions] for each in sizes],
    }


def _tell_parts(report: Report, folder: Path, *, quick: bool) -> None:
    """One row for each part that use or time made larger or slower."""
    section = report.section("What used to grow", "part", "with little", "with much")

    def row(name: str, little: float | str, much: float | str) -> None:
        shown = [each if isinstance(each, str) else number(each) for each in (little, much)]
        section.rows.append([name, *shown])

    facts, queries, calls = (1000, 500, 50) if quick else (20_000, 10_000, 500)
    say("hits of one proven question, and ratings beside it")
    used = aging_rows.measured(folder)
    row("executions that a lookup looks at, after 1 and 60 hits", *used.candidates)
    row("the proven example leads in the prompt after 60 hits", "", "yes" if used.leads else "NO")
    row("bytes in the store for each hit", "", used.bytes_per_hit)
    row(f"lookup, ms, with {aging_rows.RATINGS:,} ratings of sessions", *used.milliseconds)
    say("many users of one process")
    row("MB for each further user of compat.cognee", "", aging_memory.users(folder)["megabytes a user"])
    with _opened(folder, "replaced") as store:
        found = aging_memory.replaced(store)
        row("rows in the index: active, and held after 40 replacements", found["active"], found["held"])
    say(f"{facts:,} judged facts")
    with _opened(folder, "judged") as store:
        found = aging_memory.judged(store, facts)
        row(f"recall, ms, without and with min_usefulness, {facts:,} facts", found["without"], found["with"])
    clock = ManualClock()
    with heedful.open(folder / "kept.db", clock=clock, embedding=WordEmbedder(), worker=False) as store:
        for name, (full, left) in aging_memory.kept(store, clock, calls).items():
            row(f"{name} after {calls} calls, and a year later", full, left)
    embedder = aging_memory.CountingEmbedder()
    with heedful.open(folder / "bulk.db", embedding=embedder, worker=False) as store:
        found = aging_memory.bulk(store, embedder, queries)
        row(f"recall, ms, usual and after {queries:,} new queries", found["usual"], found["first"])
        row("texts that this recall embeds before it answers", "", found["embedded"])
    with _opened(folder, "ahead") as store:
        found = aging_memory.ahead(store)
        row(
            "a signal dated 2099 is refused; the next signal, ms",
            "yes" if found["refused"] else "NO",
            found["next signal"],
        )


def _opened(folder: Path, name: str) -> heedful.Heedful:
    return heedful.open(folder / f"{name}.db", embedding=WordEmbedder(), worker=False)


if __name__ == "__main__":
    main()
