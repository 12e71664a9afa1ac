"""What a long life does to memory and disk: many users, rows that were replaced, judged facts, bulks of signals, wrong
clocks, and what is kept for a while."""

from __future__ import annotations

import asyncio
import resource
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select

from heedful import Heedful
from heedful.clock import to_stored
from heedful.compat import cognee
from heedful.errors import Invalid
from heedful.jobs.retention import maintain
from heedful.model import Document
from heedful.providers.embedding import Vectors
from heedful.settings import Retention
from heedful.storage.schema import changes, queries, receipts, requests
from heedful.testing import ManualClock, WordEmbedder

FACTS = 20_000
QUERIES = 10_000
CALLS = 500


def megabytes() -> float:
    """The memory that this process has now; Linux alone tells."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def milliseconds(call: Callable[[], object], times: int = 20) -> float:
    """The median of a call that was made before."""
    call()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return 1000 * statistics.median(spent)


def users(folder: Path, count: int = 4) -> dict[str, float]:
    """Megabytes that each user of `compat.cognee` adds, with the bundled model."""

    async def grown() -> float:
        await cognee.configure(folder / "users.db")
        try:
            await cognee.remember("Ada likes tea.", user="first", self_improvement=False)
            before = megabytes()
            for number in range(count):
                await cognee.remember(f"User {number} likes tea.", user=f"u{number}", self_improvement=False)
            return (megabytes() - before) / count
        finally:
            await cognee.close()

    return {"megabytes a user": asyncio.run(grown())}


def replaced(store: Heedful, facts: int = 200, versions: int = 40) -> dict[str, float]:
    """Rows in memory after a source was replaced again and again."""
    for version in range(versions):
        store.remember(Document(source="s", texts=[f"rule {fact} is v{version}" for fact in range(facts)]))
        store.recall("rule", mode="lexical")
    (index,) = store._workspace._indexes.values()
    return {"active": len(index), "held": index.held}


def judged(store: Heedful, facts: int = FACTS) -> dict[str, float]:
    """Milliseconds of a recall with and without `min_usefulness`, when every fact was judged."""
    for start in range(0, facts, 2000):
        ids = store.remember([f"fact number {place}" for place in range(start, start + 2000)]).fact_ids
        store.signal([{"fact_id": fact, "signal_type": "used", "query": "a question"} for fact in ids])
    return {
        "without": milliseconds(lambda: store.recall("another thing", boost_by_usefulness=True)),
        "with": milliseconds(lambda: store.recall("another thing", boost_by_usefulness=True, min_usefulness=0.55)),
    }


def bulk(store: Heedful, embedder: CountingEmbedder, queries: int = QUERIES) -> dict[str, float]:
    """The first recall after signals for so many new queries: its milliseconds beside a usual one, and how many texts
    it has embedded before it answers."""
    (fact,) = store.remember("A fact that is often useful.").fact_ids
    usual = milliseconds(lambda: store.recall("anything"))
    store.signal([{"fact_id": fact, "signal_type": "used", "query": f"w{n} about q{n}"} for n in range(queries)])
    embedder.here = 0
    start = time.perf_counter()
    store.recall("anything")
    return {"usual": usual, "first": 1000 * (time.perf_counter() - start), "embedded": embedder.here}


def ahead(store: Heedful, signals: int = 1000) -> dict[str, float]:
    """Milliseconds of a signal after one that is dated 2099, which is refused."""
    (fact,) = store.remember("A fact that is judged often.").fact_ids
    about = {"fact_id": fact, "signal_type": "used", "query": "q"}
    store.signal([about] * signals)
    refused = 0.0
    try:
        store.signal([{**about, "at": datetime(2099, 1, 1, tzinfo=UTC)}])
    except Invalid:
        refused = 1.0
    return {"refused": refused, "next signal": milliseconds(lambda: store.signal([about]))}


def kept(store: Heedful, clock: ManualClock, calls: int = CALLS) -> dict[str, tuple[int, int]]:
    """Rows of results for retries, questions, receipts and changes after a burst of calls, and after maintenance a year
    later."""
    tables = {"kept results": requests, "questions": queries, "receipts": receipts, "changes": changes}

    def counted() -> dict[str, int]:
        with store._workspace.read() as connection:
            rows = {name: select(func.count()).select_from(table) for name, table in tables.items()}
            return {name: int(connection.execute(each).scalar_one()) for name, each in rows.items()}

    facts = store.remember([f"number {place} is a fact" for place in range(calls)]).fact_ids
    for place, fact in enumerate(facts):
        store.recall(f"case {place}")
        store.signal([{"fact_id": fact, "signal_type": "used", "query": "which"}], idempotency_key=f"call {place}")
        store.forget(fact_ids=[fact])
    full = counted()
    clock.advance(days=366)
    maintain(store._workspace.database, to_stored(clock()), Retention(change_lines=calls // 2))
    return {name: (full[name], left) for name, left in counted().items()}


class CountingEmbedder(WordEmbedder):
    """Counts what the main thread has embedded, which is what a caller waits for."""

    here = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        if threading.current_thread() is threading.main_thread():
            self.here += len(texts)
        return super().embed(texts)
