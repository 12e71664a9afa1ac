"""What an index in memory holds after a long time of changes: active rows, and little more."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful import Heedful
from heedful.model import Document
from heedful.search import DatasetIndex, dataset
from heedful.search.snapshot import FileSnapshot
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.slow


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns often, so that what they can do to each other happens."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def index_of(store: Heedful) -> DatasetIndex:
    (index,) = store._workspace._indexes.values()
    return index


def chapter(version: int, facts: int, source: str = "handbook") -> Document:
    return Document(
        source=source, texts=[f"{source} rule {fact} has the value v{version}x{fact}" for fact in range(facts)]
    )


def hits_of(store: Heedful, query: str, **options: Any) -> list[tuple[str, float, float]]:
    return [(hit.text, hit.score, hit.relevance) for hit in store.recall(query, **options).hits]


@pytest.mark.nightly
def test_rows_that_were_replaced_do_not_stay_in_memory(any_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MIN_DEAD_ROWS", 32)
    options: dict[str, Any] = {"embedding": WordEmbedder(), "clock": ManualClock(), "worker": False}
    with heedful.open(any_store, **options) as store:
        most = 0
        for version in range(12):
            store.remember(chapter(version, 40))
            store.recall("rule", mode="lexical")
            most = max(most, index_of(store).held)
        assert len(index_of(store)) == 40
        assert most <= 2 * 40 + 32
        with heedful.open(any_store, **options) as fresh:
            for query in ("rule 7", "value v11x3", "handbook rule 39 has the value"):
                assert hits_of(store, query, top_k=40) == hits_of(fresh, query, top_k=40)


def test_a_graph_forgets_the_links_of_what_was_forgotten(store: Heedful) -> None:
    ids = store.remember([f"Ada Lovelace met Bo Diddley in room {room}." for room in range(200)]).fact_ids
    store.recall("Who met Bo Diddley?", mode="graph")
    (graph,) = store._workspace._graphs.values()
    store.forget(ids[5:])
    store.recall("Who met Bo Diddley?", mode="graph")
    assert sum(len(run.facts) for run in graph._runs) == len(graph) > 0


@pytest.mark.usefixtures("many_switches")
def test_recalls_beside_a_compaction_find_what_is_there(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some facts always stay, others come and go: whoever asks finds the former, whatever is copied meanwhile."""
    monkeypatch.setattr(dataset, "MIN_DEAD_ROWS", 8)
    compactions = []
    build = dataset.Compaction.build

    def counted(self: dataset.Compaction) -> dataset.RowTable:
        compactions.append(1)
        return build(self)

    monkeypatch.setattr(dataset.Compaction, "build", counted)
    store = open_store(worker=False)
    store.remember([f"anchor{place} stays where it is" for place in range(20)])
    done = threading.Event()

    def change() -> None:
        for version in range(10):
            store.remember(chapter(version, 12))
        done.set()

    def ask(first: int) -> int:
        asked = first
        while not done.is_set() or asked < first + 20:
            (hit,) = store.recall(f"anchor{asked % 20}", top_k=1).hits
            assert hit.text == f"anchor{asked % 20} stays where it is"
            asked += 1
        return asked - first

    with ThreadPoolExecutor(8) as pool:
        writing = pool.submit(change)
        asking = [pool.submit(ask, first) for first in range(6)]
        writing.result()
        assert all(each.result() >= 20 for each in asking)
    assert compactions
    fresh = open_store(worker=False)
    for query in ("rule 3", "anchor7 stays", "value v9x11"):
        assert hits_of(store, query, top_k=32) == hits_of(fresh, query, top_k=32)
    assert all(check.ok and not check.repaired for check in store.doctor())


@pytest.mark.nightly
def test_an_index_is_built_without_holding_every_text(open_store: Callable[..., Heedful], tmp_path: Path) -> None:
    store = open_store()
    for part in range(0, 6000, 1000):
        store.remember([f"{part + place} {'x' * 700}" for place in range(1000)])
    workspace = store._workspace
    index = index_of(store)
    with workspace.read() as connection:
        tracemalloc.start()
        try:
            fresh = DatasetIndex(index.dataset, index.model, FileSnapshot(tmp_path / "no.index"))
            fresh.follow(connection)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert len(fresh) == 6000
    assert peak < 2 * 6000 * 700, "all rows at once take three times the texts"
