"""Reads for pages that show many things at once: one look at the store instead of one for each thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from heedful.engine import Heedful, project_of
from heedful.memory import recall as _recall
from heedful.memory.recall import check_request
from heedful.model import Feedback, PolicyName, Recall
from heedful.sessions.feedback import to_feedback
from heedful.storage import facts, scopes
from heedful.storage.sessions import Transaction

MAX_RESULTS = 20
"""Facts that a search shows."""


@dataclass(slots=True)
class Summary:
    """What a list says of a session."""

    first: str | None = None
    """Its first question."""
    answers: int = 0
    up: int = 0
    down: int = 0
    comments: int = 0


def summaries(heedful: Heedful, session_ids: Sequence[str]) -> dict[str, Summary]:
    """What there is in each of these sessions."""
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
    """The texts of the facts that are there."""
    workspace = project_of(heedful).workspace
    with workspace.read() as connection:
        located = facts.locate(connection, workspace.project, sorted(set(fact_ids)))
        return facts.texts(connection, list(located)) if located else {}


def search(heedful: Heedful, query: str, dataset: str, *, boost: bool, explain: bool = False) -> Recall:
    """The facts for a query as an agent would get them, without a receipt: somebody only looks."""
    request = check_request(
        query,
        dataset,
        top_k=MAX_RESULTS,
        mode="hybrid",
        where=None,
        boost_by_usefulness=None if boost else False,
        usefulness_weight=0.3,
        min_usefulness=0.0,
        policy=None,
        exploration=0.0,
        seed=None,
        explain=explain,
    )
    return _recall.recall(project_of(heedful).workspace, request, quiet=True)


@dataclass(frozen=True, slots=True)
class Policies:
    """The rules that were chosen; None where the usual one is used."""

    project: str | None
    datasets: dict[str, str | None] = field(default_factory=dict)


def policies(heedful: Heedful) -> Policies:
    """Which rules a project recalls by."""
    workspace = project_of(heedful).workspace
    with workspace.read() as connection:
        return Policies(*scopes.policies(connection, workspace.project))


DEFAULT_POLICY: PolicyName = _recall.DEFAULT_POLICY
"""The rule where none was chosen."""
