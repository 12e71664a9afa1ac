"""Speed and size: `python -m bench.speed [--facts 100000] [--data FOLDER] [--out FOLDER] [--quick]`.

Everything is measured in one run on one thread: recall beside the embedding of its query and beside the vector search
of chromadb and lancedb, signals beside the bare inserts of SQLite, the opening of a store, and cost against size.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import data, opening, plots, reads, sizes, writes
from bench.measure import Bar, Report, Timing, about, console, load, number, say, timing
from bench.peers import peers
from bench.store import fill, opened
from bench.vectors import Served, Vectors, embedded
from heedful.engine import Heedful
from heedful.providers.embedding import bundled


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    facts: int
    queries: int
    batches: int
    openings: int
    sizes: tuple[int, ...]


def plan(facts: int, *, quick: bool = False, short: bool = False) -> Plan:
    """All of it, all but the million, or enough to see that it runs."""
    if quick:
        return Plan(min(facts, 10_000), 50, 10, 2, (1000,))
    return Plan(facts, 300, 50, 5, (1000, 10_000) if short else (1000, 10_000, 1_000_000))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--facts", type=int, default=100_000, help="facts in the store (100000)")
    parser.add_argument("--data", help=f"folder with the data sets; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures, pictures and caches go")
    parser.add_argument("--quick", action="store_true", help="10,000 facts and few repetitions, to see that it runs")
    parser.add_argument("--short", action="store_true", help="without the store of a million facts")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    if folder is None:
        console.print(
            f"No data folder was named: the texts are made up.\n{data.WHERE}\n", highlight=False, markup=False
        )
    report = measured(folder, plan(options.facts, quick=options.quick, short=options.short), options.out)
    report.show()
    report.save(options.out / "speed.json")
    title = f"Heedful at {report.figures['facts']:,} facts, one thread"
    say(f"picture written to {plots.speed(report.figures, title, options.out / 'speed.png')}")


def measured(folder: Path | None, wanted: Plan, out: Path) -> Report:
    """The report of one run."""
    corpus = data.corpus(folder, wanted.facts)
    model = bundled()
    vectors = embedded(corpus.facts, out, say)
    query_vectors = embedded(corpus.queries, out, say)
    served = Served(model, corpus.facts, vectors)
    report = Report("Speed and size", about(facts=f"{len(corpus.facts):,}", texts=corpus.origin))
    report.figures["facts"] = len(corpus.facts)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="speed-") as name:
        home = Path(name)
        file = home / "store.db"
        with opened(file, served) as store:
            ids = _fill(report, store, corpus.facts)
            asked, asked_vectors = corpus.queries[: wanted.queries], query_vectors[: wanted.queries]
            say(f"recalling with {wanted.queries} queries, in turns with the peers")
            found = reads.before_signals(
                store, served, model, asked, asked_vectors, ids, vectors, peers(corpus.facts, vectors, out)
            )
            say("giving signals, in turns with SQLite alone")
            written = writes.measure(store, home, ids, corpus.queries[wanted.queries :], wanted.batches)
            _tell_first(report, store, asked[0])
            boosted = reads.with_signals(store, served, asked)
        _tell_reads(report, found, boosted)
        _tell_writes(report, written)
        say("opening the store in fresh processes")
        runs = [opening.measure(file, corpus.queries[place]) for place in range(wanted.openings)]
        _tell_openings(report, runs, len(corpus.facts))
        after = timing(found.recalls["hybrid"].after)
        measured_sizes = [_size(corpus, vectors, served, size, asked, home) for size in wanted.sizes]
        measured_sizes.append(sizes.Size(len(corpus.facts), after, made=False))
    _tell_sizes(report, sorted(measured_sizes, key=lambda size: size.facts))
    report.about["load at the end"] = load()
    return report


def _fill(report: Report, store: Heedful, facts: Sequence[str]) -> list[str]:
    say(f"filling a store with {len(facts):,} facts")
    start = time.perf_counter()
    ids = fill(store, facts)
    seconds = time.perf_counter() - start
    assert len(set(ids)) == len(facts)
    report.figures["fill_facts_a_second"] = len(facts) / seconds
    return ids


def _size(
    corpus: data.Corpus, vectors: Vectors, served: Served, size: int, asked: Sequence[str], home: Path
) -> sizes.Size:
    if size <= len(corpus.facts):
        return sizes.measure(corpus.facts[:size], vectors[:size], served, asked, home, made=False)
    texts, mixed = sizes.multiplied(corpus.facts, vectors, size)
    return sizes.measure(texts, mixed, served, asked, home, made=True)


def _tell_reads(report: Report, found: reads.Reads, boosted: dict[str, reads.Recalled]) -> None:
    embedding = timing(found.embedding)
    every = {
        name: {"whole": timing(kept.whole), "after": timing(kept.after)}
        for name, kept in {**found.recalls, **boosted}.items()
    }
    columns = ["p50", "p95", "× embedding", "p50 after it", "p95 after it", "CPU after it"]
    section = report.section("Recall, everything included (ms)", "", *columns)
    section.rows.append(["embedding the query alone", *_both(embedding), "1.00", "", "", ""])
    for name, both in every.items():
        ratio = both["whole"].p50 / embedding.p50
        section.rows.append([name, *_both(both["whole"]), f"{ratio:.2f}", *_three(both["after"])])
    section.notes.append("A receipt is written in each. After signals, recall also looks for the query's context.")
    rows = report.section("Vector search with the same vectors (ms)", "", "p50", "p95", "CPU", "recall@10")
    for name, kind in (("hybrid", ""), ("semantic", f"{found.found_by['heedful']:.4f}")):
        rows.rows.append([f"heedful: {name} recall after embedding", *_three(every[name]["after"]), kind])
    for name, spent in found.peers.items():
        rows.rows.append([name, *_three(timing(spent)), f"{found.found_by[name]:.4f}"])
    rows.rows.append(["numpy, exact", *_three(timing(found.exact)), "1.0000"])
    rows.notes.append(
        "The peers search vectors only; a recall also searches words, reads the facts and writes a receipt."
    )
    ratio = every["hybrid"]["whole"].p50 / embedding.p50
    report.bars.append(Bar("hybrid recall ÷ embedding alone, p50", ratio, 1.5, "at most"))
    report.bars.append(Bar("recall@10 of the vector part", found.found_by["heedful"], 0.98, "at least"))
    for name, spent in found.peers.items():
        after = every["hybrid"]["after"].p50
        report.bars.append(Bar(f"hybrid after embedding, beside {name}", after, timing(spent).p50, "at most", "ms"))
    report.figures |= {
        "embedding": asdict(embedding),
        "recall": {name: {part: asdict(time) for part, time in both.items()} for name, both in every.items()},
        "peers": {name: asdict(timing(spent)) for name, spent in found.peers.items()},
        "exact": asdict(timing(found.exact)),
        "recall_at_10": found.found_by,
    }


def _tell_first(report: Report, store: Heedful, query: str) -> None:
    """The first recall after signals for new queries also embeds those."""
    start = time.perf_counter()
    store.recall(query)
    report.figures["first_recall_after_new_queries_s"] = time.perf_counter() - start


def _tell_writes(report: Report, written: writes.Writes) -> None:
    rates = {name: writes.rows_a_second(batches) for name, batches in asdict(written).items()}
    section = report.section(
        "Durable writes, 300 rows a transaction", "", "rows/s", "signals/s", "of SQLite", "ms a batch"
    )
    names = {
        "raw": "SQLite alone",
        "indexed": "SQLite alone, in Heedful's tables with their indexes",
        "known": "signals, known queries",
        "new": "signals, 100 new queries",
    }
    for kind, batches in asdict(written).items():
        signals = number(rates[kind] / writes.ROWS) if kind in ("known", "new") else ""
        share = f"{rates[kind] / rates['raw']:.1%}"
        section.rows.append([names[kind], number(rates[kind]), signals, share, number(timing(batches).p50)])
    first = report.figures["first_recall_after_new_queries_s"]
    count = writes.BATCH * (len(written.new) + 1)
    section.notes.append(f"The first recall after {count:,} new queries embeds them: {number(first)} s, once.")
    section.notes.append(f"Facts go in at {report.figures['fill_facts_a_second']:,.0f} a second, vectors given.")
    for kind in ("known", "new"):
        report.bars.append(Bar(f"{names[kind]} ÷ SQLite alone", rates[kind] / rates["raw"], 0.1, "at least"))
    report.figures["writes"] = rates


def _tell_openings(report: Report, runs: Sequence[opening.Opened], facts: int) -> None:
    section = report.section("Opening in a fresh process", "", "median", "greatest")
    parts = {
        "open (ms)": [run.open * 1000 for run in runs],
        "first recall (ms)": [run.first * 1000 for run in runs],
        "open to first result (ms)": [run.seconds * 1000 for run in runs],
        "memory with the model alone (MB)": [run.memory_before for run in runs],
        "memory at its peak (MB)": [run.memory for run in runs],
        "memory of the open store and its index, by fact (bytes)": [
            (run.memory - run.memory_before) * 1024 * 1024 / facts for run in runs
        ],
    }
    for name, values in parts.items():
        section.rows.append([name, number(statistics.median(values)), number(max(values))])
    section.notes.append("The model is loaded and the query embedded before; files are in the system's cache.")
    seconds = statistics.median(run.seconds for run in runs)
    report.bars.append(Bar("opening to the first recall", seconds, 1.0, "at most", "s"))
    report.bars.append(Bar("memory of that process", max(run.memory for run in runs), 600, "at most", "MB"))
    report.figures["opening"] = [asdict(run) for run in runs]


def _tell_sizes(report: Report, measured_sizes: Sequence[sizes.Size]) -> None:
    section = report.section("Hybrid recall after embedding, by number of facts (ms)", "facts", "p50", "p95")
    for size in measured_sizes:
        section.rows.append([f"{size.facts:,}{' (made)' if size.made else ''}", *_both(size.time)])
    if any(size.made for size in measured_sizes):
        section.notes.append("Made facts: two short parts of real texts, with the mixture of two real vectors.")
    report.figures["sizes"] = [asdict(size) for size in measured_sizes]


def _three(time: Timing) -> list[str]:
    return [*_both(time), number(time.processor)]


def _both(time: Timing) -> list[str]:
    return [number(time.p50), number(time.p95)]


if __name__ == "__main__":
    main()
