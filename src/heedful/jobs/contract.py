"""What a queue of jobs is, whatever keeps it."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import orjson
from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.errors import HeedfulError
from heedful.model import Job
from heedful.storage import Database, jobs
from heedful.storage.rows import AnyRow

logger = logging.getLogger("heedful.jobs")

SERIAL_KINDS = ("reembed", "maintain", "index", "digest")
"""Kinds of which one runs at a time, in the order they came."""

WORKER_DIED = "the worker died"
"""The error of a job whose workers died again and again."""

MAX_BACKOFF = 3600.0
"""Seconds of the longest pause between two attempts."""

Report = Callable[[int, int], None]
"""Called by work now and then with how much is done, of how much; raises if the work is to end here."""


class Cancelled(Exception):
    """Somebody cancelled the job."""


class Stopped(Exception):
    """The worker is to end, or has lost the job to another one; whoever has it goes on."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job that was taken up."""

    job_id: str
    project: str | None
    kind: str
    arguments: Mapping[str, Any]
    attempts: int


Work = Callable[[Task, Report], object]
"""Does a job; what it has done stays done, so that it can be called again."""


@dataclass(frozen=True, slots=True)
class WorkerTiming:
    """How patient workers are."""

    attempts: int = 5
    """How often a job is begun before it is given up."""
    pause: float = 1.0
    """Seconds before the second attempt; four times as long before each further one."""
    lease: float = 60.0
    """Seconds after which a worker that gives no sign of life is taken for dead."""
    poll: float = 2.0
    """Seconds between two looks for work that other processes added."""

    def before(self, attempts: int) -> float:
        """Seconds to wait after so many attempts.

        >>> [WorkerTiming().before(attempts) for attempts in (1, 2, 3, 9)]
        [1.0, 4.0, 16.0, 3600.0]
        """
        return float(min(MAX_BACKOFF, self.pause * 4 ** (attempts - 1)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended."""

    kind: Literal["done", "cancelled", "stopped", "failed"]
    error: str | None = None


class Queue(Protocol):
    """The jobs of one store. `project` is a project's name, or None for all of them and for those of the store."""

    def add(self, project: str | None, kind: str, arguments: Mapping[str, Any]) -> AnyRow:
        """Writes a job; one that waits to do the same is returned instead."""

    def get(self, job_id: str) -> AnyRow | None:
        """A job of any project."""

    def listed(
        self, project: str | None, status: str | None, kind: str | None, after: int | None, count: int
    ) -> list[AnyRow]:
        """Jobs, the newest first."""

    def cancel(self, job_id: str) -> None:
        """Has a job not done: at once if it waits, at its next report if it runs."""

    def due_in(self, project: str) -> float | None:
        """Seconds until a job of the project is due; None if none waits."""

    def last_added(self, kind: str) -> int | None:
        """When a job of this kind was last written."""

    def forget(self, before: int) -> int:
        """Removes jobs that ended before a moment; returns how many."""

    def work(
        self,
        work: Work,
        project: str | None,
        stopping: Callable[[], bool],
        *,
        once: bool,
        on_poll: Callable[[], object] = lambda: None,
    ) -> None:
        """Does jobs in the calling thread until `stopping`; with `once`, until none is due.

        `on_poll` is called every `poll` seconds, between jobs or beside them.
        """

    def wake(self) -> None:
        """Looks for work now, in this process."""


def run_attempt(work: Work, task: Task, report: Report) -> Outcome:
    """One attempt at a job."""
    try:
        work(task, report)
    except Cancelled:
        return Outcome("cancelled")
    except Stopped:
        return Outcome("stopped")
    except Exception as error:
        logger.exception("%s failed in the background (attempt %d)", task.kind, task.attempts)
        return Outcome("failed", sanitize_error(error))
    return Outcome("done")


def sanitize_error(error: BaseException) -> str:
    """What may be kept of an error: other libraries may put secrets into theirs."""
    return error.message if isinstance(error, HeedfulError) else type(error).__name__


def digest(project: str | None, kind: str, arguments: Mapping[str, Any]) -> bytes:
    """What two jobs have in common that do the same."""
    encoded = orjson.dumps([project, kind, dict(arguments)], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(encoded, digest_size=16).digest()


def get_existing(connection: Connection, job_id: str) -> AnyRow:
    """A job that is known to be there."""
    row = jobs.get(connection, job_id)
    assert row is not None
    return row


def task_of(row: AnyRow) -> Task:
    return Task(row.id, row.project, row.kind, row.arguments, row.attempts)


def to_job(row: AnyRow) -> Job:
    """A job as callers see it."""
    return Job(
        job_id=row.id,
        kind=row.kind,
        project=row.project,
        arguments=row.arguments,
        status=row.status,
        attempts=row.attempts,
        done=row.done,
        total=row.total,
        error=row.error,
        created_at=from_stored(row.created_at),
        started_at=None if row.started_at is None else from_stored(row.started_at),
        finished_at=None if row.finished_at is None else from_stored(row.finished_at),
    )


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
            return jobs.list_jobs(connection, project, status, kind, after, count)

    def due_in(self, project: str) -> float | None:
        with self._database.read(project) as connection:
            due = jobs.due_at(connection, project)
        return None if due is None else max(0.0, (due - time.time_ns() // 1000) / SECOND)

    def last_added(self, kind: str) -> int | None:
        with self._database.read() as connection:
            return jobs.last_created(connection, kind)
