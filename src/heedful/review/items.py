"""Review items: the opinions about the same subject, and the state of each item."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import Connection

from heedful.errors import Conflict, NotFound
from heedful.ledger.events import CONFLICT
from heedful.ledger.opinions import FeedbackRow, SqlFeedbacks
from heedful.ledger.proven_sql import RETAINED_SQL, TARGETS
from heedful.ledger.rating_signals import EntryRow
from heedful.model import AuthorKind, OpinionTarget, ReviewItem, ReviewKind, ReviewStatus
from heedful.review import tables
from heedful.review.tables import SESSION_TARGETS, Fold, NewMember
from heedful.sessions.session_store import Transaction
from heedful.sql import chat_sessions, records
from heedful.sql.chat_sessions import ChatTurn
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts
from heedful.storage.rows import AnyRow, to_model
from heedful.text.same_question import normal


@dataclass(frozen=True, slots=True)
class Subject:
    group: tuple[str, ...]  # Opinions with equal groups belong to one item.
    question: str | None = None
    dataset: str | None = None
    entry: EntryRow | None = None
    run: AnyRow | None = None
    turn: ChatTurn | None = None

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b("\0".join(self.group).encode(), digest_size=16).digest()


def find_subjects(space: ExecutionSpace, opinions: Iterable[Opinion]) -> dict[str, Subject]:
    """The subjects of opinions, by event. An opinion about a deleted entry has none."""
    by_type: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        by_type.setdefault(opinion.target_type, []).append(opinion)
    subjects: dict[str, Subject] = {}
    if "entry" in by_type:
        subjects |= space.sessions.store.read(lambda tx: _subjects_of_entries(tx, by_type["entry"]))
    if "execution" in by_type:
        with space.workspace.read() as connection:
            project = space.project(connection)
            ids = {opinion.target_id for opinion in by_type["execution"]}
            runs = {run_id: records.get_run(connection, project, run_id) for run_id in ids}
        subjects |= {
            opinion.event_id: _subject_of_run(opinion, runs[opinion.target_id]) for opinion in by_type["execution"]
        }
    for opinion in by_type.get("message", ()):
        subjects[opinion.event_id] = _of_message(opinion, chat_sessions.turn(space.sessions, opinion.target_id))
    for opinion in (*by_type.get("session", ()), *by_type.get("fact", ())):
        subjects[opinion.event_id] = Subject(opinion.target, opinion.question, opinion.dataset)
    return subjects


def _subjects_of_entries(tx: Transaction, opinions: list[Opinion]) -> dict[str, Subject]:
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


def _of_message(opinion: Opinion, turn: ChatTurn | None) -> Subject:
    if turn is None:
        return Subject(opinion.target)
    return Subject(("message", turn.connector_id, normal(turn.question)), turn.question, turn=turn)


@dataclass(frozen=True, slots=True)
class Opinion:
    """An opinion with the properties of its target."""

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
    sql: tuple[str, str] | None = None  # The connector and the template of an execution that is gone.
    question: str | None = None
    dataset: str | None = None
    receipt_id: str | None = None
    rank: int | None = None
    conflicts_with: str | None = None  # The fact that says otherwise, where it is a conflict between two facts.

    @property
    def target(self) -> tuple[str, str]:
        return self.target_type, self.target_id


def read_opinions(space: ExecutionSpace, references: Iterable[Opinion | NewMember | AnyRow]) -> dict[str, Opinion]:
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
            signals = [_of_fact(row) for row in tables.signals(connection, of_facts)]
            others = [opinion.conflicts_with for opinion in signals if opinion.conflicts_with is not None]
            texts = facts.texts(connection, others)
            for opinion in signals:
                text = texts.get(opinion.conflicts_with or "")
                read.append(opinion if text is None else replace(opinion, comment=f"Another fact says: {text}"))
    return {opinion.event_id: opinion for opinion in read if (opinion.target_type, opinion.event_id) in by_reference}


def read_positive(space: ExecutionSpace, targets: Iterable[tuple[str, str]]) -> list[Opinion]:
    """The active positive opinions about these targets."""
    target_ids: dict[str, list[str]] = {}
    for kind, target in sorted(set(targets)):
        target_ids.setdefault(kind, []).append(target)
    read: list[Opinion] = []

    def read_active(tx: Transaction) -> list[FeedbackRow]:
        return [row for kind in SESSION_TARGETS for row in tx.feedbacks.active(kind, target_ids.get(kind, []))]

    if not target_ids.keys().isdisjoint(SESSION_TARGETS):
        read += map(_opinion, space.sessions.store.read(read_active))
    if not target_ids.keys().isdisjoint((*TARGETS, "fact")):
        with space.workspace.read() as connection:
            project = space.project(connection)
            opinions = SqlFeedbacks.on(connection, project)
            read += [_opinion(row) for kind in TARGETS for row in opinions.active(kind, target_ids.get(kind, []))]
            read += [_of_fact(row) for row in tables.helpful_signals(connection, target_ids.get("fact", []))]
    return [opinion for opinion in read if opinion.positive]


def _opinion(row: FeedbackRow) -> Opinion:
    retained = row.extra.get(RETAINED_SQL) if row.target_type in TARGETS else None
    names = ("event_id", "target_type", "target_id", "author", "author_kind", "score", "active")
    return Opinion(
        **{name: getattr(row, name) for name in names},
        positive=row.rating == "up",
        at=row.updated_at,
        comment=row.comment or None,
        session_id=row.session_id or None,
        sql=(retained[0]["connector_id"], retained[0]["template"]) if retained else None,
    )


def _of_fact(row: AnyRow) -> Opinion:
    names = ("target_id", "at", "author", "author_kind", "question", "dataset", "receipt_id", "rank")
    return Opinion(
        **{name: getattr(row, name) for name in names},
        event_id=row.id,
        target_type="fact",
        positive=row.value == "helpful",
        comment=row.note,
        active=not row.retracted,
        conflicts_with=row.body["fact_id"] if row.kind == CONFLICT else None,
    )


CLOSES: dict[str, ReviewStatus] = {"resolve": "resolved", "dismiss": "dismissed"}


class ReviewAct(NamedTuple):
    """An action that was not undone, as the fold sees it."""

    action: str
    at: int
    author: str | None = None
    assignee: str | None = None


class ItemState(NamedTuple):
    status: ReviewStatus = "open"
    assignee: str | None = None
    closed: ReviewAct | None = None  # The action that closed it.


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


def remaining_acts(rows: Iterable[AnyRow]) -> list[ReviewAct]:
    return [ReviewAct(row.value, row.at, row.author, row.body.get("assignee")) for row in rows if not row.retracted]


def item_state(connection: Connection, item: AnyRow) -> ItemState:
    rows = tables.actions_of_items(connection, [item.id])[item.id]
    return fold(remaining_acts(rows), tables.active_counts(connection, [item.seq])[item.seq].last_at)


def refold(connection: Connection, seqs: Iterable[int]) -> None:
    """Recomputes items, and removes those without opinions."""
    rows = tables.items_by_seq(connection, seqs)
    counts = tables.active_counts(connection, list(rows))
    actions_by_item = tables.actions_of_items(connection, [row.id for row in rows.values()])
    folds = []
    for seq, row in rows.items():
        _, opinions, last_at = counts[seq]
        state = fold(remaining_acts(actions_by_item[row.id]), last_at)
        folds.append(Fold(seq, state.status, state.assignee, opinions, row.last_at if last_at is None else last_at))
    tables.set_folds(connection, folds)
    tables.remove_items(connection, [seq for seq in rows if not counts[seq].members])


LATEST_OPINIONS = 10  # How many opinions are searched for the newest comment.
MAX_TARGETS = 1_000  # How many of its newest opinions have their targets checked for contrary opinions.
MAX_COMMENT = 200  # Characters of a comment that are shown.


@dataclass(frozen=True, slots=True)
class LoadedItem:
    """An item with its opinions and its subject."""

    row: AnyRow
    item: ReviewItem
    newest: list[Opinion]  # The active ones, newest first; the retracted ones if none is active.
    against: list[Opinion]
    subject: Subject | None


def load_items(space: ExecutionSpace, rows: Sequence[AnyRow], latest: int = LATEST_OPINIONS) -> list[LoadedItem]:
    """Items with their newest opinions, and with those that say the contrary."""
    if not rows:
        return []
    seqs = [row.seq for row in rows]
    with space.workspace.read() as connection:
        newest = tables.newest_members(connection, seqs, latest)
        targets = tables.newest_targets(connection, seqs, MAX_TARGETS)
    opinions = read_opinions(space, [member for members in newest.values() for member in members])
    of_item = {seq: [opinions[row.event_id] for row in newest[seq] if row.event_id in opinions] for seq in seqs}
    subjects = find_subjects(space, [item_opinions[0] for item_opinions in of_item.values() if item_opinions])
    contrary: dict[tuple[str, str], list[Opinion]] = {}
    for opinion in read_positive(space, [(row.target_type, row.target_id) for row in targets]):
        contrary.setdefault(opinion.target, []).append(opinion)
    against: dict[int, list[Opinion]] = {seq: [] for seq in seqs}
    for row in targets:
        against[row.item_seq] += contrary.get((row.target_type, row.target_id), [])
    return [_load_item(row, of_item[row.seq], against[row.seq], subjects) for row in rows]


def _load_item(row: AnyRow, newest: list[Opinion], against: list[Opinion], subjects: dict[str, Subject]) -> LoadedItem:
    subject = subjects.get(newest[0].event_id) if newest else None
    comment = next((opinion.comment for opinion in newest if opinion.comment), None)
    if comment is not None and len(comment) > MAX_COMMENT:
        comment = comment[: MAX_COMMENT - 1] + "…"
    kind: ReviewKind = "contradictory" if against else "negative"
    if any(opinion.conflicts_with is not None for opinion in newest):
        kind = "conflict"
    item = to_model(
        ReviewItem,
        row,
        item_id=row.id,
        kind=kind,
        question=None if subject is None else subject.question,
        positive=len(against),
        comment=comment,
    )
    return LoadedItem(row, item, newest, against, subject)


def find_opinion(space: ExecutionSpace, loaded: LoadedItem, event_id: str) -> Opinion | NewMember:
    """The active opinion with this id, of an item or contrary to it."""
    for opinion in (*loaded.newest, *loaded.against):
        if opinion.event_id == event_id and opinion.active:
            return opinion
    with space.workspace.read() as connection:
        row = tables.members_by_event(connection, loaded.row.project_id, [event_id]).get(event_id)
    if row is None or row.item_seq != loaded.row.seq:
        message, remedy = f"item {loaded.row.id} has no opinion {event_id!r}", "Use the event_id of one of its opinions"
        raise NotFound(message, field="event_id", value=event_id, remedy=remedy)
    if not row.active:
        raise already_retracted(event_id)
    return NewMember(row.event_id, row.target_type, row.target_id, row.at)


def already_retracted(event_id: str) -> Conflict:
    return Conflict(
        f"opinion {event_id} was already retracted", field="event_id", value=event_id, remedy="Read the item again"
    )
