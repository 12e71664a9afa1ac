"""What the cache decided, and why."""

from __future__ import annotations

from heedful.clock import from_stored
from heedful.memory.workspace import Workspace
from heedful.model import CacheDecision, CacheReport, DecisionCount
from heedful.storage import insight, scopes
from heedful.storage.rows import AnyRow

REUSE_DECISIONS = ("serve", "rebind")


def cache_report(workspace: Workspace, since: int | None, until: int | None, limit: int) -> CacheReport:
    """Decisions by their reasons, and the newest ones."""
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        counts = [] if project is None else insight.decided(connection, project, since, until)
        newest = [] if project is None else insight.newest_decisions(connection, project, since, until, limit)
    total = sum(row.times for row in counts)
    return CacheReport(
        total=total,
        reused=sum(row.times for row in counts if row.decision in REUSE_DECISIONS),
        counts=[
            DecisionCount(decision=row.decision, gate=row.gate, count=row.times, share=row.times / total)
            for row in counts
        ],
        newest=[_to_decision(row) for row in newest],
    )


def _to_decision(row: AnyRow) -> CacheDecision:
    return CacheDecision(
        at=from_stored(row.at),
        question=row.question,
        decision=row.decision,
        gate=row.gate,
        reason=row.reason,
        similarity=row.similarity,
        candidate_id=row.candidate_id,
        execution_id=row.execution_id,
    )
