"""Insight at a million opinions: `python -m bench.insight [--opinions 1000000] [--out FOLDER] [--quick]`.

The reports of the overview on SQLite and on PostgreSQL, each beside the same sums written by hand in SQL; exports; and
the memory of the dashboard over a thousand page loads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import heedful
from bench.insight_dashboard import loads, paints
from bench.insight_data import fill
from bench.insight_sql import BY_HAND
from bench.measure import Bar, Report, about, load, number, say, timed, timing
from bench.postgresql import serving
from heedful.clock import to_stored
from heedful.engine import Heedful
from heedful.interfaces.dashboard import views
from heedful.storage import open_store
from heedful.testing import WordEmbedder

PARTS = ("SQLite", "PostgreSQL", "dashboard")
ROUNDS = 5
LONGEST_MS = 300
MOST_TIMES = 2.0
LEAST_ROWS = 50_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.insight", description=__doc__)
    parser.add_argument("--opinions", type=int, default=1_000_000, help="opinions in each store (1000000)")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure this part, not all of them")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    options = parser.parse_args(arguments)
    opinions = min(options.opinions, 20_000) if options.quick else options.opinions
    page_loads = 50 if options.quick else 1_000
    report = Report("Insight", about(opinions=f"{opinions:,}", rounds=ROUNDS))
    with (
        tempfile.TemporaryDirectory(prefix="heedful-") as home,
        serving(Path(home) / "postgresql") as server,
    ):
        stores = {"SQLite": str(Path(home) / "store.db"), "PostgreSQL": server.database("insight")}
        parts = options.only or PARTS
        for kind, where in stores.items():
            if kind not in parts and not (kind == "SQLite" and "dashboard" in parts):
                continue
            _fill(where, opinions, kind)
            if kind not in parts:
                continue
            _queries(report, kind, where)
            _exports(report, kind, where, Path(home))
            report.save(options.out / "insight.json")
        if "dashboard" in parts:
            _dashboard(report, stores["SQLite"], page_loads)
    report.about["load at the end"] = load()
    report.show()
    report.save(options.out / "insight.json")


def _fill(where: str, opinions: int, kind: str) -> None:
    say(f"{kind}: writing {opinions:,} opinions")
    heedful.open(where, embedding=WordEmbedder()).close()
    database = open_store(where)
    fill(database, opinions, to_stored(datetime.now(UTC)), say)
    if kind == "PostgreSQL":
        with database.outside("analyze") as connection:
            assert connection is not None
            connection.exec_driver_sql("ANALYZE")
    database.close()


def _queries(report: Report, kind: str, where: str) -> None:
    """Each report over all time and over a month, beside the sums by hand, in turns."""
    with heedful.open(where, embedding=WordEmbedder(), worker=False) as store:
        first = (
            timed(lambda: store.insight.trend())[0].wall + timed(lambda: store.insight.satisfaction("variant"))[0].wall
        )
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        section = report.section(
            f"{kind}: reports, p50 in ms", "report", "all time", "by hand", "times", "30 days", "by hand", "times"
        )
        for name, ask in _reports(store).items():
            row = [name]
            for since in (None, midnight - timedelta(days=30)):
                ours, hand = _beside(store, name, ask, since)
                row += [number(ours), number(hand), f"{ours / hand:.2f}×"]
                window = "all time" if since is None else "30 days"
                report.bars.append(Bar(f"{kind}: {name}, {window}", ours, LONGEST_MS, "at most", "ms"))
                report.bars.append(Bar(f"{kind}: {name}, {window}, by hand", ours / hand, MOST_TIMES, "at most", "×"))
                report.figures[f"{kind}/{name}/{window}"] = {"ours": ours, "by hand": hand}
            section.rows.append(row)
        section.notes.append(f"the first time anybody asked, the counts were made in {first:.1f} s")
        _later(report, kind, store)


def _later(report: Report, kind: str, store: Heedful) -> None:
    """The parts of the overview that come after the page, as the dashboard asks for them; the first time apart."""
    since = datetime.now(UTC) - timedelta(days=30)
    parts: dict[str, Callable[[], Any]] = {
        "what changed": lambda: store.insight.notes(since=since),
        "themes": lambda: store.insight.themes(since=since),
        "open review items": lambda: views.count_by_status(store),
    }
    section = report.section(f"{kind}: what comes after the page, 30 days", "part", "first time, s", "then, p50 in ms")
    for name, ask in parts.items():
        first = timed(ask)[0].wall
        then = timing([timed(ask)[0] for _ in range(ROUNDS)]).p50
        section.rows.append([name, f"{first:.1f}", number(then)])
        report.bars.append(Bar(f"{kind}: {name}", then, LONGEST_MS, "at most", "ms"))


def _reports(store: Heedful) -> dict[str, Callable[[datetime | None], Any]]:
    insight = store.insight
    return {
        "trend": lambda since: insight.trend(since=since),
        "trend by variant": lambda since: insight.trend(by="variant", since=since),
        "by variant": lambda since: insight.satisfaction("variant", since=since),
        "by dataset": lambda since: insight.satisfaction("dataset", since=since),
        "by model": lambda since: insight.satisfaction("model", since=since),
        "by author kind": lambda since: insight.satisfaction("author_kind", since=since),
        "coverage": lambda since: insight.coverage(since=since),
        "cache": lambda since: insight.cache(since=since),
    }


def _beside(
    store: Heedful, name: str, ask: Callable[[datetime | None], Any], since: datetime | None
) -> tuple[float, float]:
    """The medians of the report and of the sums by hand, in milliseconds."""
    start = 0 if since is None else to_stored(since)
    ours, hand = [], []
    for _ in range(ROUNDS):
        ours.append(timed(lambda: ask(since))[0])
        hand.append(timed(lambda: _by_hand(store, name, start))[0])
    return timing(ours).p50, timing(hand).p50


def _by_hand(store: Heedful, name: str, since: int) -> None:
    with store._workspace.read() as connection:
        for statement in BY_HAND[name]:
            connection.exec_driver_sql(statement.format(since=since)).all()


def _exports(report: Report, kind: str, where: str, folder: Path) -> None:
    section = report.section(f"{kind}: exports", "table", "format", "rows", "rows a second")
    with heedful.open(where, embedding=WordEmbedder(), worker=False) as store:
        for table in ("feedback", "entries", "events"):
            for suffix in ("csv", "jsonl", "parquet"):
                target = folder / f"{table}.{suffix}"
                started = time.perf_counter()
                done = store.insight.export(table, target)
                speed = done.rows / (time.perf_counter() - started)
                section.rows.append([table, suffix, f"{done.rows:,}", number(speed)])
                report.bars.append(Bar(f"{kind}: {table} as {suffix}", speed, LEAST_ROWS, "at least", "rows/s"))
                target.unlink()


def _dashboard(report: Report, where: str, page_loads: int) -> None:
    say(f"dashboard: {page_loads:,} page loads")
    found = loads(where, page_loads)
    section = report.section("Dashboard", "figure", "")
    section.rows += [
        ["page loads", f"{page_loads:,}"],
        ["first overview", f"{found.first_ms:,.0f} ms"],
        ["overview, p50", f"{found.p50_ms:,.0f} ms"],
        ["memory after a tenth", f"{found.early_mb:,.0f} MB"],
        ["memory at the end", f"{found.late_mb:,.0f} MB"],
    ]
    painted = paints(where, ROUNDS)
    if painted is None:
        section.notes.append("there is no Chromium: what it paints was not measured")
    else:
        section.rows += [
            ["Chromium: first contentful paint, p50", f"{painted.first_ms:,.0f} ms"],
            ["Chromium: page loaded, p50", f"{painted.loaded_ms:,.0f} ms"],
            ["Chromium: all parts there, p50", f"{painted.whole_ms:,.0f} ms"],
        ]
    report.bars.append(
        Bar("dashboard: memory at the end / after a tenth", found.late_mb / found.early_mb, 1.05, "at most", "×")
    )
    report.bars.append(Bar("dashboard: overview", found.p50_ms, 1_000, "at most", "ms"))


if __name__ == "__main__":
    main()
