"""The audit trail: refusals, and actions of admins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, insert, select

from heedful import request_context
from heedful.storage.rows import AnyRow
from heedful.storage.schema import audit, projects


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call, without anything of its content."""

    operation: str
    code: str
    project: str | None = None
    caller: str | None = None
    address: str | None = None


def note_action(connection: Connection, operation: str, at: int, project: int | None, target: str | None) -> None:
    """Records an action of an admin, in the same transaction."""
    caller = request_context.current()
    connection.execute(
        insert(audit).values(
            project_id=project,
            at=at,
            kind="action",
            operation=operation,
            caller=None if caller is None else caller.subject,
            address=None if caller is None else caller.address,
            target=target,
            times=1,
        )
    )


def note_refusals(connection: Connection, at: int, counts: Iterable[tuple[Refusal, int]]) -> None:
    """Records refusals, and how often each happened."""
    rows = [(refusal, times) for refusal, times in counts]
    names = {refusal.project for refusal, _ in rows} - {None}
    project_rows = connection.execute(select(projects.c.name, projects.c.id).where(projects.c.name.in_(names)))
    project_ids = {row.name: row.id for row in project_rows}
    values = []
    for refusal, times in rows:
        row = asdict(refusal)
        project = project_ids.get(row.pop("project"))
        values.append({**row, "project_id": project, "at": at, "kind": "refusal", "times": times})
    if values:
        connection.execute(insert(audit), values)


def list_entries(
    connection: Connection,
    project: str | None,
    kind: str | None,
    since: int | None,
    before: int | None,
    limit: int,
) -> list[AnyRow]:
    """Entries of a project, or of all, the newest first."""
    statement = select(audit, projects.c.name.label("project")).select_from(audit.outerjoin(projects))
    if project is not None:
        statement = statement.where(projects.c.name == project)
    if kind is not None:
        statement = statement.where(audit.c.kind == kind)
    if since is not None:
        statement = statement.where(audit.c.at >= since)
    if before is not None:
        statement = statement.where(audit.c.seq < before)
    return list(connection.execute(statement.order_by(audit.c.seq.desc()).limit(limit)))
