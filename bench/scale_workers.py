"""Several processes on one PostgreSQL store: what they do together, and whether anything is lost.

Run as a program, this module is one of those processes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import heedful
from bench.measure import Bar, Report, number, say
from heedful.testing import WordEmbedder

THREADS = (1, 4, 16, 64)
KINDS = {
    "recall": "recalls in one project",
    "own": "signals, each process in a project of its own",
    "hot": "signals about one hot fact, one at a time",
    "batches": "signals about one hot fact, 100 at a time",
}
TOGETHER = {"recall": 1, "own": 1, "hot": 1, "batches": 100}
HOT = "the one fact that everybody judges"


@dataclass(frozen=True, slots=True)
class Work:
    """What some processes did together."""

    kind: str
    processes: int
    a_second: float
    done: int
    counted: int
    """What the store says was done, where that can be told."""
    sound: bool
    """Whether every score is the fold of its ledger."""


def measure(url: str, counts: Sequence[int], seconds: float) -> list[Work]:
    """Each kind of work, with each number of processes."""
    with heedful.open(url, embedding=WordEmbedder()) as store:
        store.remember([f"fact {number} about {number % 97}" for number in range(2000)])
    result = []
    for kind in KINDS:
        for count in counts:
            say(f"{KINDS[kind]}: {count} processes")
            result.append(_together(url, kind, count, seconds))
    return result


def measure_threads(url: str, seconds: float) -> dict[int, float]:
    """Signals about one hot fact in a second, by the number of threads of one process that give them one at a time."""
    with heedful.open(url, project="threads", embedding=WordEmbedder()) as store:
        fact = store.remember(HOT).fact_ids[0]
        result = {}
        for threads in THREADS:
            say(f"signals about one hot fact: {threads} threads")
            end = time.perf_counter() + seconds

            def give(end: float = end) -> int:
                done = 0
                while time.perf_counter() < end:
                    store.signal([_signal(fact, done)])
                    done += 1
                return done

            with ThreadPoolExecutor(threads) as pool:
                counts = [pool.submit(give) for _ in range(threads)]
            result[threads] = sum(count.result() for count in counts) / seconds
    return result


def _together(url: str, kind: str, processes: int, seconds: float) -> Work:
    names = [f"{kind}-{processes}-{place if kind == 'own' else 0}" for place in range(processes)]
    if kind == "recall":
        names = ["default"] * processes
    else:
        for name in set(names):
            with heedful.open(url, project=name, embedding=WordEmbedder()) as store:
                store.remember(HOT)
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.scale_workers", url, kind, name, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    lines = [child.communicate()[0].split() for child in children]
    rate = sum(int(done) / float(took) for done, took in lines)
    done = sum(int(line[0]) for line in lines) * TOGETHER[kind]
    counted, sound = done, True
    if kind != "recall":
        counted = 0
        for name in set(names):
            with heedful.open(url, project=name, embedding=WordEmbedder()) as store:
                counted += store.usefulness_stats().total_signals
                sound = sound and all(check.ok for check in store.doctor())
    return Work(kind, processes, rate * TOGETHER[kind], done, counted, sound)


def tell(report: Report, found: Sequence[Work], by_threads: Mapping[int, float]) -> None:
    """Adds what was measured to the report."""
    counts = sorted({each.processes for each in found})
    section = report.section(
        "Processes that share PostgreSQL (a second, all together)", "", *(f"{count}" for count in counts), "× of one"
    )
    for kind, words in KINDS.items():
        rates = {each.processes: each.a_second for each in found if each.kind == kind}
        row = [number(rates[count]) for count in counts]
        section.rows.append([words, *row, f"{rates[counts[-1]] / rates[counts[0]]:.2f}"])
    lost = sum(abs(each.done - each.counted) for each in found)
    section.notes.append(f"Acknowledged and counted differ by {lost}. The server runs on the same processors.")
    report.bars.append(Bar("acknowledged signals that the store lacks or has twice", lost, 0, "at most"))
    wrong = sum(not each.sound for each in found)
    report.bars.append(Bar("stores whose scores are not the fold of their ledger", wrong, 0, "at most"))
    report.figures["workers"] = [asdict(each) for each in found]
    threads = report.section("Signals about one hot fact (a second)", "", *(f"{count} threads" for count in by_threads))
    threads.rows.append(["one process, one signal at a time", *map(number, by_threads.values())])
    report.figures["threads"] = dict(by_threads)


def _work(url: str, kind: str, project: str, seconds: float) -> None:
    with heedful.open(url, project=project, embedding=WordEmbedder()) as store:
        fact = None if kind == "recall" else store.recall(HOT).hits[0].fact_id
        store.recall("fact 7 about 7")
        print("ready", flush=True)
        sys.stdin.readline()
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            if fact is None:
                store.recall(f"fact {done} about {done % 97}")
            else:
                store.signal([_signal(fact, done)] * TOGETHER[kind])
            done += 1
        print(done, time.perf_counter() - start)


def _signal(fact: str, number: int) -> dict[str, Any]:
    return {"fact_id": fact, "signal_type": "used", "query": f"q {number % 10}", "confidence": 0.001}


if __name__ == "__main__":
    _work(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
