"""Executions: SQL that ran, with its result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from heedful.model import Metadata
from heedful.storage import tallies
from heedful.storage.rows import AnyRow, batches
from heedful.storage.schema import executions


@dataclass(frozen=True, slots=True)
class NewRun:
    """An execution about to be stored."""

    id: str
    project_id: int
    connector_id: str
    question: str | None
    model_id: int | None
    vector: bytes | None
    sql_query: str
    parameters: Metadata
    template: bytes
    result: Metadata
    row_count: int
    truncated: int
    seconds: float
    origin: str
    derived_from: str | None
    message_id: str | None
    fingerprint: str | None
    data_version: str | None
    at: int


def add(connection: Connection, new: NewRun) -> None:
    connection.execute(insert(executions), {name: getattr(new, name) for name in NewRun.__slots__})


def get(connection: Connection, project: int, execution_id: str) -> AnyRow | None:
    return connection.execute(
        select(executions).where(executions.c.project_id == project, executions.c.id == execution_id)
    ).first()


def listed(connection: Connection, project: int, connector: str | None, after: int | None, limit: int) -> list[AnyRow]:
    """The newest first; `number` is the place in the list."""
    statement = select(executions, executions.c.seq.label("number")).where(executions.c.project_id == project)
    if connector is not None:
        statement = statement.where(executions.c.connector_id == connector)
    if after is not None:
        statement = statement.where(executions.c.seq < after)
    return list(connection.execute(statement.order_by(executions.c.seq.desc()).limit(limit)))


def of_message(connection: Connection, project: int, message_id: str) -> list[AnyRow]:
    statement = select(executions).where(executions.c.project_id == project, executions.c.message_id == message_id)
    return list(connection.execute(statement.order_by(executions.c.seq)))


def remove(connection: Connection, project: int, execution_id: str) -> bool:
    with tallies.changing(connection, project, targets=[execution_id]):
        gone = connection.execute(
            delete(executions).where(executions.c.project_id == project, executions.c.id == execution_id)
        )
    return bool(gone.rowcount)


_ABOUT = (
    executions.c.seq,
    executions.c.id,
    executions.c.question,
    executions.c.sql_query,
    executions.c.parameters,
    executions.c.template,
    executions.c.truncated,
    executions.c.fingerprint,
    executions.c.data_version,
    executions.c.origin,
    executions.c.at,
)


def by_seq(connection: Connection, seqs: Sequence[int]) -> dict[int, AnyRow]:
    """What a decision needs to know of executions, by number; results are left out."""
    return {
        row.seq: row
        for run in batches(seqs)
        for row in connection.execute(select(*_ABOUT).where(executions.c.seq.in_(run)))
    }


def seqs(connection: Connection, ids: Collection[str]) -> list[int]:
    """The numbers of executions."""
    return [
        seq
        for run in batches(sorted(ids))
        for seq in connection.execute(select(executions.c.seq).where(executions.c.id.in_(run))).scalars()
    ]


def newest(connection: Connection, connector: str) -> int:
    """The number of the newest execution of a connector that has a question; 0 if there is none."""
    statement = select(func.max(executions.c.seq)).where(
        executions.c.connector_id == connector, executions.c.question.is_not(None)
    )
    return int(connection.execute(statement).scalar() or 0)


def asked_after(connection: Connection, connector: str, seq: int) -> list[AnyRow]:
    """Executions of a connector behind a known one that have a question: seq, question, model_id, vector."""
    statement = (
        select(executions.c.seq, executions.c.question, executions.c.model_id, executions.c.vector)
        .where(executions.c.connector_id == connector, executions.c.seq > seq, executions.c.question.is_not(None))
        .order_by(executions.c.seq)
    )
    return list(connection.execute(statement))


def set_vectors(connection: Connection, model: int, made: Sequence[tuple[int, bytes]]) -> None:
    for seq, vector in made:
        values: dict[str, Any] = {"model_id": model, "vector": vector}
        connection.execute(update(executions).where(executions.c.seq == seq).values(values))
