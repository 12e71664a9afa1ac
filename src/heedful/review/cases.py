"""All that is needed to mend an item: what was answered, from what, and what was done about it."""

from __future__ import annotations

from heedful.executions.space import ExecutionSpace
from heedful.model import Mend, ReviewCase, ReviewEvidence
from heedful.review.history import history
from heedful.review.shown import Seen
from heedful.storage import facts, receipts
from heedful.storage.executions import runs

MOST = 100
"""Opinions of each kind that are shown."""


def case(space: ExecutionSpace, seen: Seen) -> ReviewCase:
    """An item with its evidence, its opinions and its history."""
    subject = seen.subject
    entry, run, turn = (None, None, None) if subject is None else (subject.entry, subject.run, subject.turn)
    shown = evidence(space, seen)
    execution_id = None if run is None else run.id
    with space.workspace.read() as connection:
        project = space.project(connection)
        if turn is not None:
            execution_id = next((row.id for row in runs.of_message(connection, project, turn.message_id)), None)
    stand = [each for each in seen.newest if each.standing] if seen.row.opinions else []
    against = sorted(seen.against, key=lambda each: each.at, reverse=True)[:MOST]
    return ReviewCase(
        item=seen.item,
        answer=None if entry is None else entry.answer,
        sql_query=run.sql_query if run is not None else turn.sql if turn is not None else None,
        execution_id=execution_id,
        recall_id=_recall_of(seen),
        evidence=shown,
        opinions=[each.shown() for each in sorted([*stand, *against], key=lambda each: each.at, reverse=True)],
        history=history(space, seen.row),
        mends=_mends(seen, shown, execution_id),
    )


def evidence(space: ExecutionSpace, seen: Seen) -> list[ReviewEvidence]:
    """The facts behind the newest answer: those that were shown, best first, and then others that it used; or the fact
    itself that an opinion is about."""
    entry = None if seen.subject is None else seen.subject.entry
    recall_id = _recall_of(seen)
    with space.workspace.read() as connection:
        receipt = None if recall_id is None else receipts.get(connection, space.workspace.project, recall_id)
        lines = {} if receipt is None else {line[0]: (rank, *line[1:4]) for rank, line in enumerate(receipt.shown, 1)}
        shares = {} if entry is None else {fact_id: share for fact_id, share, _ in entry.used or ()}
        named = list(dict.fromkeys([*lines, *shares]))
        if seen.row.target_type == "fact":
            named = [each.target_id for each in seen.newest[:1]]
        texts = facts.texts(connection, named)
        current = facts.texts(connection, named, current=True)
    nothing = (None, None, None, None)
    found = []
    for fact_id in named:
        rank, score, relevance, usefulness = lines.get(fact_id, nothing)
        found.append(
            ReviewEvidence(
                fact_id=fact_id,
                text=texts.get(fact_id),
                rank=rank,
                score=score,
                relevance=relevance,
                usefulness=usefulness,
                share=shares.get(fact_id),
                superseded=fact_id in texts and fact_id not in current,
            )
        )
    return found


def _recall_of(seen: Seen) -> str | None:
    if seen.subject is not None and seen.subject.entry is not None:
        return seen.subject.entry.recall_id
    return seen.newest[0].receipt_id if seen.newest else None


def _mends(seen: Seen, shown: list[ReviewEvidence], execution_id: str | None) -> list[Mend]:
    found: list[Mend] = []
    if any(each.text is not None and not each.superseded for each in shown):
        found.append("supersede")
    if seen.row.opinions or seen.against:
        found.append("retract")
    if seen.row.target_type == "entry" and any(each.comment and not each.positive for each in seen.newest):
        found.append("teach")
    if execution_id is not None:
        found += ["block", "promote"]
    if seen.row.target_type in ("execution", "message"):
        found.append("add_example")
    return found
