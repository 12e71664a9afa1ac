"""`.jobs`: work that is done in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heedful.errors import Conflict, Invalid, NotFound, Unavailable, quoted
from heedful.jobs.contract import Queue, WorkerTiming, to_job
from heedful.jobs.sqlite import SqliteQueue
from heedful.memory import checks
from heedful.model import JOB_KINDS, JOB_STATUSES, Alert, Job, JobKind, JobStatus, Page, limits
from heedful.protocols.jobs import PAGE_LIMIT, JobsProtocol
from heedful.sessions import outbox
from heedful.sessions.conversations import page
from heedful.sessions.improve import check_exist, session_names
from heedful.sessions.space import SessionSpace
from heedful.storage import Database
from heedful.storage.rows import AnyRow


class Jobs(JobsProtocol):
    """The jobs of one project."""

    def __init__(self, queue: Queue, space: SessionSpace, added: Callable[[str], object]) -> None:
        self._queue = queue
        self._space = space
        self._added = added

    def improve(self, dataset: str | None = None, session_ids: Sequence[str] | None = None) -> Job:
        if dataset is not None:
            checks.name("dataset", dataset)
            if self._space.workspace is not None:
                with self._space.workspace.read() as connection:
                    self._space.workspace.dataset(connection, dataset)
        sessions = None if session_ids is None else session_names(session_ids)
        check_exist(self._space, sessions or [])
        return self._add("improve", {"dataset": dataset, "session_ids": sessions})

    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: JobKind | None = None,
        cursor: str | None = None,
        limit: int = PAGE_LIMIT,
    ) -> Page[Job]:
        if kind == "deliver":
            return self._deliveries(status, cursor, limit)
        return list_jobs(self._queue, self._space.project, status, kind, cursor, limit)

    def get(self, job_id: str) -> Job:
        return to_job(get_job(self._queue, self._space.project, job_id))

    def cancel(self, job_id: str) -> Job:
        return cancel_job(self._queue, self._space.project, job_id)

    def retry(self, job_id: str) -> Job:
        row = retry_job(self._queue, self._space.project, job_id)
        self._added(row.id)
        return to_job(row)

    def _add(self, kind: str, arguments: dict[str, Any]) -> Job:
        row = self._queue.add(self._space.project, kind, arguments, most=limits.MAX_WAITING_JOBS)
        self._added(row.id)
        return to_job(row)

    def _deliveries(self, status: JobStatus | None, cursor: str | None, limit: int) -> Page[Job]:
        _one_of("status", status, JOB_STATUSES)
        if status not in (None, "waiting"):
            raise Invalid(
                f"alerts can't be listed by the status {quoted(status)}",
                field="status",
                value=status,
                remedy="Use waiting, or none",
            )
        alerts = outbox.list_alerts(self._space, status == "waiting", cursor, limit)
        return Page(
            items=[to_delivery_job(alert, self._space.project) for alert in alerts.items],
            next_cursor=alerts.next_cursor,
        )


class StoreJobs:
    """The jobs of a whole store: of its projects and its own."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def reembed(self, embedding: str) -> Job:
        """Re-embeds the store in the background with the model that `embedding` names."""
        return to_job(self._queue.add(None, "reembed", {"embedding": embedding}))

    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: JobKind | None = None,
        cursor: str | None = None,
        limit: int = PAGE_LIMIT,
    ) -> Page[Job]:
        """Jobs, the newest first."""
        return list_jobs(self._queue, None, status, kind, cursor, limit)

    def get(self, job_id: str) -> Job:
        """One job."""
        return to_job(get_job(self._queue, None, job_id))

    def cancel(self, job_id: str) -> Job:
        """Cancels a job."""
        return cancel_job(self._queue, None, job_id)

    def retry(self, job_id: str) -> Job:
        """Adds a job that does the same as one that failed or was cancelled."""
        return to_job(retry_job(self._queue, None, job_id))


def list_jobs(
    queue: Queue, project: str | None, status: str | None, kind: str | None, cursor: str | None, limit: int
) -> Page[Job]:
    _one_of("status", status, JOB_STATUSES)
    _one_of("kind", kind, JOB_KINDS)
    after = checks.cursor(cursor)
    return page(lambda count: queue.listed(project, status, kind, after, count), limit, to_job)


def get_job(queue: Queue, project: str | None, job_id: str) -> AnyRow:
    """A job of a project, or of any."""
    row = queue.get(checks.identifier("job_id", job_id))
    if row is None or (project is not None and row.project != project):
        where = "in this store" if project is None else f"in project {project!r}"
        raise NotFound(f"no job {job_id!r} {where}", field="job_id", value=job_id)
    return row


def cancel_job(queue: Queue, project: str | None, job_id: str) -> Job:
    get_job(queue, project, job_id)
    queue.cancel(job_id)
    return to_job(get_job(queue, project, job_id))


def retry_job(queue: Queue, project: str | None, job_id: str) -> AnyRow:
    row = get_job(queue, project, job_id)
    if row.status not in ("failed", "cancelled"):
        raise Conflict(
            f"job {job_id!r} is {row.status}",
            code="job_not_ended",
            field="job_id",
            value=job_id,
            remedy="Only jobs that failed or were cancelled can be tried again",
        )
    return queue.add(row.project, row.kind, row.arguments, most=limits.MAX_WAITING_JOBS)


def to_delivery_job(alert: Alert, project: str) -> Job:
    """An alert as a job, which the dispatcher of a process with its channel delivers."""
    discarded = alert.delivered_at is None and alert.next_at is None
    return Job(
        job_id=alert.alert_id,
        kind="deliver",
        project=project,
        arguments={"channel": alert.channel},
        status="done" if alert.delivered_at else "cancelled" if discarded else "waiting",
        attempts=alert.attempts,
        done=None,
        total=None,
        error=alert.error,
        created_at=alert.created_at,
        started_at=None,
        finished_at=alert.delivered_at,
    )


def _one_of(field: str, value: Any, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        raise Invalid(
            f"unknown {field} {quoted(value)}", field=field, value=value, remedy=f"Use one of {', '.join(choices)}"
        )


def queue_of(database: Database, now: Callable[[], int], pace: WorkerTiming | None = None) -> Queue:
    """The queue of a store."""
    pace = pace or WorkerTiming()
    if database.url.get_backend_name() != "postgresql":
        return SqliteQueue(database, now, pace)
    try:
        from heedful.jobs.postgresql import PostgreSqlQueue
    except ImportError as error:
        raise Unavailable(
            f"a store on PostgreSQL needs an extra ({error.name} is missing)",
            code="extra_missing",
            remedy='Run: pip install "heedful[postgresql]"',
        ) from error
    return PostgreSqlQueue(database, now, pace)
