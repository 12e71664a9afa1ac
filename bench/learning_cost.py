"""What the evidence of one recall costs when a store holds a million signals."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import heedful
from bench.measure import Spent, Timing, say, timed, timing
from heedful.clock import DAY, new_id
from heedful.ledger.adaptive_policy import RELATED, Neighbour
from heedful.ledger.contexts import Match
from heedful.ledger.fold_cache import EvidenceIndex, View
from heedful.ledger.ranking_policy import AdaptiveJudge
from heedful.ledger.usefulness import Candidate
from heedful.storage import Database, open_store
from heedful.storage.vectors import active_model, of_facts
from heedful.testing import WordEmbedder

SIGNALS = 1_000_000
QUERIES = 100_000
FACTS = 10_000
CANDIDATES = 100
PHRASINGS = 10
"""Queries that mean the same; all of them lend evidence to a recall."""
SHOWN = 10
"""Facts that are judged for one query, so each was judged by one person."""
AUTHORS = 500
NOW = 20_000 * DAY
INSERT = (
    "INSERT INTO events (id, project_id, dataset_id, idempotency_key, kind, target_type, target_id, author, source, at,"
    " recorded_at, query_id, value, confidence, rank)"
    " VALUES (?, ?, ?, ?, 'signal', 'fact', ?, ?, 'signal_recall', ?, ?, ?, ?, 1.0, ?)"
)
KINDS = ("used", "ignored", "helpful", "not_helpful")


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds for the evidence of a recall with 100 candidates, given the earlier queries that are alike."""

    signals: int
    near: int
    warm: Timing
    """Queries whose evidence was used before: their votes are in memory."""
    cold: Timing
    """Queries that nobody has asked for since the store was opened: their signals are read and folded."""
    after_a_signal: Timing
    """Queries of which one was rated just before, by another process: it is read and folded again."""
    opening: float
    """Seconds of the first recall: all masses are summed up once."""


def cost(calls: int = 300) -> Cost:
    """The time of `AdaptiveJudge`: following the ledger, lending, candidates by proof, and the order of 100."""
    with _filled() as store:
        database = open_store(store.file)
        try:
            return _timed(database, store, EvidenceIndex(store.dataset), calls)
        finally:
            database.close()


def _neighbours(store: _Store, need: int, dimensions: int, draw: np.random.Generator) -> list[Neighbour]:
    """The queries of a need, and as many of the next one as a recall looks at."""
    near = store.queries[need * PHRASINGS :][:RELATED]
    vectors = draw.normal(size=(len(near), dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        Neighbour(query, cosine, vector)
        for query, cosine, vector in zip(near, sorted(draw.uniform(0.4, 1.0, len(near)))[::-1], vectors, strict=True)
    ]


def _timed(database: Database, store: _Store, evidence: EvidenceIndex, calls: int) -> Cost:
    draw = np.random.default_rng(1)
    with database.read() as reading:
        model = active_model(reading)
    assert model is not None

    def recall(need: int) -> Spent:
        near = store.queries[need * PHRASINGS : (need + 1) * PHRASINGS]
        matches = [Match(query, "", float(draw.uniform(0.86, 1.0))) for query in near]
        others = draw.choice(FACTS, CANDIDATES, replace=False).tolist()
        pool = list(dict.fromkeys([*_judged(need), *others]))[:CANDIDATES]
        candidates = [
            Candidate(store.seqs[fact], own) for fact, own in zip(pool, draw.random(CANDIDATES).tolist(), strict=True)
        ]

        def judged() -> None:
            read = partial(of_facts, connection, model)
            judge = AdaptiveJudge(view, evidence, read, neighbours[0].vector, matches, neighbours, NOW)
            judge.proven()
            judge.rank(candidates, 0.3)

        with database.read() as connection:
            neighbours = _neighbours(store, need, model.dimensions, draw)
            view = View.of(connection, store.dataset)  # A recall knows it from its first look.
            return timed(judged)[0]

    opening = recall(0).wall
    needs = range(1, 1 + calls)
    cold = [recall(need) for need in needs]
    warm = [recall(need) for need in needs]
    after = []
    for need in needs:
        store.signal(need)
        after.append(recall(need))
    say(f"the store of the cost measurement has {store.file.stat().st_size / 1e6:,.0f} MB")
    return Cost(SIGNALS, PHRASINGS, timing(warm), timing(cold), timing(after), opening)


@dataclass(frozen=True, slots=True)
class _Store:
    """A store with a million signals."""

    file: Path
    project: int
    dataset: int
    facts: list[str]
    seqs: list[int]
    queries: list[int]

    def signal(self, need: int) -> None:
        """One more signal for the first of a need's queries, given elsewhere."""
        name = new_id()
        fact, query = self.facts[_judged(need)[0]], self.queries[need * PHRASINGS]
        with closing(sqlite3.connect(self.file)) as raw, raw:
            raw.execute(
                INSERT, (name, self.project, self.dataset, name, fact, "somebody", NOW, NOW, query, "helpful", 1)
            )


def _judged(need: int) -> list[int]:
    """The facts that are shown for one need."""
    return [(need * 7 + place) % FACTS for place in range(SHOWN)]


@contextmanager
def _filled() -> Iterator[_Store]:
    """A store of the product's own making, into which the signals are written in bulk."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "million.db"
        with heedful.open(file, embedding=WordEmbedder(8)) as made:
            made.remember([f"fact {number}" for number in range(FACTS)])
        say(f"writing {SIGNALS:,} signals for the cost measurement")
        with closing(sqlite3.connect(file)) as raw, raw:
            facts = raw.execute("SELECT seq, id FROM facts ORDER BY seq").fetchall()
            project, dataset = raw.execute("SELECT project_id, id FROM datasets").fetchone()
            raw.executemany(
                "INSERT INTO queries (project_id, dataset_id, digest, text) VALUES (?, ?, ?, ?)",
                ((project, dataset, number.to_bytes(16, "big"), f"query {number}") for number in range(QUERIES)),
            )
            queries = [row[0] for row in raw.execute("SELECT id FROM queries ORDER BY id")]
            raw.executemany(INSERT, _events(project, dataset, [row[1] for row in facts], queries))
        yield _Store(file, project, dataset, [row[1] for row in facts], [row[0] for row in facts], queries)


def _events(project: int, dataset: int, facts: list[str], queries: list[int]) -> Iterator[tuple[object, ...]]:
    draw = np.random.default_rng(0)
    kinds = draw.choice(4, SIGNALS, p=[0.1, 0.6, 0.15, 0.15]).tolist()
    authors = draw.integers(0, AUTHORS, SIGNALS).tolist()
    for number in range(SIGNALS):
        # Signals of one query come at different times, so they do not lie side by side.
        query, place = number % QUERIES, number // QUERIES
        fact = facts[_judged(query // PHRASINGS)[place % SHOWN]]
        at = NOW - 100 * DAY + number * 8_000_000
        name = new_id()
        author = f"user {authors[number]}"
        yield (
            name, project, dataset, name, fact, author, at, at, queries[query], KINDS[kinds[number]], place % SHOWN + 1
        )  # fmt: skip
