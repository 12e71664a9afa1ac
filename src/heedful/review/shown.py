"""Items as reviewers see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.clock import from_stored
from heedful.executions.space import ExecutionSpace
from heedful.model import ReviewItem
from heedful.review import opinions
from heedful.review.opinions import Opinion
from heedful.review.subjects import Subject, subjects
from heedful.storage.executions.opinions import TARGETS
from heedful.storage.review import members
from heedful.storage.rows import AnyRow

LATEST = 10
"""Opinions among which the newest comment is looked for."""

MOST_COMPARED = 1_000
"""Of how many of its newest opinions the targets are looked at, to find what says the contrary."""

SHORT = 200
"""Characters of a comment that are shown."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An item with what it is made of."""

    row: AnyRow
    item: ReviewItem
    newest: list[Opinion]
    """Those that stand, the newest first; of an item whose opinions were all taken back, those."""
    against: list[Opinion]
    subject: Subject | None


def seen(space: ExecutionSpace, rows: Sequence[AnyRow], latest: int = LATEST) -> list[Seen]:
    """Items with their newest opinions, and with those that say the contrary."""
    if not rows:
        return []
    seqs = [row.seq for row in rows]
    with space.workspace.read() as connection:
        newest = members.newest(connection, seqs, latest)
        targets = members.targets(connection, seqs, MOST_COMPARED)
    said = opinions.read(space, [each for members in newest.values() for each in members])
    of_item = {seq: [each for row in newest[seq] if (each := said.get(row.event_id) or _bare(row))] for seq in seqs}
    about = subjects(space, [found[0] for found in of_item.values() if found])
    contrary: dict[tuple[str, str], list[Opinion]] = {}
    for each in opinions.positive(space, [(row.target_type, row.target_id) for row in targets]):
        contrary.setdefault(each.target, []).append(each)
    against: dict[int, list[Opinion]] = {seq: [] for seq in seqs}
    for row in targets:
        against[row.item_seq] += contrary.get((row.target_type, row.target_id), [])
    return [_seen(row, of_item[row.seq], against[row.seq], about) for row in rows]


def _bare(row: AnyRow) -> Opinion | None:
    """An opinion about an execution or a message that was taken back, words and all: what it was about is known."""
    if row.target_type not in TARGETS:
        return None
    return Opinion(row.event_id, row.target_type, row.target_id, False, row.at, None, "verified", standing=False)


def _seen(row: AnyRow, newest: list[Opinion], against: list[Opinion], about: dict[str, Subject]) -> Seen:
    subject = about.get(newest[0].event_id) if newest else None
    comment = next((each.comment for each in newest if each.comment), None)
    item = ReviewItem(
        item_id=row.id,
        kind="contradictory" if against else "negative",
        target_type=row.target_type,
        question=None if subject is None else subject.question,
        dataset=row.dataset,
        status=row.status,
        assignee=row.assignee,
        opinions=row.opinions,
        against=len(against),
        comment=None if comment is None else comment if len(comment) <= SHORT else comment[: SHORT - 1] + "…",
        opened_at=from_stored(row.opened_at),
        last_at=from_stored(row.last_at),
        changed_at=from_stored(row.changed_at),
    )
    return Seen(row, item, newest, against, subject)
