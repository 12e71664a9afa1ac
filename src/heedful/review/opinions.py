"""What people said, from wherever it is kept: sessions, executions, or the ledger of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from heedful.clock import from_stored
from heedful.executions.space import ExecutionSpace
from heedful.model import AuthorStanding, FeedbackTarget, OpinionTarget, ReviewOpinion
from heedful.storage.executions import opinions as about_runs
from heedful.storage.review import said
from heedful.storage.review.members import OF_SESSIONS
from heedful.storage.rows import AnyRow
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import FeedbackRow


class Named(Protocol):
    """An opinion as an item names it."""

    @property
    def event_id(self) -> str: ...
    @property
    def target_type(self) -> str: ...
    @property
    def target_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody said of something, with what is known of it."""

    event_id: str
    target_type: OpinionTarget
    target_id: str
    positive: bool
    at: int
    author: str | None
    author_standing: AuthorStanding
    score: int | None = None
    comment: str | None = None
    session_id: str | None = None
    standing: bool = True
    sql: tuple[str, str] | None = None
    """The connector and the template of an execution that is gone."""
    question: str | None = None
    dataset: str | None = None
    receipt_id: str | None = None
    rank: int | None = None

    @property
    def target(self) -> tuple[str, str]:
        return self.target_type, self.target_id

    def shown(self) -> ReviewOpinion:
        return ReviewOpinion(
            event_id=self.event_id,
            target_type=self.target_type,
            target_id=self.target_id,
            session_id=self.session_id,
            positive=self.positive,
            score=self.score,
            comment=self.comment,
            author=self.author,
            author_standing=self.author_standing,
            at=from_stored(self.at),
        )


def read(space: ExecutionSpace, named: Iterable[Named]) -> dict[str, Opinion]:
    """Opinions by their events; those whose words are gone are left out."""
    wanted = {(each.target_type, each.event_id): each for each in named}
    of_sessions = list(dict.fromkeys(event for kind, event in wanted if kind in OF_SESSIONS))
    of_runs = [each.target_id for (kind, _), each in wanted.items() if kind in about_runs.TARGETS]
    of_facts = [event for kind, event in wanted if kind == "fact"]
    found: list[Opinion] = []
    if of_sessions:
        rows = space.sessions.store.read(lambda tx: tx.feedbacks.named(of_sessions))
        found += [_of_session(row) for row in rows]
    if of_runs or of_facts:
        with space.workspace.read() as connection:
            project = space.project(connection)
            found += [_of_run(row) for row in about_runs.about_targets(connection, project, of_runs)]
            found += [_of_fact(row) for row in said.signals(connection, project, of_facts)]
    return {each.event_id: each for each in found if (each.target_type, each.event_id) in wanted}


def positive(space: ExecutionSpace, targets: Iterable[tuple[str, str]]) -> list[Opinion]:
    """The opinions that stand and say that one of these things was right."""
    of: dict[str, list[str]] = {}
    for kind, target in sorted(set(targets)):
        of.setdefault(kind, []).append(target)
    found: list[Opinion] = []
    for kind in OF_SESSIONS:
        if kind in of:
            found += map(_of_session, space.sessions.store.read(partial(_standing, kind=kind, ids=of[kind])))
    runs = [target for kind in about_runs.TARGETS for target in of.get(kind, ())]
    if runs or "fact" in of:
        with space.workspace.read() as connection:
            project = space.project(connection)
            found += [_of_run(row) for row in about_runs.about_targets(connection, project, runs)]
            found += [_of_fact(row) for row in said.helpful(connection, project, of.get("fact", []))]
    return [each for each in found if each.positive]


def _standing(tx: Transaction, kind: FeedbackTarget, ids: Sequence[str]) -> list[FeedbackRow]:
    return tx.feedbacks.standing(kind, ids)


def _of_session(row: FeedbackRow) -> Opinion:
    return Opinion(
        event_id=row.id,
        target_type=row.target_type,
        target_id=row.target_id,
        positive=row.rating == "up",
        at=row.at,
        author=row.author,
        author_standing=row.author_standing,
        score=row.score,
        comment=row.comment or None,
        session_id=row.session_id,
        standing=row.standing,
    )


def _of_run(row: AnyRow) -> Opinion:
    outlived = (row.extra or {}).get(about_runs.OUTLIVED)
    return Opinion(
        event_id=row.event_id,
        target_type=row.target_type,
        target_id=row.target_id,
        positive=row.rating == "up",
        at=row.updated_at,
        author=row.author,
        author_standing=row.author_standing,
        comment=row.comment or None,
        sql=(outlived[0]["connector_id"], outlived[0]["template"]) if outlived else None,
    )


def _of_fact(row: AnyRow) -> Opinion:
    return Opinion(
        event_id=row.id,
        target_type="fact",
        target_id=row.target_id,
        positive=row.value == "helpful",
        at=row.at,
        author=row.author,
        author_standing=row.author_standing,
        comment=row.note,
        standing=not row.retracted,
        question=row.question,
        dataset=row.dataset,
        receipt_id=row.receipt_id,
        rank=row.rank,
    )
