"""A procrastinate worker that runs Heedful's jobs in the calling thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import JobAborted
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from heedful.jobs.contract import (
    WORKER_DIED,
    Cancelled,
    Report,
    Stopped,
    Work,
    WorkerTiming,
    get_existing,
    run_attempt,
    task_of,
)
from heedful.storage import Database, jobs
from heedful.storage.locks import lock_exclusive
from heedful.storage.postgresql.backend import connecting
from heedful.threads import start_unless_ending

TASK = "heedful.job"
STORE = "store"
"""The queue of jobs that belong to no project."""
MAX_TRIED = 3
"""How many queues a worker looks into, one after the other, before it looks into all of them."""
STOP_POLL_SECONDS = 0.1
"""Seconds between checks whether a worker should stop."""

_CURRENT_JOB = """
SELECT abort_requested FROM procrastinate_jobs
WHERE id = %(number)s AND status = 'doing' AND worker_id = %(worker)s FOR SHARE
"""

Result = TypeVar("Result")


class Procrastination:
    """Runs jobs until it is stopped, or until none is due."""

    def __init__(
        self, database: Database, now: Callable[[], int], pace: WorkerTiming, work: Work, stopping: Callable[[], bool]
    ) -> None:
        self._database = database
        self._now = now
        self._pace = pace
        self._work = work
        self._stopping = stopping
        self._worker: asyncio.Future[None] | None = None
        self._stop_requested = False

    def run(self, queues: list[str] | None, once: bool, on_poll: Callable[[], object]) -> None:
        # Psycopg doesn't support the default event loop on Windows.
        with asyncio.Runner(loop_factory=_Loop) as runner:
            runner.run(self._run(queues, once, on_poll))

    async def _run(self, queues: list[str] | None, once: bool, on_poll: Callable[[], object]) -> None:
        conninfo, options = connecting(self._database.url)
        connector = PsycopgConnector(conninfo=conninfo, kwargs=options, min_size=1, max_size=3, timeout=10.0)
        app = App(connector=connector)
        app.job_manager = _OwnJobManager(connector, self._database)
        app.task(name=TASK, pass_context=True, retry=_Retry(self._pace))(self._task())
        async with app.open_async():
            await self._resume(app)
            self._worker = asyncio.ensure_future(
                app.run_worker_async(
                    queues=queues,  # type: ignore[arg-type]
                    wait=not once,
                    listen_notify=not once,
                    fetch_job_polling_interval=self._pace.poll,
                    update_heartbeat_interval=self._pace.lease / 4,
                    stalled_worker_timeout=self._pace.lease,
                    install_signal_handlers=False,
                )
            )
            await self._maintain(app, self._worker, on_poll)

    async def _maintain(self, app: App, worker: asyncio.Future[None], on_poll: Callable[[], object]) -> None:
        polled_at = -self._pace.poll
        while not worker.done():
            if self._stopping():
                self._stop()
            elif time.monotonic() - polled_at >= self._pace.poll:
                on_poll()
                await self._resume(app)
                polled_at = time.monotonic()
            await asyncio.wait([worker], timeout=STOP_POLL_SECONDS)
        if not worker.cancelled():
            worker.result()

    def _stop(self) -> None:
        # The first call lets the worker finish its job; a second one would not.
        if self._worker is not None and not self._stop_requested:
            self._stop_requested = self._worker.cancel()

    async def _resume(self, app: App) -> None:
        """Requeues the jobs of dead workers."""
        # Not the app's own manager, which ignores jobs of other workers.
        manager = JobManager(app.connector)
        if not await manager.get_stalled_jobs(seconds_since_heartbeat=self._pace.lease):
            return
        with self._database.write() as connection:
            # Under a lock, so that nobody requeues a job that another worker has claimed meanwhile.
            lock_exclusive(connection, "stalled jobs")
            aborted = set(await manager.list_jobs_to_abort_async())
            for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._pace.lease):
                if job.id in aborted:
                    await manager.finish_job(job, Status.ABORTED, delete_job=False)
                else:
                    await manager.retry_job(job)

    def _task(self) -> Callable[..., Awaitable[None]]:
        async def task(context: JobContext, *, job_id: str) -> None:
            problem = await _in_thread(lambda: self._attempt(job_id, context.job))
            if self._stopping():
                # Before it is requeued, or the worker would claim it again.
                self._stop()
            if problem is not None:
                raise problem

        return task

    def _attempt(self, job_id: str, queued: Job) -> Exception | None:
        """One attempt; returns the error that procrastinate should see, if any."""
        with self._database.write() as connection:
            if get_existing(connection, job_id).attempts >= self._pace.attempts:
                jobs.note(connection, job_id, error=WORKER_DIED, finished_at=self._now())
                return _Ended(None)
            jobs.begin(connection, job_id, self._now())
            row = get_existing(connection, job_id)
        outcome = run_attempt(self._work, task_of(row), self._report(job_id, queued))
        with self._database.write() as connection:
            current = connection.exec_driver_sql(
                _CURRENT_JOB, {"number": queued.id, "worker": queued.worker_id}
            ).first()
            if current is None:
                # The job was lost to another worker.
                return _Ended(None)
            if outcome.kind == "stopped":
                jobs.note(connection, job_id, attempts=row.attempts - 1)
                return _Ended(0.0)
            if outcome.kind == "failed" and not current.abort_requested and row.attempts < self._pace.attempts:
                jobs.note(connection, job_id, error=outcome.error)
                return _Ended(self._pace.before(row.attempts))
            jobs.note(connection, job_id, error=outcome.error, finished_at=self._now())
            if outcome.kind == "cancelled" or (outcome.kind == "failed" and current.abort_requested):
                return JobAborted()
            return _Ended(None) if outcome.kind == "failed" else None

    def _report(self, job_id: str, queued: Job) -> Report:
        def report(done: int, total: int) -> None:
            with self._database.write(durable=False) as connection:
                current = connection.exec_driver_sql(
                    _CURRENT_JOB, {"number": queued.id, "worker": queued.worker_id}
                ).first()
                if current is not None:
                    jobs.note(connection, job_id, done=done, total=total)
            if current is not None and current.abort_requested:
                raise Cancelled
            if current is None or self._stopping():
                raise Stopped

        return report


class _Ended(Exception):
    """An attempt that failed and is recorded; `pause` is the time until the next one."""

    def __init__(self, pause: float | None) -> None:
        super().__init__("no further attempt" if pause is None else f"next attempt in {pause:g} s")
        self.pause = pause


class _Retry(BaseRetryStrategy):
    """When to try again; always after what the record does not show, such as the loss of a connection.

    Procrastinate's `RetryStrategy` would count attempts that ended because the worker was stopped.
    """

    def __init__(self, pace: WorkerTiming) -> None:
        self._pace = pace

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        pause = exception.pause if isinstance(exception, _Ended) else self._pace.before(job.attempts + 1)
        return None if pause is None else RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=pause))


class _OwnJobManager(JobManager):
    """Settles a job only for the worker that has it: procrastinate would let one settle it that was taken for dead, and
    is still alive, while another worker does it again. Lets projects take turns: each has a queue, and procrastinate
    would take the oldest job of all queues."""

    def __init__(self, connector: PsycopgConnector, database: Database) -> None:
        super().__init__(connector)
        self._database = database

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        if queues is None:
            with self._database.read() as connection:
                projects = jobs.turns(connection, time.time_ns() // 1000, MAX_TRIED)
            for project in projects:
                job = await super().fetch_job([queue_name(project)], worker_id)
                if job is not None:
                    return job
        # Jobs that run one at a time may wait for another one, and other workers may have taken the rest.
        return await super().fetch_job(queues, worker_id)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        if await self._is_current(job):
            await super().finish_job(job, status, delete_job)

    async def retry_job(self, job: Job, *args: Any, **options: Any) -> None:
        if await self._is_current(job):
            await super().retry_job(job, *args, **options)

    async def _is_current(self, job: Job) -> bool:
        return bool(await self.connector.execute_query_all_async(_CURRENT_JOB, number=job.id, worker=job.worker_id))


def queue_name(project: int | None) -> str:
    """The queue of a project, or of the store."""
    return STORE if project is None else f"project-{project}"


class _Loop(asyncio.SelectorEventLoop):
    """Looks up the names of hosts itself: a pool of threads accepts no work after the main thread has ended."""

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        return socket.getaddrinfo(host, port, **options)


async def _in_thread(call: Callable[[], Result]) -> Result:
    """The result of a call that runs in a thread of its own, waited for even if the task is cancelled meanwhile. While
    the process ends, it runs in this one, and there are no heartbeats."""
    settled: concurrent.futures.Future[Result] = concurrent.futures.Future()

    def run() -> None:
        try:
            settled.set_result(call())
        except BaseException as error:
            settled.set_exception(error)

    # Not from a pool, which accepts no work after the main thread has ended.
    if not start_unless_ending(threading.Thread(target=run, name="heedful-job")):
        run()
    result = asyncio.wrap_future(settled)
    while not result.done():
        # The call notices at its next report.
        with suppress(asyncio.CancelledError):
            await asyncio.wait([result])
    return result.result()
