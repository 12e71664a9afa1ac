"""Work that is done later."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_args

from heedful.model.base import Model

JobStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["improve", "reembed", "maintain", "index", "digest", "deliver"]

JOB_STATUSES: tuple[JobStatus, ...] = get_args(JobStatus)
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)


class Job(Model):
    """Work that is done in the background: at least once, by one worker at a time."""

    job_id: str
    """What `get`, `cancel` and `retry` take."""
    kind: JobKind
    """What is done: improve, reembed, maintain, index for the search inside a database, digest for what people said, or
    deliver for an alert in the outbox."""
    project: str | None
    """Whose it is; None for work on the whole store."""
    arguments: dict[str, Any]
    """What it is done with."""
    status: JobStatus
    """waiting, running, done, failed or cancelled."""
    attempts: int
    """How often it was begun."""
    done: int | None
    """How much of it is done, of `total`; None before that is known."""
    total: int | None
    """How much there is to do."""
    error: str | None
    """Why the last attempt failed."""
    created_at: datetime
    started_at: datetime | None
    """When it was last begun."""
    finished_at: datetime | None
    """When it was done, cancelled or given up."""
