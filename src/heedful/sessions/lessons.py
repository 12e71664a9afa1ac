"""What a session teaches: well-rated answers, and comments that correct a fact. Each becomes a fact of the dataset.

A lesson has the session as its source and says in its metadata which entry it comes from, so that it can go again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import orjson
from sqlalchemy import Connection

from heedful.memory.answer import LEARNT, NO_ANSWER, said
from heedful.memory.supersede import PROVENANCE
from heedful.model import AuthorKind, Metadata, NotLearnt, NotLearntReason
from heedful.ranking.signals import suffices
from heedful.storage import facts
from heedful.storage.rows import AnyRow
from heedful.storage.sessions.base import EntryRow, FeedbackRow
from heedful.text.complaints import personal_data
from heedful.text.corrections import corrected, replacement_terms
from heedful.text.statements import statement

WELL_RATED = 4.0
"""Answers with a lower mean score teach nothing."""

MAY_CORRECT = 3
"""Comments with a higher score are praise, not corrections."""

TAUGHT_BY = "taught_by"
"""The key under which the metadata of a lesson name the opinions that teach it together."""

MAX_TEACHERS = 20
"""The opinions that a lesson names at most, unless more are needed to teach."""

OWN_KEYS = frozenset({LEARNT, "session_id", "qa_id", facts.CORRECTS, facts.MADE_FROM, TAUGHT_BY, PROVENANCE})
"""Keys of metadata that say how a fact came about; all others say where it belongs."""

Kind = Literal["answer", "feedback"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A fact that should exist."""

    text: str
    kind: Kind
    session_id: str
    qa_id: str
    corrects: str | None = None
    made_from: tuple[str, ...] = ()
    """The facts that the answer used, or that the comment corrects: the lesson is hidden and removed with them."""
    scope: Metadata = field(default_factory=dict)
    """The metadata of these facts: a filter that excludes one of them excludes the lesson."""
    taught_by: tuple[str, ...] = ()
    """The opinions that teach it together: the lesson goes when too few are left."""

    @property
    def source(self) -> str:
        return source_of(self.session_id)

    @property
    def metadata(self) -> Metadata:
        metadata = {**self.scope, LEARNT: self.kind, "session_id": self.session_id, "qa_id": self.qa_id}
        if self.corrects is not None:
            metadata[facts.CORRECTS] = self.corrects
        if self.made_from:
            metadata[facts.MADE_FROM] = list(self.made_from)
        if self.taught_by:
            metadata[TAUGHT_BY] = list(self.taught_by)
        return metadata


@dataclass(frozen=True, slots=True)
class Learnt:
    """A lesson that is stored as a fact."""

    seq: int
    fact_id: str
    dataset: int
    text: str
    kind: Kind
    session_id: str
    qa_id: str
    scope: bytes
    is_hidden: bool
    is_made_from_facts: bool
    taught_by: frozenset[str] = frozenset()


def shared_scope(about: Sequence[Metadata]) -> Metadata:
    """The metadata of what is made from facts with these: a filter that excludes one of them excludes it.

    Where facts differ, they have no value in common, which is null: a filter for either value doesn't find it.

    >>> shared_scope([{"user": "ada", "page": 1}, {"page": 2}, {"tags": ["a", "b"]}, {"tags": ["b", "c"]}])
    {'page': None, 'tags': ['b'], 'user': 'ada'}
    """
    keys = sorted({key for each in about for key in each} - OWN_KEYS)
    return {key: _shared([each[key] for each in about if key in each]) for key in keys}


def _shared(values: Sequence[Any]) -> Any:
    first = values[0]
    if all(each == first for each in values):
        return first
    if all(isinstance(each, dict) for each in values):
        return shared_scope(values)
    lists = [each if isinstance(each, list) else [each] for each in values]
    return [item for item in lists[0] if all(item in each for each in lists)] or None


def scope_key(scope: Metadata) -> bytes:
    """Identifies equal scopes, whatever else metadata say."""
    own = {key: value for key, value in scope.items() if key not in OWN_KEYS}
    return orjson.dumps(own, option=orjson.OPT_SORT_KEYS)


def source_of(session_id: str) -> str:
    """The source of facts that were learnt in a session."""
    return f"session/{session_id}"


def lesson_text(question: str, answer: str) -> str:
    """The text of a lesson: the question in the first line, then the answer."""
    return f"{' '.join(question.split())}\n{said(answer)}"


def is_well_rated(active: Sequence[FeedbackRow]) -> bool:
    """Whether the ratings of an answer are good on average."""
    scores = [row.score for row in active if row.score is not None]
    return bool(scores) and sum(scores) / len(scores) >= WELL_RATED


def positive_opinions(active: Sequence[FeedbackRow]) -> list[FeedbackRow]:
    """The positive opinions about an answer that is well rated on average."""
    return [row for row in active if (row.score or 0) >= WELL_RATED] if is_well_rated(active) else []


def corrections(entry: EntryRow, active: Sequence[FeedbackRow]) -> list[tuple[FeedbackRow, str]]:
    """The opinions about an entry whose comments may correct a fact, each with the text of the lesson."""
    result = []
    for row in active:
        if row.comment is not None and (row.score is None or row.score <= MAY_CORRECT):
            correction = statement(row.comment)
            if correction is not None:
                result.append((row, lesson_text(entry.question, correction)))
    return result


def without_visitors(active: Sequence[FeedbackRow]) -> list[FeedbackRow]:
    """Opinions without those of visitors."""
    return [row for row in active if row.author_kind != "visitor"]


def votes(active: Sequence[FeedbackRow]) -> list[tuple[AuthorKind, str | None]]:
    """The authors of these opinions."""
    return [(row.author_kind, row.author) for row in active]


def is_justified(
    learnt: Learnt, entry: EntryRow, active: Sequence[FeedbackRow], retracted: Set[str], authors: int
) -> bool:
    """Whether opinions about an entry still justify a lesson, now that those in `retracted` no longer count."""
    trusted = without_visitors(active)
    if learnt.kind == "answer":
        supporting = positive_opinions(trusted) if learnt.text == lesson_text(entry.question, entry.answer) else []
    else:
        supporting = [row for row, text in corrections(entry, trusted) if text == learnt.text]
    if learnt.taught_by and not learnt.taught_by & retracted:
        # Other authors may have agreed in opinions about other answers.
        return bool(supporting)
    return suffices(votes(supporting), authors)


def learnt(
    connection: Connection, project: str, session_ids: Sequence[str] | None, limit: int | None = None
) -> list[Learnt]:
    """The facts that were learnt in these sessions, or in any. `limit` is for one session."""
    if session_ids is None:
        return _read(facts.with_source_prefix(connection, project, source_of("")))
    return _read(facts.with_sources(connection, project, [source_of(session_id) for session_id in session_ids], limit))


def taught_by(connection: Connection, project: str, feedback_ids: Sequence[str]) -> list[Learnt]:
    """The facts that were learnt because several authors agreed, one of them with one of these opinions."""
    return _read(facts.with_tag(connection, project, TAUGHT_BY, feedback_ids))


def _read(rows: Iterable[AnyRow]) -> list[Learnt]:
    return [
        Learnt(
            row.seq,
            row.id,
            row.dataset_id,
            row.text,
            row.metadata["learnt_from"],
            row.metadata["session_id"],
            row.metadata["qa_id"],
            scope_key(row.metadata),
            row.hidden != 0,
            facts.MADE_FROM in row.metadata,
            frozenset(row.metadata.get(TAUGHT_BY, ())),
        )
        for row in rows
        if row.metadata.keys() >= {"learnt_from", "session_id", "qa_id"}
    ]


class Proposal(NamedTuple):
    """A lesson that one opinion proposes; those with the same subject say the same."""

    subject: Hashable
    lesson: Lesson
    opinion: FeedbackRow


def proposals(
    entries: Iterable[EntryRow],
    feedback: Mapping[str, Sequence[FeedbackRow]],
    stored: Mapping[str, AnyRow],
    shown: Mapping[str, Sequence[str]],
) -> tuple[list[Proposal], list[NotLearnt]]:
    """The lessons that trusted opinions propose, and opinions that correct nothing; `stored` are the facts that exist,
    `shown` those that a recall showed."""
    proposed: list[Proposal] = []
    refused: list[NotLearnt] = []
    for entry in entries:
        active = feedback.get(entry.id, ())
        used = [fact for fact, _, _ in entry.used or ()]
        evidence = [stored[fact] for fact in used if fact in stored]
        # An answer must not bring back a fact that was forgotten or corrected.
        is_complete = len(evidence) == len(used) and all(fact.active for fact in evidence)
        # Made from none, it belongs where the facts do that the recall showed.
        around = evidence or [stored[fact] for fact in shown.get(entry.recall_id or "", ()) if fact in stored]
        found: list[Proposal] = []
        if is_complete and around and _teaches(entry, [fact.text for fact in evidence]):
            text, scope = lesson_text(entry.question, entry.answer), shared_scope([fact.metadata for fact in around])
            lesson = Lesson(text, "answer", entry.session_id, entry.id, made_from=tuple(used), scope=scope)
            subject: Hashable = ("answer", text, scope_key(scope))
            found += [Proposal(subject, lesson, row) for row in positive_opinions(active)]
        for row, text in corrections(entry, active):
            comment = row.comment or ""
            place = corrected(comment, [fact.text for fact in evidence], entry.question)
            if place is None or not evidence[place].active:
                refused.append(_refused(row, "feedback", "corrects_nothing", "it corrects no fact of the answer"))
                continue
            fact = evidence[place]
            lesson = Lesson(
                text,
                *("feedback", entry.session_id, entry.id, fact.id),
                made_from=(fact.id,),
                scope=shared_scope([fact.metadata]),
            )
            subject = (fact.id, replacement_terms(comment, fact.text, entry.question))
            found.append(Proposal(subject, lesson, row))
        for proposal in found:
            if _is_public(proposal.lesson.text, evidence):
                proposed.append(proposal)
            else:
                detail = "it has personal data that no fact has"
                refused.append(_refused(proposal.opinion, proposal.lesson.kind, "personal_data", detail))
    return proposed, refused


def _is_public(text: str, evidence: Iterable[AnyRow]) -> bool:
    """Whether a lesson has no personal data but those that a fact has which it is made from."""
    return personal_data(text) <= {each for fact in evidence for each in personal_data(fact.text)}


def decide(proposed: Iterable[Proposal], authors: int) -> tuple[list[Lesson], list[NotLearnt]]:
    """The lessons that enough authors propose, and those that too few do."""
    taught: list[Lesson] = []
    refused: list[NotLearnt] = []
    agreed: dict[Hashable, dict[str | None, Proposal]] = defaultdict(dict)
    for proposal in sorted(proposed, key=lambda proposal: (proposal.opinion.at, proposal.opinion.id)):
        if suffices(votes([proposal.opinion]), authors):
            taught.append(proposal.lesson)
        agreed[proposal.subject].setdefault(proposal.opinion.author, proposal)
    for by_author in agreed.values():
        agreeing = list(by_author.values())
        if any(suffices(votes([proposal.opinion]), authors) for proposal in agreeing):
            continue
        if suffices(votes([proposal.opinion for proposal in agreeing]), authors):
            # All of them, so that no two retractions leave a lesson that too few still teach.
            teachers = tuple(proposal.opinion.id for proposal in agreeing[: max(authors, MAX_TEACHERS)])
            taught.append(replace(agreeing[0].lesson, taught_by=teachers))
            continue
        detail = f"{len(agreeing)} of {authors} authors say so"
        refused += [
            _refused(proposal.opinion, proposal.lesson.kind, "too_few_authors", detail) for proposal in agreeing
        ]
    return taught, refused


def refused_visitors(entries: Iterable[EntryRow], by_visitors: Mapping[str, Sequence[FeedbackRow]]) -> list[NotLearnt]:
    """Corrections by visitors, which teach nothing."""
    detail = "the author is a visitor"
    return [
        _refused(row, "feedback", "visitor", detail)
        for entry in entries
        for row, _ in corrections(entry, by_visitors[entry.id])
    ]


def _teaches(entry: EntryRow, evidence: Sequence[str]) -> bool:
    """Whether an answer says more than one fact that already exists."""
    answer = said(entry.answer)
    return bool(answer) and answer != NO_ANSWER and not any(answer in text for text in evidence)


def _refused(row: FeedbackRow, kind: Kind, reason: NotLearntReason, detail: str) -> NotLearnt:
    return NotLearnt(
        feedback_id=row.id,
        session_id=row.session_id,
        qa_id=row.target_id,
        learnt_from=kind,
        reason=reason,
        detail=detail,
    )
