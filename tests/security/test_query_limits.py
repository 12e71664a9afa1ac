"""Queries that fill memory, never end, or take hours to read: each costs its own process, and nobody else anything."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest
from server import running

from heedful import Heedful, HeedfulError, Invalid, Unavailable
from heedful.sql.reuse.query_parts import nondeterminism
from heedful.sql.sandbox.pool import IDLE_PROCESSES

pytestmark = [pytest.mark.usefixtures("warm_processes"), pytest.mark.slow]

KINDS = ("sqlite", "duckdb", "postgresql")

SECONDS = 0.5
LATE = 30.0
"""When a limit was not held: far more than it takes to kill a process on a machine that is busy."""

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
MANY = {
    "sqlite": ", ".join(["hex(zeroblob(1900000))"] * 200),
    "duckdb": ", ".join(["repeat('x', 100000000)"] * 16),
    "postgresql": ", ".join(["repeat('x', 50000000)"] * 6),
}
FEW = {
    "sqlite": "SELECT " + ", ".join(["replace(hex(zeroblob(4900000)), '0', 'a')"] * 40),
    "duckdb": f"SELECT {MANY['duckdb']} FROM range(1000)",
    "postgresql": f"SELECT {MANY['postgresql']} FROM generate_series(1, 1000)",
}
UNREADABLE = {
    "subscripts": "SELECT a" + "[1]" * 30_000,
    "dots": "SELECT " + "a." * 45_000 + "a",
    "values": "SELECT 1 WHERE 1 IN (" + "1, " * 30_000 + "1)",
}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind, with one table."""
    if request.param == "postgresql":
        server: str = request.getfixturevalue("postgresql_url")
        return server
    file = tmp_path / f"some.{request.param}"
    if request.param == "sqlite":
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE city (name text)")
        connection.close()
    else:
        with duckdb.connect(str(file)) as opened:
            opened.execute("CREATE TABLE city (name text)")
    return f"{request.param}:///{file}"


@pytest.fixture
def small(open_store: Callable[..., Heedful], url: str, monkeypatch: pytest.MonkeyPatch) -> Heedful:
    """A store whose queries may take little."""
    monkeypatch.setenv("HEEDFUL_QUERY_SECONDS", str(SECONDS))
    monkeypatch.setenv("HEEDFUL_QUERY_MEMORY", "200")
    monkeypatch.setenv("HEEDFUL_QUERY_DISK", "20")
    store = open_store()
    store.connectors.create("db", url, privileged=True)
    return store


def kind(url: str) -> str:
    return url.partition(":")[0].partition("+")[0]


def refusal(store: Heedful, sql: str) -> HeedfulError:
    """The error of a statement, which came soon enough; the next statement runs."""
    began = time.monotonic()
    with pytest.raises(HeedfulError) as refused:
        store.executions.execute_query(sql)
    assert time.monotonic() - began < LATE
    assert store.executions.execute_query("SELECT 7").result.rows == [[7]]
    assert refused.value.remedy
    return refused.value


@dataclass
class Peak:
    """How many megabytes this process grew while a block ran, at the most."""

    megabytes: float = 0.0

    def __enter__(self) -> Peak:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = _status("VmHWM")
        return self

    def __exit__(self, *_: object) -> None:
        self.megabytes = _status("VmHWM") - self._before


def _status(name: str) -> float:
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(found.split()[1]) / 1024


def children(of: int) -> list[int]:
    """The processes that a process has started and that were not waited for."""
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == of:
                result.append(int(entry.name))
    return result


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by Linux alone")
def test_a_row_of_huge_values_takes_no_memory_of_the_server(small: Heedful, url: str) -> None:
    with Peak() as peak:
        for sql in (f"SELECT {MANY[kind(url)]}", FEW[kind(url)]):
            assert refusal(small, sql).code in ("query_memory", "query_timeout", "query_failed")
    assert peak.megabytes < 50


def test_many_rows_are_cut_within_the_process_that_reads_them(
    open_store: Callable[..., Heedful], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What DuckDB takes for the same rows depends on how its threads come to run.
    monkeypatch.setenv("HEEDFUL_QUERY_MEMORY", "400")
    store = open_store()
    store.connectors.create("db", url, privileged=True)
    rows = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        " SELECT hex(zeroblob(10000)) FROM n",
        "duckdb": "SELECT repeat('x', 20000) FROM range(700)",
        "postgresql": "SELECT repeat('x', 20000) FROM generate_series(1, 5000)",
    }
    with Peak() as peak:
        result = store.executions.execute_query(rows[kind(url)]).result
    assert (result.truncated_by, len(result.rows)) == ("bytes", 499)
    assert peak.megabytes < 120


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        pytest.param(
            "SELECT instr(hex(zeroblob(400000)), hex(zeroblob(200000)) || 'x')", {"query_timeout"}, id="instr"
        ),
        pytest.param(
            f"SELECT replace(hex(zeroblob(1900000)), '0', 'a') LIKE '%{'a' * 900}b%'", {"query_timeout"}, id="like"
        ),
        pytest.param(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
            " SELECT max(length(b)) FROM (SELECT randomblob(1000000) AS b FROM n ORDER BY b LIMIT 900)",
            {"query_disk", "query_timeout", "query_memory"},
            id="sort",
        ),
        pytest.param(ENDLESS, {"query_timeout"}, id="endless"),
    ],
)
@pytest.mark.nightly
def test_sqlite_is_stopped_inside_one_step_of_its_own(small: Heedful, sql: str, codes: set[str]) -> None:
    assert refusal(small, sql).code in codes


@pytest.mark.parametrize("bomb", UNREADABLE)
def test_sql_that_takes_long_to_read_takes_no_time_of_the_server(small: Heedful, bomb: str) -> None:
    used = time.process_time()
    assert isinstance(refusal(small, UNREADABLE[bomb]), Invalid)
    with pytest.raises(Invalid):
        small.golden_examples.create("How many?", UNREADABLE[bomb])
    assert time.process_time() - used < 1


def test_reuse_reads_no_long_statement_in_the_server() -> None:
    used = time.process_time()
    for sql in (*UNREADABLE.values(), "SELECT " + "a." * 900 + "a", "SELECT a" + "[1]" * 300):
        for dialect in KINDS:
            assert nondeterminism(sql, dialect) == "the statement can't be parsed"
    assert time.process_time() - used < 2


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_process_that_is_killed_costs_its_own_query_alone(open_store: Callable[..., Heedful], url: str) -> None:
    store = open_store()
    store.connectors.create("db", url, privileged=True)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(store.executions.execute_query, ENDLESS)
        busy = _busiest(os.getpid())
        assert store.executions.execute_query("SELECT 7").result.rows == [[7]]
        os.kill(busy, signal.SIGKILL)
        error = slow.exception(timeout=LATE)
    assert isinstance(error, Unavailable)
    assert error.code == "query_crashed"
    assert store.executions.execute_query("SELECT 7").result.rows == [[7]]
    assert busy not in children(os.getpid())


def _busiest(parent: int) -> int:
    """The first child that is seen to work."""
    seen: dict[int, int] = {}
    until = time.monotonic() + 2 * LATE
    while time.monotonic() < until:
        for pid in children(parent):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used = int(fields[11])
            if used - seen.setdefault(pid, used) >= 5:
                return pid
        time.sleep(0.01)
    raise AssertionError("no query process works")


SCRIPT = """
import os, signal, sqlite3, sys
import heedful
from heedful.testing import WordEmbedder
os.environ["SALES_PASSWORD"] = "from-the-environment"
os.environ["PGPASSWORD"] = "from-the-environment"
store = heedful.open("store.db", embedding=WordEmbedder(), worker=False)
store.connectors.create("db", "sqlite:///some.sqlite")
assert store.executions.execute_query("SELECT 7").result.rows == [[7]]
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Runs a program that has asked a database; the test's folder is its own."""
    sqlite3.connect(tmp_path / "some.sqlite").execute("CREATE TABLE city (name text)").connection.close()
    started = []

    def start(more: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SCRIPT + more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        started.append(program)
        return program

    yield start
    for each in started:
        each.kill()
        each.communicate()


LIFE = """
print("ready", flush=True)
sys.stdin.readline()
files = []
for turn in range(2):
    with heedful.open("other.db", embedding=WordEmbedder(), worker=False) as other:
        other.connectors.create(f"db{turn}", "sqlite:///some.sqlite")
        other.executions.execute_query("SELECT 8", connector_id=f"db{turn}")
    files.append(len(os.listdir("/proc/self/fd")))
print(files[1] - files[0], flush=True)
sys.stdin.readline()
store.close()
print("closed", flush=True)
sys.stdin.readline()
python, sys.executable = sys.executable, "/nowhere/python"
store = heedful.open("store.db", embedding=WordEmbedder(), worker=False)
try:
    store.executions.execute_query("SELECT 8")
except heedful.Unavailable as error:
    print(error.code, flush=True)
sys.executable = python
store.executions.execute_query("SELECT 9")
"""


def test_query_processes_see_no_secrets_and_end_with_the_store_and_with_the_program(
    script: Callable[[str], subprocess.Popen[str]],
) -> None:
    program = script(LIFE)

    def read_line() -> str:
        assert program.stdout is not None
        return program.stdout.readline().strip()

    def go_on() -> None:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()

    assert read_line() == "ready"
    (child,) = children(program.pid)
    seen = Path(f"/proc/{child}/environ").read_bytes() + Path(f"/proc/{child}/cmdline").read_bytes()
    assert not [each for each in (b"from-the-environment", b"some.sqlite", b"HEEDFUL") if each in seen]
    assert "NoNewPrivs:\t1" in Path(f"/proc/{child}/status").read_text()
    assert not [each for each in Path(f"/proc/{child}/fd").iterdir() if "store.db" in os.readlink(each)]
    go_on()
    assert read_line() == "0"
    assert children(program.pid) == [child]
    go_on()
    assert read_line() == "closed"
    assert children(program.pid) == []
    go_on()
    assert read_line() == "query_process"
    assert program.wait(LATE) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with the one that started it")
def test_a_query_ends_with_a_program_that_is_killed(script: Callable[[str], subprocess.Popen[str]]) -> None:
    program = script(f"store.executions.execute_query({ENDLESS!r})")
    child = _busiest(program.pid)
    program.kill()
    program.wait()
    until = time.monotonic() + LATE
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()


def test_a_copy_of_a_program_has_query_processes_of_its_own(script: Callable[[str], subprocess.Popen[str]]) -> None:
    program = script(
        "copy = os.fork()\n"
        "ran = store.executions.execute_query('SELECT 8').result.rows == [[8]]\n"
        "if copy == 0:\n"
        "    os._exit(0 if ran else 1)\n"
        "assert ran and os.waitpid(copy, 0)[1] == 0\n"
        "assert store.executions.execute_query('SELECT 9').result.rows == [[9]]\n"
        "store.close()\n"
    )
    assert program.wait(4 * LATE) == 0


@pytest.mark.nightly
def test_slow_queries_of_one_key_delay_nobody_else(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_QUERY_WAIT", "0.5")
    monkeypatch.setenv("HEEDFUL_QUERY_SECONDS", "6")
    file = tmp_path / "some.sqlite"
    sqlite3.connect(file).execute("CREATE TABLE city (name text)").connection.close()
    with running(path, threads=16) as server, server.connect("busy") as busy, server.connect("quiet") as quiet:
        for each in (busy, quiet):
            each.connectors.create("db", f"sqlite:///{file}")
        quiet.remember("Ada is the CEO.")
        keys = {"busy": busy.keys.create("caller").api_key, "quiet": quiet.keys.create("caller").api_key}

        def call(project: str, method: str, path: str, **body: Any) -> httpx.Response:
            address = f"{server.url}/v1/projects/{project}/{path}"
            headers = {"Authorization": f"Bearer {keys[project]}"}
            return httpx.request(method, address, headers=headers, json=body or None, timeout=60)

        def looked() -> float:
            began = time.monotonic()
            assert call("quiet", "GET", "facts").json()["items"]
            return time.monotonic() - began

        alone = sorted(looked() for _ in range(5))[2]
        with ThreadPoolExecutor(16) as pool:
            slow = [pool.submit(call, "busy", "POST", "executions", sql_query=ENDLESS) for _ in range(16)]
            _busiest(os.getpid())
            first = looked()
            under_way = not all(each.done() for each in slow)
            beside = sorted([first, *(looked() for _ in range(4))])[2]
            answer = call("quiet", "POST", "executions", sql_query="SELECT 7")
            names = {(each.result().json()["code"], each.result().status_code) for each in slow}
            retries = {each.result().headers.get("retry-after") for each in slow}
    assert under_way
    assert beside < 5 * alone + 0.5
    assert answer.json()["result"]["rows"] == [[7]]
    assert names == {("query_busy", 429), ("query_timeout", 422)}
    assert retries == {"1", None}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_large_program_keeps_its_query_processes(open_store: Callable[..., Heedful], url: str) -> None:
    IDLE_PROCESSES.end()
    ballast = b"x" * (300 << 20)
    store = open_store()
    store.connectors.create("db", url)
    before = children(os.getpid())
    for _ in range(5):
        store.executions.execute_query("SELECT 1")
    assert children(os.getpid()) == before != []
    assert len(ballast) == 300 << 20
