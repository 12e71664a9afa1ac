"""How a fact came to its score, and what took whose place."""

from __future__ import annotations

from heedful.clock import from_stored
from heedful.learning.policies import Documented, Tally
from heedful.memory import checks
from heedful.memory.supersede import PROVENANCE
from heedful.memory.workspace import Workspace
from heedful.model import Correction, FactHistory, ScorePoint
from heedful.storage import facts, ledger, listing, opinions
from heedful.storage.rows import AnyRow


def fact_history(workspace: Workspace, fact_id: str) -> FactHistory:
    """The score after each signal that stands, as the documented policy folds them, and the supersessions."""
    checks.identifier("fact_id", fact_id)
    with workspace.read() as connection:
        place = facts.locate(connection, workspace.project, [fact_id]).get(fact_id)
        if place is None:
            raise checks.no_fact(workspace.project, fact_id)
        seq, _ = place
        signals = opinions.surviving(connection, [seq])
        texts = ledger.query_texts(connection, sorted({signal.query_id for signal in signals}))
        row = listing.one(connection, seq)
        # What it corrected is told by its own metadata; the ledger has no index to look for it.
        corrected = row.metadata.get(PROVENANCE)
        named = [fact_id] if not isinstance(corrected, str) else [fact_id, corrected]
        corrections = [_correction(event) for event in ledger.supersessions(connection, named)]
    rule, tally, points = Documented(), Tally(), []
    for signal in signals:
        tally = rule.observe(tally, signal.observation)
        points.append(
            ScorePoint(
                at=from_stored(signal.observation.at),
                score=tally.score,
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
        points=points,
        score=tally.at(workspace.now()),
        superseded_by=next((each for each in corrections if each.fact_id == fact_id), None),
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
