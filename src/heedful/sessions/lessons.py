"""What a session teaches: well-rated answers, and comments that correct a fact. Each becomes a fact of the dataset.

A lesson has the session as its source and says in its metadata which entry it comes from, so that it can go again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from heedful.chat.citations import without_citations
from heedful.chat.extractive import LEARNT
from heedful.learning.statements import statement
from heedful.memory.forget import MADE_FROM
from heedful.model import Metadata
from heedful.storage import facts
from heedful.storage.sessions.base import EntryRow, FeedbackRow

WELL_RATED = 4.0
"""The mean score from which an answer is worth keeping."""

MAY_CORRECT = 3
"""The score up to which a comment can be a correction; praise is none."""

Kind = Literal["answer", "feedback"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A fact that should be there."""

    text: str
    kind: Kind
    session_id: str
    qa_id: str
    corrects: str | None = None
    made_from: tuple[str, ...] = ()
    """The facts that the answer used: it goes when one of them is forgotten."""

    @property
    def source(self) -> str:
        return source_of(self.session_id)

    @property
    def metadata(self) -> Metadata:
        about: Metadata = {LEARNT: self.kind, "session_id": self.session_id, "qa_id": self.qa_id}
        if self.corrects is not None:
            about["corrects"] = self.corrects
        if self.made_from:
            about[MADE_FROM] = list(self.made_from)
        return about


@dataclass(frozen=True, slots=True)
class Learnt:
    """A lesson that is a fact already."""

    seq: int
    fact_id: str
    dataset: int
    text: str
    kind: Kind
    session_id: str
    qa_id: str


def source_of(session_id: str) -> str:
    """The source of facts that were learnt in a session."""
    return f"session/{session_id}"


def worded(question: str, answer: str) -> str:
    """A lesson in words: an answer is nothing without its question, which is the first line."""
    return f"{' '.join(question.split())}\n{without_citations(answer).strip()}"


def is_well_rated(standing: Sequence[FeedbackRow]) -> bool:
    """Whether people, on the whole, found an answer good."""
    scores = [row.score for row in standing if row.score is not None]
    return bool(scores) and sum(scores) / len(scores) >= WELL_RATED


def corrections(entry: EntryRow, standing: Sequence[FeedbackRow]) -> list[tuple[str, str]]:
    """The comments about an entry that may correct a fact, as (comment, the lesson in words)."""
    found = []
    for row in standing:
        if row.comment is not None and (row.score is None or row.score <= MAY_CORRECT):
            stated = statement(row.comment)
            if stated is not None:
                found.append((row.comment, worded(entry.question, stated)))
    return found


def is_justified(learnt: Learnt, entry: EntryRow, standing: Sequence[FeedbackRow]) -> bool:
    """Whether what people say of an entry still bears a lesson out."""
    if learnt.kind == "answer":
        return is_well_rated(standing) and learnt.text == worded(entry.question, entry.answer)
    return any(text == learnt.text for _, text in corrections(entry, standing))


def learnt(connection: Connection, project: str, session_ids: Sequence[str] | None) -> list[Learnt]:
    """The facts that were learnt in these sessions, or in any."""
    if session_ids is None:
        rows = facts.with_source_prefix(connection, project, source_of(""))
    else:
        rows = facts.with_sources(connection, project, [source_of(session_id) for session_id in session_ids])
    return [
        Learnt(
            row.seq,
            row.id,
            row.dataset_id,
            row.text,
            row.metadata["learnt_from"],
            row.metadata["session_id"],
            row.metadata["qa_id"],
        )
        for row in rows
        if row.metadata.keys() >= {"learnt_from", "session_id", "qa_id"}
    ]
