"""`.jobs`: work that is done in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.api import checks
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.jobs.queue import Queue, to_job
from heedful.model import JOB_KINDS, JOB_STATUSES, Alert, Job, JobKind, JobStatus, Page, limits
from heedful.sessions import alerts as session_alerts
from heedful.sessions.improve import check_exist, session_names
from heedful.sessions.session_store import page
from heedful.sessions.space import SessionSpace
from heedful.storage.rows import AnyRow, to_model

PAGE_LIMIT = 100


class StoreJobs:
    """The jobs of a whole store: of its projects and its own. With a `project`, only those of that one."""

    def __init__(
        self, queue: Queue, project: str | None = None, added: Callable[[str], object] = lambda job_id: None
    ) -> None:
        """`added` is called with the id of each job that is added for a project."""
        self._queue = queue
        self._project = project
        self._added = added

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
        for field, value, choices in (("status", status, JOB_STATUSES), ("kind", kind, JOB_KINDS)):
            if value is not None:
                checks.one_of(field, value, choices)
        after = checks.cursor(cursor)
        return page(lambda count: self._queue.listed(self._project, status, kind, after, count), limit, to_job)

    def get(self, job_id: str) -> Job:
        """One job."""
        return to_job(self._row(job_id))

    def cancel(self, job_id: str) -> Job:
        """Cancels a job."""
        self._row(job_id)
        self._queue.cancel(job_id)
        return self.get(job_id)

    def retry(self, job_id: str) -> Job:
        """Adds a job that does the same as one that failed or was cancelled."""
        row = self._row(job_id)
        if row.status not in ("failed", "cancelled"):
            message = f"job {job_id!r} is {row.status}"
            remedy = "Only jobs that failed or were cancelled can be tried again"
            raise Conflict(message, code="job_not_ended", field="job_id", value=job_id, remedy=remedy)
        again = self._queue.add(row.project, row.kind, row.arguments, most=limits.MAX_WAITING_JOBS)
        self._added(again.id)
        return to_job(again)

    def _row(self, job_id: str) -> AnyRow:
        row = self._queue.get(checks.identifier("job_id", job_id))
        if row is None or (self._project is not None and row.project != self._project):
            where = "in this store" if self._project is None else f"in project {self._project!r}"
            raise NotFound(f"no job {job_id!r} {where}", field="job_id", value=job_id)
        return row


class ProjectJobs(StoreJobs):
    """The jobs of one project, and its alerts as such."""

    def __init__(self, queue: Queue, sessions: SessionSpace, added: Callable[[str], object]) -> None:
        super().__init__(queue, sessions.project, added)
        self._sessions = sessions

    def improve(self, dataset: str | None, session_ids: Sequence[str] | None) -> Job:
        if dataset is not None:
            checks.name("dataset", dataset)
            if self._sessions.workspace is not None:
                with self._sessions.workspace.read() as connection:
                    self._sessions.workspace.dataset(connection, dataset)
        sessions = None if session_ids is None else session_names(session_ids)
        check_exist(self._sessions, sessions or [])
        arguments = {"dataset": dataset, "session_ids": sessions}
        row = self._queue.add(self._project, "improve", arguments, most=limits.MAX_WAITING_JOBS)
        self._added(row.id)
        return to_job(row)

    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: JobKind | None = None,
        cursor: str | None = None,
        limit: int = PAGE_LIMIT,
    ) -> Page[Job]:
        if kind != "deliver":
            return super().list(status=status, kind=kind, cursor=cursor, limit=limit)
        if status is not None and checks.one_of("status", status, JOB_STATUSES) != "waiting":
            message, remedy = f"alerts can't be listed by the status {quoted(status)}", "Use waiting, or none"
            raise Invalid(message, field="status", value=status, remedy=remedy)
        alerts = session_alerts.list_alerts(self._sessions, status == "waiting", cursor, limit)
        return Page(items=[self._delivery(alert) for alert in alerts.items], next_cursor=alerts.next_cursor)

    def _delivery(self, alert: Alert) -> Job:
        """An alert as a job, which the dispatcher of a process with its channel delivers."""
        discarded = alert.delivered_at is None and alert.next_at is None
        return to_model(
            Job,
            alert,
            job_id=alert.alert_id,
            kind="deliver",
            project=self._project,
            arguments={"channel": alert.channel},
            status="done" if alert.delivered_at else "cancelled" if discarded else "waiting",
            finished_at=alert.delivered_at,
            **dict.fromkeys(("done", "total", "started_at")),
        )
