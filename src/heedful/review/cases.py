"""An item in detail: the answer, its evidence, its opinions and its history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.clock import from_stored
from heedful.model import Fix, ReviewCase, ReviewEvent, ReviewEvidence, ReviewItem, ReviewKind
from heedful.review import items
from heedful.review.items import CLOSES, Opinion, Subject, find_subjects
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, receipts
from heedful.storage.executions import runs
from heedful.storage.review import actions, members
from heedful.storage.rows import AnyRow

MAX_OPINIONS = 100
"""How many opinions of each kind are shown."""


def case(space: ExecutionSpace, loaded: LoadedItem) -> ReviewCase:
    """An item with its evidence, its opinions and its history."""
    subject = loaded.subject
    entry, run, turn = (None, None, None) if subject is None else (subject.entry, subject.run, subject.turn)
    shown = evidence(space, loaded)
    execution_id = None if run is None else run.id
    with space.workspace.read() as connection:
        project = space.project(connection)
        if turn is not None:
            execution_id = next((row.id for row in runs.of_message(connection, project, turn.message_id)), None)
    active = [opinion for opinion in loaded.newest if opinion.active] if loaded.row.opinions else []
    against = sorted(loaded.against, key=lambda opinion: opinion.at, reverse=True)[:MAX_OPINIONS]
    return ReviewCase(
        item=loaded.item,
        answer=None if entry is None else entry.answer,
        sql_query=run.sql_query if run is not None else turn.sql if turn is not None else None,
        execution_id=execution_id,
        recall_id=_recall_of(loaded),
        evidence=shown,
        opinions=[
            opinion.shown() for opinion in sorted([*active, *against], key=lambda opinion: opinion.at, reverse=True)
        ],
        history=history(space, loaded.row),
        fixes=_available_fixes(loaded, shown, execution_id),
    )


def evidence(space: ExecutionSpace, loaded: LoadedItem) -> list[ReviewEvidence]:
    """The facts behind the newest answer: those that were shown, best first, and then others that it used; or the fact
    itself that an opinion is about, and those that conflict with it."""
    entry = None if loaded.subject is None else loaded.subject.entry
    recall_id = _recall_of(loaded)
    with space.workspace.read() as connection:
        receipt = None if recall_id is None else receipts.get(connection, space.workspace.project, recall_id)
        lines = {} if receipt is None else {line[0]: (rank, *line[1:4]) for rank, line in enumerate(receipt.shown, 1)}
        shares = {} if entry is None else {fact_id: share for fact_id, share, _ in entry.used or ()}
        fact_ids = list(dict.fromkeys([*lines, *shares]))
        if loaded.row.target_type == "fact":
            others = [opinion.conflicts_with for opinion in loaded.newest if opinion.conflicts_with is not None]
            fact_ids = [*(opinion.target_id for opinion in loaded.newest[:1]), *dict.fromkeys(others)]
        texts = facts.texts(connection, fact_ids)
        current = facts.texts(connection, fact_ids, current=True)
    nothing = (None, None, None, None)
    result = []
    for fact_id in fact_ids:
        rank, score, relevance, usefulness = lines.get(fact_id, nothing)
        result.append(
            ReviewEvidence(
                fact_id=fact_id,
                text=texts.get(fact_id),
                rank=rank,
                score=score,
                relevance=relevance,
                usefulness=usefulness,
                share=shares.get(fact_id),
                superseded=fact_id in texts and fact_id not in current,
            )
        )
    return result


def _recall_of(loaded: LoadedItem) -> str | None:
    if loaded.subject is not None and loaded.subject.entry is not None:
        return loaded.subject.entry.recall_id
    return loaded.newest[0].receipt_id if loaded.newest else None


def _available_fixes(loaded: LoadedItem, evidence: list[ReviewEvidence], execution_id: str | None) -> list[Fix]:
    fixes: list[Fix] = []
    if any(item.text is not None and not item.superseded for item in evidence):
        fixes.append("supersede")
    if loaded.row.opinions or loaded.against:
        fixes.append("retract")
    if loaded.row.target_type == "entry" and any(item.comment and not item.positive for item in loaded.newest):
        fixes.append("teach")
    if execution_id is not None:
        fixes += ["block", "promote"]
    if loaded.row.target_type in ("execution", "message"):
        fixes.append("add_example")
    return fixes


LATEST_OPINIONS = 10
"""How many opinions are searched for the newest comment."""

MAX_TARGETS = 1_000
"""How many of its newest opinions have their targets checked for contrary opinions."""

MAX_COMMENT = 200
"""Characters of a comment that are shown."""


@dataclass(frozen=True, slots=True)
class LoadedItem:
    """An item with its opinions and its subject."""

    row: AnyRow
    item: ReviewItem
    newest: list[Opinion]
    """The active ones, newest first; the retracted ones if none is active."""
    against: list[Opinion]
    subject: Subject | None


def load_items(space: ExecutionSpace, rows: Sequence[AnyRow], latest: int = LATEST_OPINIONS) -> list[LoadedItem]:
    """Items with their newest opinions, and with those that say the contrary."""
    if not rows:
        return []
    seqs = [row.seq for row in rows]
    with space.workspace.read() as connection:
        newest = members.newest(connection, seqs, latest)
        targets = members.targets(connection, seqs, MAX_TARGETS)
    opinions = items.read_opinions(space, [member for members in newest.values() for member in members])
    of_item = {seq: [opinions[row.event_id] for row in newest[seq] if row.event_id in opinions] for seq in seqs}
    subjects = find_subjects(space, [item_opinions[0] for item_opinions in of_item.values() if item_opinions])
    contrary: dict[tuple[str, str], list[Opinion]] = {}
    for opinion in items.read_positive(space, [(row.target_type, row.target_id) for row in targets]):
        contrary.setdefault(opinion.target, []).append(opinion)
    against: dict[int, list[Opinion]] = {seq: [] for seq in seqs}
    for row in targets:
        against[row.item_seq] += contrary.get((row.target_type, row.target_id), [])
    return [_load_item(row, of_item[row.seq], against[row.seq], subjects) for row in rows]


def _load_item(row: AnyRow, newest: list[Opinion], against: list[Opinion], subjects: dict[str, Subject]) -> LoadedItem:
    subject = subjects.get(newest[0].event_id) if newest else None
    comment = next((opinion.comment for opinion in newest if opinion.comment), None)
    item = ReviewItem(
        item_id=row.id,
        kind=_kind(newest, against),
        target_type=row.target_type,
        question=None if subject is None else subject.question,
        dataset=row.dataset,
        status=row.status,
        assignee=row.assignee,
        opinions=row.opinions,
        against=len(against),
        comment=None
        if comment is None
        else comment
        if len(comment) <= MAX_COMMENT
        else comment[: MAX_COMMENT - 1] + "…",
        opened_at=from_stored(row.opened_at),
        last_at=from_stored(row.last_at),
        changed_at=from_stored(row.changed_at),
    )
    return LoadedItem(row, item, newest, against, subject)


def _kind(newest: Sequence[Opinion], against: Sequence[Opinion]) -> ReviewKind:
    if any(opinion.conflicts_with is not None for opinion in newest):
        return "conflict"
    return "contradictory" if against else "negative"


def history(space: ExecutionSpace, item: AnyRow) -> list[ReviewEvent]:
    """The oldest first."""
    with space.workspace.read() as connection:
        rows = actions.of_items(connection, item.project_id, [item.id])[item.id]
        notes = actions.read(connection, item.project_id, [row.id for row in rows])
        opened = {
            index: member
            for index, after, before in _resolved(rows)
            if (member := members.first_between(connection, item.seq, after, before)) is not None
        }
    opinions = items.read_opinions(space, opened.values())
    history_events = [event(row, notes.get(row.id)) for row in rows]
    # From the last one on, so that earlier indexes stay valid.
    for index, member in sorted(opened.items(), reverse=True):
        opinion = opinions.get(member.event_id)
        line = _opened(member, None if opinion is None else opinion.author)
        later = (number for number in range(index + 1, len(history_events)) if history_events[number].at >= line.at)
        history_events.insert(next(later, len(history_events)), line)
    return history_events


def event(row: AnyRow, note: str | None) -> ReviewEvent:
    """An action as reviewers see it; `row` says whether it was undone."""
    return ReviewEvent(
        event_id=row.id,
        action=row.value,
        author=row.author,
        at=from_stored(row.at),
        note=note,
        details=row.body,
        undone=bool(row.retracted),
    )


def _resolved(rows: Sequence[AnyRow]) -> list[tuple[int, int, int | None]]:
    """When an item was resolved: the index of the event, its time, and the time of the next decision."""
    decisions = [
        (index, row)
        for index, row in enumerate(rows)
        if not row.retracted and (row.value in CLOSES or row.value == "reopen")
    ]
    until = [*(row.at for _, row in decisions[1:]), None]
    return [
        (index, row.at, before)
        for (index, row), before in zip(decisions, until, strict=False)
        if row.value == "resolve"
    ]


def _opened(member: AnyRow, author: str | None) -> ReviewEvent:
    return ReviewEvent(
        event_id=member.event_id,
        action="reopen",
        author=author,
        at=from_stored(member.at),
        note=None,
        details={"opinion": member.event_id},
        undone=False,
    )
