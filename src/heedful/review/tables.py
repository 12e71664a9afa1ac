"""The tables of the review queue: items, their opinions and actions, and how far the ledger was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from heedful.clock import new_id
from heedful.ledger import events as ledger
from heedful.ledger.events import CONFLICT, FEEDBACK, IMPROVE, RETRACTION, REVIEW, SIGNAL, Event, is_retracted
from heedful.model import FeedbackTarget, Metadata
from heedful.storage.rows import AnyRow, batches, select_in
from heedful.storage.schema import (
    changes,
    datasets,
    events,
    facts,
    notes,
    projects,
    queries,
    review_items,
    review_members,
    review_notes,
    tallies,
    watermarks,
)

Place = tuple[int, int, int]
"""The position of an item in the list: its opinions, the time of the newest, and its number."""

SESSION_TARGETS: tuple[FeedbackTarget, ...] = ("session", "entry")
"""Targets of opinions that are deleted with their session."""


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item about to be stored."""

    target_type: str
    dataset: str | None
    digest: bytes
    vector: bytes | None
    at: int
    id: str = field(default_factory=new_id)


def get_item(connection: Connection, project: int, item_id: str) -> AnyRow | None:
    return connection.execute(
        select(review_items).where(review_items.c.project_id == project, review_items.c.id == item_id)
    ).first()


def list_items(
    connection: Connection, project: int, filters: Mapping[str, str | None], after: Place | None, limit: int
) -> list[AnyRow]:
    """Those with the most opinions first, then the newest. An item is open only while an opinion of it is active."""
    order = (review_items.c.opinions, review_items.c.last_at, review_items.c.seq)
    conditions: list[ColumnElement[bool]] = [review_items.c.project_id == project]
    conditions += [review_items.c[name] == value for name, value in filters.items() if value is not None]
    if filters["status"] == "open":
        conditions.append(review_items.c.opinions > 0)
    if after is not None:
        conditions.append(tuple_(*order) < after)
    statement = select(review_items).where(*conditions).order_by(*(column.desc() for column in order))
    return list(connection.execute(statement.limit(limit)))


def items_by_seq(connection: Connection, seqs: Iterable[int]) -> dict[int, AnyRow]:
    rows = select_in(connection, select(review_items), review_items.c.seq, sorted(set(seqs)))
    return {row.seq: row for row in rows}


def items_by_digest(connection: Connection, project: int, digests: Iterable[bytes]) -> dict[bytes, int]:
    """The numbers of existing items, by digest."""
    statement = select(review_items.c.digest, review_items.c.seq).where(review_items.c.project_id == project)
    rows = select_in(connection, statement, review_items.c.digest, sorted(set(digests)))
    return {row.digest: row.seq for row in rows}


def open_vectors(
    connection: Connection, project: int, target_type: str, dataset: str | None, model: int, limit: int
) -> list[tuple[int, bytes]]:
    """The questions of the newest open items, as (number, vector)."""
    rows = connection.execute(
        select(review_items.c.seq, review_items.c.vector)
        .where(
            review_items.c.project_id == project,
            review_items.c.status == "open",
            review_items.c.target_type == target_type,
            review_items.c.dataset.is_not_distinct_from(dataset),
            review_items.c.model_id == model,
            review_items.c.opinions > 0,
        )
        .order_by(review_items.c.seq.desc())
        .limit(limit)
    )
    return [(row.seq, row.vector) for row in rows]


def add_items(connection: Connection, project: int, new: Sequence[NewItem], model: int | None) -> dict[bytes, int]:
    """Stores items that are open and have no opinions yet; returns their numbers, by digest."""
    empty = {"project_id": project, "status": "open", "assignee": None, "opinions": 0}
    rows = []
    for item in new:
        values = asdict(item)
        at = values.pop("at")
        model_id = None if item.vector is None else model
        rows.append({**values, **empty, "model_id": model_id, "opened_at": at, "last_at": at, "changed_at": at})
    if rows:
        connection.execute(insert(review_items), rows)
    return items_by_digest(connection, project, [item.digest for item in new])


class Fold(NamedTuple):
    seq: int
    status: str
    assignee: str | None
    opinions: int
    last_at: int


_FOLD = (
    update(review_items)
    .where(review_items.c.seq == bindparam("item"))
    .values({name: bindparam(name) for name in Fold._fields if name != "seq"})
)


def set_folds(connection: Connection, folds: Sequence[Fold]) -> None:
    if folds:
        rows = [fold._asdict() for fold in folds]
        connection.execute(_FOLD, [{"item": row.pop("seq"), **row} for row in rows])


def touch_item(connection: Connection, seq: int, at: int) -> None:
    connection.execute(update(review_items).where(review_items.c.seq == seq).values(changed_at=at))


def remove_items(connection: Connection, seqs: Sequence[int]) -> None:
    """Removes items with their opinions and notes."""
    for run in batches(seqs):
        for table in (review_members, review_notes):
            connection.execute(delete(table).where(table.c.item_seq.in_(run)))
        connection.execute(delete(review_items).where(review_items.c.seq.in_(run)))


class NewMember(NamedTuple):
    event_id: str
    target_type: str
    target_id: str
    at: int


class ActiveCounts(NamedTuple):
    """How many of an item's opinions are active."""

    members: int
    opinions: int
    last_at: int | None


def items_of_targets(connection: Connection, project: int, targets: Iterable[str]) -> dict[tuple[str, str], int]:
    """The items that have an opinion about one of these targets, by type and id of the target."""
    columns = (review_members.c.target_type, review_members.c.target_id, review_members.c.item_seq)
    statement = select(*columns).where(review_members.c.project_id == project)
    rows = select_in(connection, statement, review_members.c.target_id, sorted(set(targets)))
    return {(row.target_type, row.target_id): row.item_seq for row in rows}


def add_members(connection: Connection, project: int, new: Sequence[tuple[NewMember, int]]) -> None:
    """Adds active opinions, each with the number of its item."""
    if new:
        rows = [{**member._asdict(), "item_seq": seq, "project_id": project, "active": 1} for member, seq in new]
        connection.execute(insert(review_members), rows)


def members_by_event(connection: Connection, project: int, event_ids: Iterable[str]) -> dict[str, AnyRow]:
    """The opinions of items with these events, by event."""
    statement = select(review_members).where(review_members.c.project_id == project)
    rows = select_in(connection, statement, review_members.c.event_id, sorted(set(event_ids)))
    return {row.event_id: row for row in rows}


def mark_members(connection: Connection, event_ids: Sequence[str], *, active: bool) -> None:
    for run in batches(event_ids):
        statement = update(review_members).where(review_members.c.event_id.in_(run))
        connection.execute(statement.values(active=int(active)))


def remove_members(connection: Connection, event_ids: Sequence[str]) -> None:
    for run in batches(event_ids):
        connection.execute(delete(review_members).where(review_members.c.event_id.in_(run)))


def active_counts(connection: Connection, seqs: Iterable[int]) -> dict[int, ActiveCounts]:
    """Counts of active opinions, by item."""
    statement = select(
        review_members.c.item_seq,
        func.count().label("members"),
        func.sum(review_members.c.active).label("opinions"),
        func.max(review_members.c.at).filter(review_members.c.active == 1).label("last_at"),
    ).group_by(review_members.c.item_seq)
    counts = {
        row.item_seq: ActiveCounts(int(row.members), int(row.opinions), row.last_at)
        for row in select_in(connection, statement, review_members.c.item_seq, sorted(set(seqs)))
    }
    return {seq: counts.get(seq, ActiveCounts(0, 0, None)) for seq in seqs}


def newest_members(connection: Connection, seqs: Sequence[int], limit: int) -> dict[int, list[AnyRow]]:
    """Some opinions of each item: those that are active first, then the newest."""
    result: dict[int, list[AnyRow]] = {seq: [] for seq in seqs}
    rows = select_in(connection, _newest(*review_members.c, limit=limit), review_items.c.seq, seqs)
    for row in sorted(rows, key=lambda row: (row.active, row.at, row.event_id), reverse=True):
        result[row.item_seq].append(row)
    return result


def newest_targets(connection: Connection, seqs: Sequence[int], limit: int) -> list[AnyRow]:
    """The targets of the newest opinions of each item, as (item_seq, target_type, target_id)."""
    columns = (review_members.c.item_seq, review_members.c.target_type, review_members.c.target_id)
    return list(select_in(connection, _newest(*columns, limit=limit).distinct(), review_items.c.seq, seqs))


def _newest(*columns: ColumnElement[Any], limit: int) -> Select[Any]:
    """Some opinions of each item, reading no more rows than needed."""
    same_item = review_members.alias("ours")
    order = (same_item.c.active.desc(), same_item.c.at.desc(), same_item.c.event_id.desc())
    chosen = (
        select(same_item.c.event_id).where(same_item.c.item_seq == review_items.c.seq).order_by(*order).limit(limit)
    )
    return (
        select(*columns)
        .select_from(review_items)
        .join(review_members, review_members.c.event_id.in_(chosen.correlate(review_items)))
    )


def first_between(connection: Connection, seq: int, after: int, before: int | None) -> AnyRow | None:
    """The first active opinion of an item after one time and not after another."""
    conditions = [review_members.c.item_seq == seq, review_members.c.active == 1, review_members.c.at > after]
    if before is not None:
        conditions.append(review_members.c.at <= before)
    order = (review_members.c.at, review_members.c.event_id)
    return connection.execute(select(review_members).where(*conditions).order_by(*order).limit(1)).first()


def session_members(connection: Connection, project: int, *, active: bool) -> list[str]:
    of_sessions = review_members.c.target_type.in_(SESSION_TARGETS)
    return _members(connection, project, of_sessions, review_members.c.active == int(active))


def has_facts(connection: Connection, project: int) -> bool:
    """Whether any opinion is about a fact."""
    return bool(_members(connection, project, review_members.c.target_type == "fact", limit=1))


def orphaned_members(connection: Connection, project: int) -> list[str]:
    """The opinions about deleted facts."""
    is_deleted = ~exists().where(facts.c.id == review_members.c.target_id)
    return _members(connection, project, review_members.c.target_type == "fact", is_deleted)


def _members(
    connection: Connection, project: int, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[str]:
    statement = select(review_members.c.event_id).where(review_members.c.project_id == project, *conditions)
    return list(connection.execute(statement.limit(limit)).scalars())


def conflicts(connection: Connection, project: int) -> list[AnyRow]:
    """The members that are conflicts between facts: event, item, whether it is active, and (`body`, `fact_id`) what
    conflicts with what."""
    columns = (review_members.c.event_id, review_members.c.item_seq, review_members.c.active)
    return list(
        connection.execute(
            select(*columns, events.c.target_id, events.c.body, is_retracted().label("retracted"))
            .join(events, events.c.id == review_members.c.event_id)
            .where(review_members.c.project_id == project, events.c.kind == CONFLICT)
        )
    )


def add_action(
    connection: Connection, item: AnyRow, action: str, author: str | None, at: int, body: Metadata, note: str | None
) -> str:
    """Appends the event of an action, with ids but without text, and stores its note; returns the id of the event."""
    event = Event(
        project_id=item.project_id,
        kind=REVIEW,
        target_type="review_item",
        target_id=item.id,
        source="review",
        at=at,
        recorded_at=at,
        author=author,
        value=action,
        body=body,
    )
    ledger.append(connection, [event])
    if note is not None:
        row = {"event_id": event.id, "item_seq": item.seq, "project_id": item.project_id, "text": note}
        connection.execute(insert(review_notes).values(**row))
    return event.id


_ACTIONS = select(events, is_retracted().label("retracted"))


def actions_of_items(connection: Connection, item_ids: Sequence[str]) -> dict[str, list[AnyRow]]:
    """The actions on items, in order, by item; `retracted` says whether they were undone."""
    result: dict[str, list[AnyRow]] = {item_id: [] for item_id in item_ids}
    statement = _ACTIONS.where(events.c.kind == REVIEW)
    for row in select_in(connection, statement.order_by(events.c.seq), events.c.target_id, item_ids):
        result[row.target_id].append(row)
    return result


def get_action(connection: Connection, project: int, event_id: str) -> AnyRow:
    """An action, which must exist."""
    return connection.execute(_ACTIONS.where(events.c.project_id == project, events.c.id == event_id)).one()


def notes_of(connection: Connection, project: int, event_ids: Sequence[str]) -> dict[str, str]:
    statement = select(review_notes).where(review_notes.c.project_id == project)
    return {row.event_id: row.text for row in select_in(connection, statement, review_notes.c.event_id, event_ids)}


def signals(connection: Connection, event_ids: Sequence[str]) -> list[AnyRow]:
    """These signals, if their facts exist."""
    return list(select_in(connection, _signals(), events.c.id, event_ids))


def helpful_signals(connection: Connection, fact_ids: Sequence[str]) -> list[AnyRow]:
    """The active helpful signals about these facts."""
    is_helpful = (events.c.kind == SIGNAL, events.c.value == "helpful", events.c.source != IMPROVE, ~is_retracted())
    statement = _signals().where(*is_helpful)
    return list(select_in(connection, statement, events.c.target_id, fact_ids))


def _signals() -> Select[Any]:
    columns = (queries.c.text.label("question"), datasets.c.name.label("dataset"), notes.c.text.label("note"))
    return (
        select(events, *columns, is_retracted().label("retracted"))
        .join(facts, facts.c.id == events.c.target_id)
        .join(datasets, datasets.c.id == facts.c.dataset_id)
        .outerjoin(queries, queries.c.id == events.c.query_id)
        .outerjoin(notes, notes.c.event_id == events.c.id)
    )


# How far the queue has read the ledger.

EVENTS, FACTS = "review", "review_facts"  # The watermarks: the last event and the last change of facts that were read.

PARTITION_PREFIX, FULL_COMPARISON = "review_partition_", "review_full_comparison"
"""The watermarks of sessions in another database: each partition's position, and the last full comparison."""

NEGATIVE = ("down", "1", "2")  # The values of a negative opinion's event: a rating, or a score.
MAX_BACKLOG = 5_000  # With more new opinions than this, a worker updates the queue.


def get_watermark(connection: Connection, project: int, name: str) -> int:
    statement = select(watermarks.c.seq).where(*_of_queue(project), watermarks.c.name == name)
    return connection.execute(statement).scalar() or 0


def set_watermark(connection: Connection, project: int, name: str, seq: int) -> None:
    connection.execute(delete(watermarks).where(*_of_queue(project), watermarks.c.name == name))
    connection.execute(insert(watermarks).values(project_id=project, key="", name=name, seq=seq))


def get_partitions(connection: Connection, project: int) -> dict[int, int]:
    """The positions that were read last, by partition."""
    rows = connection.execute(select(watermarks.c.name, watermarks.c.seq).where(*_of_queue(project), _IS_PARTITION))
    return {int(row.name.removeprefix(PARTITION_PREFIX)): int(row.seq) for row in rows}


def set_partitions(connection: Connection, project: int, positions: dict[int, int]) -> None:
    """Replaces all positions."""
    connection.execute(delete(watermarks).where(*_of_queue(project), _IS_PARTITION))
    for partition, position in positions.items():
        set_watermark(connection, project, f"{PARTITION_PREFIX}{partition}", position)


_IS_PARTITION = watermarks.c.name.startswith(PARTITION_PREFIX, autoescape=True)


def _of_queue(project: int) -> tuple[ColumnElement[bool], ...]:
    return watermarks.c.project_id == project, watermarks.c.key == ""


def events_after(connection: Connection, seq: int, limit: int) -> list[AnyRow]:
    """Negative opinions and conflicts of a project after an event, and retractions of known ones, in order."""
    is_member = exists().where(review_members.c.event_id == events.c.target_id)
    negative_feedback = and_(events.c.kind == FEEDBACK, events.c.value.in_(NEGATIVE))
    negative_signal = and_(
        events.c.kind == SIGNAL, events.c.value == "not_helpful", events.c.source != IMPROVE, ~is_retracted()
    )
    conflict = and_(events.c.kind == CONFLICT, ~is_retracted())
    retraction = and_(events.c.kind == RETRACTION, is_member)
    statement = (
        select(events.c.seq, events.c.id, events.c.kind, events.c.target_type, events.c.target_id, events.c.at)
        .where(
            events.c.seq > seq,
            or_(negative_feedback, negative_signal, conflict, retraction),
        )
        .order_by(events.c.seq)
        .limit(limit)
    )
    return list(connection.execute(statement))


def newest_event(connection: Connection) -> int:
    """The number of the newest event of all projects."""
    return int(connection.execute(select(func.max(events.c.seq))).scalar() or 0)


def newest_change(connection: Connection) -> int:
    return int(connection.execute(select(func.max(changes.c.seq))).scalar() or 0)


def compared_since(connection: Connection, moment: int) -> set[str]:
    """The projects whose sessions in another database were compared since a time."""
    rows = connection.execute(
        select(projects.c.name)
        .join(watermarks, watermarks.c.project_id == projects.c.id)
        .where(watermarks.c.key == "", watermarks.c.name == FULL_COMPARISON, watermarks.c.seq > moment)
    )
    return set(rows.scalars())


def due_projects(connection: Connection) -> list[str]:
    """The projects with many negative opinions and many unread events."""
    end = newest_event(connection)
    rows = connection.execute(
        select(projects.c.name, projects.c.id)
        .join(tallies, tallies.c.project_id == projects.c.id)
        .where(tallies.c.key == "")
        .group_by(projects.c.name, projects.c.id)
        .having(func.sum(tallies.c.down) > MAX_BACKLOG)
        .order_by(projects.c.id)
    )
    return [name for name, number in rows if end - get_watermark(connection, number, EVENTS) > MAX_BACKLOG]
