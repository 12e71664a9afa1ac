"""The contract of a job queue, on any database."""

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
from heedful.errors import HeedfulError, Unavailable
from heedful.model import Job
from heedful.storage import Database, jobs
from heedful.storage.rows import AnyRow

logger = logging.getLogger("heedful.jobs")

SERIAL_KINDS = ("reembed", "maintain", "index", "digest")
"""Kinds of jobs that run one at a time, in order."""

WORKER_DIED = "the worker died"
"""The error of a job whose workers died repeatedly."""

RETRY_SECONDS = 30
"""The Retry-After of a caller whose project has too many waiting jobs."""

MAX_BACKOFF = 3600.0
"""The longest pause between two attempts, in seconds."""

Report = Callable[[int, int], None]
"""Called by a job with its progress (done, total); raises if the job should end."""


class Cancelled(Exception):
    """Somebody cancelled the job."""


class Stopped(Exception):
    """The worker should end, or has lost the job to another worker."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job that a worker has claimed."""

    job_id: str
    project: str | None
    kind: str
    arguments: Mapping[str, Any]
    attempts: int


Work = Callable[[Task, Report], object]
"""Runs a job; it must be repeatable, since what is done stays done."""


@dataclass(frozen=True, slots=True)
class WorkerTiming:
    """Attempts, pauses and leases of workers."""

    attempts: int = 5
    """How often a job is attempted before it fails."""
    pause: float = 1.0
    """Seconds before the second attempt; four times as long before each further one."""
    lease: float = 60.0
    """Seconds without a heartbeat after which a worker counts as dead."""
    poll: float = 2.0
    """Seconds between polls for jobs of other processes."""

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

    def add(self, project: str | None, kind: str, arguments: Mapping[str, Any], *, most: int | None = None) -> AnyRow:
        """Adds a job, or returns a waiting one that does the same; refused if `most` jobs of the project wait."""

    def get(self, job_id: str) -> AnyRow | None:
        """A job of any project."""

    def listed(
        self, project: str | None, status: str | None, kind: str | None, after: int | None, count: int
    ) -> list[AnyRow]:
        """Jobs, the newest first."""

    def cancel(self, job_id: str) -> None:
        """Cancels a job: at once if it waits, at its next report if it runs."""

    def due_in(self, project: str) -> float | None:
        """Seconds until a job of the project is due; None if none waits."""

    def last_added(self, kind: str) -> int | None:
        """When a job of this kind was last added."""

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
        """Runs jobs in the calling thread until `stopping`; with `once`, until none is due. Projects take turns.

        `on_poll` is called every `poll` seconds, between jobs or beside them.
        """

    def wake(self) -> None:
        """Wakes the workers of this process."""


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
    """The error as it may be stored: messages of other libraries may contain secrets."""
    return error.message if isinstance(error, HeedfulError) else type(error).__name__


def digest(project: str | None, kind: str, arguments: Mapping[str, Any]) -> bytes:
    """A hash that is equal for jobs that do the same."""
    encoded = orjson.dumps([project, kind, dict(arguments)], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(encoded, digest_size=16).digest()


def get_existing(connection: Connection, job_id: str) -> AnyRow:
    """A job that must exist."""
    row = jobs.get(connection, job_id)
    assert row is not None
    return row


def check_room(connection: Connection, project: int, most: int) -> None:
    """Refuses a further job of a project of which so many wait."""
    if jobs.count_waiting(connection, project, most) >= most:
        raise Unavailable(
            f"{most} jobs of this project are waiting, which is the limit",
            code="server_busy",
            value=RETRY_SECONDS,
            remedy="Wait until some are done, or cancel some; improve() without session_ids does all sessions in one"
            " job",
        )


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
    """The read-only part of a `Queue`."""

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
