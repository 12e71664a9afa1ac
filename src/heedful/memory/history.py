"""How a fact came to its score, and undoing an opinion about it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.memory import checks
from heedful.memory.supersede import PROVENANCE
from heedful.memory.workspace import Workspace
from heedful.model import FIXES, Correction, FactHistory, Retraction, Scope, ScorePoint
from heedful.ranking.policies import Documented, Tally
from heedful.storage import facts, ledger, link_scores, policies, scores, tallies
from heedful.storage.ledger import CONFLICT, IMPROVE, LINK_SIGNAL, POLICY, REVIEW, SIGNAL, SUPERSESSION, Event
from heedful.storage.rows import AnyRow, batches

MAX_POINTS = 1000
"""Signals that the history of a fact lists, the newest."""


def fact_history(workspace: Workspace, fact_id: str) -> FactHistory:
    """The score after each of the newest active signals, as the documented policy folds them, and the supersessions."""
    checks.identifier("fact_id", fact_id)
    with workspace.read() as connection:
        place = facts.locate(connection, workspace.project, [fact_id]).get(fact_id)
        if place is None:
            raise checks.no_fact(workspace.project, fact_id)
        seq, _ = place
        signals = ledger.surviving(connection, [seq])
        shown = signals[-MAX_POINTS:]
        texts = ledger.query_texts(connection, sorted({signal.query_id for signal in shown}))
        row = facts.get_fact(connection, seq)
        # Its own metadata says what it corrected; the ledger has no index to look for it.
        corrected = row.metadata.get(PROVENANCE)
        named = [fact_id] if not isinstance(corrected, str) else [fact_id, corrected]
        corrections = [_correction(event) for event in ledger.supersessions(connection, named)]
        is_superseded = bool(ledger.superseded(connection, [fact_id]))
    rule, tally, points = Documented(), Tally(), []
    for signal in signals[: -len(shown)]:
        tally = rule.observe(tally, signal.observation)
    for signal in shown:
        tally = rule.observe(tally, signal.observation)
        points.append(
            ScorePoint(
                at=from_stored(signal.observation.at),
                overall_usefulness=tally.score,
                event_id=signal.id,
                signal_type=signal.observation.signal_type,
                query=texts[signal.query_id],
                confidence=signal.observation.confidence,
                author=signal.author,
            )
        )
    return FactHistory(
        fact_id=fact_id,
        created_at=from_stored(row.created_at),
        expires_at=None if row.expires_at is None else from_stored(row.expires_at),
        event_count=len(signals),
        points=points,
        overall_usefulness=tally.at(workspace.now()),
        superseded_by=next((each for each in corrections if is_superseded and each.fact_id == fact_id), None),
        supersedes=next((each for each in corrections if each.superseded_by == fact_id), None),
    )


def _correction(row: AnyRow) -> Correction:
    return Correction(
        event_id=row.id,
        fact_id=row.target_id,
        superseded_by=row.value,
        at=from_stored(row.at),
        author=row.author,
    )


def scope_of(connection: Connection, project: str, event_id: str) -> Scope:
    """The scope that making an event takes, and so undoing it: `write` for a correction or a conflict of facts, for a
    policy, for what a reviewer changed and for what `improve` made; else `feedback`."""
    event = ledger.get(connection, project, event_id)
    if event is None:
        return "feedback"
    changes = event.kind in (SUPERSESSION, POLICY, CONFLICT) or (event.kind == REVIEW and event.value in FIXES)
    return "write" if changes or event.source == IMPROVE else "feedback"


def retract_event(workspace: Workspace, connection: Connection, event: AnyRow, author: str | None) -> Retraction:
    """Undoes a signal, supersession, policy or conflict in an open transaction; doing it again changes nothing."""
    earlier = ledger.retraction_of(connection, event.project_id, event.id)
    if earlier is not None:
        return Retraction(event_id=earlier, retracted=event.id, updated_facts=[])
    undone = _retraction(event, author, workspace.now())
    with tallies.changing(connection, event.project_id, events=[event.id]):
        ledger.append(connection, [undone])
    updated = _undo(workspace, connection, event)
    return Retraction(event_id=undone.id, retracted=event.id, updated_facts=updated)


def retract_events(
    workspace: Workspace, connection: Connection, active: Sequence[AnyRow], author: str | None
) -> list[str]:
    """Undoes many active signals in a transaction that is open already; returns the facts that changed."""
    now = workspace.now()
    for run in batches(active):
        with tallies.changing(connection, run[0].project_id, events=[event.id for event in run]):
            ledger.append(connection, [_retraction(event, author, now) for event in run])
    places = facts.locate(
        connection, workspace.project, sorted({event.target_id for event in active if event.kind == SIGNAL})
    )
    dataset_of = dict(places.values())
    queries = {event.query_id for event in active if event.kind == SIGNAL}
    scores.refold(workspace.database, connection, dataset_of, dataset_of, queries)
    link_scores.refold_named(connection, sorted({event.target_id for event in active if event.kind == LINK_SIGNAL}))
    return list(places)


def _retraction(event: AnyRow, author: str | None, now: int) -> Event:
    return ledger.retraction(
        event.project_id, event.id, author, now, dataset_id=event.dataset_id, query_id=event.query_id
    )


def _undo(workspace: Workspace, connection: Connection, event: AnyRow) -> list[str]:
    if event.kind == CONFLICT:
        return []
    if event.kind == LINK_SIGNAL:
        return link_scores.refold_named(connection, [event.target_id])
    if event.kind == POLICY:
        policies.refold(connection, event.project_id, event.target_id)
        return []
    if event.kind == SUPERSESSION:
        return facts.judge_superseded(connection, [event.target_id, event.value])
    places = facts.locate(connection, workspace.project, [event.target_id])
    dataset_of = dict(places.values())
    scores.refold(workspace.database, connection, dataset_of, dataset_of, [event.query_id])
    return list(places)
