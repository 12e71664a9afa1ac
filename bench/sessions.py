"""Sessions: `python -m bench.sessions [--data FOLDER] [--out FOLDER] [--quick]`.

On SQLite and on a MongoDB that is started here: answers and opinions a second beside the bare driver that stores the
same, `improve` over rated answers, and the pages of a long session.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import heedful
from bench import data, sessions_improve, sessions_pages, sessions_writes
from bench.measure import Bar, Report, Spent, about, load, number, say, timing
from bench.sessions_bare import BareMongo, BareSqlite
from bench.sessions_improve import Improved
from bench.sessions_writes import CALLS, KINDS, Writes, calls_a_second

LEAST_SHARE = 0.5
FIRST_RUN, SECOND_RUN = 60.0, 2.0
MOST_GROWTH = 1.5
"""How much longer a page may take for where it is: what the machine's noise explains."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    entries: int
    messages: int
    pages: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where sessions are kept: beside the facts, or on a MongoDB."""

    name: str
    server: str | None

    def url(self, purpose: str) -> str | None:
        return None if self.server is None else self.server.replace("DATABASE", purpose)


def plan(quick: bool) -> Plan:
    """All of it, or enough to see that it runs."""
    return Plan(20, 200, 5_000, 20) if quick else Plan(150, 10_000, 100_000, 200)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("--data", help=f"folder with the data sets; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures and caches go")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    options = parser.parse_args(arguments)
    report = measured(data.folder(options.data), plan(options.quick), options.out)
    report.show()
    report.save(options.out / "sessions.json")


def measured(folder: Path | None, wanted: Plan, out: Path) -> Report:
    """The report of one run."""
    texts = sessions_improve.asked(folder, wanted.entries)
    report = Report("Sessions", about(texts=texts.origin))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="sessions-") as name, _mongodb(Path(name) / "mongodb") as server:
        home = Path(name)
        places = [Place("SQLite", None), Place("MongoDB", server)]
        _tell_writes(report, {place.name: _writes(place, home, wanted) for place in places})
        _tell_pages(report, {place.name: _pages(place, home, wanted) for place in places}, wanted.messages)
        _tell_improve(report, _improved(places[1], home, texts, out), wanted.entries)
    report.about["load at the end"] = load()
    return report


@contextmanager
def _mongodb(folder: Path) -> Iterator[str]:
    """A replica set of one server, from the package that the tests use: its URL, for the database "DATABASE"."""
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "integration"))
    from mongodb import Mongod

    server = Mongod(folder, replica_set=True)
    try:
        yield server.start().url("DATABASE")
    finally:
        server.stop()


def _writes(place: Place, home: Path, wanted: Plan) -> Writes:
    say(f"{place.name}: writing, in turns with the bare driver (load {load()})")
    bare_url = place.url("bare")
    bare = BareSqlite(home / "bare.db") if bare_url is None else BareMongo(bare_url)
    with (
        closing(bare),
        heedful.open(home / f"writes-{place.name}.db", sessions=place.url("ours")) as store,
    ):
        return sessions_writes.measure(store, bare, wanted.rounds)


def _pages(place: Place, home: Path, wanted: Plan) -> dict[str, list[Spent]]:
    say(f"{place.name}: reading pages of a session with {wanted.messages:,} messages (load {load()})")
    with heedful.open(home / f"pages-{place.name}.db", sessions=place.url("pages")) as store:
        sessions_pages.fill(store, wanted.messages)
        return sessions_pages.measure(store, wanted.messages, wanted.pages)


def _improved(mongodb: Place, home: Path, texts: sessions_improve.Asked, out: Path) -> dict[str, Improved]:
    file, beside = home / "improve.db", home / "improve-beside.db"
    url = mongodb.url("improve")
    assert url is not None
    entries = sessions_improve.fill(file, texts, out)
    say("moving the same answers to MongoDB, and rating all")
    moved = sessions_improve.moved(file, beside, url, entries)
    with heedful.open(file, auto_improve=False) as store:
        sessions_improve.rate(store, entries)
    with heedful.open(beside, sessions=url, auto_improve=False) as store:
        sessions_improve.rate(store, moved)
    result: dict[str, Improved] = {}
    for name, where, sessions in (("SQLite", file, None), (mongodb.name, beside, url)):
        say(f"{name}: improving (load {load()})")
        result[name] = sessions_improve.measure(where, sessions, len(entries))
    return result


def _tell_writes(report: Report, written: Mapping[str, Writes]) -> None:
    section = report.section(
        "Durable writes, a transaction a call", "", "calls/s", "bare driver/s", "of bare", "ms a call", "bare ms"
    )
    for place, writes in written.items():
        for kind, name in KINDS.items():
            ours, bare = writes.ours[kind], writes.bare[kind]
            section.rows.append(
                [
                    f"{place}: {name}",
                    *(number(calls_a_second(ours)), number(calls_a_second(bare)), f"{writes.share(kind):.0%}"),
                    *(number(timing(ours).p50 / CALLS), number(timing(bare).p50 / CALLS)),
                ]
            )
            bar = Bar(f"{place}: {name} ÷ the bare driver", writes.share(kind), LEAST_SHARE, "at least")
            report.bars.append(bar)
    section.notes.append(f"Medians of rounds of {CALLS} calls, ours and the bare driver's in turns.")
    section.notes.append("The bare driver makes ids and leaves the same rows; it checks nothing and looks nothing up.")
    report.figures["writes"] = {
        place: {
            kind: {"ours": calls_a_second(writes.ours[kind]), "bare": calls_a_second(writes.bare[kind])}
            for kind in KINDS
        }
        for place, writes in written.items()
    }


def _tell_pages(report: Report, read: Mapping[str, Mapping[str, Sequence[Spent]]], messages: int) -> None:
    section = report.section(f"Pages of 100 in a session with {messages:,} messages (ms)", "", "p50", "p95")
    for place, pages in read.items():
        times = {name: timing(spent) for name, spent in pages.items()}
        section.rows += [[f"{place}: {name}", number(time.p50), number(time.p95)] for name, time in times.items()]
        growth = max(time.p50 for time in times.values()) / min(time.p50 for time in times.values())
        report.bars.append(Bar(f"{place}: slowest page ÷ fastest page", growth, MOST_GROWTH, "at most"))
    report.figures["pages"] = {
        place: {name: asdict(timing(spent)) for name, spent in pages.items()} for place, pages in read.items()
    }


def _tell_improve(report: Report, improved: Mapping[str, Improved], entries: int) -> None:
    section = report.section(
        f"improve() over {entries:,} rated entries", "", "first run s", "its CPU s", "of it the model s", "second run s"
    )
    for place, found in improved.items():
        seconds = (found.first.wall, found.first.processor, found.embedding.wall, found.second.wall)
        section.rows.append([place, *map(number, seconds)])
        report.bars.append(Bar(f"{place}: improve", found.first.wall, FIRST_RUN, "at most", "s"))
        report.bars.append(Bar(f"{place}: improve, nothing new", found.second.wall, SECOND_RUN, "at most", "s"))
    did = next(iter(improved.values()))
    section.notes.append(f"The first run makes {did.signals:,} signals, and learns {did.learnt:,} facts.")
    section.notes.append("While the answers are made, the model embeds each text once; improve uses it as it is.")
    report.figures["improve"] = {place: asdict(found) for place, found in improved.items()}


if __name__ == "__main__":
    main()
