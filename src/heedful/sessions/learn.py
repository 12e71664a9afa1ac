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
from heedful.storage import fact_expiry, facts, receipts
from heedful.storage.sessions.base import EntryRow

MAX_REPORTED = 100
"""How many rejected opinions are reported, the newest first."""


class Lessons(NamedTuple):
    """What was learnt, forgotten and rejected."""

    learnt: list[LearntFact]
    forgotten: list[str]
    refused: list[NotLearnt]


def learn(workspace: Workspace, dataset: str, ratings: DatasetRatings, session_ids: Sequence[str] | None) -> Lessons:
    """Makes the learnt facts match the opinions about the entries of these sessions, or of all."""
    used = {fact for entry in ratings.entries for fact, _, _ in entry.used or ()}
    unsupported = [entry.recall_id for entry in ratings.entries if not entry.used and entry.recall_id is not None]
    with workspace.read() as connection:
        shown = receipts.shown_facts(connection, workspace.project, unsupported)
        stored = facts.evidence(connection, sorted(used.union(*shown.values())), workspace.now())
        number = workspace.dataset(connection, dataset)
        all_known = [
            lesson for lesson in lessons.learnt(connection, workspace.project, None) if lesson.dataset == number
        ]
    authors = workspace.trust.authors_to_teach
    proposed, refused = proposals(ratings.entries, ratings.about_entry, stored, shown)
    accepted, too_few = decide(proposed, authors)
    refused += too_few + refused_visitors(ratings.visited, ratings.by_visitors)
    expected = {(lesson.qa_id, lesson.text): lesson for lesson in accepted}
    current = [lesson for lesson in all_known if session_ids is None or lesson.session_id in session_ids]
    entries = {entry.id: entry for entry in ratings.entries}
    stale = [
        lesson
        for lesson in current
        if (lesson.qa_id, lesson.text) not in expected
        and not (session_ids is not None and _is_taught_elsewhere(lesson, ratings))
        and not _waits(lesson, entries.get(lesson.qa_id), ratings, authors)
    ]
    # Several may teach the same: one fact says it, as long as its own source is active.
    gone = {lesson.seq for lesson in stale}
    present = {(lesson.text, lesson.scope) for lesson in all_known if lesson.seq not in gone and not lesson.is_hidden}
    first: dict[tuple[str, bytes], Lesson] = {}
    for lesson in expected.values():
        key = lesson.text, lessons.scope_key(lesson.scope)
        if key not in present:
            first.setdefault(key, lesson)
    new = list(first.values())
    if stale and number is not None:
        with workspace.read() as connection:
            runs = facts.removal_runs(connection, [lesson.seq for lesson in stale])
        for run in runs:
            with workspace.write() as connection:
                facts.remove(connection, number, sorted(facts.existing(connection, run)))
    with workspace.read() as connection:
        # A lesson expires with the facts that it was made from.
        documents = [_document(lesson, fact_expiry.earliest(connection, lesson.made_from)) for lesson in new]
    learnt = store(workspace, dataset, documents)
    return Lessons(
        [_reported(lesson, fact.fact_id) for lesson, fact in zip(new, learnt, strict=True)],
        [lesson.fact_id for lesson in stale],
        sorted(refused, key=lambda lesson: lesson.feedback_id, reverse=True)[:MAX_REPORTED],
    )


def _is_taught_elsewhere(learnt: Learnt, ratings: DatasetRatings) -> bool:
    """Whether an opinion in another session teaches the same lesson."""
    return not learnt.taught_by <= ratings.feedback_ids


def _waits(learnt: Learnt, entry: EntryRow | None, ratings: DatasetRatings, authors: int) -> bool:
    """Whether opinions still teach a lesson that the facts around it don't allow now: they may come back, and a
    receipt that is deleted says nothing against it."""
    if entry is None or (learnt.is_made_from_facts and not learnt.is_hidden):
        return False
    active = ratings.about_entry.get(entry.id, ())
    return lessons.is_justified(learnt, entry, active, learnt.taught_by - ratings.feedback_ids, authors)


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
