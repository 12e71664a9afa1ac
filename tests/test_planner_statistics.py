"""A project that was just written, on PostgreSQL: of it, the planner has no statistics yet, and must not read all its
rows for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from patience import until
from postgresql import new_store

import heedful
from heedful.storage import open_store
from heedful.testing import WordEmbedder
from heedful.transfer import export_file, import_file, verify

pytestmark = pytest.mark.slow

SIGNALS = 1_500
READS_PER_SIGNAL = 60
"""Rows that may be read for each signal, where a wrong plan reads as many as there are signals."""


@pytest.fixture(scope="module")
def crowded(postgresql_server: str) -> Iterator[str]:
    """A store whose tables were counted before the project `new` got its signals."""
    with new_store(postgresql_server) as url:
        fill(url)
        yield url


def fill(url: str) -> None:
    for project in ("one", "two", "three", "new"):
        with heedful.open(url, project=project, embedding=WordEmbedder()) as memory:
            if project == "one":
                memory.remember([f"fact {number} about {number % 97}" for number in range(2000)])
            give(memory)
        if project == "three":
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("SET search_path = heedful")
                connection.execute("ANALYZE events, facts, queries, scores")


def give(memory: heedful.Heedful) -> None:
    """Many signals about one fact."""
    (fact,) = memory.remember("Refunds take 14 days.").fact_ids
    signal = {"fact_id": fact, "signal_type": "helpful", "query": "How long?", "confidence": 0.001}
    for _ in range(SIGNALS // 100):
        memory.signal([signal] * 100)


_OTHERS = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def rows_read(url: str) -> int:
    """Rows of the ledger that were read so far, as sessions report when they end."""
    with psycopg.connect(url, autocommit=True) as connection:
        until(lambda: connection.execute(_OTHERS).fetchone() is None)
        row = connection.execute(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE relname ~ '^events'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_recall_reads_the_ledger_a_few_times(crowded: str) -> None:
    before = rows_read(crowded)
    with heedful.open(crowded, project="new", embedding=WordEmbedder()) as memory:
        assert len(memory.recall("How long?")) == 1
    assert 0 < rows_read(crowded) - before < SIGNALS * READS_PER_SIGNAL


def test_so_does_a_signal(crowded: str) -> None:
    with heedful.open(crowded, project="new", embedding=WordEmbedder()) as memory:
        (hit,) = memory.recall("How long?")
    before = rows_read(crowded)
    with heedful.open(crowded, project="new", embedding=WordEmbedder()) as memory:
        memory.signal([{"fact_id": hit.fact_id, "signal_type": "helpful", "query": "How long?", "author": "ann"}])
    assert 0 < rows_read(crowded) - before < SIGNALS * READS_PER_SIGNAL


def test_so_does_doctor(crowded: str) -> None:
    before = rows_read(crowded)
    with heedful.open(crowded, project="new", embedding=WordEmbedder()) as memory:
        assert all(check.ok for check in memory.doctor())
    assert 0 < rows_read(crowded) - before < SIGNALS * READS_PER_SIGNAL


def test_so_does_verify(crowded: str) -> None:
    before = rows_read(crowded)
    assert verify(crowded, project="new").ok
    assert 0 < rows_read(crowded) - before < SIGNALS * READS_PER_SIGNAL


def test_so_does_an_import(crowded: str, tmp_path: Path) -> None:
    with heedful.open(tmp_path / "other.db", project="imported", embedding=WordEmbedder()) as memory:
        give(memory)
    export_file(tmp_path / "other.db", tmp_path / "exported.jsonl", project="imported")
    before = rows_read(crowded)
    import_file(crowded, tmp_path / "exported.jsonl", embedding=WordEmbedder())
    assert 0 < rows_read(crowded) - before < SIGNALS * READS_PER_SIGNAL


def test_the_server_counts_each_table_after_some_thousand_changes(postgresql_server: str) -> None:
    with new_store(postgresql_server) as url, closing(open_store(url)), psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, reloptions FROM pg_class WHERE relnamespace = 'heedful'::regnamespace AND relkind = 'r'"
        ).fetchall()
    assert len(rows) > 20
    often = ["autovacuum_analyze_scale_factor=0", "autovacuum_analyze_threshold=5000"]
    assert [name for name, options in rows if options != often] == ["alembic_version"]
