"""What it costs a short query to run in a process of its own, on SQLite, DuckDB and PostgreSQL.

`python -m bench.sandbox [--out FOLDER] [--quick]`
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import duckdb
import psycopg

from bench.measure import Bar, Report, about, number
from bench.postgresql import Server, serving
from heedful.results import encode
from heedful.settings import Settings
from heedful.sql.databases.any_database import Limits
from heedful.sql.databases.opening import open_database
from heedful.sql.guard import check_statement
from heedful.sql.sandbox.pool import Pool, Queries, Statement, Target
from heedful.sql.statements import template

TURNS = 200
SQL = "SELECT name FROM city WHERE people > :least ORDER BY name"
TABLE = "CREATE TABLE city (name varchar(50), people integer)"
ROWS = "INSERT INTO city VALUES ('Rome', 2800000), ('Oslo', 700000), ('Nice', 340000)"
MOST = 2.0
"""Milliseconds that a process may add."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    options = parser.parse_args(arguments)
    turns = 10 if options.quick else TURNS
    report = Report("Queries in a process of their own", about(turns=turns))
    columns = ["in-process, p50", "p95", "in a child, p50", "p95", "added, p50", "first query, cold"]
    report.section("A short query, ms", "database", *columns)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "server") as server:
        for name, url in _made(Path(folder), server).items():
            _compare(report, name, url, turns)
    report.show()
    report.save(options.out / "sandbox.json")


def _made(folder: Path, server: Server) -> dict[str, str]:
    with sqlite3.connect(folder / "some.sqlite") as connection:
        connection.executescript(f"{TABLE}; {ROWS}")
    connection.close()
    with duckdb.connect(str(folder / "some.duckdb")) as opened:
        opened.execute(TABLE)
        opened.execute(ROWS)
    with psycopg.connect(server.database("bench")) as session:
        session.execute(TABLE)
        session.execute(ROWS)
    return {
        "SQLite": f"sqlite:///{folder}/some.sqlite",
        "DuckDB": f"duckdb:///{folder}/some.duckdb",
        "PostgreSQL": server.connector("bench"),
    }


def _compare(report: Report, name: str, url: str, turns: int) -> None:
    """A row with the milliseconds that a process of its own adds to a query, at the median."""
    pool = Pool(Settings())
    queries, target = Queries(pool, "bench"), Target(url)
    parameters = {"least": 500_000}

    def here() -> object:
        database = open_database(url)
        query = check_statement(SQL, database.dialect)
        version = database.data_version()
        with database.session() as session:
            result = session.run(query, parameters, Limits())
        return encode(result), template(query.sql, query.dialect), version

    def apart() -> object:
        return queries.run(target, Statement(SQL, parameters))

    began = perf_counter()
    apart()
    cold = (perf_counter() - began) * 1000
    inside, outside = _turns(turns, here, apart)
    pool.close()
    # Of each pair: what else the machine does takes longer than what is measured.
    added = statistics.median(after - before for before, after in zip(inside, outside, strict=True))
    taken = [of(each) for each in (inside, outside) for of in (statistics.median, _p95)]
    report.sections[0].rows.append([name, *map(number, [*taken, added, cold])])
    report.bars.append(Bar(f"{name}: added by a process of its own, p50", added, MOST, "at most", "ms"))


def _turns(turns: int, *works: Callable[[], object]) -> list[list[float]]:
    """The milliseconds of each, in turns, so that what else the machine does meets all of them."""
    took: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(turns):
        for place, work in enumerate(works):
            began = perf_counter()
            work()
            took[place].append((perf_counter() - began) * 1000)
    return took


def _p95(took: list[float]) -> float:
    return statistics.quantiles(took, n=20)[-1]


if __name__ == "__main__":
    main()
