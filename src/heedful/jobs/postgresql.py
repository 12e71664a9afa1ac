"""A queue in a PostgreSQL store, kept by procrastinate: its tables hand jobs out.

The table `jobs` is the record that people see; a trigger keeps its status. Workers are in `procrastinate_worker`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from procrastinate import App, SyncPsycopgConnector
from sqlalchemy import text

from heedful.jobs.contract import SERIAL_KINDS, Records, Work, WorkerTiming, check_room, digest, get_existing
from heedful.jobs.procrastinate_worker import TASK, Procrastination, queue_name
from heedful.storage import Database, jobs, scopes
from heedful.storage.locks import lock_exclusive
from heedful.storage.rows import AnyRow

BATCH_SIZE = 500

# Procrastinate itself only uses the clock of the server.
_FORGET = text("DELETE FROM procrastinate_jobs WHERE id = ANY(:numbers)")


class PostgreSqlQueue(Records):
    """See `Queue`."""

    def __init__(self, database: Database, now: Callable[[], int], pace: WorkerTiming) -> None:
        super().__init__(database, now)
        self._pace = pace
        # Never opened: it only uses our connections.
        self._app = App(connector=SyncPsycopgConnector())

    def add(self, project: str | None, kind: str, arguments: Mapping[str, Any], *, most: int | None = None) -> AnyRow:
        same = digest(project, kind, arguments)
        with self._database.write(project) as connection:
            lock_exclusive(connection, "jobs")
            job_id = jobs.waiting(connection, same)
            if job_id is None:
                at = self._now()
                owner = None if project is None else scopes.ensure_project(connection, project, at)
                if owner is not None and most is not None:
                    check_room(connection, owner, most)
                job_id = jobs.add(connection, owner, kind, dict(arguments), same, at, time.time_ns() // 1000)
                task = self._app.configure_task(
                    TASK,
                    queue=queue_name(owner),
                    lock=kind if kind in SERIAL_KINDS else None,
                    connection=connection.connection.driver_connection,
                )
                jobs.note(connection, job_id, queue_number=task.defer(job_id=job_id))
            return get_existing(connection, job_id)

    def cancel(self, job_id: str) -> None:
        with self._database.write() as connection:
            row = jobs.get(connection, job_id)
            if row is None:
                return
            driver = connection.connection.driver_connection
            if self._app.job_manager.cancel_job_by_id(row.queue_number, abort=True, connection=driver):
                row = get_existing(connection, job_id)
                if row.status == "cancelled":
                    jobs.note(connection, job_id, finished_at=self._now())

    def forget(self, before: int) -> int:
        with self._database.write() as connection:
            rows = jobs.ended_before(connection, before, BATCH_SIZE)
            connection.execute(_FORGET, {"numbers": [row.queue_number for row in rows]})
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
        queues = None
        if project is not None:
            with self._database.read() as connection:
                number = scopes.project_id(connection, project)
            if number is None:
                return
            queues = [queue_name(number)]
        Procrastination(self._database, self._now, self._pace, work, stopping).run(queues, once, on_poll)

    def wake(self) -> None:
        """Nothing to do: the server notifies all workers."""
