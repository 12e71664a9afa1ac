"""What opinions propose to learn, and which proposals enough people make. Pure.

A verified caller teaches alone. Known authors teach when enough of them say the same: that an answer is good, or that a
fact is to be corrected in the same way, of whatever answer they say it. Anonymous visitors propose nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from heedful.chat.citations import without_citations
from heedful.chat.extractive import NOTHING
from heedful.learning.corrections import corrected, given_instead
from heedful.learning.trust import suffices
from heedful.model import NotLearnt, NotLearntReason
from heedful.sessions import lessons
from heedful.sessions.lessons import Kind, Lesson
from heedful.storage.sessions.base import EntryRow, FeedbackRow


class Proposal(NamedTuple):
    """A lesson that one opinion proposes; those with the same subject say the same."""

    subject: Hashable
    lesson: Lesson
    said: FeedbackRow


def proposals(
    entries: Iterable[EntryRow], about: Mapping[str, Sequence[FeedbackRow]], texts: Mapping[str, str]
) -> tuple[list[Proposal], list[NotLearnt]]:
    """What trusted opinions about entries propose, and those that correct nothing; `texts` are the facts there are."""
    found: list[Proposal] = []
    refused: list[NotLearnt] = []
    for entry in entries:
        standing = about.get(entry.id, ())
        evidence = [(fact, texts[fact]) for fact, _, _ in entry.used or () if fact in texts]
        # What was forgotten or corrected must not come back in an answer that was made from it.
        is_whole = len(evidence) == len(entry.used or ())
        if is_whole and _teaches(entry, [text for _, text in evidence]):
            made_from = tuple(fact for fact, _ in evidence)
            text = lessons.worded(entry.question, entry.answer)
            lesson = Lesson(text, "answer", entry.session_id, entry.id, made_from=made_from)
            found += [Proposal(("answer", text), lesson, row) for row in lessons.well_rating(standing)]
        for row, text in lessons.corrections(entry, standing):
            comment = row.comment or ""
            place = corrected(comment, [text for _, text in evidence], entry.question)
            if place is None:
                refused.append(_refused(row, "feedback", "corrects_nothing", "it corrects no fact of the answer"))
                continue
            fact, said = evidence[place]
            subject = (fact, given_instead(comment, said, entry.question))
            found.append(Proposal(subject, Lesson(text, "feedback", entry.session_id, entry.id, fact), row))
    return found, refused


def decided(proposed: Iterable[Proposal], authors: int) -> tuple[list[Lesson], list[NotLearnt]]:
    """The lessons that enough people propose, and those that too few do."""
    taught: list[Lesson] = []
    refused: list[NotLearnt] = []
    agreed: dict[Hashable, dict[str | None, Proposal]] = defaultdict(dict)
    for each in sorted(proposed, key=lambda each: (each.said.at, each.said.id)):
        if suffices(lessons.votes([each.said]), authors):
            taught.append(each.lesson)
        agreed[each.subject].setdefault(each.said.author, each)
    for by_author in agreed.values():
        votes = list(by_author.values())
        if any(suffices(lessons.votes([each.said]), authors) for each in votes):
            continue
        if suffices(lessons.votes([each.said for each in votes]), authors):
            together = tuple(each.said.id for each in votes[:authors])
            taught.append(replace(votes[0].lesson, taught_by=together))
            continue
        detail = f"{len(votes)} of {authors} known authors say so"
        refused += [_refused(each.said, each.lesson.kind, "too_few_authors", detail) for each in votes]
    return taught, refused


def refused_visitors(entries: Iterable[EntryRow], by_visitors: Mapping[str, Sequence[FeedbackRow]]) -> list[NotLearnt]:
    """What anonymous visitors said that would have taught something, had it been said by others."""
    detail = "the author is an anonymous visitor"
    return [
        _refused(row, "feedback", "anonymous_author", detail)
        for entry in entries
        for row, _ in lessons.corrections(entry, by_visitors[entry.id])
    ]


def _teaches(entry: EntryRow, evidence: Sequence[str]) -> bool:
    """Whether an answer says more than one fact that is there already."""
    said = without_citations(entry.answer).strip()
    return bool(said) and said != NOTHING and not any(said in text for text in evidence)


def _refused(row: FeedbackRow, kind: Kind, reason: NotLearntReason, detail: str) -> NotLearnt:
    return NotLearnt(
        feedback_id=row.id,
        session_id=row.session_id,
        qa_id=row.target_id,
        learnt_from=kind,
        reason=reason,
        detail=detail,
    )
