"""Connectors: the databases that executions run against, and the revision of what is known about each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from heedful.model import Metadata
from heedful.storage.rows import AnyRow, Direct, Prepared
from heedful.storage.schema import connectors, executions, golden_examples, models
from heedful.storage.vectors import ModelRow


def add(
    connection: Connection, project: int, connector_id: str, name: str, url: str, options: Metadata, at: int
) -> None:
    connection.execute(
        insert(connectors).values(
            id=connector_id, project_id=project, name=name, url=url, options=options, created_at=at
        )
    )


_OF_PROJECT = select(connectors).where(connectors.c.project_id == bindparam("project"))
_ALL = _OF_PROJECT.order_by(connectors.c.seq)
_BY_ID = _OF_PROJECT.where(connectors.c.id == bindparam("name"))
_BY_NAME = _OF_PROJECT.where(connectors.c.name == bindparam("name"))


def get(connection: Connection, project: int, id_or_name: str) -> AnyRow | None:
    """A connector by its id, or by its name."""
    about = {"project": project, "name": id_or_name}
    return connection.execute(_BY_ID, about).first() or connection.execute(_BY_NAME, about).first()


def list_connectors(connection: Connection, project: int) -> list[AnyRow]:
    return list(connection.execute(_ALL, {"project": project}))


def every(connection: Connection) -> list[AnyRow]:
    """The connectors of all projects."""
    return list(connection.execute(select(connectors).order_by(connectors.c.seq)))


def change(connection: Connection, connector_id: str, **values: Any) -> None:
    connection.execute(update(connectors).where(connectors.c.id == connector_id).values(**values))


def remove(connection: Connection, connector_id: str) -> None:
    """Removes a connector without executions, with its golden examples."""
    connection.execute(delete(golden_examples).where(golden_examples.c.connector_id == connector_id))
    connection.execute(delete(connectors).where(connectors.c.id == connector_id))


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """A connector as a connection sees it."""

    revision: int
    """It grows with each change of what is proven or wrong on the connector, and of what is stored of executions that
    were there before; -1 if the connector was deleted."""
    full_revision: int
    """The last revision with changes beyond what people say of the executions that have its number."""
    newest: int
    """The number of its newest execution that is no hit; 0 if there is none."""
    model: ModelRow | None
    """The active model; None before the first vector."""


_STATE = Prepared(
    select(
        connectors.c.revision,
        connectors.c.full_revision,
        select(func.max(executions.c.seq))
        .where(executions.c.connector_id == connectors.c.id, executions.c.hit == 0)
        .scalar_subquery(),
        models.c.id,
        models.c.name,
        models.c.dimensions,
    )
    .select_from(connectors.outerjoin(models, models.c.active == 1))
    .where(connectors.c.id == bindparam("connector"))
)


def read_state(connection: Connection, connector: str) -> ConnectorState:
    """The state of a connector."""
    rows = Direct.on(connection).run(_STATE, connector=connector)
    if not rows:
        return ConnectorState(-1, -1, 0, None)
    revision, full_revision, newest, *model = rows[0]
    active = None if model[0] is None else ModelRow(*model)
    return ConnectorState(int(revision), int(full_revision), int(newest or 0), active)


_NEXT = connectors.c.revision + 1


def bump_revisions(connection: Connection, names: Collection[str]) -> None:
    """Raises the revision of these connectors, since anything that is proven on them may have changed."""
    if names:
        of_names = connectors.c.id.in_(sorted(names))
        connection.execute(update(connectors).where(of_names).values(revision=_NEXT, full_revision=_NEXT))


def mark_rated(connection: Connection, target_type: str, target_id: str) -> None:
    """Raises the revision of connectors, since what people say of an execution, or of what ran for a message, has
    changed, and of what the execution repeats."""
    target = executions.c.id if target_type == "execution" else executions.c.message_id
    found = connection.execute(
        select(executions.c.id, executions.c.repeats_id, executions.c.connector_id).where(target == target_id)
    ).all()
    if not found:
        return
    ids = {row.id for row in found} | {row.repeats_id for row in found if row.repeats_id is not None}
    owners = sorted({row.connector_id for row in found})
    connection.execute(update(connectors).where(connectors.c.id.in_(owners)).values(revision=_NEXT))
    newest = select(connectors.c.revision).where(connectors.c.id == executions.c.connector_id).scalar_subquery()
    connection.execute(update(executions).where(executions.c.id.in_(sorted(ids))).values(revision=newest))


def connectors_of_target(connection: Connection, target_type: str, target_id: str) -> set[str]:
    """The connectors that an execution, or what was run for a message, belongs to."""
    column = executions.c.id if target_type == "execution" else executions.c.message_id
    return set(connection.execute(select(executions.c.connector_id).where(column == target_id).distinct()).scalars())
