"""Changes of opinions, which also undo what was derived from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from heedful.memory.history import retract_events
from heedful.memory.workspace import Workspace
from heedful.sessions import lessons
from heedful.sessions.space import SessionSpace
from heedful.storage import facts, ledger
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import EntryRow, FeedbackRow

Result = TypeVar("Result")

DERIVED_PREFIX = "improve/"
"""Prefix of the idempotency keys of events that `improve` derives; the id of the feedback follows."""


class UndoResult(NamedTuple):
    """Facts whose scores changed, and learnt facts that were forgotten."""

    facts: list[str]
    forgotten: list[str]


NOTHING_UNDONE = UndoResult([], [])


@dataclass(slots=True)
class RetractedFeedback:
    """Opinions that a transaction retracted, and what is still active about the same entries."""

    rows: list[FeedbackRow] = field(default_factory=list)
    session_id: str | None = None
    """The session, if it is deleted."""
    limit: int | None = None
    """How many of the facts learnt in that session go now, unless all do."""
    entries: list[tuple[EntryRow, list[FeedbackRow]]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.rows and self.session_id is None

    def withdraw(self, tx: Transaction, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        """Retracts opinions; returns the ids of the retractions."""
        if not rows:
            return []
        # `improve` reads no opinions about executions and messages.
        self.rows += [row for row in rows if row.session_id]
        return tx.feedbacks.withdraw(rows, author, at)

    def read_remaining(self, tx: Transaction) -> None:
        """Reads the remaining opinions, which must now justify learnt facts."""
        if self.session_id is None:
            for row in self.rows:
                entry = tx.conversations.entry(row.session_id, row.target_id) if row.target_type == "entry" else None
                if entry is not None:
                    self.entries.append((entry, tx.feedbacks.active("entry", [entry.id])))


def change(space: SessionSpace, body: Callable[[Transaction, RetractedFeedback], Result]) -> tuple[Result, UndoResult]:
    """Runs a change, and undoes what `improve` derived from opinions that it retracts.

    With facts and sessions in one database that is one transaction. Otherwise it follows at once; should the process
    die between the two, the next `improve` does it.
    """

    result, retracted, undo_result = space.store.write(partial(change_in, space.workspace, body=body))
    if space.store.remote and space.workspace is not None and not retracted.is_empty:
        with space.workspace.write() as connection:
            undo_result = _undo(space.workspace, connection, retracted)
    space.feedback_changed()
    return result, undo_result


def change_in(
    workspace: Workspace | None, tx: Transaction, body: Callable[[Transaction, RetractedFeedback], Result]
) -> tuple[Result, RetractedFeedback, UndoResult]:
    """The same in an open transaction; nothing is undone yet where facts are in another database."""
    retracted = RetractedFeedback()
    result = body(tx, retracted)
    retracted.read_remaining(tx)
    if retracted.is_empty or workspace is None or tx.connection is None:
        return result, retracted, NOTHING_UNDONE
    return result, retracted, _undo(workspace, tx.connection, retracted)


def _undo(workspace: Workspace, connection: Connection, retracted: RetractedFeedback) -> UndoResult:
    derived = [
        event
        for row in retracted.rows
        for event in ledger.with_prefix(connection, workspace.project, f"{DERIVED_PREFIX}{row.id}/")
    ]
    updated = retract_events(workspace, connection, derived, None)
    ids = {row.id for row in retracted.rows}
    forgotten = _forget(connection, unjustified(workspace, connection, retracted.entries, ids))
    entry_ids = {entry.id for entry, _ in retracted.entries}
    taught = lessons.taught_by(connection, workspace.project, sorted(ids))
    forgotten += _forget(connection, [fact for fact in taught if fact.qa_id not in entry_ids])
    if retracted.session_id is not None:
        learnt = lessons.learnt(connection, workspace.project, [retracted.session_id], retracted.limit)
        forgotten += _forget(connection, learnt)
    return UndoResult(updated, forgotten)


def unjustified(
    workspace: Workspace,
    connection: Connection,
    rated: Sequence[tuple[EntryRow, list[FeedbackRow]]],
    retracted: Set[str],
) -> list[lessons.Learnt]:
    """The facts learnt from entries that the active opinions about them no longer justify."""
    by_id = {entry.id: (entry, active) for entry, active in rated}
    session_ids = sorted({entry.session_id for entry, _ in rated})
    authors = workspace.trust.authors_to_teach
    return [
        fact
        for fact in lessons.learnt(connection, workspace.project, session_ids)
        if fact.qa_id in by_id and not lessons.is_justified(fact, *by_id[fact.qa_id], retracted, authors)
    ]


def _forget(connection: Connection, learnt: Sequence[lessons.Learnt]) -> list[str]:
    for dataset in {fact.dataset for fact in learnt}:
        facts.remove(connection, dataset, [fact.seq for fact in learnt if fact.dataset == dataset])
    return [fact.fact_id for fact in learnt]
