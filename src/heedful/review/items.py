"""Review items: what opinions are about, which belong together, and the state of each item."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.model import AuthorKind, FeedbackTarget, OpinionTarget, ReviewOpinion, ReviewStatus
from heedful.ranking.similarity import SAME_NEED, normal, similarity
from heedful.search.evidence import SLACK
from heedful.search.vectors import VectorIndex
from heedful.sql import chat_sessions
from heedful.sql.chat_sessions import Turn
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts
from heedful.storage.executions import runs
from heedful.storage.executions.proofs import RETAINED_SQL, TARGETS
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.ledger import CONFLICT
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
    """Opinions with equal groups belong to one item."""
    question: str | None = None
    dataset: str | None = None
    entry: EntryRow | None = None
    run: AnyRow | None = None
    turn: Turn | None = None

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b("\0".join(self.group).encode(), digest_size=16).digest()


def find_subjects(space: ExecutionSpace, opinions: Iterable[Opinion]) -> dict[str, Subject]:
    """The subjects of opinions, by event. An opinion about a deleted entry has none."""
    opinion_list = list(opinions)
    subjects: dict[str, Subject] = {}
    entries = [opinion for opinion in opinion_list if opinion.target_type == "entry"]
    if entries:
        subjects |= space.sessions.store.read(lambda tx: _of_entries(tx, entries))
    on_executions = [opinion for opinion in opinion_list if opinion.target_type == "execution"]
    if on_executions:
        with space.workspace.read() as connection:
            project = space.project(connection)
            rows = {opinion.target_id: runs.get(connection, project, opinion.target_id) for opinion in on_executions}
        subjects |= {opinion.event_id: _subject_of_run(opinion, rows[opinion.target_id]) for opinion in on_executions}
    for opinion in opinion_list:
        if opinion.target_type == "message":
            subjects[opinion.event_id] = _of_message(opinion, chat_sessions.turn(space.sessions, opinion.target_id))
        elif opinion.target_type in ("session", "fact"):
            subjects[opinion.event_id] = Subject(opinion.target, opinion.question, opinion.dataset)
    return subjects


def _of_entries(tx: Transaction, opinions: list[Opinion]) -> dict[str, Subject]:
    subjects = {}
    for opinion in opinions:
        entry = None if opinion.session_id is None else tx.conversations.entry(opinion.session_id, opinion.target_id)
        if entry is not None:
            group = ("entry", entry.dataset or "", normal(entry.question))
            subjects[opinion.event_id] = Subject(group, entry.question, entry.dataset, entry=entry)
    return subjects


def _subject_of_run(opinion: Opinion, row: AnyRow | None) -> Subject:
    """Groups by template: the same SQL with other values is the same mistake."""
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
    """An opinion with what is known about its target."""

    event_id: str
    target_type: OpinionTarget
    target_id: str
    positive: bool
    at: int
    author: str | None
    author_kind: AuthorKind
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
    conflicts_with: str | None = None
    """The fact that says otherwise, where it is a conflict between two facts."""

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
            author_kind=self.author_kind,
            at=from_stored(self.at),
        )


def read_opinions(space: ExecutionSpace, references: Iterable[OpinionRef]) -> dict[str, Opinion]:
    """Opinions by event, without those whose text was deleted."""
    by_reference = {(opinion.target_type, opinion.event_id): opinion for opinion in references}
    of_sessions = list(dict.fromkeys(event for kind, event in by_reference if kind in SESSION_TARGETS))
    of_runs = [event for kind, event in by_reference if kind in TARGETS]
    of_facts = [event for kind, event in by_reference if kind == "fact"]
    read: list[Opinion] = []
    if of_sessions:
        rows = space.sessions.store.read(lambda tx: tx.feedbacks.by_event_ids(of_sessions))
        read += map(_opinion, rows)
    if of_runs or of_facts:
        with space.workspace.read() as connection:
            project = space.project(connection)
            read += map(_opinion, SqlFeedbacks.on(connection, project).by_event_ids(of_runs))
            signals = [_of_fact(row) for row in actions.signals(connection, project, of_facts)]
            others = [opinion.conflicts_with for opinion in signals if opinion.conflicts_with is not None]
            texts = facts.texts(connection, others)
            read += [_described(opinion, texts) for opinion in signals]
    return {opinion.event_id: opinion for opinion in read if (opinion.target_type, opinion.event_id) in by_reference}


def read_positive(space: ExecutionSpace, targets: Iterable[tuple[str, str]]) -> list[Opinion]:
    """The active positive opinions about these targets."""
    target_ids: dict[str, list[str]] = {}
    for kind, target in sorted(set(targets)):
        target_ids.setdefault(kind, []).append(target)
    read: list[Opinion] = []
    for kind in SESSION_TARGETS:
        if kind in target_ids:
            read += map(_opinion, space.sessions.store.read(partial(_active_rows, kind=kind, ids=target_ids[kind])))
    if not target_ids.keys().isdisjoint((*TARGETS, "fact")):
        with space.workspace.read() as connection:
            project = space.project(connection)
            opinions = SqlFeedbacks.on(connection, project)
            read += [_opinion(row) for kind in TARGETS for row in opinions.active(kind, target_ids.get(kind, []))]
            read += [_of_fact(row) for row in actions.helpful(connection, project, target_ids.get("fact", []))]
    return [opinion for opinion in read if opinion.positive]


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
        author_kind=row.author_kind,
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
        author_kind=row.author_kind,
        comment=row.note,
        active=not row.retracted,
        question=row.question,
        dataset=row.dataset,
        receipt_id=row.receipt_id,
        rank=row.rank,
        conflicts_with=row.body["fact_id"] if row.kind == CONFLICT else None,
    )


def _described(opinion: Opinion, texts: Mapping[str, str]) -> Opinion:
    """A conflict with what the other fact says as its comment."""
    text = texts.get(opinion.conflicts_with or "")
    return opinion if text is None else replace(opinion, comment=f"Another fact says: {text}")


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
    """Folds the actions that were not undone, and the time of the newest active opinion, into a state."""
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
"""How many of the nearest open items are compared in full."""

MAX_OPEN_ITEMS = 5_000
"""How many open items of a dataset are compared at all, the newest; keeps a long queue fast."""

Item = int | NewItem
"""The number of an existing item, or a new one."""


@dataclass(frozen=True, slots=True)
class PlacedOpinion:
    """An opinion with its item."""

    member: NewMember
    item: Item


class _OpenQuestions:
    """The questions of open items of one dataset."""

    def __init__(self, open_items: Sequence[tuple[int, bytes]], dimensions: int) -> None:
        self._items: list[Item] = [seq for seq, _ in open_items]
        self._vectors = VectorIndex(unpack([blob for _, blob in open_items], dimensions))
        self.texts: dict[int, str] = {}
        """The questions of items that are near to some opinion, by index."""

    def add(self, item: NewItem, question: str, vector: Vectors) -> None:
        self.texts[len(self._items)] = question
        self._items.append(item)
        self._vectors.append(vector[None])

    def near(self, vector: Vectors, threshold: float) -> dict[int, float]:
        """The cosines of the nearest items above the threshold, by index."""
        if not self._items:
            return {}
        indexes, cosines = self._vectors.nearest(vector, MAX_NEAREST, np.ones(len(self._items), bool))
        return {
            index: cosine
            for index, cosine in zip(indexes.tolist(), cosines.tolist(), strict=True)
            if cosine >= threshold
        }

    def item(self, index: int) -> Item:
        return self._items[index]


def place_opinions(space: ExecutionSpace, opinions: Sequence[Opinion]) -> list[PlacedOpinion]:
    """Assigns each opinion that has a subject to an item, in order."""
    subjects = find_subjects(space, opinions)
    with_subject = [opinion for opinion in opinions if opinion.event_id in subjects]
    with space.workspace.read() as connection:
        project = space.project(connection)
        of_target: dict[tuple[str, str], Item] = dict(
            members.of_targets(connection, project, [opinion.target_id for opinion in with_subject])
        )
        of_digest: dict[bytes, Item] = dict(
            items.with_digests(connection, project, [subjects[opinion.event_id].digest for opinion in with_subject])
        )
    unknown = [
        opinion
        for opinion in with_subject
        if opinion.target_type == "entry"
        and opinion.target not in of_target
        and subjects[opinion.event_id].digest not in of_digest
    ]
    vectors = _vectors(space, [subjects[opinion.event_id] for opinion in unknown])
    open_questions = _open_questions(space, [subjects[opinion.event_id] for opinion in unknown], vectors)
    placed = []
    for opinion in with_subject:
        subject = subjects[opinion.event_id]
        item = of_target.get(opinion.target) or of_digest.get(subject.digest)
        vector = vectors.get(subject.digest)
        if item is None and vector is not None:
            item = _nearest_item(space, open_questions[subject.dataset], subject, vector)
        if item is None:
            item = NewItem(
                opinion.target_type,
                subject.dataset,
                subject.digest,
                None if vector is None else pack(vector),
                opinion.at,
            )
            if vector is not None and subject.question is not None:
                open_questions[subject.dataset].add(item, subject.question, vector)
        of_target[opinion.target] = of_digest[subject.digest] = item
        placed.append(
            PlacedOpinion(NewMember(opinion.event_id, opinion.target_type, opinion.target_id, opinion.at), item)
        )
    return placed


def _vectors(space: ExecutionSpace, unknown: Sequence[Subject]) -> dict[bytes, Vectors]:
    questions = {subject.digest: subject.question or "" for subject in unknown}
    if not questions:
        return {}
    return dict(zip(questions, space.workspace.embed(list(questions.values())), strict=True))


def _open_questions(
    space: ExecutionSpace, unknown: Sequence[Subject], vectors: dict[bytes, Vectors]
) -> dict[str | None, _OpenQuestions]:
    """The open questions of these subjects' datasets, with the texts of those that are near."""
    result: dict[str | None, _OpenQuestions] = {}
    place_of: dict[int, tuple[str | None, int]] = {}
    with space.workspace.read() as connection:
        project, model = space.project(connection), space.workspace.model(connection)
        for dataset in {subject.dataset for subject in unknown}:
            rows = (
                []
                if model is None
                else items.open_vectors(connection, project, "entry", dataset, model.id, MAX_OPEN_ITEMS)
            )
            result[dataset] = _OpenQuestions(rows, space.workspace.embedder.dimensions)
        for subject in unknown:
            for index in result[subject.dataset].near(vectors[subject.digest], _min_cosine(space)):
                item = result[subject.dataset].item(index)
                assert isinstance(item, int)
                place_of[item] = subject.dataset, index
        newest = members.newest(connection, sorted(place_of), 1)
    item_of = {rows[0].event_id: seq for seq, rows in newest.items() if rows}
    opinions = read_opinions(space, [rows[0] for rows in newest.values() if rows])
    for event_id, nearest in find_subjects(space, opinions.values()).items():
        dataset, index = place_of[item_of[event_id]]
        result[dataset].texts[index] = nearest.question or ""
    return result


def _nearest_item(
    space: ExecutionSpace, open_questions: _OpenQuestions, subject: Subject, vector: Vectors
) -> Item | None:
    """The item whose question is most likely the same."""
    similarities = {
        index: similarity(
            subject.question or "",
            open_questions.texts[index],
            cosine,
            calibration=space.workspace.embedder.calibration,
        )
        for index, cosine in open_questions.near(vector, _min_cosine(space)).items()
        if index in open_questions.texts
    }
    best = max(similarities, key=lambda index: similarities[index], default=None)
    return None if best is None or similarities[best] < SAME_NEED else open_questions.item(best)


def _min_cosine(space: ExecutionSpace) -> float:
    """Questions below this cosine are not compared in full."""
    return space.workspace.embedder.calibration.same - SLACK


def remaining_acts(rows: Iterable[AnyRow]) -> list[ReviewAct]:
    """The actions of an item that were not undone."""
    return [ReviewAct(row.value, row.at, row.author, row.body.get("assignee")) for row in rows if not row.retracted]


def item_state(connection: Connection, item: AnyRow) -> ItemState:
    """The state of one item."""
    rows = actions.of_items(connection, item.project_id, [item.id])[item.id]
    return fold(remaining_acts(rows), members.active_counts(connection, [item.seq])[item.seq].last_at)


def refold(connection: Connection, project: int, seqs: Iterable[int]) -> None:
    """Recomputes items, and removes those without opinions."""
    rows = items.by_seq(connection, seqs)
    counts = members.active_counts(connection, list(rows))
    actions_by_item = actions.of_items(connection, project, [row.id for row in rows.values()])
    folds = []
    for seq, row in rows.items():
        _, opinions, last_at = counts[seq]
        state = fold(remaining_acts(actions_by_item[row.id]), last_at)
        folds.append(Fold(seq, state.status, state.assignee, opinions, row.last_at if last_at is None else last_at))
    items.set_folds(connection, folds)
    items.remove(connection, [seq for seq in rows if not counts[seq].members])
