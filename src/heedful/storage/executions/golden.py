"""Golden examples: questions with the SQL that answers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from heedful.storage.executions import connectors
from heedful.storage.rows import AnyRow
from heedful.storage.schema import golden_examples


@dataclass(frozen=True, slots=True)
class NewExample:
    """A golden example about to be stored."""

    id: str
    project_id: int
    connector_id: str
    question: str
    digest: bytes
    model_id: int | None
    vector: bytes | None
    sql_query: str
    template: bytes
    origin: str
    execution_id: str | None
    audience: str | None
    created_at: int
    updated_at: int


def add(connection: Connection, new: NewExample) -> None:
    connection.execute(insert(golden_examples), {name: getattr(new, name) for name in NewExample.__slots__})
    connectors.bump_revisions(connection, [new.connector_id])


def get(connection: Connection, project: int, example_id: str) -> AnyRow | None:
    return connection.execute(
        select(golden_examples).where(golden_examples.c.project_id == project, golden_examples.c.id == example_id)
    ).first()


def find_by_question(connection: Connection, connector: str, digest: bytes) -> AnyRow | None:
    """The example of a connector for exactly this question."""
    return connection.execute(
        select(golden_examples).where(golden_examples.c.connector_id == connector, golden_examples.c.digest == digest)
    ).first()


def of_connector(connection: Connection, connector: str, audience: str | None) -> list[AnyRow]:
    """The examples of a connector for an audience, or for all."""
    statement = select(golden_examples).where(
        golden_examples.c.connector_id == connector, golden_examples.c.audience.is_not_distinct_from(audience)
    )
    return list(connection.execute(statement.order_by(golden_examples.c.seq)))


def of_execution(connection: Connection, connector: str, execution_id: str) -> AnyRow | None:
    """The example that was made of an execution."""
    statement = select(golden_examples).where(
        golden_examples.c.connector_id == connector, golden_examples.c.execution_id == execution_id
    )
    return connection.execute(statement.order_by(golden_examples.c.seq)).first()


def of_another_model(connection: Connection, connector: str, model: int) -> list[AnyRow]:
    """The examples of a connector with vectors of another model."""
    statement = select(golden_examples).where(
        golden_examples.c.connector_id == connector, golden_examples.c.model_id.is_distinct_from(model)
    )
    return list(connection.execute(statement))


def list_examples(connection: Connection, project: int, connector: str | None, skip: int, limit: int) -> list[AnyRow]:
    """The newest first."""
    statement = select(golden_examples).where(golden_examples.c.project_id == project)
    if connector is not None:
        statement = statement.where(golden_examples.c.connector_id == connector)
    return list(connection.execute(statement.order_by(golden_examples.c.seq.desc()).offset(skip).limit(limit)))


def change(connection: Connection, example_id: str, **values: Any) -> None:
    connection.execute(update(golden_examples).where(golden_examples.c.id == example_id).values(**values))
    connectors.bump_revisions(connection, _connectors_of(connection, example_id))


def set_vector(connection: Connection, example_id: str, model: int, vector: bytes) -> None:
    """Stores a vector of another model; nothing else changes."""
    connection.execute(
        update(golden_examples).where(golden_examples.c.id == example_id).values(model_id=model, vector=vector)
    )


def remove(connection: Connection, project: int, example_id: str) -> bool:
    connectors.bump_revisions(connection, _connectors_of(connection, example_id))
    result = connection.execute(
        delete(golden_examples).where(golden_examples.c.project_id == project, golden_examples.c.id == example_id)
    )
    return bool(result.rowcount)


def _connectors_of(connection: Connection, example_id: str) -> set[str]:
    return set(
        connection.execute(select(golden_examples.c.connector_id).where(golden_examples.c.id == example_id)).scalars()
    )
