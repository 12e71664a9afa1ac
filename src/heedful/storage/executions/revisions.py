"""When what is proven or wrong on a connector last changed, for those who keep it in memory."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select, update

from heedful.storage.schema import connectors, executions


def revision(connection: Connection, connector: str) -> int:
    """A number that grows with each change of what is proven or wrong on a connector; -1 if it is gone."""
    found = connection.execute(select(connectors.c.revision).where(connectors.c.id == connector)).scalar()
    return -1 if found is None else int(found)


def changed(connection: Connection, names: Collection[str]) -> None:
    """Notes that what is proven or wrong on these connectors may have changed."""
    if names:
        connection.execute(
            update(connectors).where(connectors.c.id.in_(sorted(names))).values(revision=connectors.c.revision + 1)
        )


def concerned(connection: Connection, target_type: str, target_id: str) -> set[str]:
    """The connectors that an execution, or what was run for a message, belongs to."""
    meant = executions.c.id if target_type == "execution" else executions.c.message_id
    return set(connection.execute(select(executions.c.connector_id).where(meant == target_id).distinct()).scalars())
