"""The ids that callers have for entries, recalls and executions, and the ratings that came before their entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Select, bindparam, delete, insert, select

from heedful.model import AuthorKind, Metadata, Rating
from heedful.storage.rows import batches, dialect_of, upsert
from heedful.storage.schema import external_ids, waiting_feedbacks

Kind = Literal["entry", "recall", "execution"]


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A rating of an entry that is not there yet."""

    id: str
    external_id: str
    author: str | None
    author_kind: AuthorKind
    rating: Rating | None
    score: int | None
    comment: str | None
    extra: Metadata
    at: int


_KEY = ("project_id", "kind", "external_id")
_TARGET = select(external_ids.c.target_id).where(
    external_ids.c.project_id == bindparam("project"),
    external_ids.c.kind == bindparam("of"),
    external_ids.c.external_id == bindparam("name"),
)


def target(connection: Connection, project: int, kind: Kind, external_id: str) -> str | None:
    """The id of the thing with this external id in a project."""
    return connection.execute(_TARGET, {"project": project, "of": kind, "name": external_id}).scalar()


def add(connection: Connection, project: int, kind: Kind, external_id: str, target_id: str, at: int) -> str:
    """Stores an external id, unless it is taken; returns the id of the thing that has it then."""
    row = {"project_id": project, "kind": kind, "external_id": external_id, "target_id": target_id, "at": at}
    connection.execute(upsert(dialect_of(connection), external_ids, _KEY, ()), row)
    return target(connection, project, kind, external_id) or target_id


def remove(connection: Connection, targets: Select[Any] | Sequence[str]) -> None:
    """Removes the external ids of things that are deleted."""
    for run in [targets] if isinstance(targets, Select) else batches(targets):
        connection.execute(delete(external_ids).where(external_ids.c.target_id.in_(run)))


def wait(connection: Connection, project: int, new: WaitingRow) -> None:
    """Stores a rating until its entry comes, in place of an earlier one of the same author."""
    stop_waiting(connection, project, new.external_id, new.author)
    connection.execute(insert(waiting_feedbacks).values(project_id=project, **asdict(new)))


def waiting(connection: Connection, project: int, external_id: str) -> list[WaitingRow]:
    """The ratings that wait for an entry, the oldest first."""
    columns = waiting_feedbacks.c
    query = select(*(columns[name] for name in WaitingRow.__slots__)).order_by(columns.at, columns.id)
    rows = connection.execute(query.where(columns.project_id == project, columns.external_id == external_id))
    return [WaitingRow(*row) for row in rows]


def waiting_since(connection: Connection, project: int, at: int, limit: int) -> list[str]:
    """The external ids for which ratings have waited since before a time."""
    columns = waiting_feedbacks.c
    query = select(columns.external_id).where(columns.project_id == project, columns.at < at).distinct()
    return list(connection.execute(query.order_by(columns.external_id).limit(limit)).scalars())


def stop_waiting(connection: Connection, project: int, external_id: str, author: str | None) -> int:
    """Removes the rating of one author that waits for an entry; returns how many that were."""
    columns = waiting_feedbacks.c
    of_entry = (columns.project_id == project, columns.external_id == external_id)
    own = columns.author.is_not_distinct_from(author)
    return connection.execute(delete(waiting_feedbacks).where(*of_entry, own)).rowcount


def end_waiting(connection: Connection, project: int, ids: Sequence[str]) -> None:
    """Removes ratings that wait no longer."""
    columns = waiting_feedbacks.c
    connection.execute(delete(waiting_feedbacks).where(columns.project_id == project, columns.id.in_(ids)))
