"""Review items: what opinions are about, which belong together, and the state of each item."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.model import AuthorTrust, FeedbackTarget, OpinionTarget, ReviewOpinion, ReviewStatus
from heedful.ranking.similarity import SAME_NEED, normal, similarity
from heedful.search.evidence import SLACK
from heedful.search.vectors import VectorIndex
from heedful.sql import chat_sessions
from heedful.sql.chat_sessions import Turn
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import runs
from heedful.storage.executions.proofs import RETAINED_SQL, TARGETS
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.review import actions, items, members
from heedful.storage.review.items import Fold, NewItem
from heedful.storage.review.members import SESSION_TARGETS, NewMember
from heedful.storage.rows import AnyRow
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import EntryRow, FeedbackRow
from heedful.storage.vectors import Vectors, pack, unpack


@dataclass(frozen=True, slots=True)
class Subject:
    """What an opinion is about."""

    group: tuple[str, ...]
    """Opinions with the same one say the same."""
    question: str | None = None
    dataset: str | None = None
    entry: EntryRow | None = None
    run: AnyRow | None = None
    turn: Turn | None = None

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b("\0".join(self.group).encode(), digest_size=16).digest()


def find_subjects(space: ExecutionSpace, opinions: Iterable[Opinion]) -> dict[str, Subject]:
    """The subjects of opinions, by their events. One about an entry that is gone has none."""
    given = list(opinions)
    found: dict[str, Subject] = {}
    entries = [each for each in given if each.target_type == "entry"]
    if entries:
        found |= space.sessions.store.read(lambda tx: _of_entries(tx, entries))
    ran = [each for each in given if each.target_type == "execution"]
    if ran:
        with space.workspace.read() as connection:
            project = space.project(connection)
            rows = {each.target_id: runs.get(connection, project, each.target_id) for each in ran}
        found |= {each.event_id: _subject_of_run(each, rows[each.target_id]) for each in ran}
    for each in given:
        if each.target_type == "message":
            found[each.event_id] = _of_message(each, chat_sessions.turn(space.sessions, each.target_id))
        elif each.target_type in ("session", "fact"):
            found[each.event_id] = Subject(each.target, each.question, each.dataset)
    return found


def _of_entries(tx: Transaction, opinions: list[Opinion]) -> dict[str, Subject]:
    found = {}
    for each in opinions:
        entry = None if each.session_id is None else tx.conversations.entry(each.session_id, each.target_id)
        if entry is not None:
            group = ("entry", entry.dataset or "", normal(entry.question))
            found[each.event_id] = Subject(group, entry.question, entry.dataset, entry=entry)
    return found


def _subject_of_run(opinion: Opinion, row: AnyRow | None) -> Subject:
    """The same SQL with other values is the same mistake."""
    if row is not None:
        return Subject(("execution", row.connector_id, row.template.hex()), row.question, run=row)
    return Subject(opinion.target if opinion.sql is None else ("execution", *opinion.sql))


def _of_message(opinion: Opinion, turn: Turn | None) -> Subject:
    if turn is None:
        return Subject(opinion.target)
    return Subject(("message", turn.connector_id, normal(turn.question)), turn.question, turn=turn)


class OpinionRef(Protocol):
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
    author_trust: AuthorTrust
    score: int | None = None
    comment: str | None = None
    session_id: str | None = None
    active: bool = True
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
            author_trust=self.author_trust,
            at=from_stored(self.at),
        )


def read_opinions(space: ExecutionSpace, named: Iterable[OpinionRef]) -> dict[str, Opinion]:
    """Opinions by their events; those whose words are gone are left out."""
    wanted = {(each.target_type, each.event_id): each for each in named}
    of_sessions = list(dict.fromkeys(event for kind, event in wanted if kind in SESSION_TARGETS))
    of_runs = [event for kind, event in wanted if kind in TARGETS]
    of_facts = [event for kind, event in wanted if kind == "fact"]
    found: list[Opinion] = []
    if of_sessions:
        rows = space.sessions.store.read(lambda tx: tx.feedbacks.named(of_sessions))
        found += map(_opinion, rows)
    if of_runs or of_facts:
        with space.workspace.read() as connection:
            project = space.project(connection)
            found += map(_opinion, SqlFeedbacks.on(connection, project).named(of_runs))
            found += [_of_fact(row) for row in actions.signals(connection, project, of_facts)]
    return {each.event_id: each for each in found if (each.target_type, each.event_id) in wanted}


def read_positive(space: ExecutionSpace, targets: Iterable[tuple[str, str]]) -> list[Opinion]:
    """The active opinions that say that one of these things was right."""
    of: dict[str, list[str]] = {}
    for kind, target in sorted(set(targets)):
        of.setdefault(kind, []).append(target)
    found: list[Opinion] = []
    for kind in SESSION_TARGETS:
        if kind in of:
            found += map(_opinion, space.sessions.store.read(partial(_active_rows, kind=kind, ids=of[kind])))
    if not of.keys().isdisjoint((*TARGETS, "fact")):
        with space.workspace.read() as connection:
            project = space.project(connection)
            opinions = SqlFeedbacks.on(connection, project)
            found += [_opinion(row) for kind in TARGETS for row in opinions.active(kind, of.get(kind, []))]
            found += [_of_fact(row) for row in actions.helpful(connection, project, of.get("fact", []))]
    return [each for each in found if each.positive]


def _active_rows(tx: Transaction, kind: FeedbackTarget, ids: Sequence[str]) -> list[FeedbackRow]:
    return tx.feedbacks.active(kind, ids)


def _opinion(row: FeedbackRow) -> Opinion:
    retained = row.extra.get(RETAINED_SQL) if row.target_type in TARGETS else None
    return Opinion(
        event_id=row.event_id,
        target_type=row.target_type,
        target_id=row.target_id,
        positive=row.rating == "up",
        at=row.updated_at,
        author=row.author,
        author_trust=row.author_trust,
        score=row.score,
        comment=row.comment or None,
        session_id=row.session_id or None,
        active=row.active,
        sql=(retained[0]["connector_id"], retained[0]["template"]) if retained else None,
    )


def _of_fact(row: AnyRow) -> Opinion:
    return Opinion(
        event_id=row.id,
        target_type="fact",
        target_id=row.target_id,
        positive=row.value == "helpful",
        at=row.at,
        author=row.author,
        author_trust=row.author_trust,
        comment=row.note,
        active=not row.retracted,
        question=row.question,
        dataset=row.dataset,
        receipt_id=row.receipt_id,
        rank=row.rank,
    )


CLOSES: dict[str, ReviewStatus] = {"resolve": "resolved", "dismiss": "dismissed"}


class ReviewAct(NamedTuple):
    """An action that was not undone, as the fold sees it."""

    action: str
    at: int
    author: str | None = None
    assignee: str | None = None


class ItemState(NamedTuple):
    """The state of an item."""

    status: ReviewStatus = "open"
    assignee: str | None = None
    closed: ReviewAct | None = None
    """What closed it."""


def fold(acts: Iterable[ReviewAct], last_at: int | None) -> ItemState:
    """The state that the actions that were not undone, in order, and the time of the newest active opinion lead to."""
    assignee: str | None = None
    closed: ReviewAct | None = None
    for act in acts:
        if act.action == "assign":
            assignee = act.assignee
        elif act.action in CLOSES:
            closed = act
        elif act.action == "reopen":
            closed = None
    if closed is not None and closed.action == "resolve" and last_at is not None and last_at > closed.at:
        closed = None
    return ItemState("open" if closed is None else CLOSES[closed.action], assignee, closed)


MAX_NEAREST = 5
"""How many open items are compared word by word."""

MAX_OPEN_ITEMS = 5_000
"""Open items of a dataset whose questions are compared at all, the newest: a queue of many thousands stays quick."""

Item = int | NewItem
"""An item that is there, by its number, or one that is to be made."""


@dataclass(frozen=True, slots=True)
class PlacedOpinion:
    """An opinion with its item."""

    member: NewMember
    item: Item


class _OpenQuestions:
    """The questions of open items of one dataset."""

    def __init__(self, known: Sequence[tuple[int, bytes]], dimensions: int) -> None:
        self._items: list[Item] = [seq for seq, _ in known]
        self._vectors = VectorIndex(unpack([blob for _, blob in known], dimensions))
        self.texts: dict[int, str] = {}
        """What was asked, by the place of an item; of those that lie near to something."""

    def add(self, item: NewItem, question: str, vector: Vectors) -> None:
        self.texts[len(self._items)] = question
        self._items.append(item)
        self._vectors.append(vector[None])

    def near(self, vector: Vectors, least: float) -> dict[int, float]:
        """The places of the nearest items, if they are near enough, with their cosines."""
        if not self._items:
            return {}
        places, cosines = self._vectors.nearest(vector, MAX_NEAREST, np.ones(len(self._items), bool))
        return {
            place: cosine for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True) if cosine >= least
        }

    def item(self, place: int) -> Item:
        return self._items[place]


def place_opinions(space: ExecutionSpace, opinions: Sequence[Opinion]) -> list[PlacedOpinion]:
    """The opinions that have a subject, each with its item; in order."""
    about = find_subjects(space, opinions)
    said = [each for each in opinions if each.event_id in about]
    with space.workspace.read() as connection:
        project = space.project(connection)
        of_target: dict[tuple[str, str], Item] = dict(
            members.of_targets(connection, project, [each.target_id for each in said])
        )
        of_digest: dict[bytes, Item] = dict(
            items.with_digests(connection, project, [about[each.event_id].digest for each in said])
        )
    unknown = [
        each
        for each in said
        if each.target_type == "entry" and each.target not in of_target and about[each.event_id].digest not in of_digest
    ]
    vectors = _vectors(space, [about[each.event_id] for each in unknown])
    asked = _open_questions(space, [about[each.event_id] for each in unknown], vectors)
    found = []
    for each in said:
        subject = about[each.event_id]
        item = of_target.get(each.target) or of_digest.get(subject.digest)
        vector = vectors.get(subject.digest)
        if item is None and vector is not None:
            item = _near(space, asked[subject.dataset], subject, vector)
        if item is None:
            item = NewItem(
                each.target_type, subject.dataset, subject.digest, None if vector is None else pack(vector), each.at
            )
            if vector is not None and subject.question is not None:
                asked[subject.dataset].add(item, subject.question, vector)
        of_target[each.target] = of_digest[subject.digest] = item
        found.append(PlacedOpinion(NewMember(each.event_id, each.target_type, each.target_id, each.at), item))
    return found


def _vectors(space: ExecutionSpace, unknown: Sequence[Subject]) -> dict[bytes, Vectors]:
    questions = {each.digest: each.question or "" for each in unknown}
    if not questions:
        return {}
    return dict(zip(questions, space.workspace.embed(list(questions.values())), strict=True))


def _open_questions(
    space: ExecutionSpace, unknown: Sequence[Subject], vectors: dict[bytes, Vectors]
) -> dict[str | None, _OpenQuestions]:
    """The open questions of the datasets that questions come from, with the words of those that lie near."""
    found: dict[str | None, _OpenQuestions] = {}
    place_of: dict[int, tuple[str | None, int]] = {}
    with space.workspace.read() as connection:
        project, model = space.project(connection), space.workspace.model(connection)
        for dataset in {each.dataset for each in unknown}:
            rows = (
                []
                if model is None
                else items.open_vectors(connection, project, "entry", dataset, model.id, MAX_OPEN_ITEMS)
            )
            found[dataset] = _OpenQuestions(rows, space.workspace.embedder.dimensions)
        for each in unknown:
            for place in found[each.dataset].near(vectors[each.digest], _least(space)):
                item = found[each.dataset].item(place)
                assert isinstance(item, int)
                place_of[item] = each.dataset, place
        newest = members.newest(connection, sorted(place_of), 1)
    item_of = {rows[0].event_id: seq for seq, rows in newest.items() if rows}
    said = read_opinions(space, [rows[0] for rows in newest.values() if rows])
    for event_id, subject in find_subjects(space, said.values()).items():
        dataset, place = place_of[item_of[event_id]]
        found[dataset].texts[place] = subject.question or ""
    return found


def _near(space: ExecutionSpace, asked: _OpenQuestions, subject: Subject, vector: Vectors) -> Item | None:
    """The item whose question asks for the same thing most surely."""
    alike = {
        place: similarity(
            subject.question or "", asked.texts[place], cosine, calibration=space.workspace.embedder.calibration
        )
        for place, cosine in asked.near(vector, _least(space)).items()
        if place in asked.texts
    }
    best = max(alike, key=lambda place: alike[place], default=None)
    return None if best is None or alike[best] < SAME_NEED else asked.item(best)


def _least(space: ExecutionSpace) -> float:
    """The cosine from which two questions are compared word by word."""
    return space.workspace.embedder.calibration.same - SLACK


def remaining_acts(rows: Iterable[AnyRow]) -> list[ReviewAct]:
    """The actions among the events of an item that were not undone."""
    return [ReviewAct(row.value, row.at, row.author, row.body.get("assignee")) for row in rows if not row.retracted]


def item_state(connection: Connection, item: AnyRow) -> ItemState:
    """The state of one item."""
    rows = actions.of_items(connection, item.project_id, [item.id])[item.id]
    return fold(remaining_acts(rows), members.active_counts(connection, [item.seq])[item.seq].last_at)


def refold(connection: Connection, project: int, seqs: Iterable[int]) -> None:
    """Recomputes items; those that have no opinion left are removed."""
    known = items.by_seq(connection, seqs)
    stands = members.active_counts(connection, list(known))
    done = actions.of_items(connection, project, [row.id for row in known.values()])
    folds = []
    for seq, row in known.items():
        _, opinions, last_at = stands[seq]
        state = fold(remaining_acts(done[row.id]), last_at)
        folds.append(Fold(seq, state.status, state.assignee, opinions, row.last_at if last_at is None else last_at))
    items.set_folds(connection, folds)
    items.remove(connection, [seq for seq in known if not stands[seq].members])
