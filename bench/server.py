"""The server: `python -m bench.server [--data FOLDER] [--out FOLDER] [--quick] [--soak SECONDS]`.

Recall and feedback over HTTP, with 1, 8 and 32 connections, beside the embedded engine that does the same work and
beside a bare FastAPI route that only embeds the query; then the server's memory under a load that goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path

import numpy as np

import heedful
from bench import data
from bench.measure import Bar, Report, about, load, number, say
from bench.server_load import Load, request
from heedful.engine import Heedful

KEY = "a-key-that-the-benchmark-made-up"
PREFIX = "/v1/projects/default"
CONNECTIONS = (1, 8, 32)
LEAST_SHARE = 0.7
LEAST_FEEDBACK = 1500.0
MOST_GROWTH = 1.05
SOAKED = 100.0
"""Requests a second of the load that goes on."""
RECALL, FEEDBACK = "recall", "feedback"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    facts: int
    rounds: int
    seconds: float
    soak: float


@dataclass(frozen=True, slots=True)
class Ready:
    """A store that is filled, and what is asked of it."""

    file: Path
    queries: list[str]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__)
    parser.add_argument("--data", help=f"folder with the data sets; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    parser.add_argument("--soak", type=float, help="seconds of the long load; 600 if left out")
    options = parser.parse_args(arguments)
    wanted = Plan(500, 1, 1.0, 5.0) if options.quick else Plan(10_000, 3, 6.0, 600.0)
    if options.soak is not None:
        wanted = Plan(wanted.facts, wanted.rounds, wanted.seconds, options.soak)
    report = measured(data.folder(options.data), wanted, options.out)
    report.show()
    report.save(options.out / "server.json")


def measured(folder: Path | None, wanted: Plan, out: Path) -> Report:
    """The report of one run."""
    corpus = data.corpus(folder, wanted.facts)
    report = Report("The server", about(facts=wanted.facts, texts=corpus.origin))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="server-") as name:
        ready = Ready(Path(name) / "store.db", corpus.queries)
        say(f"remembering {wanted.facts:,} facts")
        with heedful.open(ready.file) as store:
            store.remember(corpus.facts)
            store.sessions.create("chat")
        _tell(report, _compared(ready, wanted), wanted)
        _tell_soak(report, _soaked(ready, wanted), wanted)
    report.about["load at the end"] = load()
    return report


Rates = dict[tuple[str, int], list[Load]]


def _compared(ready: Ready, wanted: Plan) -> dict[str, Rates]:
    """What each does a second, by work and connections; they take turns."""
    result: dict[str, Rates] = {"embedded": {}, "bare route": {}, "server": {}}
    parameters = {
        RECALL: [request("POST", f"{PREFIX}/recall", KEY, {"query": each}) for each in ready.queries],
        FEEDBACK: [request("POST", f"{PREFIX}/sessions/chat/feedback", KEY, _opinion(place)) for place in range(100)],
    }
    bare = [request("POST", "/embed", KEY, {"query": each}) for each in ready.queries]
    with _served(ready.file) as server, _bare() as other, heedful.open(ready.file) as store:
        for _ in range(wanted.rounds):
            for connections in CONNECTIONS:
                say(f"{connections} connections")
                for work, requests in parameters.items():
                    done = {
                        "server": _load(server.port, requests, connections, wanted.seconds),
                        "embedded": _embedded(store, ready, work, connections, wanted.seconds),
                    }
                    if work == RECALL:
                        done["bare route"] = _load(other, bare, connections, wanted.seconds)
                    for name, each in done.items():
                        result[name].setdefault((work, connections), []).append(each)
    return result


def _opinion(place: int) -> dict[str, object]:
    return {"feedback": {"rating": "up" if place % 3 else "down", "comment": f"comment {place}"}}


def _embedded(store: Heedful, ready: Ready, work: str, connections: int, seconds: float) -> Load:
    """The same work without a server, by as many threads."""
    until = time.perf_counter() + seconds
    places = count()
    queries = cycle(ready.queries)

    def one(_: int) -> list[float]:
        times = []
        while (started := time.perf_counter()) < until:
            if work == RECALL:
                store.recall(next(queries))
            else:
                opinion = _opinion(next(places))["feedback"]
                store.sessions.add_session_feedback("chat", opinion)  # type: ignore[arg-type]
            times.append((time.perf_counter() - started) * 1000)
        return times

    started = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        times = [each for some in pool.map(one, range(connections)) for each in some]
    return Load(time.perf_counter() - started, times, {})


def _load(port: int, requests: Sequence[bytes], connections: int, seconds: float, most: float | None = None) -> Load:
    parameters = {
        "port": port,
        "requests": [each.decode("latin-1") for each in requests],
        "connections": connections,
        "seconds": seconds,
        "most": most,
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.server_load"],
        input=json.dumps(parameters),
        capture_output=True,
        text=True,
        check=True,
    )
    found = Load(**json.loads(done.stdout))
    if found.failures:
        raise RuntimeError(f"{found.failures} requests of {len(found.milliseconds)} failed")
    return found


@dataclass(frozen=True, slots=True)
class Process:
    """A server that runs."""

    port: int
    pid: int

    def megabytes(self) -> float:
        """Its own memory: pages of the store that are mapped come and go as the system likes."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024


@contextmanager
def _served(file: Path) -> Iterator[Process]:
    port = _free_port()
    command = [sys.executable, "-m", "heedful", "serve", "--store", str(file), "--port", str(port), "--rate-limit", "0"]
    with _running(command, port) as process:
        yield Process(port, process.pid)


@contextmanager
def _bare() -> Iterator[int]:
    port = _free_port()
    with _running([sys.executable, "-m", "bench.server_bare", str(port)], port):
        yield port


@contextmanager
def _running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "HEEDFUL_ADMIN_KEY": KEY}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(port, process)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"nothing listens on port {port}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _soaked(ready: Ready, wanted: Plan) -> list[float]:
    """Megabytes of the server while it is asked and told things, measured twenty times."""
    say(f"a load of {wanted.soak:.0f} seconds")
    mixed = [
        each
        for place, query in enumerate(ready.queries)
        for each in (
            request("POST", f"{PREFIX}/recall", KEY, {"query": query, "boost_by_usefulness": True}),
            request("POST", f"{PREFIX}/sessions/chat/feedback", KEY, _opinion(place)),
            request("POST", f"{PREFIX}/sessions/chat/entries", KEY, {"question": query, "answer": f"answer {place}"}),
            request("GET", f"{PREFIX}/sessions/chat/feedback?limit=20", KEY, None),
        )
    ]
    times = []
    with _served(ready.file) as server:
        _load(server.port, mixed, 8, max(2.0, wanted.soak / 20), SOAKED)
        for _ in range(20):
            _load(server.port, mixed, 8, wanted.soak / 20, SOAKED)
            times.append(server.megabytes())
    return times


def _tell(report: Report, found: Mapping[str, Rates], wanted: Plan) -> None:
    rate: dict[tuple[str, str, int], float] = {}
    section = report.section(
        "Requests", "work", "connections", "who", "a second", "p50 ms", "p99 ms", "of embedded", "of the bare route"
    )
    for work in (RECALL, FEEDBACK):
        for connections in CONNECTIONS:
            for who, rates in found.items():
                loads = rates.get((work, connections), [])
                if not loads:
                    continue
                rate[who, work, connections] = statistics.median(each.rate for each in loads)
                p50, p99 = np.percentile([ms for each in loads for ms in each.milliseconds], [50, 99])
                shares = [
                    _share(rate[who, work, connections], rate.get((other, work, connections)), who == other)
                    for other in ("embedded", "bare route")
                ]
                section.rows.append(
                    [
                        work,
                        str(connections),
                        who,
                        number(rate[who, work, connections]),
                        number(p50),
                        number(p99),
                        *shares,
                    ]
                )
    section.notes.append(
        "Feedback is one opinion about a session, written durably (synchronous=FULL) before the answer."
    )
    most = CONNECTIONS[-1]
    report.bars.append(
        Bar(
            f"recall over HTTP ÷ a route that only embeds, {most} connections",
            rate["server", RECALL, most] / rate["bare route", RECALL, most],
            LEAST_SHARE,
            "at least",
        )
    )
    report.bars.append(
        Bar(f"feedback, {most} connections", rate["server", FEEDBACK, most], LEAST_FEEDBACK, "at least", "a second")
    )
    report.figures["rates"] = {f"{who} {work} {connections}": value for (who, work, connections), value in rate.items()}


def _share(value: float, other: float | None, same: bool) -> str:
    return "" if same or other is None else f"{value / other:.0%}"


def _tell_soak(report: Report, taken: Sequence[float], wanted: Plan) -> None:
    first, last = statistics.median(taken[:5]), statistics.median(taken[-5:])
    section = report.section("Memory under a load that goes on", "minutes", "MB")
    for place, megabytes in enumerate(taken, start=1):
        if place % 4 == 0:
            section.rows.append([f"{place * wanted.soak / 20 / 60:.1f}", number(megabytes)])
    report.bars.append(Bar("memory at the end ÷ at the beginning", last / first, MOST_GROWTH, "at most"))
    report.figures["megabytes"] = list(taken)


if __name__ == "__main__":
    main()
