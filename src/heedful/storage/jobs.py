"""The table of jobs, which both kinds of queue use."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from heedful.ids import new_id
from heedful.storage.rows import AnyRow
from heedful.storage.schema import jobs, projects

ENDED = ("done", "failed", "cancelled")


def add(
    connection: Connection,
    project: int | None,
    kind: str,
    arguments: dict[str, Any],
    digest: bytes,
    at: int,
    due_at: int,
) -> str:
    """Adds a waiting job and returns its id."""
    job_id = new_id()
    connection.execute(
        insert(jobs).values(
            id=job_id,
            project_id=project,
            kind=kind,
            arguments=arguments,
            digest=digest,
            status="waiting",
            attempts=0,
            created_at=at,
            due_at=due_at,
            cancelling=0,
        )
    )
    return job_id


def get(connection: Connection, job_id: str) -> AnyRow | None:
    """A job of any project, with the project's name."""
    return connection.execute(_rows().where(jobs.c.id == job_id)).first()


def waiting(connection: Connection, digest: bytes) -> str | None:
    """The id of a waiting job that does the same."""
    return connection.execute(
        select(jobs.c.id).where(jobs.c.status == "waiting", jobs.c.digest == digest).limit(1)
    ).scalar()


def count_waiting(connection: Connection, project: int, most: int) -> int:
    """How many jobs of a project wait, counted up to `most`."""
    found = select(jobs.c.seq).where(jobs.c.project_id == project, jobs.c.status == "waiting").limit(most)
    return int(connection.execute(select(func.count()).select_from(found.subquery())).scalar_one())


def list_jobs(
    connection: Connection,
    project: str | None,
    status: str | None,
    kind: str | None,
    after: int | None,
    count: int,
) -> list[AnyRow]:
    """Up to `count` jobs of a project, or of all and of the store, the newest first."""
    statement = _rows().order_by(jobs.c.seq.desc()).limit(count)
    if project is not None:
        statement = statement.where(projects.c.name == project)
    if status is not None:
        statement = statement.where(jobs.c.status == status)
    if kind is not None:
        statement = statement.where(jobs.c.kind == kind)
    if after is not None:
        statement = statement.where(jobs.c.seq < after)
    return list(connection.execute(statement))


def due_at(connection: Connection, project: str) -> int | None:
    """When the next job of a project is due; None if none waits."""
    return connection.execute(
        select(func.min(jobs.c.due_at)).join(projects).where(jobs.c.status == "waiting", projects.c.name == project)
    ).scalar()


def last_created(connection: Connection, kind: str) -> int | None:
    """When a job of this kind was last written."""
    return connection.execute(select(func.max(jobs.c.created_at)).where(jobs.c.kind == kind)).scalar()


def begin(connection: Connection, job_id: str, at: int) -> None:
    """Counts an attempt."""
    connection.execute(
        update(jobs).where(jobs.c.id == job_id).values(attempts=jobs.c.attempts + 1, started_at=at, finished_at=None)
    )


def note(connection: Connection, job_id: str, **values: Any) -> None:
    """Updates some columns of a job."""
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))


def claimable(connection: Connection, project: str | None, serial_kinds: tuple[str, ...], now: int) -> AnyRow | None:
    """A free job: one that waits and is due, or one whose lease has expired. It is the oldest of the project that
    was served least recently; the store's own jobs count as a project.

    Of `serial_kinds`, one job of each kind runs at a time.
    """
    other = jobs.alias()
    free = or_(
        and_(jobs.c.status == "waiting", jobs.c.due_at <= now),
        and_(jobs.c.status == "running", jobs.c.leased_until < now),
    )
    blocked = exists().where(
        other.c.kind == jobs.c.kind,
        other.c.seq != jobs.c.seq,
        or_(
            and_(other.c.status == "running", other.c.leased_until >= now),
            and_(other.c.status == "waiting", other.c.seq < jobs.c.seq),
        ),
    )
    of_name = select(projects.c.id).where(projects.c.name == project).scalar_subquery()
    in_project: ColumnElement[bool] = true() if project is None else jobs.c.project_id == of_name
    first = (
        select(func.min(jobs.c.seq).label("seq"))
        .where(free, in_project, or_(jobs.c.kind.not_in(serial_kinds), ~blocked))
        .group_by(jobs.c.project_id)
        .subquery()
    )
    return connection.execute(
        _rows().where(jobs.c.seq.in_(select(first.c.seq))).order_by(_served_at(), jobs.c.seq).limit(1)
    ).first()


def turns(connection: Connection, now: int, count: int) -> list[int | None]:
    """The projects whose jobs are due, those served least recently first; None stands for the store's own jobs."""
    due = (
        select(func.min(jobs.c.seq).label("seq"))
        .where(jobs.c.status == "waiting", jobs.c.due_at <= now)
        .group_by(jobs.c.project_id)
        .subquery()
    )
    first = select(jobs.c.project_id).where(jobs.c.seq.in_(select(due.c.seq)))
    return list(connection.execute(first.order_by(_served_at(), jobs.c.seq).limit(count)).scalars())


def _served_at() -> ColumnElement[int]:
    """When a job of the same project was last started; 0 if none was."""
    other = jobs.alias()
    last = select(func.max(other.c.started_at))
    of_store = last.where(other.c.project_id.is_(None)).scalar_subquery()
    of_project = last.where(other.c.project_id == jobs.c.project_id).scalar_subquery()
    return func.coalesce(case((jobs.c.project_id.is_(None), of_store), else_=of_project), 0)


def lease(connection: Connection, job_id: str, owner: str, until: int, **values: Any) -> bool:
    """Renews the lease of a job for its owner; False if another worker has it."""
    result = connection.execute(
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.owner == owner, jobs.c.status == "running")
        .values(leased_until=until, **values)
    )
    return bool(result.rowcount)


def ended_before(connection: Connection, moment: int, count: int) -> list[AnyRow]:
    """Deletes jobs that ended before a time."""
    return list(
        connection.execute(
            select(jobs.c.seq, jobs.c.queue_number)
            .where(jobs.c.status.in_(ENDED), jobs.c.finished_at < moment)
            .order_by(jobs.c.seq)
            .limit(count)
        )
    )


def remove(connection: Connection, seqs: list[int]) -> None:
    connection.execute(delete(jobs).where(jobs.c.seq.in_(seqs)))


def _rows() -> Select[Any]:
    return select(jobs, jobs.c.seq.label("number"), projects.c.name.label("project")).select_from(
        jobs.outerjoin(projects)
    )
