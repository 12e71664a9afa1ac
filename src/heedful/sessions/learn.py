"""Makes lessons recallable, and forgets those whose source is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heedful.memory.documents import Piece, Pieces
from heedful.memory.remember import store
from heedful.memory.workspace import Workspace
from heedful.model import LearntFact, NotLearnt
from heedful.sessions import lessons
from heedful.sessions.derived import DatasetRatings
from heedful.sessions.lessons import Learnt, Lesson, decide, proposals, refused_visitors
from heedful.storage import fact_expiry, facts

MAX_REPORTED = 100
"""How many rejected opinions are reported, the newest first."""


class Lessons(NamedTuple):
    """What was learnt, forgotten and rejected."""

    learnt: list[LearntFact]
    forgotten: list[str]
    refused: list[NotLearnt]


def learn(workspace: Workspace, dataset: str, ratings: DatasetRatings, session_ids: Sequence[str] | None) -> Lessons:
    """Makes the learnt facts match the opinions about the entries of these sessions, or of all."""
    used = sorted({fact for entry in ratings.entries for fact, _, _ in entry.used or ()})
    with workspace.read() as connection:
        texts = facts.texts(connection, used, current=True, at=workspace.now())
        number = workspace.dataset(connection, dataset)
        all_known = [
            lesson for lesson in lessons.learnt(connection, workspace.project, None) if lesson.dataset == number
        ]
    proposed, refused = proposals(ratings.entries, ratings.about_entry, texts)
    accepted, too_few = decide(proposed, workspace.trust.authors_to_teach)
    refused += too_few + refused_visitors(ratings.visited, ratings.by_visitors)
    expected = {(lesson.qa_id, lesson.text): lesson for lesson in accepted}
    current = [lesson for lesson in all_known if session_ids is None or lesson.session_id in session_ids]
    stale = [
        lesson
        for lesson in current
        if (lesson.qa_id, lesson.text) not in expected
        and not (session_ids is not None and _is_taught_elsewhere(lesson, ratings))
    ]
    # Several may teach the same: one fact says it, as long as its own source is active.
    present = {lesson.text for lesson in all_known} - {lesson.text for lesson in stale}
    first: dict[str, Lesson] = {}
    for lesson in expected.values():
        if lesson.text not in present:
            first.setdefault(lesson.text, lesson)
    new = list(first.values())
    if stale and number is not None:
        with workspace.write() as connection:
            facts.remove(connection, number, [lesson.seq for lesson in stale])
    with workspace.read() as connection:
        # A lesson expires with the facts that it was made from.
        documents = [_document(lesson, fact_expiry.earliest(connection, lesson.made_from)) for lesson in new]
    stored = store(workspace, dataset, documents)
    return Lessons(
        [_reported(lesson, fact.fact_id) for lesson, fact in zip(new, stored, strict=True)],
        [lesson.fact_id for lesson in stale],
        sorted(refused, key=lambda lesson: lesson.feedback_id, reverse=True)[:MAX_REPORTED],
    )


def _is_taught_elsewhere(learnt: Learnt, ratings: DatasetRatings) -> bool:
    """Whether an opinion in another session teaches the same lesson."""
    return not learnt.taught_by <= ratings.feedback_ids


def _document(lesson: Lesson, expires_at: int | None) -> Pieces:
    piece = Piece(lesson.text, 0, len(lesson.text))
    return Pieces([(piece, lesson.metadata)], lesson.source, expires_at=expires_at)


def _reported(lesson: Lesson, fact_id: str) -> LearntFact:
    return LearntFact(
        fact_id=fact_id,
        text=lesson.text,
        session_id=lesson.session_id,
        qa_id=lesson.qa_id,
        learnt_from=lesson.kind,
        corrects=lesson.corrects,
    )
