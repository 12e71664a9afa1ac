"""Reading the audit trail: who was refused what, and what admins did."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from heedful.clock import from_stored, to_stored
from heedful.errors import Invalid
from heedful.memory import checks
from heedful.model import AUDIT_KINDS, AuditEntry, AuditKind, Page
from heedful.storage import Database, audit
from heedful.storage.rows import AnyRow


def list_entries(
    database: Database,
    project: str | None,
    kind: AuditKind | None,
    since: datetime | None,
    cursor: str | None,
    limit: int,
) -> Page[AuditEntry]:
    """A page of the entries of a project, or of the whole store, the newest first."""
    if kind is not None and kind not in AUDIT_KINDS:
        raise Invalid(f"unknown kind {kind!r}", field="kind", value=kind, remedy=f"Use one of {', '.join(AUDIT_KINDS)}")
    start, before, count = _moment(since), checks.cursor(cursor), checks.limit(limit)
    with database.read(project) as connection:
        rows = audit.list_entries(connection, project, kind, start, before, count + 1)
    return Page(
        items=[_to_entry(row) for row in rows[:count]],
        next_cursor=str(rows[count - 1].seq) if len(rows) > count else None,
    )


def _moment(given: Any) -> int | None:
    if given is not None and not isinstance(given, datetime):
        raise Invalid(f"since must be a datetime, got {given!r}", field="since", value=given)
    return None if given is None else to_stored(given)


def _to_entry(row: AnyRow) -> AuditEntry:
    return AuditEntry(
        at=from_stored(row.at),
        kind=row.kind,
        operation=row.operation,
        project=row.project,
        caller=row.caller,
        address=row.address,
        code=row.code,
        target=row.target,
        times=row.times,
    )
