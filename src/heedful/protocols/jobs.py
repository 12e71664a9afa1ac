"""`.jobs`: work that is done later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heedful.model import Job, JobKind, JobStatus, Page

PAGE_LIMIT = 100


class JobsProtocol(Protocol):
    """The jobs of one project."""

    def improve(self, dataset: str | None = None, session_ids: Sequence[str] | None = None) -> Job:
        """Has `improve` run in the background; if a job waits to do the same, that one is returned."""

    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: JobKind | None = None,
        cursor: str | None = None,
        limit: int = PAGE_LIMIT,
    ) -> Page[Job]:
        """Jobs, the newest first. With the kind `deliver`, the alerts of the outbox, as jobs."""

    def get(self, job_id: str) -> Job:
        """One job."""

    def cancel(self, job_id: str) -> Job:
        """Has a job not done: at once if it waits, at its next step if it runs. What has ended stays as it is."""

    def retry(self, job_id: str) -> Job:
        """Adds a job that does the same as one that failed or was cancelled."""
