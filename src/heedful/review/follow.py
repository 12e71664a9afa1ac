"""Brings the review queue up to date: finds the items of new opinions, in batches that keep no writer waiting long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from time import monotonic

import numpy as np
from sqlalchemy import Connection

from heedful.clock import DAY
from heedful.ledger.contexts import SLACK
from heedful.ledger.events import RETRACTION
from heedful.review import tables
from heedful.review.items import Opinion, Subject, find_subjects, read_opinions, refold
from heedful.review.tables import SESSION_TARGETS, NewItem, NewMember
from heedful.search.vector_index import VectorIndex
from heedful.sessions.session_store import Change, RemoteTransaction, Transaction
from heedful.sql.space import NO_PROJECT, ExecutionSpace
from heedful.storage import facts
from heedful.storage.rows import AnyRow, batches
from heedful.storage.vectors import Vectors, pack, unpack
from heedful.text.same_question import SAME_NEED, similarity

BATCH_SIZE = 2_000  # Opinions per transaction.
MAX_SKIPPED = 10_000  # How many irrelevant events are read again each time before the watermark skips them.

FULL_COMPARISON_INTERVAL = DAY
"""How often all opinions in another database are compared with the known ones. Reads all of them."""

CATCH_UP_SECONDS = 3.0  # How long a reader of the queue waits for updates; a worker does the rest.


def follow(space: ExecutionSpace) -> None:
    """Brings the queue up to date, however long that takes; does nothing on a read-only store."""
    _follow(space, lambda: True)
    if not space.workspace.database.read_only and space.sessions.store.remote:
        with space.workspace.read() as connection:
            compared_at = tables.get_watermark(connection, space.project(connection), tables.FULL_COMPARISON)
        if not compared_at <= space.now() < compared_at + FULL_COMPARISON_INTERVAL:
            _compare_all(space)


def catch_up(space: ExecutionSpace) -> None:
    """The same within a time limit, for a caller who waits."""
    until = monotonic() + CATCH_UP_SECONDS
    _follow(space, lambda: monotonic() < until)


def _follow(space: ExecutionSpace, go_on: Callable[[], bool]) -> None:
    if space.workspace.database.read_only:
        return
    changed = False
    while _follow_ledger(space):
        changed = True
        if not go_on():
            break
    if space.sessions.store.remote:
        changed = _follow_sessions(space, go_on) or changed
    _prune(space, changed)


def _follow_ledger(space: ExecutionSpace) -> bool:
    """Handles the next batch of events; False if there are none."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        start = tables.get_watermark(connection, project, tables.EVENTS)
        rows = tables.events_after(connection, start, BATCH_SIZE)
        newest = tables.newest_event(connection)
        existing = tables.members_by_event(
            connection, project, [row.target_id for row in rows if row.kind == RETRACTION]
        )
    if not rows:
        if newest - start > MAX_SKIPPED and project != NO_PROJECT:
            # Past irrelevant events, while no other writer is active.
            with space.workspace.write() as connection:
                current = tables.get_watermark(connection, project, tables.EVENTS)
                if current == start and not tables.events_after(connection, start, 1):
                    tables.set_watermark(connection, project, tables.EVENTS, tables.newest_event(connection))
        return False
    new_members = [NewMember(row.id, row.target_type, row.target_id, row.at) for row in rows if row.kind != RETRACTION]
    _apply_changes(space, tables.EVENTS, start, rows[-1].seq, new_members, list(existing.values()))
    return True


def _apply_changes(
    space: ExecutionSpace,
    watermark: str,
    start: int,
    end: int,
    new_members: Sequence[NewMember],
    retracted: Sequence[AnyRow],
) -> None:
    """Adds and retracts opinions, and moves a watermark; does nothing if another process was faster."""
    of_sessions = [row.event_id for row in retracted if row.target_type in SESSION_TARGETS]
    deleted = set(of_sessions) - _active_by_id(space, of_sessions).keys()
    places = _place_opinions(space, _active_negatives(space, new_members))
    with space.workspace.write() as connection:
        project = space.own_project(connection)
        if tables.get_watermark(connection, project, watermark) == start and _all_exist(connection, places):
            changed_items = _add_members(space, connection, project, places)
            changed_items |= _retract_members(connection, retracted, deleted)
            refold(connection, changed_items)
            tables.set_watermark(connection, project, watermark, end)


def _prune(space: ExecutionSpace, followed: bool) -> None:
    """Removes opinions about deleted facts and sessions, and closes conflicts with facts that are recalled no more."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        changed = tables.newest_change(connection) != tables.get_watermark(connection, project, tables.FACTS)
        changed = changed and tables.has_facts(connection, project)
        retracted = tables.session_members(connection, project, active=False) if followed else []
        orphaned = tables.orphaned_members(connection, project) if changed else []
    deleted = sorted(set(retracted) - _active_by_id(space, retracted).keys())
    for run in batches([*deleted, *orphaned], BATCH_SIZE):
        with space.workspace.write() as connection:
            refold(connection, _removed(connection, project, run))
    if changed:
        with space.workspace.write() as connection:
            # Under the lock, nobody can forget a fact meanwhile.
            touched = _removed(connection, project, tables.orphaned_members(connection, project))
            touched |= _update_conflicts(connection, project, space.now())
            refold(connection, touched)
            tables.set_watermark(connection, project, tables.FACTS, tables.newest_change(connection))


def _removed(connection: Connection, project: int, event_ids: Sequence[str]) -> set[int]:
    """Removes opinions; returns the numbers of their items."""
    removed = tables.members_by_event(connection, project, event_ids)
    tables.remove_members(connection, event_ids)
    return {row.item_seq for row in removed.values()}


def _follow_sessions(space: ExecutionSpace, go_on: Callable[[], bool]) -> bool:
    """Handles new opinions and retractions; False if there are none."""
    newest: dict[int, int] = space.sessions.store.read(lambda tx: tx.changes.newest())
    with space.workspace.read() as connection:
        project = space.project(connection)
        positions = tables.get_partitions(connection, project)
    if any(newest.get(partition, 0) < position for partition, position in positions.items()):
        # The database was restored from a backup: read everything again, and let a worker compare all.
        with space.workspace.write() as connection:
            tables.set_partitions(connection, project, {})
            tables.set_watermark(connection, project, tables.FULL_COMPARISON, 0)
        positions = {}
    changed = False
    for partition, position in newest.items():
        while position > positions.get(partition, 0) and _follow_partition(space, partition):
            changed = True
            if not go_on():
                return True
    return changed


def _follow_partition(space: ExecutionSpace, partition: int) -> bool:
    """Handles the next batch of changes of a partition; False if there are none."""
    name = f"{tables.PARTITION_PREFIX}{partition}"
    with space.workspace.read() as connection:
        project = space.project(connection)
        start = tables.get_watermark(connection, project, name)

    def read(tx: RemoteTransaction) -> list[Change]:
        return tx.changes.changes_after(partition, start, BATCH_SIZE)

    changes = space.sessions.store.read(read)
    if not changes:
        return False
    retracted_ids = {change.feedback_id for change in changes if not change.added}
    with space.workspace.read() as connection:
        retracted = list(tables.members_by_event(connection, project, retracted_ids).values())
    new_members = _new_members([change.feedback_id for change in changes], retracted_ids)
    _apply_changes(space, name, start, changes[-1].place, new_members, retracted)
    return True


def _compare_all(space: ExecutionSpace) -> None:
    """Compares all active opinions with the known ones."""
    # Read first: later changes have higher positions, and are handled afterwards.
    positions: dict[int, int] = space.sessions.store.read(lambda tx: tx.changes.positions())
    active: set[str] = set()
    changed = False

    def read(tx: Transaction) -> list[str]:
        return tx.feedbacks.negatives(max(active, default=None), BATCH_SIZE)

    while ids := space.sessions.store.read(read):
        active.update(ids)
        with space.workspace.read() as connection:
            existing = tables.members_by_event(connection, space.project(connection), ids)
        changed = _join(space, [event_id for event_id in ids if event_id not in existing]) or changed
    with space.workspace.read() as connection:
        project = space.project(connection)
        missing = [
            event_id for event_id in tables.session_members(connection, project, active=True) if event_id not in active
        ]
        rows = tables.members_by_event(connection, project, missing)
    # Some may have been added after their batch was read.
    still_known = _active_by_id(space, list(rows))
    retracted = [row for event_id, row in rows.items() if not still_known.get(event_id)]
    if project != NO_PROJECT or changed:
        with space.workspace.write() as connection:
            project = space.own_project(connection)
            deleted = {row.event_id for row in retracted if row.event_id not in still_known}
            refold(connection, _retract_members(connection, retracted, deleted))
            tables.set_partitions(connection, project, positions)
            tables.set_watermark(connection, project, tables.FULL_COMPARISON, space.now())


def _join(space: ExecutionSpace, ids: Sequence[str]) -> bool:
    """Adds opinions of sessions by their ids."""
    if not ids:
        return False
    while True:
        places = _place_opinions(space, _active_negatives(space, _new_members(ids)))
        with space.workspace.write() as connection:
            project = space.own_project(connection)
            if _all_exist(connection, places):
                refold(connection, _add_members(space, connection, project, places))
                return True


def _new_members(ids: Sequence[str], without: AbstractSet[str] = frozenset()) -> list[NewMember]:
    # The id alone identifies an opinion of either kind.
    return [NewMember(event_id, kind, "", 0) for event_id in ids if event_id not in without for kind in SESSION_TARGETS]


# The items of opinions.

MAX_NEAREST = 5  # How many of the nearest open items are compared in full.
MAX_OPEN_ITEMS = 5_000  # How many open items of a dataset are compared at all, the newest; keeps a long queue fast.
Item = int | NewItem  # The number of an existing item, or a new one.


Placed = tuple[NewMember, Item]  # An opinion with its item.


class _OpenQuestions:
    """The questions of open items of one dataset."""

    def __init__(self, open_items: Sequence[tuple[int, bytes]], dimensions: int) -> None:
        self.items: list[Item] = [seq for seq, _ in open_items]
        self._vectors = VectorIndex(unpack([blob for _, blob in open_items], dimensions))
        self.texts: dict[int, str] = {}
        """The questions of items that are near to some opinion, by index."""

    def add(self, item: NewItem, question: str, vector: Vectors) -> None:
        self.texts[len(self.items)] = question
        self.items.append(item)
        self._vectors.append(vector[None])

    def near(self, vector: Vectors, threshold: float) -> dict[int, float]:
        """The cosines of the nearest items above the threshold, by index."""
        if not self.items:
            return {}
        indexes, cosines = self._vectors.nearest(vector, MAX_NEAREST, np.ones(len(self.items), bool))
        return {
            index: cosine
            for index, cosine in zip(indexes.tolist(), cosines.tolist(), strict=True)
            if cosine >= threshold
        }


def _place_opinions(space: ExecutionSpace, opinions: Sequence[Opinion]) -> list[Placed]:
    """Assigns each opinion that has a subject to an item, in order."""
    subjects = find_subjects(space, opinions)
    with_subject = [opinion for opinion in opinions if opinion.event_id in subjects]
    with space.workspace.read() as connection:
        project = space.project(connection)
        of_target: dict[tuple[str, str], Item] = dict(
            tables.items_of_targets(connection, project, [opinion.target_id for opinion in with_subject])
        )
        of_digest: dict[bytes, Item] = dict(
            tables.items_by_digest(connection, project, [subjects[opinion.event_id].digest for opinion in with_subject])
        )
    about_entries = [opinion for opinion in with_subject if opinion.target_type == "entry"]
    unknown = [subjects[opinion.event_id] for opinion in about_entries if opinion.target not in of_target]
    unknown = [subject for subject in unknown if subject.digest not in of_digest]
    questions = {subject.digest: subject.question or "" for subject in unknown}
    embedded = space.workspace.embed(list(questions.values())) if questions else ()
    vectors = dict(zip(questions, embedded, strict=True))
    open_questions = _open_questions(space, unknown, vectors)
    placed = []
    for opinion in with_subject:
        subject = subjects[opinion.event_id]
        item = of_target.get(opinion.target) or of_digest.get(subject.digest)
        vector = vectors.get(subject.digest)
        if item is None and vector is not None:
            item = _nearest_item(space, open_questions[subject.dataset], subject, vector)
        if item is None:
            blob = None if vector is None else pack(vector)
            item = NewItem(opinion.target_type, subject.dataset, subject.digest, blob, opinion.at)
            if vector is not None and subject.question is not None:
                open_questions[subject.dataset].add(item, subject.question, vector)
        of_target[opinion.target] = of_digest[subject.digest] = item
        placed.append((NewMember(opinion.event_id, opinion.target_type, opinion.target_id, opinion.at), item))
    return placed


def _open_questions(
    space: ExecutionSpace, unknown: Sequence[Subject], vectors: dict[bytes, Vectors]
) -> dict[str | None, _OpenQuestions]:
    """The open questions of these subjects' datasets, with the texts of those that are near."""
    result: dict[str | None, _OpenQuestions] = {}
    place_of: dict[int, tuple[str | None, int]] = {}
    with space.workspace.read() as connection:
        project, model = space.project(connection), space.workspace.model(connection)
        for dataset in {subject.dataset for subject in unknown}:
            rows = []
            if model is not None:
                rows = tables.open_vectors(connection, project, "entry", dataset, model.id, MAX_OPEN_ITEMS)
            result[dataset] = _OpenQuestions(rows, space.workspace.embedder.dimensions)
        for subject in unknown:
            for index in result[subject.dataset].near(vectors[subject.digest], _min_cosine(space)):
                item = result[subject.dataset].items[index]
                assert isinstance(item, int)
                place_of[item] = subject.dataset, index
        newest = tables.newest_members(connection, sorted(place_of), 1)
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
    calibration, texts = space.workspace.embedder.calibration, open_questions.texts
    similarities = {
        index: similarity(subject.question or "", texts[index], cosine, calibration=calibration)
        for index, cosine in open_questions.near(vector, _min_cosine(space)).items()
        if index in texts
    }
    best = max(similarities, key=lambda index: similarities[index], default=None)
    return None if best is None or similarities[best] < SAME_NEED else open_questions.items[best]


def _min_cosine(space: ExecutionSpace) -> float:
    """Questions below this cosine are not compared in full."""
    return space.workspace.embedder.calibration.same - SLACK


def _active_negatives(space: ExecutionSpace, new_members: Sequence[NewMember]) -> list[Opinion]:
    """The active negative opinions whose text exists, in order."""
    opinions = read_opinions(space, new_members)
    in_order = [opinions.get(event_id) for event_id in dict.fromkeys(member.event_id for member in new_members)]
    return [opinion for opinion in in_order if opinion is not None and opinion.active and not opinion.positive]


def _active_by_id(space: ExecutionSpace, ids: Sequence[str]) -> dict[str, bool]:
    """The opinions about sessions and entries whose text exists, and whether they are active."""

    def read(run: Sequence[str], tx: Transaction) -> list[tuple[str, bool]]:
        return [(row.id, row.active) for row in tx.feedbacks.by_event_ids(run)]

    runs = [space.sessions.store.read(partial(read, run)) for run in batches(ids, BATCH_SIZE)]
    return {event_id: active for rows in runs for event_id, active in rows}


def _all_exist(connection: Connection, places: Sequence[Placed]) -> bool:
    expected = {item for _, item in places if isinstance(item, int)}
    return expected == set(tables.items_by_seq(connection, expected))


def _add_members(space: ExecutionSpace, connection: Connection, project: int, places: Sequence[Placed]) -> set[int]:
    """Adds opinions to their items, creating new ones; returns the numbers of the items."""
    existing = tables.members_by_event(connection, project, [member.event_id for member, _ in places])
    new = [(member, item) for member, item in places if member.event_id not in existing]
    new_items = {item.digest: item for _, item in new if isinstance(item, NewItem)}
    numbers = tables.items_by_digest(connection, project, new_items)
    missing = [item for digest, item in new_items.items() if digest not in numbers]
    vector = next((item.vector for item in missing if item.vector is not None), None)
    numbers |= tables.add_items(connection, project, missing, space.embedded(connection, vector))
    joined = [(member, item if isinstance(item, int) else numbers[item.digest]) for member, item in new]
    tables.add_members(connection, project, joined)
    return {seq for _, seq in joined}


def _retract_members(connection: Connection, retracted: Sequence[AnyRow], deleted: set[str]) -> set[int]:
    """Marks opinions as retracted, and removes the deleted ones; returns the numbers of the items."""
    tables.mark_members(connection, [row.event_id for row in retracted if row.event_id not in deleted], active=False)
    tables.remove_members(connection, sorted(deleted))
    return {row.item_seq for row in retracted}


def _update_conflicts(connection: Connection, project: int, now: int) -> set[int]:
    """A conflict is active while both facts can be recalled; returns the numbers of the items that changed."""
    rows = [row for row in tables.conflicts(connection, project) if not row.retracted]
    fact_ids = sorted({fact_id for row in rows for fact_id in (row.target_id, row.body["fact_id"])})
    recallable = facts.texts(connection, fact_ids, current=True, at=now)
    wanted = {row.event_id: row.target_id in recallable and row.body["fact_id"] in recallable for row in rows}
    changed = [row for row in rows if bool(row.active) != wanted[row.event_id]]
    for active in (False, True):
        event_ids = [row.event_id for row in changed if wanted[row.event_id] == active]
        tables.mark_members(connection, event_ids, active=active)
    return {row.item_seq for row in changed}
