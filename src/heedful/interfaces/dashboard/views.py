"""Reads for pages that show many things at once: one look at the store instead of one for each thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import func, select

from heedful.engine import Heedful, project_of
from heedful.ledger.opinions import SqlFeedbacks
from heedful.memory import recall
from heedful.model import (
    DEFAULT_WEIGHT,
    REVIEW_STATUSES,
    ExecutionFeedback,
    Feedback,
    GoldenExample,
    OpinionTarget,
    Recall,
)
from heedful.sessions.feedback import to_feedback
from heedful.sessions.session_store import Transaction
from heedful.sql import records
from heedful.sql.feedback import shown
from heedful.storage import facts, scopes
from heedful.storage.schema import review_items, review_members

MAX_RESULTS = 20


@dataclass(slots=True)
class Summary:
    """A session in a list."""

    first: str | None = None
    """Its first question."""
    answers: int = 0
    up: int = 0
    down: int = 0
    comments: int = 0


def summaries(heedful: Heedful, session_ids: Sequence[str]) -> dict[str, Summary]:
    by_session = {session_id: Summary() for session_id in session_ids}

    def read(tx: Transaction) -> None:
        for entry in tx.conversations.entries_of(session_ids):
            summary = by_session[entry.session_id]
            summary.answers += 1
            summary.first = summary.first or entry.question
        for opinion in tx.feedbacks.of_sessions(session_ids):
            summary = by_session[opinion.session_id]
            summary.up += opinion.rating == "up"
            summary.down += opinion.rating == "down"
            summary.comments += bool(opinion.comment)

    if session_ids:
        project_of(heedful).sessions.store.read(read)
    return by_session


def opinions(heedful: Heedful, qa_ids: Sequence[str]) -> dict[str, list[Feedback]]:
    """The active feedback about these answers, oldest first."""
    by_entry: dict[str, list[Feedback]] = {qa_id: [] for qa_id in qa_ids}
    if qa_ids:
        for row in project_of(heedful).sessions.store.read(lambda tx: tx.feedbacks.active("entry", qa_ids)):
            by_entry[row.target_id].append(to_feedback(row))
    return by_entry


def texts(heedful: Heedful, fact_ids: Sequence[str]) -> dict[str, str]:
    workspace = project_of(heedful).workspace
    with workspace.read() as connection:
        located = facts.locate(connection, sorted(set(fact_ids)))
        return facts.texts(connection, list(located)) if located else {}


def search(heedful: Heedful, query: str, dataset: str, *, boost: bool, explain: bool = False) -> Recall:
    """The facts for a query as an agent would get them, without a receipt: somebody only looks."""
    request = recall.check_request(
        query,
        dataset,
        top_k=MAX_RESULTS,
        mode="hybrid",
        where=None,
        boost_by_usefulness=None if boost else False,
        usefulness_weight=DEFAULT_WEIGHT,
        min_usefulness=0.0,
        policy=None,
        exploration=0.0,
        seed=None,
        explain=explain,
    )
    return recall.recall(project_of(heedful).workspace, request, quiet=True)


@dataclass(frozen=True, slots=True)
class Policies:
    project: str | None
    datasets: dict[str, str | None] = field(default_factory=dict)


def policies(heedful: Heedful) -> Policies:
    workspace = project_of(heedful).workspace
    with workspace.read() as connection:
        return Policies(*scopes.policies(connection))


def count_by_status(
    heedful: Heedful,
    *,
    dataset: str | None = None,
    assignee: str | None = None,
    target_type: OpinionTarget | None = None,
) -> dict[str, int]:
    """Items by status, after the queue has taken in the newest feedback."""
    heedful.review.list(limit=1)
    workspace = project_of(heedful).workspace
    filters = {"dataset": dataset, "assignee": assignee, "target_type": target_type}
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        statement = select(review_items.c.status, func.count()).where(
            review_items.c.project_id == project,
            # Without an active opinion, an item is not open.
            (review_items.c.status != "open") | (review_items.c.opinions > 0),
            *(review_items.c[name] == value for name, value in filters.items() if value is not None),
        )
        counts = {row[0]: int(row[1]) for row in connection.execute(statement.group_by(review_items.c.status))}
    return {status: counts.get(status, 0) for status in REVIEW_STATUSES}


def judged_facts(heedful: Heedful, item_ids: Sequence[str]) -> dict[str, str]:
    """The texts of the facts that items are about, by item: many are asked the same question."""
    workspace = project_of(heedful).workspace
    with workspace.read() as connection:
        rows = connection.execute(
            select(review_items.c.id, func.max(review_members.c.target_id))
            .join(review_members, review_members.c.item_seq == review_items.c.seq)
            .where(
                review_items.c.project_id == scopes.project_id(connection, workspace.project),
                review_items.c.id.in_(item_ids),
                review_members.c.target_type == "fact",
            )
            .group_by(review_items.c.id)
        ).all()
        texts = facts.texts(connection, [row[1] for row in rows])
    return {row[0]: texts[row[1]] for row in rows if row[1] in texts}


def feedback(heedful: Heedful, execution_ids: Sequence[str]) -> dict[str, list[ExecutionFeedback]]:
    """The active feedback about these executions, oldest first."""
    workspace = project_of(heedful).workspace
    by_execution: dict[str, list[ExecutionFeedback]] = {execution_id: [] for execution_id in execution_ids}
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        if project is not None and execution_ids:
            for row in SqlFeedbacks.on(connection, project).active("execution", execution_ids):
                by_execution[row.target_id].append(shown(row))
    return by_execution


def example(heedful: Heedful, connector_id: str, execution_id: str) -> GoldenExample | None:
    with project_of(heedful).workspace.read() as connection:
        row = records.example_of_execution(connection, connector_id, execution_id)
    return None if row is None else heedful.golden_examples.get(row.id)
