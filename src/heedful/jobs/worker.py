"""Workers: one that runs as long as its process, and one in the background of a program."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from heedful.jobs.contract import Queue, Report, Task, Work, logger
from heedful.jobs.kinds import add_digest_when_due, add_when_due
from heedful.model import Over
from heedful.threads import start_unless_ending

STORE_RETRY_SECONDS = 5.0
"""Seconds until a failed store is retried."""

MIN_POLL_SECONDS = 0.2
"""The shortest pause between polls: the clock of a database may be behind."""

MAINTENANCE_POLL_SECONDS = 60.0
"""Seconds between two checks whether maintenance is due."""


class Worker:
    """Runs the jobs of all projects and of the store, until it is stopped."""

    def __init__(self, queue: Queue, work: Work, now: Callable[[], int], *, digest_every: Over | None = None) -> None:
        self._queue = queue
        self._work = work
        self._now = now
        self._digest_every: Over | None = digest_every
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._checked_at = -MAINTENANCE_POLL_SECONDS

    def start(self) -> None:
        """Works in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="heedful-worker", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Works in the calling thread, and survives failures of the store."""
        while not self._stopped.is_set():
            try:
                self._queue.work(self._work, None, self._stopped.is_set, once=False, on_poll=self._add_what_is_due)
            except Exception as error:
                logger.warning("jobs wait: %s", error)
            # Reached before the stop only if the store failed.
            self._stopped.wait(STORE_RETRY_SECONDS)

    def drain(self) -> None:
        """Runs the jobs that are due in the calling thread, maintenance included, and the jobs they add."""
        self._add_what_is_due()
        self._queue.work(self._work, None, self._stopped.is_set, once=True)
        self._queue.work(self._work, None, self._stopped.is_set, once=True)

    def wake(self, job_id: str) -> None:
        """Wakes it to look for jobs."""
        self._queue.wake()

    def stop(self) -> None:
        """Asks it to end after the current batch, without waiting; others can finish the job."""
        self._stopped.set()
        self._queue.wake()

    def close(self) -> None:
        """Stops, and waits for the end."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _add_what_is_due(self) -> None:
        if time.monotonic() - self._checked_at >= MAINTENANCE_POLL_SECONDS:
            self._checked_at = time.monotonic()
            add_when_due(self._queue, self._now())
            add_digest_when_due(self._queue, self._now(), self._digest_every)


class BackgroundWorker:
    """Does the jobs of one project in a thread, which is there only while there are some.

    What this process added is done before it ends, with or without `close`; what others left is only begun, and stays
    for whoever comes next.
    """

    def __init__(self, queue: Queue, work: Work, project: str) -> None:
        self._queue = queue
        self._work = work
        self._project = project
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._timer: threading.Timer | None = None
        self._own_jobs: set[str] = set()
        self._again = False
        self._closing = False
        _RUNNING.add(self)

    def added(self, job_id: str) -> None:
        """Runs a job of this process soon."""
        with self._lock:
            self._own_jobs.add(job_id)
            self._start()

    def start_due(self) -> None:
        """Runs the jobs that exist, now or when they are due."""
        due = self._queue.due_in(self._project)
        if due == 0:
            self._wake()
        elif due is not None:
            self._wake_in(due)

    def close(self) -> None:
        """Waits until everything that this process added is done, or has failed for now."""
        with self._lock:
            self._closing = True
            thread = self._thread
            if self._timer is not None:
                self._timer.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _wake(self) -> None:
        with self._lock:
            if not self._closing:
                self._start()

    def _wake_in(self, seconds: float) -> None:
        with self._lock:
            if self._closing:
                return
            # It must not keep the process alive.
            self._timer = threading.Timer(seconds, self._wake)
            self._timer.daemon = True
            start_unless_ending(self._timer)

    def _start(self) -> None:
        self._again = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="heedful-background")
            self._thread.start()

    def _run(self) -> None:
        while self._keep_running():
            try:
                self._queue.work(self._do, self._project, self._stopping, once=True)
                due = self._queue.due_in(self._project)
                if due is not None:
                    self._wake_in(max(due, MIN_POLL_SECONDS))
            except Exception as error:
                # They stay in the store, for the next time or the next process.
                logger.warning("jobs wait: %s", error)

    def _keep_running(self) -> bool:
        with self._lock:
            again, self._again = self._again, False
            if not again:
                self._thread = None
            return again

    def _do(self, task: Task, report: Report) -> None:
        try:
            self._work(task, report)
        finally:
            with self._lock:
                self._own_jobs.discard(task.job_id)

    def _stopping(self) -> bool:
        with self._lock:
            return (self._closing or not threading.main_thread().is_alive()) and not self._own_jobs

    def _leave_parent(self) -> None:
        """A forked child has none of its parent's threads, nor its jobs."""
        self._lock = threading.Lock()
        self._thread, self._timer = None, None
        self._own_jobs = set()


_RUNNING: weakref.WeakSet[BackgroundWorker] = weakref.WeakSet()


def _forget_threads() -> None:
    for background in list(_RUNNING):
        background._leave_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
