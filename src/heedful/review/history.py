"""What happened to an item: what reviewers did, and the opinions that opened it again."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.clock import from_stored
from heedful.executions.space import ExecutionSpace
from heedful.model import ReviewEvent
from heedful.review import opinions
from heedful.review.fold import CLOSES
from heedful.storage.review import actions, members
from heedful.storage.review.actions import Note
from heedful.storage.rows import AnyRow


def history(space: ExecutionSpace, item: AnyRow) -> list[ReviewEvent]:
    """The oldest first."""
    with space.workspace.read() as connection:
        rows = actions.of_items(connection, item.project_id, [item.id])[item.id]
        notes = actions.read(connection, item.project_id, [row.id for row in rows])
        opened = {
            place: member
            for place, after, before in _resolved(rows)
            if (member := members.first_between(connection, item.seq, after, before)) is not None
        }
    said = opinions.read(space, opened.values())
    found = [event(row, notes.get(row.id, Note())) for row in rows]
    # From the last one on, so that the places of the others stay.
    for place, member in sorted(opened.items(), reverse=True):
        opinion = said.get(member.event_id)
        line = _opened(member, None if opinion is None else opinion.author)
        later = (number for number in range(place + 1, len(found)) if found[number].at >= line.at)
        found.insert(next(later, len(found)), line)
    return found


def event(row: AnyRow, note: Note) -> ReviewEvent:
    """Something that was done, as reviewers see it; `row` says whether it was retracted."""
    return ReviewEvent(
        event_id=row.id,
        action=row.value,
        author=row.author,
        at=from_stored(row.at),
        note=note.note,
        details=row.body,
        undone=bool(row.retracted),
    )


def _resolved(rows: Sequence[AnyRow]) -> list[tuple[int, int, int | None]]:
    """When an item was resolved: the place of the event, its time, and when the next word on that was said."""
    words = [
        (place, row)
        for place, row in enumerate(rows)
        if not row.retracted and (row.value in CLOSES or row.value == "reopen")
    ]
    until = [*(row.at for _, row in words[1:]), None]
    return [
        (place, row.at, before) for (place, row), before in zip(words, until, strict=False) if row.value == "resolve"
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
