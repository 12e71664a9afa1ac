"""What any queue tells of its jobs: the table `jobs`, which both kinds of store have."""

from __future__ import annotations

import time
from collections.abc import Callable

from heedful.storage import Database, jobs
from heedful.storage.rows import AnyRow

SECOND = 1_000_000


class Records:
    """The part of a `Queue` that only looks."""

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now

    def get(self, job_id: str) -> AnyRow | None:
        with self._database.read() as connection:
            return jobs.get(connection, job_id)

    def listed(
        self, project: str | None, status: str | None, kind: str | None, after: int | None, count: int
    ) -> list[AnyRow]:
        with self._database.read(project) as connection:
            return jobs.listed(connection, project, status, kind, after, count)

    def due_in(self, project: str) -> float | None:
        with self._database.read(project) as connection:
            due = jobs.due_at(connection, project)
        return None if due is None else max(0.0, (due - time.time_ns() // 1000) / SECOND)

    def last_added(self, kind: str) -> int | None:
        with self._database.read() as connection:
            return jobs.last_created(connection, kind)
