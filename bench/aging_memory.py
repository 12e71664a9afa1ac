"""What a long life does to memory: many users, rows that were replaced, judged facts, bulks of signals, wrong clocks.

Run it with `python -m bench.aging_memory`; each measure is a function of its own, for a larger benchmark to call.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import heedful
from heedful import Heedful
from heedful.compat import cognee
from heedful.errors import Invalid
from heedful.model import Document
from heedful.testing import WordEmbedder

FACTS = 4_000
QUERIES = 2_000


def megabytes() -> float:
    """The most memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)


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
    return {"alive": len(index), "held": index.held}


def judged(store: Heedful, facts: int = FACTS) -> dict[str, float]:
    """Milliseconds of a recall with and without `min_usefulness`, when every fact was judged."""
    for start in range(0, facts, 2000):
        ids = store.remember([f"fact number {place}" for place in range(start, start + 2000)]).fact_ids
        store.signal([{"fact_id": fact, "signal_type": "used", "query": "a question"} for fact in ids])
    return {
        "without": milliseconds(lambda: store.recall("another thing", boost_by_usefulness=True)),
        "with": milliseconds(lambda: store.recall("another thing", boost_by_usefulness=True, min_usefulness=0.55)),
    }


def bulk(store: Heedful, queries: int = QUERIES) -> dict[str, float]:
    """Milliseconds of the first recall after signals for so many new queries."""
    (fact,) = store.remember("A fact that is often useful.").fact_ids
    store.recall("anything")
    given = [{"fact_id": fact, "signal_type": "used", "query": f"w{n} about q{n}"} for n in range(queries)]
    store.signal(given)
    start = time.perf_counter()
    store.recall("anything")
    return {"first recall": 1000 * (time.perf_counter() - start)}


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


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for measure in (replaced, judged, bulk, ahead):
            with heedful.open(folder / f"{measure.__name__}.db", embedding=WordEmbedder(), worker=False) as store:
                print(f"{measure.__name__}: { {key: round(value, 1) for key, value in measure(store).items()} }")
        print(f"users: { {key: round(value, 1) for key, value in users(folder).items()} }")


if __name__ == "__main__":
    main()
