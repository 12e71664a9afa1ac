"""Neighbours on one server: `python -m bench.fairness [--out FOLDER] [--quick] [--store KIND] [--way NAME]`.

A quiet project reads, recalls and gives feedback, ten calls a second, while a neighbour with keys of its own project
does its worst in one way after the other. What is held against the bar is the quiet project's 95th percentile beside a
neighbour, divided by its 95th percentile alone, just before and after, on the same server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench import postgresql
from bench.measure import Bar, Report, about, load, number, say
from bench.server_load import Load, request

ADMIN = "a-key-that-the-benchmark-made-up"
MOST = 2.0
"""How many times longer the quiet project may wait beside a neighbour than alone."""
RATE = 10.0
"""Calls a second of the quiet project."""
WORDS = ("shipping", "zone", "parcel", "order", "return", "refund", "customer", "invoice", "weight", "days", "week")


@dataclass(frozen=True, slots=True)
class Plan:
    """How long each phase takes, and how much the projects hold."""

    seconds: float
    facts: int


class Server:
    """A running server with a quiet project and its neighbour's."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder
        self.admin = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {ADMIN}"}, timeout=300
        )
        self.quiet_key = self.key("quiet", ["read", "write", "feedback"])
        self.neighbour_key = self.key("neighbour", ["read", "write", "feedback"])

    def post(self, project: str, path: str, body: dict[str, Any]) -> Any:
        """What the operator gets for a call in a project."""
        answer = self.admin.post(f"/v1/projects/{project}{path}", json=body)
        answer.raise_for_status()
        return answer.json()

    def key(self, project: str, scopes: list[str]) -> str:
        return str(self.post(project, "/keys", {"name": "bench", "scopes": scopes})["api_key"])

    def settle(self) -> None:
        """Waits until what the neighbour began is done."""
        time.sleep(2)
        for each in ("/facts?limit=1", "/execution-cache-coverage"):
            self.admin.get(f"/v1/projects/neighbour{each}", headers={"Authorization": f"Bearer {self.neighbour_key}"})

    def quiet(self, method: str, path: str, body: object = None) -> bytes:
        return request(method, f"/v1/projects/quiet{path}", self.quiet_key, body)

    def neighbour(self, method: str, path: str, body: object = None) -> bytes:
        return request(method, f"/v1/projects/neighbour{path}", self.neighbour_key, body)


@dataclass(frozen=True, slots=True)
class Way:
    """What a neighbour does: these requests, over so many connections."""

    name: str
    connections: int
    requests: Callable[[Server], list[bytes]]


def _sentences(count: int, seed: int) -> str:
    chosen = random.Random(seed)
    return " ".join(" ".join(chosen.choices(WORDS, k=12)).capitalize() + "." for _ in range(count))


def _detect(server: Server) -> list[bytes]:
    recall_id = server.post("neighbour", "/recall", {"query": "how long does shipping take", "top_k": 20})["recall_id"]
    return [
        server.neighbour("POST", f"/recalls/{recall_id}/detect", {"answer": _sentences(250, seed)})
        for seed in range(40)
    ]


def _recall(server: Server) -> list[bytes]:
    return [
        server.neighbour("POST", "/recall", {"query": _sentences(3, seed), "top_k": 100, "answer": seed % 2 == 0})
        for seed in range(500)
    ]


def _remember(server: Server) -> list[bytes]:
    return [
        server.neighbour("POST", "/facts", {"texts": [_sentences(2, seed * 500 + place) for place in range(500)]})
        for seed in range(20)
    ]


def _signals(server: Server) -> list[bytes]:
    facts = server.admin.get("/v1/projects/neighbour/facts", params={"limit": 100}).json()["items"]
    signals = [
        {"fact_id": fact["fact_id"], "signal_type": "helpful", "query": _sentences(1, place), "author": f"a{place}"}
        for place in range(10)
        for fact in facts
    ]
    return [server.neighbour("POST", "/signals", {"signals": signals})]


def _bodies(server: Server) -> list[bytes]:
    text = "x" * 9_000
    return [server.neighbour("POST", "/facts", {"texts": [f"{place} {text}" for place in range(2_500)], "dataset": ""})]


def _connector(server: Server) -> str:
    """A database of the neighbour's."""
    file = server.folder / "shop.db"
    if not file.exists():
        shop = sqlite3.connect(file)
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)")
        shop.executemany("INSERT INTO orders VALUES (?, ?)", [(place, place) for place in range(2_000)])
        shop.commit()
        shop.close()
        server.post("neighbour", "/connectors", {"name": "shop", "url": f"sqlite:///{file}"})
    return str(server.admin.get("/v1/projects/neighbour/connectors").json()[0]["connector_id"])


def _queries(server: Server) -> list[bytes]:
    sql = "SELECT sum(a.total * b.total) FROM orders a, orders b, orders c WHERE a.id <> b.id"
    body = {"connector_id": _connector(server), "sql_query": sql, "question": "What is it all worth?"}
    return [server.neighbour("POST", "/executions", body)]


def _lookups(server: Server) -> list[bytes]:
    connector_id = _connector(server)
    return [
        server.neighbour(
            "POST",
            "/execution-cache-lookup",
            {"user_query": f"{_sentences(1, seed)} {seed}?", "connector_id": connector_id},
        )
        for seed in range(500)
    ]


def _reports(server: Server) -> list[bytes]:
    names = ("satisfaction", "trend", "coverage", "usefulness", "themes", "notes", "digest", "rows?limit=1000")
    return [server.neighbour("GET", f"/insight/{name}") for name in names] + [
        server.neighbour("GET", "/stats/facts"),
        server.neighbour("GET", "/stats/usefulness"),
        server.neighbour("POST", "/replay", {}),
    ]


def _filters(server: Server) -> list[bytes]:
    conditions = {f"k{place}": {"!=": place} for place in range(90)}
    return [
        server.neighbour("POST", "/recall", {"query": "days", "top_k": 1000, "where": conditions}),
        server.neighbour("GET", "/facts?limit=1000"),
    ]


def _improve(server: Server) -> list[bytes]:
    entries = [
        server.neighbour("POST", f"/sessions/s{seed}/entries", {"question": _sentences(1, seed), "answer": "No."})
        for seed in range(50)
    ]
    return [*entries, server.neighbour("POST", "/improve", {})]


def _strangers(server: Server) -> list[bytes]:
    return [
        request("GET", "/v1/projects/neighbour/facts", f"hf_{place:016x}_{'0' * 32}", None) for place in range(1_000)
    ]


def _held(server: Server) -> list[bytes]:
    """Requests whose bodies don't come."""
    made = server.post("neighbour", "/tokens", {"targets": [{"session_id": "page"}]})
    head = (
        "POST /v1/projects/neighbour/sessions/page/feedback HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {made['token']}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    return [head.encode()]


WAYS = (
    Way("long answers to attribute", 32, _detect),
    Way("recalls and answers", 64, _recall),
    Way("facts in batches", 16, _remember),
    Way("signals in batches", 16, _signals),
    Way("bodies of 22 MB", 8, _bodies),
    Way("slow SQL", 32, _queries),
    Way("questions about data", 32, _lookups),
    Way("reports", 32, _reports),
    Way("filters and long pages", 32, _filters),
    Way("learning", 16, _improve),
    Way("keys that are not valid", 128, _strangers),
    Way("connections held open", 1_000, _held),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], help="one kind of store; both if left out")
    parser.add_argument("--way", help="one way, by the beginning of its name; all if left out")
    options = parser.parse_args(arguments)
    wanted = Plan(2.0, 100) if options.quick else Plan(10.0, 2_000)
    ways = [way for way in WAYS if options.way is None or way.name.startswith(options.way)]
    report = Report("Neighbours", about(facts=wanted.facts, rate=f"{RATE:.0f} quiet calls a second"))
    options.out.mkdir(parents=True, exist_ok=True)
    for kind in ["sqlite", "postgresql"] if options.store is None else [options.store]:
        _measure(report, kind, ways, wanted, options.out)
    report.about["load at the end"] = load()
    report.show()
    report.save(options.out / "fairness.json")


def _measure(report: Report, kind: str, ways: Sequence[Way], wanted: Plan, out: Path) -> None:
    section = report.section(
        f"A quiet project on {kind}", "beside", "p50 ms", "p95 ms", "alone p95", "ratio", "neighbour's answers"
    )
    with (
        tempfile.TemporaryDirectory(dir=out, prefix="fairness-") as name,
        _store(kind, Path(name)) as store,
        _served(store, Path(name)) as server,
    ):
        quiet = _prepared(server, wanted)
        _quiet(server, quiet, wanted.seconds / 2)
        before = _quiet(server, quiet, wanted.seconds)
        for way in ways:
            beside, neighbour = _beside(server, way, quiet, wanted.seconds)
            server.settle()
            after = _quiet(server, quiet, wanted.seconds / 2)
            alone = float(np.percentile(before.milliseconds + after.milliseconds, 95))
            p50, p95 = (float(each) for each in np.percentile(beside.milliseconds, [50, 95]))
            answers = ", ".join(f"{count}×{status}" for status, count in sorted(neighbour.items()))
            section.rows.append(
                [way.name, number(p50), number(p95), number(alone), number(p95 / alone), answers or "none"]
            )
            say(f"{kind}: " + "  ".join(section.rows[-1]))
            # Whoever is refused is answered quickly.
            report.bars.append(Bar(f"{kind}: {way.name}", np.inf if beside.failures else p95 / alone, MOST, "at most"))
            if beside.failures:
                section.notes.append(f"{way.name}: the quiet project had {beside.statuses}")
            before = after


def _prepared(server: Server, wanted: Plan) -> list[bytes]:
    """What the quiet project asks, after both projects were filled."""
    for project in ("quiet", "neighbour"):
        for first in range(0, wanted.facts, 500):
            texts = [f"{_sentences(1, place)} ({project} {place})" for place in range(first, first + 500)]
            server.post(project, "/facts", {"texts": texts[: wanted.facts]})
        server.post(project, "/sessions", {"session_id": "page"})
    return [
        each
        for place in range(100)
        for each in (
            server.quiet("GET", "/facts?limit=20"),
            server.quiet("POST", "/recall", {"query": f"{_sentences(1, place)} {place}"}),
            server.quiet("POST", "/sessions/page/feedback", {"feedback": {"rating": "up", "comment": f"c {place}"}}),
        )
    ]


def _quiet(server: Server, requests: Sequence[bytes], seconds: float) -> Load:
    with _sending(server, requests, 4, seconds, RATE) as process:
        return _came(process)


def _beside(server: Server, way: Way, quiet: Sequence[bytes], seconds: float) -> tuple[Load, dict[str, int]]:
    """What the quiet project got beside a neighbour, and what the neighbour got."""
    with _sending(server, way.requests(server), way.connections, seconds + 4, None) as neighbour:
        # The worst is what lasts: the first second is the neighbour's burst.
        time.sleep(2)
        beside = _quiet(server, quiet, seconds)
        return beside, _came(neighbour).statuses


@contextmanager
def _sending(
    server: Server, requests: Sequence[bytes], connections: int, seconds: float, most: float | None
) -> Iterator[subprocess.Popen[str]]:
    asked = {
        "port": server.port,
        "requests": [each.decode("latin-1") for each in requests],
        "connections": connections,
        "seconds": seconds,
        "most": most,
        "stubborn": True,
        # Nobody can tell the callers of one address apart before they show a key.
        "address": "127.0.0.1" if most is not None else "127.0.0.2",
    }
    # The neighbour's own machine would not take time from the server.
    nice = ["nice", "-n", "19"] if most is None else []
    process = subprocess.Popen(
        [*nice, sys.executable, "-m", "bench.server_load"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked))
    process.stdin.close()
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _came(process: subprocess.Popen[str]) -> Load:
    assert process.stdout is not None
    return Load(**json.loads(process.stdout.read()))


@contextmanager
def _store(kind: str, folder: Path) -> Iterator[str]:
    with nullcontext() if kind == "sqlite" else postgresql.serving(folder / "postgresql") as running:
        yield str(folder / "store.db") if running is None else running.database("fairness")


@contextmanager
def _served(store: str, folder: Path) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "heedful", "serve", "--store", store, "--port", str(port)],
            env={**os.environ, "HEEDFUL_ADMIN_KEY": ADMIN},
            stdout=log,
            stderr=log,
        )
        try:
            for _ in range(600):
                try:
                    httpx.get(f"http://127.0.0.1:{port}/healthz")
                except httpx.TransportError:
                    if process.poll() is not None:
                        raise RuntimeError((folder / "server.log").read_text()) from None
                    time.sleep(0.1)
                else:
                    break
            yield Server(port, folder)
        finally:
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    main()
