"""The same question, asked again now. Nothing of it is kept."""

from __future__ import annotations

from heedful.errors import Invalid
from heedful.executions.cache import Limits, judge
from heedful.executions.chat import LIKE, LOOKED_AT
from heedful.executions.space import ExecutionSpace
from heedful.memory.recall import Request
from heedful.model import DEFAULT_DATASET, ReviewCase, ReviewComparison
from heedful.review.shown import Seen
from heedful.sessions.answering import answer
from heedful.storage import receipts
from heedful.storage.rows import AnyRow

TOP = 10
"""How many facts are recalled where it is not known how many were."""


def asked_again(space: ExecutionSpace, seen: Seen, case: ReviewCase) -> ReviewComparison:
    """What is answered now, beside what was disliked."""
    question = seen.item.question
    if question is None:
        raise Invalid(
            f"item {seen.row.id} has no question",
            field="item_id",
            value=seen.row.id,
            remedy="It is about a whole session, or about something that is gone",
        )
    if seen.row.target_type in ("execution", "message"):
        return _of_cache(space, seen, case, question)
    with space.workspace.read() as connection:
        receipt = None
        if case.recall_id is not None:
            receipt = receipts.get(connection, space.workspace.project, case.recall_id)
    found = answer(
        space.sessions, space.workspace, space.language_model, _request(seen, receipt, question), None, None, quiet=True
    )
    # Of a fact that was judged by itself, no order is known.
    ranked = [each.fact_id for each in case.evidence if each.rank is not None and seen.row.target_type == "entry"]
    return ReviewComparison(
        question=question,
        before=case.answer,
        after=found.answer,
        reason=None,
        evidence_before=case.evidence,
        evidence_after=found.hits,
        changed=(case.answer is not None and found.answer != case.answer)
        or (bool(ranked) and ranked != [hit.fact_id for hit in found.hits]),
    )


def _request(seen: Seen, receipt: AnyRow | None, question: str) -> Request:
    """The same recall, as far as that is known."""
    return Request(
        query=question,
        dataset=seen.item.dataset or DEFAULT_DATASET,
        top_k=TOP if receipt is None or not receipt.shown else len(receipt.shown),
        mode="hybrid" if receipt is None else receipt.mode,
        where=None,
        weight=0.0 if receipt is None else receipt.weight,
        min_usefulness=0.0,
        policy=None if receipt is None else receipt.policy,
        exploration=0.0,
        seed=None,
        explain=False,
    )


def _of_cache(space: ExecutionSpace, seen: Seen, case: ReviewCase, question: str) -> ReviewComparison:
    """What the cache would do; nothing is run, and no language model is asked."""
    subject = seen.subject
    assert subject is not None
    connector_id = subject.run.connector_id if subject.run is not None else None
    if subject.turn is not None:
        connector_id = subject.turn.connector_id
    with space.workspace.read() as connection:
        connector = space.connector(connection, connector_id)
    vector = space.workspace.embed([question])[0]
    limits = Limits(None, LIKE, LOOKED_AT, only_positive_feedback=False, examples=True, explained=1)
    judged, _ = judge(space, connector, question, vector, limits, "sql")
    best = judged[0] if judged else None
    sql = None if best is None or best.decision == "refuse" else best.written
    return ReviewComparison(
        question=question,
        before=case.sql_query,
        after=sql,
        reason="nothing like it was asked before" if best is None else best.reason,
        evidence_before=[],
        evidence_after=[],
        changed=sql != case.sql_query,
    )
