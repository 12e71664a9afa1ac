"""A queue in a SQLite store: workers take jobs from the table, on a lease that they renew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from heedful.ids import new_id
from heedful.jobs.contract import (
    SECOND,
    SERIAL_KINDS,
    WORKER_DIED,
    Cancelled,
    Outcome,
    Records,
    Report,
    Stopped,
    Work,
    WorkerTiming,
    check_room,
    digest,
    get_existing,
    logger,
    run_attempt,
    task_of,
)
from heedful.storage import Database, jobs, scopes
from heedful.storage.rows import AnyRow
from heedful.threads import start_unless_ending

BATCH_SIZE = 500


class SqliteQueue(Records):
    """See `Queue`."""

    def __init__(self, database: Database, now: Callable[[], int], pace: WorkerTiming) -> None:
        super().__init__(database, now)
        self._pace = pace
        self._woken = threading.Event()

    def add(self, project: str | None, kind: str, arguments: Mapping[str, Any], *, most: int | None = None) -> AnyRow:
        same = digest(project, kind, arguments)
        with self._database.write(project) as connection:
            job_id = jobs.waiting(connection, same)
            if job_id is None:
                owner = None if project is None else scopes.ensure_project(connection, project, self._now())
                if owner is not None and most is not None:
                    check_room(connection, owner, most)
                job_id = jobs.add(connection, owner, kind, dict(arguments), same, self._now(), _clock())
            return get_existing(connection, job_id)

    def cancel(self, job_id: str) -> None:
        with self._database.write() as connection:
            row = jobs.get(connection, job_id)
            if row is not None and row.status == "waiting":
                jobs.note(connection, job_id, status="cancelled", finished_at=self._now())
            elif row is not None and row.status == "running":
                jobs.note(connection, job_id, cancelling=1)

    def forget(self, before: int) -> int:
        with self._database.write() as connection:
            rows = jobs.ended_before(connection, before, BATCH_SIZE)
            jobs.remove(connection, [row.seq for row in rows])
            return len(rows)

    def work(
        self,
        work: Work,
        project: str | None,
        stopping: Callable[[], bool],
        *,
        once: bool,
        on_poll: Callable[[], object] = lambda: None,
    ) -> None:
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
            self._woken.wait(self._pace.poll)

    def wake(self) -> None:
        self._woken.set()

    def _claim(self, project: str | None) -> AnyRow | None:
        """Claims the next job."""
        while True:
            # Read first, because usually there is nothing to claim, and claiming locks.
            with self._database.read() as connection:
                if jobs.claimable(connection, project, SERIAL_KINDS, _clock()) is None:
                    return None
            with self._database.write() as connection:
                row = jobs.claimable(connection, project, SERIAL_KINDS, _clock())
                if row is None:
                    return None
                if row.status == "running" and (row.cancelling or row.attempts >= self._pace.attempts):
                    _end(
                        connection, row, Outcome("cancelled" if row.cancelling else "failed", WORKER_DIED), self._now()
                    )
                    continue
                owner = new_id()
                jobs.begin(connection, row.id, self._now())
                jobs.note(connection, row.id, status="running", owner=owner, leased_until=self._until(), cancelling=0)
                return get_existing(connection, row.id)

    def _do(self, work: Work, row: AnyRow, stopping: Callable[[], bool]) -> None:
        with self._lease_renewed(row):
            outcome = run_attempt(work, task_of(row), self._report(row, stopping))
        with self._database.write() as connection:
            # The job was lost to another worker.
            if not jobs.lease(connection, row.id, row.owner, self._until()):
                return
            current = get_existing(connection, row.id)
            if outcome.kind == "stopped":
                jobs.note(connection, row.id, status="waiting", attempts=row.attempts - 1, due_at=_clock())
            elif outcome.kind == "failed" and not current.cancelling and row.attempts < self._pace.attempts:
                due = _clock() + int(self._pace.before(row.attempts) * SECOND)
                jobs.note(connection, row.id, status="waiting", error=outcome.error, due_at=due)
            else:
                _end(connection, current, outcome, self._now())

    def _report(self, row: AnyRow, stopping: Callable[[], bool]) -> Report:
        def report(done: int, total: int) -> None:
            with self._database.write(durable=False) as connection:
                is_leased = jobs.lease(connection, row.id, row.owner, self._until(), done=done, total=total)
                cancelling = is_leased and get_existing(connection, row.id).cancelling
            if cancelling:
                raise Cancelled
            if not is_leased or stopping():
                raise Stopped

        return report

    @contextmanager
    def _lease_renewed(self, row: AnyRow) -> Iterator[None]:
        """Renews the lease of a job while the block runs, even if it reports nothing. While the process ends, only
        reports renew it."""
        stopped = threading.Event()

        def renew() -> None:
            while not stopped.wait(self._pace.lease / 4):
                try:
                    with self._database.write(durable=False) as connection:
                        jobs.lease(connection, row.id, row.owner, self._until())
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

    def _until(self) -> int:
        return _clock() + int(self._pace.lease * SECOND)


def _end(connection: Connection, row: AnyRow, outcome: Outcome, at: int) -> None:
    cancelled = outcome.kind == "cancelled" or (outcome.kind == "failed" and row.cancelling)
    jobs.note(
        connection,
        row.id,
        status="cancelled" if cancelled else outcome.kind,
        error=outcome.error if outcome.kind == "failed" else None,
        finished_at=at,
        owner=None,
        leased_until=None,
        cancelling=0,
    )


def _clock() -> int:
    """The system time, which all workers share, whatever clock the store uses."""
    return time.time_ns() // 1000
