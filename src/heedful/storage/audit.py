"""The audit trail: refusals, and actions of admins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from heedful import request_context
from heedful.storage.rows import AnyRow, between
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
    row = {"project_id": project, "at": at, "kind": "action", "operation": operation, "target": target, "times": 1}
    caller = request_context.current()
    if caller is not None:
        row |= {"caller": caller.subject, "address": caller.address}
    connection.execute(insert(audit).values(row))


def note_refusals(connection: Connection, at: int, counts: Iterable[tuple[Refusal, int]]) -> None:
    """Records refusals, and how often each happened."""
    values: list[dict[str, Any]] = [
        {**asdict(refusal), "at": at, "kind": "refusal", "times": times} for refusal, times in counts
    ]
    names = {row["project"] for row in values} - {None}
    named = connection.execute(select(projects.c.name, projects.c.id).where(projects.c.name.in_(names)))
    project_ids = {row.name: row.id for row in named}
    for row in values:
        row["project_id"] = project_ids.get(row.pop("project"))
    if values:
        connection.execute(insert(audit), values)


def list_entries(
    connection: Connection, project: str | None, kind: str | None, since: int | None, before: int | None, limit: int
) -> list[AnyRow]:
    """Entries of a project, or of all, the newest first."""
    conditions = between(audit.c.at, since, None)
    if project is not None:
        conditions.append(projects.c.name == project)
    if kind is not None:
        conditions.append(audit.c.kind == kind)
    if before is not None:
        conditions.append(audit.c.seq < before)
    statement = select(audit, projects.c.name.label("project")).select_from(audit.outerjoin(projects))
    return list(connection.execute(statement.where(*conditions).order_by(audit.c.seq.desc()).limit(limit)))
