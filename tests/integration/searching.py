"""Search inside PostgreSQL, without a dataset that is large."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection

from heedful.storage import facts
from heedful.storage.facts import NewFact
from heedful.storage.postgresql import word_index


def search_inside_from_the_first_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has PostgreSQL search every dataset, with no index built: plans without one are slower, and find the same."""
    added = facts.add

    def add(connection: Connection, dataset: int, model: int, new: Sequence[NewFact], at: int) -> None:
        inside = connection.dialect.name == "postgresql"
        if inside:
            word_index.begin(connection, dataset)
        added(connection, dataset, model, new, at)
        if inside:
            word_index.count(connection, dataset)
            word_index.finish(connection, dataset, model)

    monkeypatch.setattr(facts, "add", add)
    monkeypatch.setenv("HEEDFUL_SEARCH_IN_MEMORY", "0")


def can_build_graphs() -> bool:
    """Whether the PostgreSQL of the tests can build an HNSW index here: on ARM, its pgvector uses SVE instructions, and
    the whole server dies of them on a processor that has none."""
    if platform.machine() != "aarch64":
        return True
    return " sve" in Path("/proc/cpuinfo").read_text()


NO_GRAPHS = "NOT TESTED: the pgvector of the packaged PostgreSQL needs SVE instructions, which this processor lacks"
