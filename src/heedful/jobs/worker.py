"""Workers: one that runs as long as its process, and one in the background of a program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from heedful.clock import DAY
from heedful.errors import Unavailable
from heedful.jobs.kinds import NEW_FEEDBACK
from heedful.jobs.queue import Queue, Report, Task, Work, logger
from heedful.model import Over
from heedful.threads import leave_parent_when_forked, start_unless_ending

STORE_RETRY_SECONDS = 5.0  # Seconds until a failed store is retried.
MIN_POLL_SECONDS = 0.2  # The shortest pause between polls: the clock of a database may be behind.

FEEDBACK_SECONDS = 2.0
"""Seconds from the first new feedback until a program improves its project: what comes meanwhile is done with it."""

END_POLL_SECONDS = 0.05  # Seconds between checks whether the main thread has ended.
MAINTENANCE_POLL_SECONDS = 60.0  # Seconds between two checks whether maintenance is due.
MAINTENANCE_INTERVAL = DAY // 24  # Between two rounds of maintenance, in stored time.


class Worker:
    """Runs the jobs of all projects and of the store, until it is stopped."""

    def __init__(
        self,
        queue: Queue,
        work: Work,
        now: Callable[[], int],
        *,
        digest_every: Over | None = None,
        find_feedback: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`find_feedback` returns the projects with new feedback, which are improved."""
        self._queue = queue
        self._work = work
        self._now = now
        self._digest_every = digest_every
        self._find_feedback = find_feedback
        self._find_at = 0.0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._checked_at = -MAINTENANCE_POLL_SECONDS

    def start(self) -> None:
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
        self._add_improvements()
        if time.monotonic() - self._checked_at >= MAINTENANCE_POLL_SECONDS:
            self._checked_at = time.monotonic()
            last, now = self._queue.last_added("maintain"), self._now()
            if last is None or now - last >= MAINTENANCE_INTERVAL:
                self._queue.add(None, "maintain", {})
            if self._digest_every is not None:
                self._add_digest(*last_full_period(self._digest_every, now), now)

    def _add_digest(self, since: int, until: int, now: int) -> None:
        """Adds a job for the digests of a period, once; again an hour after a failure."""
        newest = self._queue.listed(None, None, "digest", None, 1)
        is_new = not newest or newest[0].created_at < until
        if is_new or (newest[0].status == "failed" and now - newest[0].created_at >= MAINTENANCE_INTERVAL):
            self._queue.add(None, "digest", {"since": since, "until": until})

    def _add_improvements(self) -> None:
        if time.monotonic() < self._find_at:
            return
        try:
            projects = self._find_feedback()
        except Unavailable as error:
            # Sessions may be in another database: the jobs of this one go on.
            self._find_at = time.monotonic() + MAINTENANCE_POLL_SECONDS
            logger.warning("new feedback waits: %s", error)
        else:
            for project in projects:
                # One that is running may be processing it.
                if not self._queue.listed(project, "running", "improve", None, 1):
                    self._queue.add(project, "improve", NEW_FEEDBACK)


class BackgroundWorker:
    """Does the jobs of one project in a thread, which is there only while there are some, or new feedback.

    What this process added is done before it ends, with or without `close`; what others left is only begun, and stays
    for whoever comes next.
    """

    def __init__(self, queue: Queue, work: Work, project: str, has_feedback: Callable[[], bool] | None = None) -> None:
        """`has_feedback` returns whether there is new feedback to improve the project by; None leaves it alone."""
        self._queue = queue
        self._work = work
        self._project = project
        self._has_feedback = has_feedback
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._timer: threading.Timer | None = None
        self._own_jobs: set[str] = set()
        self._again = False
        self._feedback_due: float | None = None
        self._closing = False
        leave_parent_when_forked(self)

    def added(self, job_id: str) -> None:
        """Runs a job of this process soon."""
        with self._condition:
            self._own_jobs.add(job_id)
            self._start()

    def feedback_changed(self) -> None:
        """Improves the project by new feedback, soon."""
        with self._condition:
            if self._has_feedback is not None and self._feedback_due is None:
                self._feedback_due = time.monotonic() + FEEDBACK_SECONDS
                self._start_thread()

    def start_due(self, *, feedback: bool = False) -> None:
        """Runs the jobs that exist, now or when they are due; with `feedback`, also one for feedback that was left."""
        if feedback:
            self._queue.add(self._project, "improve", NEW_FEEDBACK)
        due = self._queue.due_in(self._project)
        if due == 0:
            self._wake()
        elif due is not None:
            self._wake_in(due)

    def close(self) -> None:
        """Waits until everything that this process added is done, or has failed for now."""
        with self._condition:
            self._closing = True
            self._condition.notify()
            thread = self._thread
            if self._timer is not None:
                self._timer.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _wake(self) -> None:
        with self._condition:
            if not self._closing:
                self._start()

    def _wake_in(self, seconds: float) -> None:
        with self._condition:
            if self._closing:
                return
            # It must not keep the process alive.
            self._timer = threading.Timer(seconds, self._wake)
            self._timer.daemon = True
            start_unless_ending(self._timer)

    def _start(self) -> None:
        self._again = True
        self._start_thread()

    def _start_thread(self) -> None:
        self._condition.notify()
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="heedful-background")
            self._thread = thread if start_unless_ending(thread) else None

    def _run(self) -> None:
        while self._keep_running():
            try:
                self._add_improvement()
                self._queue.work(self._do, self._project, self._stopping, once=True)
                due = self._queue.due_in(self._project)
                if due is not None:
                    self._wake_in(max(due, MIN_POLL_SECONDS))
            except Exception as error:
                # They stay in the store, for the next time or the next process.
                logger.warning("jobs wait: %s", error)

    def _keep_running(self) -> bool:
        """Waits until there is something to do; False if there is nothing."""
        with self._condition:
            while not self._again and self._feedback_due is not None:
                remaining = self._feedback_due - time.monotonic()
                if remaining <= 0 or self._is_ending():
                    self._again = True
                else:
                    self._condition.wait(min(remaining, END_POLL_SECONDS))
            again, self._again = self._again, False
            if not again:
                self._thread = None
            return again

    def _add_improvement(self) -> None:
        with self._condition:
            due = self._feedback_due
            if due is None or (due > time.monotonic() and not self._is_ending()):
                return
            self._feedback_due = None
        # A call of `improve` may have processed it.
        if self._has_feedback is not None and self._has_feedback():
            job = self._queue.add(self._project, "improve", NEW_FEEDBACK)
            with self._condition:
                self._own_jobs.add(job.id)

    def _do(self, task: Task, report: Report) -> None:
        try:
            self._work(task, report)
        finally:
            with self._condition:
                self._own_jobs.discard(task.job_id)

    def _stopping(self) -> bool:
        with self._condition:
            return self._is_ending() and not self._own_jobs

    def _is_ending(self) -> bool:
        return self._closing or not threading.main_thread().is_alive()

    def leave_parent(self) -> None:
        self._condition = threading.Condition()
        self._thread, self._timer, self._feedback_due = None, None, None
        self._own_jobs = set()


def last_full_period(every: Over, now: int) -> tuple[int, int]:
    """The last day or week that is over, in UTC; weeks begin on Mondays.

    >>> last_full_period("day", 5 * DAY + 7)
    (345600000000, 432000000000)
    >>> [moment // DAY for moment in last_full_period("week", 14 * DAY)]
    [4, 11]
    """
    today = now // DAY
    if every == "day":
        return (today - 1) * DAY, today * DAY
    # 1970 began on a Thursday.
    monday = (today + 3) // 7 * 7 - 3
    return (monday - 7) * DAY, monday * DAY
