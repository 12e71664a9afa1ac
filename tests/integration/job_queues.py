"""A queue of jobs on each kind of store."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from heedful.jobs.queue import Queue, WorkerTiming
from heedful.storage import Database, open_store

QUICK = WorkerTiming(attempts=3, pause=0.01, lease=30.0, poll=0.05)


@pytest.fixture
def database(any_store: str) -> Iterator[Database]:
    opened = open_store(any_store)
    yield opened
    opened.close()


@pytest.fixture
def queue(database: Database) -> Queue:
    return Queue(database, lambda: time.time_ns() // 1000, QUICK)
