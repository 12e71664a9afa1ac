"""Makes lessons recallable, and forgets those whose source is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heedful.chat.citations import without_citations
from heedful.chat.extractive import NOTHING
from heedful.learning.corrections import corrected
from heedful.memory.documents import Pieces
from heedful.memory.remember import store
from heedful.memory.splitting import Piece
from heedful.memory.workspace import Workspace
from heedful.model import LearntFact
from heedful.sessions import lessons
from heedful.sessions.lessons import Lesson
from heedful.storage import facts
from heedful.storage.sessions.base import EntryRow, FeedbackRow


class Lessons(NamedTuple):
    """What came and what went."""

    learnt: list[LearntFact]
    forgotten: list[str]


def learn(
    workspace: Workspace,
    dataset: str,
    entries: Sequence[EntryRow],
    about: Mapping[str, Sequence[FeedbackRow]],
    session_ids: Sequence[str] | None,
) -> Lessons:
    """Brings the learnt facts of these sessions, or of all, to what is said `about` their entries."""
    wanted = {(each.qa_id, each.text): each for each in _lessons(workspace, entries, about)}
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        all_known = [each for each in lessons.learnt(connection, workspace.project, None) if each.dataset == number]
    known = [each for each in all_known if session_ids is None or each.session_id in session_ids]
    gone = [each for each in known if (each.qa_id, each.text) not in wanted]
    # Many may teach the same: one fact says it, for as long as its own source stands.
    present = {each.text for each in all_known} - {each.text for each in gone}
    first: dict[str, Lesson] = {}
    for lesson in wanted.values():
        if lesson.text not in present:
            first.setdefault(lesson.text, lesson)
    new = list(first.values())
    if gone and number is not None:
        with workspace.write() as connection:
            facts.remove(connection, number, [each.seq for each in gone])
    stored = store(workspace, dataset, [_document(lesson) for lesson in new])
    return Lessons(
        [_reported(lesson, fact.fact_id) for lesson, fact in zip(new, stored, strict=True)],
        [each.fact_id for each in gone],
    )


def _lessons(
    workspace: Workspace, entries: Sequence[EntryRow], about: Mapping[str, Sequence[FeedbackRow]]
) -> list[Lesson]:
    used = sorted({fact for entry in entries for fact, _, _ in entry.used or ()})
    with workspace.read() as connection:
        texts = facts.texts(connection, used, current=True)
    found: list[Lesson] = []
    for entry in entries:
        standing = about.get(entry.id, ())
        evidence = [(fact, texts[fact]) for fact, _, _ in entry.used or () if fact in texts]
        # What was forgotten or corrected must not come back in an answer that was made from it.
        is_whole = len(evidence) == len(entry.used or ())
        if is_whole and lessons.is_well_rated(standing) and _teaches(entry, [text for _, text in evidence]):
            text = lessons.worded(entry.question, entry.answer)
            made_from = tuple(fact for fact, _ in evidence)
            found.append(Lesson(text, "answer", entry.session_id, entry.id, made_from=made_from))
        for comment, text in lessons.corrections(entry, standing):
            place = corrected(comment, [text for _, text in evidence], entry.question)
            if place is not None:
                found.append(Lesson(text, "feedback", entry.session_id, entry.id, evidence[place][0]))
    return found


def _teaches(entry: EntryRow, evidence: Sequence[str]) -> bool:
    """Whether an answer says more than one fact that is there already."""
    said = without_citations(entry.answer).strip()
    return bool(said) and said != NOTHING and not any(said in text for text in evidence)


def _document(lesson: Lesson) -> Pieces:
    return Pieces([(Piece(lesson.text, 0, len(lesson.text)), lesson.metadata)], lesson.source)


def _reported(lesson: Lesson, fact_id: str) -> LearntFact:
    return LearntFact(
        fact_id=fact_id,
        text=lesson.text,
        session_id=lesson.session_id,
        qa_id=lesson.qa_id,
        learnt_from=lesson.kind,
        corrects=lesson.corrects,
    )
