"""Several processes on one file, some of them killed: no event is lost, none is counted twice."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heedful import Heedful

pytestmark = [pytest.mark.usefixtures("warm_processes"), pytest.mark.slow]

WRITER = """
import sys
import heedful
from heedful.testing import ManualClock, WordEmbedder

path, name, fact, rounds = sys.argv[1:5]
with heedful.open(path, clock=ManualClock(), embedding=WordEmbedder()) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(rounds)):
        one = {"fact_id": fact, "signal_type": "used", "confidence": 0.001, "query": f"question {number % 5}",
               "idempotency_key": f"{name}/{number}"}
        event = store.signal([one]).event_ids[0]
        print(event, flush=True)
        if number % 5 == 0:
            store.remember(f"process {name} wrote line {number}")
            store.recall("line", boost_by_usefulness=True)
print("finished", flush=True)
"""

Child = subprocess.Popen[str]


@pytest.fixture
def start(path: Path) -> Iterator[Callable[[str, str, int], Child]]:
    """Starts a writer, which waits for a line before it writes; all are stopped at the end."""
    children: list[Child] = []

    def starting(name: str, fact: str, rounds: int) -> Child:
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, fact, str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        return child

    yield starting
    for child in children:
        if child.poll() is None:
            child.kill()
        child.communicate()


def go(child: Child) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    child.stdin.write("go\n")
    child.stdin.flush()


def ledger(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    result = [row[0] for row in connection.execute("SELECT id FROM events WHERE kind = 'signal'")]
    connection.close()
    return result


@pytest.mark.nightly
def test_processes_write_one_file_at_once(
    open_store: Callable[..., Heedful], path: Path, start: Callable[[str, str, int], Child]
) -> None:
    store = open_store()
    fact = store.remember("the one fact").fact_ids[0]
    children = [start(f"p{number}", fact, 25) for number in range(3)]
    for child in children:
        go(child)
    for number in range(20):
        store.signal([{"fact_id": fact, "signal_type": "used", "confidence": 0.001, "query": f"question {number % 5}"}])
    messages: list[str] = []
    for child in children:
        out, err = child.communicate(timeout=120)
        assert (child.returncode, err) == (0, "")
        messages += out.split()[:-1]
    assert len(messages) == len(set(messages)) == 75
    assert set(messages) <= set(ledger(path))
    stats = store.fact_stats(fact)
    assert stats.signal_count == len(ledger(path)) == 95
    assert stats.overall_usefulness == pytest.approx(0.5 + 95 * 0.0001)
    assert store.usefulness_stats().total_facts == 1 + 3 * 5
    assert len(store.recall("line", top_k=100, mode="lexical")) == 15
    assert all(check.ok and not check.repaired for check in store.doctor())


def test_every_acknowledged_event_survives_a_kill(
    open_store: Callable[..., Heedful], path: Path, start: Callable[[str, str, int], Child]
) -> None:
    first = open_store()
    fact = first.remember("the one fact").fact_ids[0]
    first.close()
    acknowledged: list[str] = []
    for lines in (2, 13):
        child = start(f"run {lines}", fact, 100_000)
        other = start(f"beside {lines}", fact, 100_000)
        go(child)
        go(other)
        assert child.stdout is not None
        messages = [child.stdout.readline().strip() for _ in range(lines)]
        for victim in (child, other):
            victim.send_signal(signal.SIGKILL)
            out, err = victim.communicate(timeout=60)
            assert victim.returncode == -signal.SIGKILL, err
            messages += [line for line in out.split("\n")[:-1] if line]
        acknowledged += messages
        store = open_store()
        written = ledger(path)
        assert len(written) == len(set(written))
        assert set(acknowledged) <= set(written)
        stats = store.fact_stats(fact)
        assert stats.signal_count == len(written)
        assert stats.overall_usefulness == pytest.approx(min(1.0, 0.5 + len(written) * 0.0001))
        assert all(check.ok and not check.repaired for check in store.doctor())
        store.close()
    assert len(acknowledged) == len(set(acknowledged))


def test_a_retry_after_a_kill_counts_once(
    open_store: Callable[..., Heedful], path: Path, start: Callable[[str, str, int], Child]
) -> None:
    first = open_store()
    fact = first.remember("the one fact").fact_ids[0]
    first.close()
    child = start("again", fact, 100_000)
    go(child)
    assert child.stdout is not None
    for _ in range(5):
        child.stdout.readline()
    child.kill()
    child.communicate()
    before = set(ledger(path))
    rounds = len(before) + 5
    retried = start("again", fact, rounds)
    go(retried)
    _, err = retried.communicate(timeout=120)
    assert (retried.returncode, err) == (0, "")
    assert before <= set(ledger(path))
    assert open_store().fact_stats(fact).signal_count == len(ledger(path)) == rounds


def test_a_child_after_a_fork_uses_its_own_connections(open_store: Callable[..., Heedful], path: Path) -> None:
    script = f"""
import os, sys, heedful
from heedful.testing import WordEmbedder
store = heedful.open({str(path)!r}, embedding=WordEmbedder())
fact = store.remember("the one fact").fact_ids[0]
children = []
for name in range(3):
    child = os.fork()
    if not child:
        for number in range(10):
            store.signal([{{"fact_id": fact, "signal_type": "used", "query": "q", "confidence": 0.001}}])
        os._exit(0)
    children.append(child)
for number in range(10):
    store.signal([{{"fact_id": fact, "signal_type": "used", "query": "q", "confidence": 0.001}}])
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
print(store.fact_stats(fact).signal_count)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("40", "")
    assert all(check.ok and not check.repaired for check in open_store().doctor())
