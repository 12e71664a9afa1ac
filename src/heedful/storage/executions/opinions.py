"""What people say of executions and messages: an event of the ledger for each version, and the words beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from heedful.ids import new_id
from heedful.model import Metadata
from heedful.storage import ledger, tallies
from heedful.storage.ledger import FEEDBACK, Event
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import executions, feedbacks

TARGETS = ("execution", "message")

OUTLIVED = "outlived"
"""The SQL of executions that are gone and that an opinion still is about."""


@dataclass(frozen=True, slots=True)
class Said:
    """One opinion as it is to stand."""

    execution_id: str | None
    message_id: str | None
    is_positive: bool
    text: str | None
    author: str | None

    @property
    def target(self) -> tuple[str, str]:
        if self.execution_id is not None:
            return "execution", self.execution_id
        assert self.message_id is not None
        return "message", self.message_id

    @property
    def rating(self) -> str:
        return _rating(self.is_positive)


def add(connection: Connection, project: int, said: Said, key: str | None, at: int) -> str:
    """Keeps an opinion and returns its id."""
    event = _event(project, said, key, at)
    ledger.append(connection, [event])
    connection.execute(
        insert(feedbacks).values(id=event.id, project_id=project, event_id=event.id, at=at, updated_at=at, **_row(said))
    )
    return event.id


def replace(connection: Connection, project: int, row: AnyRow, said: Said, at: int, key: str | None = None) -> None:
    """Puts another opinion in the place of one, under the same id; the ledger has both."""
    event = _event(project, said, key, at)
    ledger.append(connection, [ledger.retraction(project, row.event_id, said.author, at), event])
    with tallies.changing_folded(connection, project, [(row.target_id, row.seq)]):
        connection.execute(
            update(feedbacks)
            .where(feedbacks.c.id == row.id)
            .values(**{**_row(said), "event_id": event.id, "updated_at": at, "extra": row.extra})
        )


def withdraw(connection: Connection, project: int, row: AnyRow, author: str | None, at: int) -> str:
    """Takes an opinion back, words and all; returns the event that says so."""
    retraction = ledger.retraction(project, row.event_id, author, at)
    ledger.append(connection, [retraction])
    with tallies.changing_folded(connection, project, [(row.target_id, row.seq)]):
        connection.execute(delete(feedbacks).where(feedbacks.c.id == row.id))
    return retraction.id


def snapshot(row: AnyRow) -> Metadata:
    """All that `restore` needs of an opinion."""
    return {name: getattr(row, name) for name in _KEPT}


def restore(connection: Connection, project: int, kept: Metadata, at: int) -> str | None:
    """Gives an opinion that was taken back again as it was; returns its event. What its author said of the same thing
    since stays: then there is none."""
    of_author = feedbacks.c.author == kept["author"] if kept["author"] is not None else feedbacks.c.id == kept["id"]
    later = connection.execute(
        select(feedbacks.c.id).where(
            *_ours(project),
            feedbacks.c.target_type == kept["target_type"],
            feedbacks.c.target_id == kept["target_id"],
            of_author,
        )
    ).first()
    if later is not None:
        return None
    event = Event(
        project_id=project,
        kind=FEEDBACK,
        target_type=kept["target_type"],
        target_id=kept["target_id"],
        source="feedback",
        at=kept["updated_at"],
        recorded_at=at,
        author=kept["author"],
        value=kept["rating"],
    )
    ledger.append(connection, [event])
    connection.execute(insert(feedbacks).values(project_id=project, event_id=event.id, standing=1, **kept))
    return event.id


_KEPT = ("id", "target_type", "target_id", "message_id", "author", "rating", "comment", "extra", "at", "updated_at")


def about_targets(connection: Connection, project: int, targets: Sequence[str]) -> list[AnyRow]:
    """What is said of these executions and messages."""
    return [
        row
        for run in batches(targets)
        for row in connection.execute(
            select(feedbacks).where(
                of_project(connection, feedbacks.c.project_id, project), *_OPINIONS, feedbacks.c.target_id.in_(run)
            )
        )
    ]


def get(connection: Connection, project: int, feedback_id: str) -> AnyRow | None:
    return connection.execute(
        select(feedbacks).where(
            *_ours(project), (feedbacks.c.id == feedback_id) | (feedbacks.c.event_id == feedback_id)
        )
    ).first()


def by_author(connection: Connection, project: int, said: Said) -> AnyRow | None:
    """What the same author says of the same thing already."""
    kind, target = said.target
    return connection.execute(
        select(feedbacks).where(
            *_ours(project),
            feedbacks.c.target_type == kind,
            feedbacks.c.target_id == target,
            feedbacks.c.author == said.author,
        )
    ).first()


def with_key(connection: Connection, project: int, key: str) -> AnyRow | Event | None:
    """The event of the opinion that was given with this key."""
    return ledger.with_keys(connection, project, [key]).get(key)


def listed(
    connection: Connection,
    project: int,
    *,
    skip: int,
    limit: int,
    search: str | None = None,
    is_positive: bool | None = None,
    message_id: str | None = None,
) -> tuple[list[AnyRow], int]:
    """Opinions, the newest first, and how many there are in all."""
    conditions = list(_ours(project))
    if search is not None:
        conditions.append(feedbacks.c.comment.icontains(search, autoescape=True))
    if is_positive is not None:
        conditions.append(feedbacks.c.rating == _rating(is_positive))
    if message_id is not None:
        conditions.append(feedbacks.c.message_id == message_id)
    total = connection.execute(select(func.count()).select_from(feedbacks).where(*conditions)).scalar_one()
    rows = connection.execute(
        select(feedbacks).where(*conditions).order_by(feedbacks.c.seq.desc()).offset(skip).limit(limit)
    )
    return list(rows), int(total)


def about(connection: Connection, project: int, execution_ids: Sequence[str]) -> dict[str, list[AnyRow]]:
    """What is said of these executions, oldest first, by execution."""
    found: dict[str, list[AnyRow]] = {}
    for run in batches(execution_ids):
        for row in connection.execute(
            select(feedbacks)
            .where(*_ours(project), feedbacks.c.target_type == "execution", feedbacks.c.target_id.in_(run))
            .order_by(feedbacks.c.seq)
        ):
            found.setdefault(row.target_id, []).append(row)
    return found


def blocked(connection: Connection, project: int, connector: str) -> dict[bytes, str | None]:
    """The templates of a connector that somebody says are wrong, with what was said last.

    What is said of a message is said of all that ran for it.
    """
    found: list[AnyRow] = []
    for kind, meant in (("execution", executions.c.id), ("message", executions.c.message_id)):
        found += connection.execute(
            select(executions.c.template, feedbacks.c.comment, feedbacks.c.seq)
            .select_from(feedbacks)
            .join(executions, meant == feedbacks.c.target_id)
            .where(
                *_ours(project),
                feedbacks.c.target_type == kind,
                feedbacks.c.rating == "down",
                executions.c.connector_id == connector,
            )
        )
    outlived = connection.execute(
        select(feedbacks.c.extra, feedbacks.c.comment, feedbacks.c.seq).where(
            *_ours(project), feedbacks.c.rating == "down", feedbacks.c.extra.is_not(None)
        )
    )
    said = [(row.seq, row.template, row.comment) for row in found]
    said += [
        (row.seq, bytes.fromhex(each["template"]), row.comment)
        for row in outlived
        for each in row.extra.get(OUTLIVED, ())
        if each["connector_id"] == connector
    ]
    return {template: comment for _, template, comment in sorted(said, key=lambda each: each[0])}


def outlive(connection: Connection, project: int, run: AnyRow) -> None:
    """Keeps with the negative opinions about an execution, which is about to go, what SQL they are about."""
    about = {"connector_id": run.connector_id, "template": run.template.hex()}
    rows = connection.execute(
        select(feedbacks.c.id, feedbacks.c.extra).where(
            *_ours(project),
            feedbacks.c.rating == "down",
            feedbacks.c.target_id.in_([run.id, run.message_id or run.id]),
        )
    ).all()
    for row in rows:
        kept = [*row.extra.get(OUTLIVED, ()), about]
        connection.execute(update(feedbacks).where(feedbacks.c.id == row.id).values(extra={OUTLIVED: kept}))


def proven(connection: Connection, project: int, connector: str) -> list[AnyRow]:
    """The executions of a connector that have a question and that somebody says are right."""
    right = (
        select(feedbacks.c.target_id)
        .where(*_ours(project), feedbacks.c.target_type == "execution", feedbacks.c.rating == "up")
        .distinct()
    )
    rows = connection.execute(
        select(executions.c.id, executions.c.question, executions.c.sql_query, executions.c.template, executions.c.at)
        .where(
            executions.c.connector_id == connector,
            executions.c.question.is_not(None),
            executions.c.id.in_(right),
        )
        .order_by(executions.c.seq)
    )
    return list(rows)


def version(connection: Connection, project: int) -> tuple[int, str]:
    """What changes when anything is said, changed or taken back; each version of an opinion has its own event."""
    row = connection.execute(
        select(func.count(), func.max(feedbacks.c.event_id)).select_from(feedbacks).where(*_ours(project))
    ).one()
    return int(row[0]), str(row[1] or "")


_OPINIONS = (feedbacks.c.standing == 1, feedbacks.c.target_type.in_(TARGETS))


def _ours(project: int) -> tuple[ColumnElement[bool], ...]:
    return (feedbacks.c.project_id == project, *_OPINIONS)


def _rating(is_positive: bool) -> str:
    return "up" if is_positive else "down"


def _row(said: Said) -> dict[str, Any]:
    kind, target = said.target
    return {
        "target_type": kind,
        "target_id": target,
        "message_id": said.message_id,
        "author": said.author,
        "rating": said.rating,
        "comment": said.text,
        "extra": {},
        "standing": 1,
    }


def _event(project: int, said: Said, key: str | None, at: int) -> Event:
    kind, target = said.target
    return Event(
        id=new_id(),
        project_id=project,
        kind=FEEDBACK,
        target_type=kind,
        target_id=target,
        source="feedback",
        at=at,
        recorded_at=at,
        author=said.author,
        value=said.rating,
        idempotency_key=key or "",
    )
