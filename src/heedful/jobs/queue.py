"""The queue of a store: workers claim jobs from a table, on a lease that they renew."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from sqlalchemy import ColumnElement, Connection, and_, case, delete, exists, func, insert, or_, select, true, update

from heedful.clock import new_id
from heedful.errors import HeedfulError, Unavailable
from heedful.model import Job
from heedful.storage import Database, scopes
from heedful.storage.rows import AnyRow, dialect_of, lock_exclusive, to_model
from heedful.storage.schema import jobs, projects
from heedful.threads import start_unless_ending

logger = logging.getLogger("heedful.jobs")

SERIAL_KINDS = ("reembed", "maintain", "index", "digest")  # Kinds of jobs that run one at a time, in order.

ENDED = ("done", "failed", "cancelled")

WORKER_DIED = "the worker died"  # The error of a job whose workers died repeatedly.
RETRY_SECONDS = 30  # The Retry-After of a caller whose project has too many waiting jobs.
MAX_BACKOFF = 3600.0  # The longest pause between two attempts, in seconds.
BATCH_SIZE = 500  # How many old jobs a transaction removes.

SECOND = 1_000_000

Report = Callable[[int, int], None]  # Called by a job with its progress (done, total); raises if the job should end.


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


Work = Callable[[Task, Report], object]  # Runs a job; it must be repeatable, since what is done stays done.


@dataclass(frozen=True, slots=True)
class WorkerTiming:
    """Attempts, pauses and leases of workers."""

    attempts: int = 5  # How often a job is attempted before it fails.
    pause: float = 1.0  # Seconds before the second attempt; four times as long before each further one.
    lease: float = 60.0  # Seconds without a heartbeat after which a worker counts as dead.
    poll: float = 2.0  # Seconds between polls for jobs of other processes.

    def before(self, attempts: int) -> float:
        """Seconds to wait after so many attempts.

        >>> [WorkerTiming().before(attempts) for attempts in (1, 2, 3, 9)]
        [1.0, 4.0, 16.0, 3600.0]
        """
        return float(min(MAX_BACKOFF, self.pause * 4 ** (attempts - 1)))


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: Literal["done", "cancelled", "stopped", "failed"]
    error: str | None = None


_ROWS = select(jobs, jobs.c.seq.label("number"), projects.c.name.label("project")).select_from(jobs.outerjoin(projects))


class Queue:
    """The jobs of one store. `project` is a project's name, or None for all of them and for those of the store."""

    def __init__(self, database: Database, now: Callable[[], int], timing: WorkerTiming | None = None) -> None:
        """`now` is the clock of the store, whose times people see. Leases and pauses go by the database's."""
        self._database = database
        self._now = now
        self._timing = timing or WorkerTiming()
        self._woken = threading.Event()

    def add(self, project: str | None, kind: str, arguments: Mapping[str, Any], *, most: int | None = None) -> AnyRow:
        """Adds a job, or returns a waiting one that does the same; refused if `most` jobs of the project wait."""
        encoded = orjson.dumps([project, kind, dict(arguments)], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.blake2b(encoded, digest_size=16).digest()
        with self._database.write(project) as connection:
            lock_exclusive(connection, "jobs")
            same = select(jobs.c.id).where(jobs.c.status == "waiting", jobs.c.digest == digest).limit(1)
            job_id = connection.execute(same).scalar()
            if job_id is None:
                job_id, at = new_id(), self._now()
                owner = None if project is None else scopes.ensure_project(connection, project, at)
                if owner is not None and most is not None:
                    _check_room(connection, owner, most)
                values = {"project_id": owner, "kind": kind, "arguments": dict(arguments), "digest": digest}
                times = {"created_at": at, "due_at": _clock(connection)}
                connection.execute(insert(jobs).values(id=job_id, status="waiting", attempts=0, **values, **times))
            return _existing(connection, job_id)

    def get(self, job_id: str) -> AnyRow | None:
        """A job of any project, with the project's name."""
        with self._database.read() as connection:
            return connection.execute(_ROWS.where(jobs.c.id == job_id)).first()

    def listed(
        self, project: str | None, status: str | None, kind: str | None, after: int | None, count: int
    ) -> list[AnyRow]:
        """Jobs, the newest first."""
        wanted = ((projects.c.name, project), (jobs.c.status, status), (jobs.c.kind, kind))
        statement = _ROWS.where(*(column == value for column, value in wanted if value is not None))
        if after is not None:
            statement = statement.where(jobs.c.seq < after)
        with self._database.read(project) as connection:
            return list(connection.execute(statement.order_by(jobs.c.seq.desc()).limit(count)))

    def cancel(self, job_id: str) -> None:
        """Cancels a job: at once if it waits, at its next report if it runs."""
        # In one statement, so that no worker begins or ends the job in between.
        is_waiting = jobs.c.status == "waiting"
        with self._database.write() as connection:
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id, jobs.c.status.in_(("waiting", "running")))
                .values(
                    status=case((is_waiting, "cancelled"), else_=jobs.c.status),
                    finished_at=case((is_waiting, self._now()), else_=jobs.c.finished_at),
                    cancelling=case((is_waiting, 0), else_=1),
                )
            )

    def due_in(self, project: str) -> float | None:
        """Seconds until a job of the project is due; None if none waits."""
        waiting = select(func.min(jobs.c.due_at)).join(projects).where(jobs.c.status == "waiting")
        with self._database.read(project) as connection:
            due = connection.execute(waiting.where(projects.c.name == project)).scalar()
            return None if due is None else max(0.0, (due - _clock(connection)) / SECOND)

    def last_added(self, kind: str) -> int | None:
        """When a job of this kind was last added."""
        with self._database.read() as connection:
            return connection.execute(select(func.max(jobs.c.created_at)).where(jobs.c.kind == kind)).scalar()

    def forget(self, before: int) -> int:
        """Removes jobs that ended before a moment; returns how many."""
        old = select(jobs.c.seq).where(jobs.c.status.in_(ENDED), jobs.c.finished_at < before)
        with self._database.write() as connection:
            seqs = list(connection.execute(old.order_by(jobs.c.seq).limit(BATCH_SIZE)).scalars())
            connection.execute(delete(jobs).where(jobs.c.seq.in_(seqs)))
            return len(seqs)

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

        `on_poll` is called every `poll` seconds, between jobs.
        """
        while not stopping():
            self._woken.clear()
            on_poll()
            while not stopping():
                row = self._claim(project)
                if row is None:
                    break
                self._do(work, row, stopping)
            if once:
                return
            self._woken.wait(self._timing.poll)

    def wake(self) -> None:
        """Wakes the workers of this process."""
        self._woken.set()

    def _claim(self, project: str | None) -> AnyRow | None:
        while True:
            # Read first, because usually there is nothing to claim, and claiming locks.
            with self._database.read() as connection:
                if _claimable(connection, project) is None:
                    return None
            with self._database.write() as connection:
                # One claim at a time: two could otherwise begin two jobs of a kind that runs one at a time.
                lock_exclusive(connection, "jobs")
                row = _claimable(connection, project)
                if row is None:
                    return None
                if row.status == "running" and (row.cancelling or row.attempts >= self._timing.attempts):
                    ended = Outcome("cancelled" if row.cancelling else "failed", WORKER_DIED)
                    _update_free(connection, row.id, **self._ending(row, ended))
                    continue
                begun = {"status": "running", "owner": new_id(), "leased_until": self._until(connection)}
                counted = {"attempts": jobs.c.attempts + 1, "started_at": self._now(), "finished_at": None}
                if _update_free(connection, row.id, **begun, **counted, cancelling=0):
                    return _existing(connection, row.id)

    def _do(self, work: Work, row: AnyRow, stopping: Callable[[], bool]) -> None:
        task = Task(row.id, row.project, row.kind, row.arguments, row.attempts)
        with self._lease_renewed(row):
            outcome = run_attempt(work, task, self._report(row, stopping))
        with self._database.write() as connection:
            current = self._renew(connection, row)
            if current is None:
                # The job was lost to another worker.
                return
            values = self._ending(current, outcome)
            due = _clock(connection)
            if outcome.kind == "stopped":
                values = {"status": "waiting", "attempts": row.attempts - 1, "due_at": due}
            elif outcome.kind == "failed" and not current.cancelling and row.attempts < self._timing.attempts:
                due += int(self._timing.before(row.attempts) * SECOND)
                values = {"status": "waiting", "error": outcome.error, "due_at": due}
            connection.execute(update(jobs).where(jobs.c.id == row.id).values(**values))

    def _ending(self, row: AnyRow, outcome: Outcome) -> dict[str, Any]:
        """The columns of a job that ended."""
        is_cancelled = outcome.kind == "cancelled" or (outcome.kind == "failed" and row.cancelling)
        return {
            "status": "cancelled" if is_cancelled else outcome.kind,
            "error": outcome.error if outcome.kind == "failed" else None,
            "finished_at": self._now(),
            "owner": None,
            "leased_until": None,
            "cancelling": 0,
        }

    def _report(self, row: AnyRow, stopping: Callable[[], bool]) -> Report:
        def report(done: int, total: int) -> None:
            with self._database.write(durable=False) as connection:
                current = self._renew(connection, row, done=done, total=total)
            if current is not None and current.cancelling:
                raise Cancelled
            if current is None or stopping():
                raise Stopped

        return report

    def _renew(self, connection: Connection, row: AnyRow, **values: Any) -> AnyRow | None:
        """Renews the lease of a job for its owner; None if another worker has it."""
        leased = (jobs.c.id == row.id, jobs.c.owner == row.owner, jobs.c.status == "running")
        renewed = update(jobs).where(*leased).values(leased_until=self._until(connection), **values)
        return connection.execute(renewed.returning(jobs.c.cancelling)).first()

    @contextmanager
    def _lease_renewed(self, row: AnyRow) -> Iterator[None]:
        """Renews the lease of a job while the block runs, even if it reports nothing. While the process ends, only
        reports renew it."""
        stopped = threading.Event()

        def renew() -> None:
            while not stopped.wait(self._timing.lease / 4):
                try:
                    with self._database.write(durable=False) as connection:
                        self._renew(connection, row)
                except Exception:
                    logger.warning("the lease of job %s can't be renewed", row.id, exc_info=True)

        thread = threading.Thread(target=renew, name="heedful-lease", daemon=True)
        is_running = start_unless_ending(thread)
        try:
            yield
        finally:
            stopped.set()
            if is_running:
                thread.join()

    def _until(self, connection: Connection) -> int:
        return _clock(connection) + int(self._timing.lease * SECOND)


def run_attempt(work: Work, task: Task, report: Report) -> Outcome:
    try:
        work(task, report)
    except Cancelled:
        return Outcome("cancelled")
    except Stopped:
        return Outcome("stopped")
    except Exception as error:
        logger.exception("%s failed in the background (attempt %d)", task.kind, task.attempts)
        # Messages of other libraries may contain secrets.
        return Outcome("failed", error.message if isinstance(error, HeedfulError) else type(error).__name__)
    return Outcome("done")


def to_job(row: AnyRow) -> Job:
    return to_model(Job, row, job_id=row.id)


def _clock(connection: Connection) -> int:
    """The time that all workers share, whatever clock the store uses."""
    return dialect_of(connection).clock(connection)


def _existing(connection: Connection, job_id: str) -> AnyRow:
    return connection.execute(_ROWS.where(jobs.c.id == job_id)).one()


def _check_room(connection: Connection, project: int, most: int) -> None:
    """Refuses a further job of a project of which so many wait."""
    waiting = select(jobs.c.seq).where(jobs.c.project_id == project, jobs.c.status == "waiting").limit(most)
    if connection.execute(select(func.count()).select_from(waiting.subquery())).scalar_one() >= most:
        message = f"{most} jobs of this project are waiting, which is the limit"
        remedy = "Wait until some are done, or cancel some; improve() without session_ids does all sessions in one job"
        raise Unavailable(message, code="server_busy", value=RETRY_SECONDS, remedy=remedy)


def _is_free(now: int) -> ColumnElement[bool]:
    """The condition of a job that waits and is due, or whose lease has expired."""
    return or_(
        and_(jobs.c.status == "waiting", jobs.c.due_at <= now),
        and_(jobs.c.status == "running", jobs.c.leased_until < now),
    )


def _update_free(connection: Connection, job_id: str, **values: Any) -> bool:
    """Updates a job if it is still free: the worker that had it may have ended it meanwhile."""
    is_free = _is_free(_clock(connection))
    return bool(connection.execute(update(jobs).where(jobs.c.id == job_id, is_free).values(**values)).rowcount)


def _claimable(connection: Connection, project: str | None) -> AnyRow | None:
    """A free job: the oldest of the project that was served least recently; the store's own jobs count as a project."""
    now = _clock(connection)
    other = jobs.alias()
    blocked = exists().where(
        other.c.kind == jobs.c.kind,
        other.c.seq != jobs.c.seq,
        or_(
            and_(other.c.status == "running", other.c.leased_until >= now),
            and_(other.c.status == "waiting", other.c.seq < jobs.c.seq),
        ),
    )
    of_name = select(projects.c.id).where(projects.c.name == project).scalar_subquery()
    in_project: ColumnElement[bool] = true() if project is None else jobs.c.project_id == of_name
    first = (
        select(func.min(jobs.c.seq).label("seq"))
        .where(_is_free(now), in_project, or_(jobs.c.kind.not_in(SERIAL_KINDS), ~blocked))
        .group_by(jobs.c.project_id)
        .subquery()
    )
    return connection.execute(
        _ROWS.where(jobs.c.seq.in_(select(first.c.seq))).order_by(_served_at(), jobs.c.seq).limit(1)
    ).first()


def _served_at() -> ColumnElement[int]:
    """When a job of the same project was last started; 0 if none was."""
    other = jobs.alias()
    last = select(func.max(other.c.started_at))
    of_store = last.where(other.c.project_id.is_(None)).scalar_subquery()
    of_project = last.where(other.c.project_id == jobs.c.project_id).scalar_subquery()
    return func.coalesce(case((jobs.c.project_id.is_(None), of_store), else_=of_project), 0)
