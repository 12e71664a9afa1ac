"""Connectors: the databases that executions run against, and the revision of what is known about each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from heedful.model import Metadata
from heedful.storage import external_ids
from heedful.storage.rows import AnyRow
from heedful.storage.schema import connectors, executions, golden_examples


def add(
    connection: Connection, project: int, connector_id: str, name: str, url: str, options: Metadata, at: int
) -> None:
    connection.execute(
        insert(connectors).values(
            id=connector_id, project_id=project, name=name, url=url, options=options, created_at=at
        )
    )


def get(connection: Connection, project: int, id_or_name: str) -> AnyRow | None:
    """A connector by its id, or by its name."""
    statement = select(connectors).where(connectors.c.project_id == project)
    row = connection.execute(statement.where(connectors.c.id == id_or_name)).first()
    return row or connection.execute(statement.where(connectors.c.name == id_or_name)).first()


def list_connectors(connection: Connection, project: int) -> list[AnyRow]:
    statement = select(connectors).where(connectors.c.project_id == project).order_by(connectors.c.seq)
    return list(connection.execute(statement))


def every(connection: Connection) -> list[AnyRow]:
    """The connectors of all projects."""
    return list(connection.execute(select(connectors).order_by(connectors.c.seq)))


def change(connection: Connection, connector_id: str, **values: Any) -> None:
    connection.execute(update(connectors).where(connectors.c.id == connector_id).values(**values))


def remove(connection: Connection, connector_id: str) -> int:
    """Removes a connector with its executions and golden examples; returns the number of executions."""
    external_ids.remove(connection, select(executions.c.id).where(executions.c.connector_id == connector_id))
    removed = connection.execute(delete(executions).where(executions.c.connector_id == connector_id)).rowcount
    connection.execute(delete(golden_examples).where(golden_examples.c.connector_id == connector_id))
    connection.execute(delete(connectors).where(connectors.c.id == connector_id))
    return int(removed)


def revision(connection: Connection, connector: str) -> int:
    """A number that grows with each change of what is proven or wrong on a connector; -1 if it was deleted."""
    value = connection.execute(select(connectors.c.revision).where(connectors.c.id == connector)).scalar()
    return -1 if value is None else int(value)


def bump_revisions(connection: Connection, names: Collection[str]) -> None:
    """Raises the revision of these connectors, since what is proven on them may have changed."""
    if names:
        connection.execute(
            update(connectors).where(connectors.c.id.in_(sorted(names))).values(revision=connectors.c.revision + 1)
        )


def connectors_of_target(connection: Connection, target_type: str, target_id: str) -> set[str]:
    """The connectors that an execution, or what was run for a message, belongs to."""
    column = executions.c.id if target_type == "execution" else executions.c.message_id
    return set(connection.execute(select(executions.c.connector_id).where(column == target_id).distinct()).scalars())
