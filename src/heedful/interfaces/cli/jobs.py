"""jobs, worker: what is done in the background, and what does it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click
from rich.markup import escape

from heedful.bootstrap import store_jobs
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    cursor,
    echo,
    limit,
    more,
    needs_store,
    print_json,
    shortened,
    table,
)
from heedful.interfaces.client.surface import RemoteJobs
from heedful.jobs.service import Jobs, StoreJobs
from heedful.model import JOB_KINDS, JOB_STATUSES, Job, JobKind, JobStatus
from heedful.store import Store, worker_of


@click.group()
def jobs() -> None:
    """Background jobs."""


@jobs.command("list")
@click.option("--status", type=click.Choice(JOB_STATUSES), help="Only jobs with this status.")
@click.option("--kind", type=click.Choice(JOB_KINDS), help="Only jobs of this kind; deliver is for alerts.")
@cursor
@limit
@as_json
@needs_store
def list_jobs(
    options: Options, status: JobStatus | None, kind: JobKind | None, cursor: str | None, limit: int, as_json: bool
) -> None:
    """List jobs, the newest first."""
    with _jobs(options, kind) as jobs:
        page = jobs.list(status=status, kind=kind, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo("No jobs. They are made by: heedful improve --background")
        return
    rows = table(
        "kind",
        "status",
        "done",
        "attempts",
        "created",
        "project",
        "error",
        "job_id",
        numbers=("attempts",),
        less=("attempts", "project"),
    )
    for each in page.items:
        rows.add_row(
            each.kind,
            each.status,
            _progress(each),
            str(each.attempts),
            f"{each.created_at:%Y-%m-%d %H:%M}",
            escape(each.project or "all"),
            escape(shortened(each.error or "", 40)),
            each.job_id,
        )
    console().print(rows)
    more(page)


@jobs.command("show")
@click.argument("job_id")
@as_json
@needs_store
def get(options: Options, job_id: str, as_json: bool) -> None:
    """Show one job."""
    with _jobs(options) as jobs:
        show(jobs.get(job_id), as_json)


@jobs.command()
@click.argument("job_id")
@as_json
@needs_store
def cancel(options: Options, job_id: str, as_json: bool) -> None:
    """Cancel a job: at once if it waits, at its next step if it runs."""
    with _jobs(options) as jobs:
        show(jobs.cancel(job_id), as_json)


@jobs.command()
@click.argument("job_id")
@as_json
@needs_store
def retry(options: Options, job_id: str, as_json: bool) -> None:
    """Retry a job that failed or was cancelled."""
    with _jobs(options) as jobs:
        show(jobs.retry(job_id), as_json)


@click.command()
@click.option("--once", is_flag=True, help="Run due jobs, then exit.")
@click.pass_obj
def worker(options: Options, once: bool) -> None:
    """Run the jobs of all projects until stopped.

    Another worker resumes an interrupted job from its last batch.
    """
    store = Store(
        options.local("worker"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
    )
    try:
        working = worker_of(store)
        if once:
            working.drain()
            return

        def stop(number: int, frame: FrameType | None) -> None:
            # In another thread, because the one that is interrupted may hold what this waits for.
            threading.Thread(target=working.stop).start()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        echo(f"working on {store.database.name}", err=True)
        working.run()
    finally:
        store.close()


@contextmanager
def _jobs(options: Options, kind: JobKind | None = None) -> Iterator[Jobs | StoreJobs | RemoteJobs]:
    """The jobs of a project; of a store that is named without one, all. Looking does none of them."""
    if options.whole_store and kind != "deliver":
        with store_jobs(options.store) as jobs:
            yield jobs
        return
    with options.open(worker=False) as heedful:
        yield heedful.jobs


def show(job: Job, as_json: bool) -> None:
    """Prints one job."""
    if as_json:
        print_json(job)
        return
    echo(f"{job.kind} {job.job_id}: {job.status}, attempt {job.attempts}")
    for key, value in job.arguments.items():
        if value is not None:
            echo(f"  {key}: {value}")
    if job.total is not None:
        echo(f"  done: {_progress(job)}")
    if job.error is not None:
        echo(f"  error: {job.error}")
    for name in ("created_at", "started_at", "finished_at"):
        if getattr(job, name) is not None:
            echo(f"  {name}: {getattr(job, name):%Y-%m-%d %H:%M:%S}")


def _progress(job: Job) -> str:
    return "" if job.total is None else f"{job.done}/{job.total}"
