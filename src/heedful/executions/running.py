"""Running SQL on a connector: guarded, read-only, within limits, and kept with its result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from heedful.clock import from_stored
from heedful.executions.databases import Limits
from heedful.executions.guard import guarded
from heedful.executions.reach import database_of
from heedful.executions.space import ExecutionSpace
from heedful.executions.templates import template
from heedful.ids import new_id
from heedful.model import Execution, Metadata, Origin, QueryResult
from heedful.results import Result, decode, encode
from heedful.storage.executions import hits, runs
from heedful.storage.executions.runs import NewRun
from heedful.storage.rows import AnyRow

LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Asked:
    """The question behind an execution, and the message of a chat that it belongs to."""

    question: str | None
    message_id: str | None
    vector: bytes | None = None
    """The question as it is compared, if that is known already."""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL to run. With `display`, that is kept, with the values of the parameters written out, instead of both."""

    sql: str
    parameters: Metadata
    display: str | None = None


def execute(
    space: ExecutionSpace,
    connector: AnyRow,
    statement: Statement,
    asked: Asked,
    origin: Origin,
    derived_from: str | None = None,
) -> Execution:
    """Runs one statement that only reads and stores what it gave."""
    database = database_of(connector)
    query = guarded(statement.sql, database.dialect)
    kept = query if statement.display is None else guarded(statement.display, database.dialect)
    version = database.data_version()
    with database.session() as session:
        result = session.run(query, statement.parameters, LIMITS)
    encoded = encode(result)
    vector = asked.vector
    if vector is None and asked.question is not None:
        vector = space.vector(asked.question)
    with space.workspace.write() as connection:
        new = NewRun(
            id=new_id(),
            project_id=connector.project_id,
            connector_id=connector.id,
            question=asked.question,
            model_id=space.embedded(connection, vector),
            vector=vector,
            sql_query=kept.sql,
            parameters=statement.parameters if statement.display is None else {},
            template=template(kept.sql, kept.dialect),
            result=encoded,
            row_count=len(result.rows),
            truncated=int(result.truncated),
            seconds=result.seconds,
            origin=origin,
            derived_from=derived_from,
            message_id=asked.message_id,
            fingerprint=connector.fingerprint,
            data_version=version,
            at=space.now(),
            result_digest=_digest(encoded),
        )
        runs.add(connection, hits.as_stored(connection, new))
    return _execution(new, result)


def dry_run(connector: AnyRow, statement: Statement) -> None:
    """Finds out whether a statement may run and would: one row of it is asked for, and nothing is kept."""
    database = database_of(connector)
    query = guarded(statement.sql, database.dialect)
    with database.session() as session:
        session.run(query, statement.parameters, Limits(seconds=LIMITS.seconds, rows=1, bytes=LIMITS.bytes))


def shown(row: AnyRow) -> Execution:
    """A stored execution."""
    return _execution(row, decode(row.result))


def _digest(encoded: dict[str, Any]) -> bytes:
    """The hash of a result; how long it took is no part of it."""
    told = {name: value for name, value in encoded.items() if name != "seconds"}
    return hashlib.blake2b(orjson.dumps(told, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _execution(row: Any, result: Result) -> Execution:
    return Execution(
        execution_id=row.id,
        connector_id=row.connector_id,
        question=row.question,
        sql_query=row.sql_query,
        parameters=row.parameters,
        result=QueryResult.of(result),
        execution_time_ms=round(row.seconds * 1000),
        origin=row.origin,
        derived_from=row.derived_from,
        chat_message_id=row.message_id,
        created_at=from_stored(row.at),
    )
