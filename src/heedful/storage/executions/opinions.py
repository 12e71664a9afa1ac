"""What people say of executions and messages: an event of the ledger for each version, and the words beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from heedful.ids import new_id
from heedful.model import AuthorTrust, Metadata
from heedful.ranking.signals import suffices, trust_of
from heedful.storage import ledger, tallies
from heedful.storage.executions import connectors, runs
from heedful.storage.ledger import FEEDBACK, Event
from heedful.storage.rows import AnyRow, batches, of_project
from heedful.storage.schema import feedbacks

TARGETS = ("execution", "message")

RETAINED_SQL = "retained_sql"
"""The SQL of executions that are gone and that an opinion still is about."""


@dataclass(frozen=True, slots=True)
class NewOpinion:
    """One opinion as it is to be stored."""

    execution_id: str | None
    message_id: str | None
    is_positive: bool
    text: str | None
    author: str | None

    @property
    def author_trust(self) -> AuthorTrust:
        return trust_of(self.author)

    @property
    def target(self) -> tuple[str, str]:
        if self.execution_id is not None:
            return "execution", self.execution_id
        assert self.message_id is not None
        return "message", self.message_id

    @property
    def rating(self) -> str:
        return _rating(self.is_positive)


def add(connection: Connection, project: int, said: NewOpinion, key: str | None, at: int) -> str:
    """Keeps an opinion and returns its id."""
    event = _event(project, said, key, at)
    ledger.append(connection, [event])
    about = runs.counts_for(connection, *said.target)
    connection.execute(
        insert(feedbacks).values(
            id=event.id, project_id=project, event_id=event.id, at=at, updated_at=at, about_id=about, **_row(said)
        )
    )
    _changed(connection, *said.target)
    return event.id


def replace(
    connection: Connection, project: int, row: AnyRow, said: NewOpinion, at: int, key: str | None = None
) -> None:
    """Puts another opinion in the place of one, under the same id; the ledger has both."""
    event = _event(project, said, key, at)
    ledger.append(connection, [ledger.retraction(project, row.event_id, said.author, at), event])
    with tallies.changing_folded(connection, project, [(row.target_id, row.seq)]):
        connection.execute(
            update(feedbacks)
            .where(feedbacks.c.id == row.id)
            .values(**{**_row(said), "event_id": event.id, "updated_at": at, "extra": row.extra})
        )
    _changed(connection, row.target_type, row.target_id, row.extra)


def withdraw(connection: Connection, project: int, row: AnyRow, author: str | None, at: int) -> str:
    """Deletes an opinion with its text; returns the event that says so."""
    retraction = ledger.retraction(project, row.event_id, author, at)
    ledger.append(connection, [retraction])
    with tallies.changing_folded(connection, project, [(row.target_id, row.seq)]):
        connection.execute(delete(feedbacks).where(feedbacks.c.id == row.id))
    _changed(connection, row.target_type, row.target_id, row.extra)
    return retraction.id


def snapshot(row: AnyRow) -> Metadata:
    """All that `restore` needs of an opinion."""
    return {name: getattr(row, name) for name in _KEPT_COLUMNS}


def restore(connection: Connection, project: int, kept: Metadata, at: int) -> str | None:
    """Restores a retracted opinion as it was; returns its event. What its author said of the same thing
    since stays: then there is none."""
    kept = {"author_trust": trust_of(kept["author"]), **kept}
    of_author = feedbacks.c.author == kept["author"] if kept["author"] is not None else feedbacks.c.id == kept["id"]
    later = connection.execute(
        select(feedbacks.c.id).where(
            of_project(connection, feedbacks.c.project_id, project),
            feedbacks.c.active == 1,
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
        author_trust=kept["author_trust"],
        value=kept["rating"],
    )
    ledger.append(connection, [event])
    about = runs.counts_for(connection, kept["target_type"], kept["target_id"])
    connection.execute(
        insert(feedbacks).values(project_id=project, event_id=event.id, about_id=about, active=1, **kept)
    )
    _changed(connection, kept["target_type"], kept["target_id"], kept["extra"])
    return event.id


_KEPT_COLUMNS = (
    *("id", "target_type", "target_id", "message_id", "author", "author_trust", "rating", "comment", "extra", "at"),
    "updated_at",
)


def _changed(connection: Connection, target_type: str, target_id: str, extra: Metadata | None = None) -> None:
    """Tells those who keep what is proven in memory that an opinion is another one."""
    if target_type == "execution":
        runs.follow_ratings(connection, target_id)
    retained = {each["connector_id"] for each in (extra or {}).get(RETAINED_SQL, ())}
    connectors.bump_revisions(
        connection, connectors.connectors_concerned(connection, target_type, target_id) | retained
    )


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


def by_author(connection: Connection, project: int, said: NewOpinion) -> AnyRow | None:
    """What the same author says of the same thing already."""
    kind, target = said.target
    return connection.execute(
        select(feedbacks).where(
            of_project(connection, feedbacks.c.project_id, project),
            feedbacks.c.active == 1,
            feedbacks.c.target_type == kind,
            feedbacks.c.target_id == target,
            feedbacks.c.author == said.author,
        )
    ).first()


def with_key(connection: Connection, project: int, key: str) -> AnyRow | Event | None:
    """The event of the opinion that was given with this key."""
    return ledger.with_keys(connection, project, [key]).get(key)


def list_opinions(
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
    """What is said of these executions themselves, oldest first, by execution."""
    found: dict[str, list[AnyRow]] = {}
    for row in sorted(about_targets(connection, project, execution_ids), key=lambda row: row.seq):
        if row.target_type == "execution":
            found.setdefault(row.target_id, []).append(row)
    return found


def counted(connection: Connection, project: int, execution_ids: Sequence[str]) -> dict[str, list[AnyRow]]:
    """What counts for these executions, oldest first, by execution: what is said of them and of their hits."""
    found: dict[str, list[AnyRow]] = {}
    for run in batches(execution_ids):
        meant = (*rated(project, "execution", "up", "down"), feedbacks.c.about_id.in_(run))
        for row in connection.execute(select(feedbacks).where(*meant).order_by(feedbacks.c.seq)):
            found.setdefault(row.about_id, []).append(row)
    return found


def rated(project: int, target_type: str, *ratings: str) -> tuple[ColumnElement[bool], ...]:
    """Opinions of a project about executions or messages that may prove or block SQL: all but those of anonymous
    visitors. An index finds them among those about sessions."""
    return (
        feedbacks.c.project_id == project,
        feedbacks.c.target_type == target_type,
        feedbacks.c.rating.in_(ratings),
        feedbacks.c.about_id.is_not(None),
        feedbacks.c.active == 1,
        feedbacks.c.author_trust != "anonymous",
    )


def votes(rows: Iterable[AnyRow]) -> list[tuple[AuthorTrust, str | None]]:
    """Who gave these opinions."""
    return [(row.author_trust, row.author) for row in rows]


def counted_opinions(rows: Sequence[AnyRow], authors: int) -> tuple[list[AnyRow], list[AnyRow]]:
    """Of what is said of one execution, what counts for it, and against it; the word of too few is not heard."""
    trusted = [row for row in rows if row.author_trust != "anonymous"]
    negative = [row for row in trusted if row.rating == "down"]
    return [row for row in trusted if row.rating == "up"], negative if suffices(votes(negative), authors) else []


_OPINIONS = (feedbacks.c.active == 1, feedbacks.c.target_type.in_(TARGETS))


def _ours(project: int) -> tuple[ColumnElement[bool], ...]:
    return (feedbacks.c.project_id == project, feedbacks.c.about_id.is_not(None), *_OPINIONS)


def _rating(is_positive: bool) -> str:
    return "up" if is_positive else "down"


def _row(said: NewOpinion) -> dict[str, Any]:
    kind, target = said.target
    return {
        "target_type": kind,
        "target_id": target,
        "message_id": said.message_id,
        "author": said.author,
        "author_trust": said.author_trust,
        "rating": said.rating,
        "comment": said.text,
        "extra": {},
        "active": 1,
    }


def _event(project: int, said: NewOpinion, key: str | None, at: int) -> Event:
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
        author_trust=said.author_trust,
        value=said.rating,
        idempotency_key=key or "",
    )
