"""The bare driver that the benchmark of sessions compares with leaves the rows that Heedful leaves."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import heedful
from bench.sessions_bare import Answer, BareSqlite, Opinion
from heedful.testing import WordEmbedder


def test_what_the_bare_driver_of_sqlite_writes_is_read_by_heedful(tmp_path: Path) -> None:
    file = tmp_path / "bare.db"
    with closing(BareSqlite(file)) as bare:
        bare.create("chat")
        entry = bare.keep(Answer("chat", "How long do refunds take?", "14 days."))
        bare.rate(Opinion("chat", entry, "ann", 5, "up", "thanks"))
    with heedful.open(file, embedding=WordEmbedder(), worker=False) as memory:
        (kept,) = memory.sessions.entries("chat").items
        assert (kept.question, kept.answer) == ("How long do refunds take?", "14 days.")
        assert (kept.feedback_score, kept.feedback_text) == (5, "thanks")
