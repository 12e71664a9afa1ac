"""Several processes on one store: how old may be what one of them sees of the others' writes? Not old at all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from server import running

from heedful import Heedful

pytestmark = [pytest.mark.usefixtures("warm_processes"), pytest.mark.slow]

OTHER = """
import sys
import heedful
from heedful.testing import ManualClock, WordEmbedder

with heedful.open(sys.argv[1], clock=ManualClock(), embedding=WordEmbedder()) as store:
    print("ready", flush=True)
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "remember":
            print(store.remember(rest).fact_ids[0], flush=True)
        elif verb == "forget":
            print(store.forget(fact_ids=[rest]).facts, flush=True)
        else:
            signal = {"fact_id": rest, "signal_type": "helpful", "query": "number"}
            print(store.signal([signal]).event_ids[0], flush=True)
"""
SOON = 30
"""Seconds that a test waits for what comes at once."""


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    address: str = request.getfixturevalue("empty_database")
    return address


class Other:
    """Another process with the same store open, that does what it is told."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def tell(self, line: str) -> str:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()
        return self._child.stdout.readline().strip()


@pytest.fixture
def other(where: str, open_store: Callable[..., Heedful]) -> Iterator[Other]:
    open_store(where).close()
    with started(where) as made:
        yield made


@contextmanager
def started(where: str) -> Iterator[Other]:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        try:
            yield Other(child)
        finally:
            assert child.stdin is not None
            child.stdin.close()
            child.wait(SOON)


@pytest.mark.nightly
def test_what_another_process_was_told_is_done_is_seen_by_the_next_recall(
    where: str, other: Other, open_store: Callable[..., Heedful]
) -> None:
    store = open_store(where)
    seen: set[str] = set()
    for number in range(40):
        fact = other.tell(f"remember the number {number} was written elsewhere")
        seen.add(fact)
        result = store.recall(f"number {number}", top_k=50)
        assert {hit.fact_id for hit in result} >= {fact}
        if number % 4 == 3:
            assert other.tell(f"forget {fact}") == "1"
            seen.remove(fact)
            assert {hit.fact_id for hit in store.recall(f"number {number}", top_k=50)} == seen


def test_the_opinions_of_another_process_count_in_the_next_recall(
    where: str, other: Other, open_store: Callable[..., Heedful]
) -> None:
    store = open_store(where)
    facts = [other.tell(f"remember the number {number} was written elsewhere") for number in range(3)]
    for fact in facts:
        for times in range(1, 4):
            other.tell(f"signal {fact}")
            assert store.fact_stats(fact).signal_count == times
            hits = {hit.fact_id: hit for hit in store.recall("number", boost_by_usefulness=True)}
            assert hits[fact].usefulness == pytest.approx(0.5 + 0.15 * times)


def test_a_writer_reads_its_own_writes_at_once(where: str, open_store: Callable[..., Heedful]) -> None:
    store = open_store(where)
    for number in range(20):
        fact = store.remember(f"the number {number} is my own").fact_ids[0]
        assert fact in {hit.fact_id for hit in store.recall(f"number {number}", top_k=30)}


@pytest.mark.nightly
def test_a_server_follows_what_others_write_before_anybody_asks(where: str, other: Other) -> None:
    with running(where) as server, server.connect() as client:
        client.remember("the number 0 was written here")
        client.recall("number")
        (index,) = server.state.store.project("default").workspace._indexes.values()
        other.tell("remember the number 1 was written elsewhere")
        late = time.monotonic() + SOON
        while len(index) < 2 and time.monotonic() < late:
            time.sleep(0.05)
        assert len(index) == 2
