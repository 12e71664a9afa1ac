"""The lessons of a session: well-rated answers, and comments that correct a fact. Each becomes a fact of the dataset.

A lesson has the session as its source and says in its metadata which entry it comes from, so that it can go again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import orjson
from sqlalchemy import Connection

from heedful.ledger import receipts, supersessions
from heedful.ledger.events import PROVENANCE
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.rating_signals import DatasetRatings, EntryRow
from heedful.ledger.votes import suffices
from heedful.memory.answer import LEARNT, NO_ANSWER, said
from heedful.memory.documents import Piece, Pieces
from heedful.memory.remember import store
from heedful.model import AuthorKind, LearntFact, Metadata, NotLearnt, NotLearntReason
from heedful.storage import facts
from heedful.storage.rows import AnyRow, to_model
from heedful.text.complaints import personal_data, statement
from heedful.text.corrections import corrected, replacement_terms
from heedful.workspace import Workspace

WELL_RATED = 4.0  # Answers with a lower mean score teach nothing.
MAY_CORRECT = 3  # Comments with a higher score are praise, not corrections.
_NO_QUOTES = str.maketrans("", "", '"“”„«»\\')
MAX_AROUND = 3  # With so many words around a fact, as in "Sure!", an answer says no more than the fact.
TAUGHT_BY = "taught_by"  # The key under which the metadata of a lesson name the opinions that teach it together.
MAX_TEACHERS = 20  # The opinions that a lesson names at most, unless more are needed to teach.
SOURCE_PREFIX = "session/"  # The source of facts that were learnt in a session: this and its id.

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
    taught_by: tuple[str, ...] = ()  # The opinions that teach it together: the lesson goes when too few are left.

    @property
    def source(self) -> str:
        return f"{SOURCE_PREFIX}{self.session_id}"

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
    keys = sorted({key for metadata in about for key in metadata} - OWN_KEYS)
    return {key: _shared([metadata[key] for metadata in about if key in metadata]) for key in keys}


def _shared(values: Sequence[Any]) -> Any:
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, dict) for value in values):
        return shared_scope(values)
    lists = [value if isinstance(value, list) else [value] for value in values]
    return [item for item in lists[0] if all(item in items for items in lists)] or None


def scope_key(scope: Metadata) -> bytes:
    """Identifies equal scopes, whatever else metadata say."""
    own = {key: value for key, value in scope.items() if key not in OWN_KEYS}
    return orjson.dumps(own, option=orjson.OPT_SORT_KEYS)


def lesson_text(question: str, answer: str) -> str:
    """The text of a lesson: the question in the first line, then the answer."""
    return f"{' '.join(question.split())}\n{said(answer)}"


def positive_opinions(active: Sequence[FeedbackRow]) -> list[FeedbackRow]:
    """The positive opinions about an answer that is well rated on average."""
    scores = [row.score for row in active if row.score is not None]
    is_well_rated = bool(scores) and sum(scores) / len(scores) >= WELL_RATED
    return [row for row in active if (row.score or 0) >= WELL_RATED] if is_well_rated else []


def corrections(entry: EntryRow, active: Sequence[FeedbackRow]) -> list[tuple[FeedbackRow, str]]:
    """The opinions about an entry whose comments may correct a fact, each with the text of the lesson."""
    result = []
    for row in active:
        if row.comment is not None and (row.score is None or row.score <= MAY_CORRECT):
            correction = statement(row.comment)
            if correction is not None:
                result.append((row, lesson_text(entry.question, correction)))
    return result


def votes(active: Sequence[FeedbackRow]) -> list[tuple[AuthorKind, str | None]]:
    return [(row.author_kind, row.author) for row in active]


def is_justified(
    learnt: Learnt, entry: EntryRow, active: Sequence[FeedbackRow], retracted: Set[str], authors: int
) -> bool:
    """Whether opinions about an entry still justify a lesson, now that those in `retracted` no longer count."""
    trusted = [row for row in active if row.author_kind != "visitor"]
    if learnt.kind == "answer":
        supporting = positive_opinions(trusted) if learnt.text == lesson_text(entry.question, entry.answer) else []
    else:
        supporting = [row for row, text in corrections(entry, trusted) if text == learnt.text]
    if learnt.taught_by and not learnt.taught_by & retracted:
        # Other authors may have agreed in opinions about other answers.
        return bool(supporting)
    return suffices(votes(supporting), authors)


def learnt(connection: Connection, session_ids: Sequence[str] | None, limit: int | None = None) -> list[Learnt]:
    """The facts that were learnt in these sessions, or in any. `limit` is for one session."""
    if session_ids is None:
        return _read(facts.with_source_prefix(connection, SOURCE_PREFIX))
    sources = [f"{SOURCE_PREFIX}{session_id}" for session_id in session_ids]
    return _read(facts.with_sources(connection, sources, limit))


def taught_by(connection: Connection, feedback_ids: Sequence[str]) -> list[Learnt]:
    """The facts that were learnt because several authors agreed, one of them with one of these opinions."""
    return _read(facts.with_tag(connection, TAUGHT_BY, feedback_ids))


def _read(rows: Iterable[AnyRow]) -> list[Learnt]:
    return [
        Learnt(
            *(row.seq, row.id, row.dataset_id, row.text),
            *(row.metadata["learnt_from"], row.metadata["session_id"], row.metadata["qa_id"]),
            scope_key(row.metadata),
            is_hidden=row.hidden != 0,
            is_made_from_facts=facts.MADE_FROM in row.metadata,
            taught_by=frozenset(row.metadata.get(TAUGHT_BY, ())),
        )
        for row in rows
        if row.metadata.keys() >= {"learnt_from", "session_id", "qa_id"}
    ]


def unjustified(
    workspace: Workspace,
    connection: Connection,
    rated: Sequence[tuple[EntryRow, list[FeedbackRow]]],
    retracted: Set[str],
) -> list[Learnt]:
    """The facts learnt from entries that the active opinions about them no longer justify."""
    by_id = {entry.id: (entry, active) for entry, active in rated}
    session_ids = sorted({entry.session_id for entry, _ in rated})
    authors = workspace.trust.authors_to_teach
    return [
        lesson
        for lesson in learnt(connection, session_ids)
        if lesson.qa_id in by_id and not is_justified(lesson, *by_id[lesson.qa_id], retracted, authors)
    ]


def forget(connection: Connection, lessons: Sequence[Learnt]) -> list[str]:
    """Removes learnt facts; returns their ids."""
    for dataset in {lesson.dataset for lesson in lessons}:
        numbers = [lesson.seq for lesson in lessons if lesson.dataset == dataset]
        supersessions.remove_facts(connection, dataset, numbers)
    return [lesson.fact_id for lesson in lessons]


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
            scope = shared_scope([fact.metadata])
            lesson = Lesson(text, "feedback", entry.session_id, entry.id, fact.id, made_from=(fact.id,), scope=scope)
            subject = (fact.id, replacement_terms(comment, fact.text, entry.question))
            found.append(Proposal(subject, lesson, row))
        allowed = {data for fact in evidence for data in personal_data(fact.text)} if found else set()
        for proposal in found:
            if personal_data(proposal.lesson.text) <= allowed:
                proposed.append(proposal)
            else:
                detail = "it has personal data that no fact has"
                refused.append(_refused(proposal.opinion, proposal.lesson.kind, "personal_data", detail))
    return proposed, refused


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
    return bool(answer) and answer != NO_ANSWER and not any(_repeats(_plain(answer), _plain(text)) for text in evidence)


def _repeats(answer: str, fact: str) -> bool:
    return answer in fact or (fact in answer and len(answer.replace(fact, "").split()) <= MAX_AROUND)


def _plain(text: str) -> str:
    """A text without the marks of a quotation, which a model may repeat from its prompt."""
    return " ".join(text.translate(_NO_QUOTES).split()).rstrip(".").casefold()


def _refused(row: FeedbackRow, kind: Kind, reason: NotLearntReason, detail: str) -> NotLearnt:
    return to_model(
        NotLearnt, row, feedback_id=row.id, qa_id=row.target_id, learnt_from=kind, reason=reason, detail=detail
    )


MAX_REPORTED = 100  # How many rejected opinions are reported, the newest first.


class Lessons(NamedTuple):
    """The facts that were learnt and forgotten, and the opinions that were rejected."""

    learnt: list[LearntFact]
    forgotten: list[str]
    refused: list[NotLearnt]


def learn(workspace: Workspace, dataset: str, ratings: DatasetRatings, session_ids: Sequence[str] | None) -> Lessons:
    """Makes the learnt facts match the opinions about the entries of these sessions, or of all."""
    used = {fact for entry in ratings.entries for fact, _, _ in entry.used or ()}
    unsupported = [entry.recall_id for entry in ratings.entries if not entry.used and entry.recall_id is not None]
    with workspace.read() as connection:
        shown = receipts.shown_facts(connection, unsupported)
        stored = facts.evidence(connection, sorted(used.union(*shown.values())), workspace.now())
        number = workspace.dataset(connection, dataset)
        all_known = [lesson for lesson in learnt(connection, None) if lesson.dataset == number]
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
        # An opinion in another session may teach the same lesson.
        and not (session_ids is not None and not lesson.taught_by <= ratings.feedback_ids)
        and not _waits(lesson, entries.get(lesson.qa_id), ratings, authors)
    ]
    # Several may teach the same: one fact says it, as long as its own source is active.
    gone = {lesson.seq for lesson in stale}
    present = {(lesson.text, lesson.scope) for lesson in all_known if lesson.seq not in gone and not lesson.is_hidden}
    first: dict[tuple[str, bytes], Lesson] = {}
    for lesson in expected.values():
        key = lesson.text, scope_key(lesson.scope)
        if key not in present:
            first.setdefault(key, lesson)
    new = list(first.values())
    if stale and number is not None:
        with workspace.read() as connection:
            runs = facts.removal_runs(connection, [lesson.seq for lesson in stale])
        for run in runs:
            with workspace.write() as connection:
                supersessions.remove_facts(connection, number, sorted(facts.existing(connection, run)))
    with workspace.read() as connection:
        # A lesson expires with the facts that it was made from.
        documents = [
            Pieces(
                [(Piece(lesson.text, 0, len(lesson.text)), lesson.metadata)],
                lesson.source,
                expires_at=facts.earliest_expiry(connection, lesson.made_from),
            )
            for lesson in new
        ]
    stored_lessons = store(workspace, dataset, documents)
    return Lessons(
        [
            to_model(LearntFact, lesson, fact_id=fact.fact_id, learnt_from=lesson.kind)
            for lesson, fact in zip(new, stored_lessons, strict=True)
        ],
        [lesson.fact_id for lesson in stale],
        sorted(refused, key=lambda lesson: lesson.feedback_id, reverse=True)[:MAX_REPORTED],
    )


def _waits(learnt: Learnt, entry: EntryRow | None, ratings: DatasetRatings, authors: int) -> bool:
    """Whether opinions still teach a lesson that the facts around it don't allow now: they may come back, and a
    receipt that is deleted says nothing against it."""
    if entry is None or (learnt.is_made_from_facts and not learnt.is_hidden):
        return False
    active = ratings.about_entry.get(entry.id, ())
    return is_justified(learnt, entry, active, learnt.taught_by - ratings.feedback_ids, authors)
