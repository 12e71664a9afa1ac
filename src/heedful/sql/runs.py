"""Running SQL on a connector: guarded, read-only, within limits, and kept with its result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import Execution, Metadata, Origin, QueryResult
from heedful.results import Result, decode
from heedful.sql.space import ExecutionSpace
from heedful.storage import external_ids
from heedful.storage.executions import runs
from heedful.storage.executions.runs import NewRun
from heedful.storage.rows import AnyRow


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """The question behind an execution, the message of a chat that it belongs to, and whom it is for."""

    question: str | None
    message_id: str | None
    vector: bytes | None = None
    """The question's vector, if it is known already."""
    chat_session_id: str | None = None
    audience: str | None = None
    """Whom the execution may be reused for; None is everybody."""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL to run. `display`, if any, is stored instead: the SQL with the parameters' values written out."""

    sql: str
    parameters: Metadata
    display: str | None = None


def execute(
    space: ExecutionSpace,
    connector: AnyRow,
    statement: Statement,
    source: QuestionSource,
    origin: Origin,
    derived_from: str | None = None,
    beside: Callable[[Connection, str], None] | None = None,
    external_id: str | None = None,
) -> Execution:
    """Runs one read-only statement and stores its result; `beside` is written with it, given its id."""
    ran = space.queries.run(space.target(connector), statement.sql, statement.parameters, statement.display)
    result = ran.result
    vector = source.vector
    if vector is None and source.question is not None:
        vector = space.vector(source.question)
    # A hit says nothing that isn't stored elsewhere; whoever rates it waits for the disk.
    with space.workspace.direct(write=True, durable=origin not in runs.OF_CACHE) as direct:
        connection = direct.connection
        new = NewRun(
            id=new_id(),
            project_id=connector.project_id,
            connector_id=connector.id,
            question=source.question,
            model_id=None,
            vector=vector,
            sql_query=ran.sql,
            parameters=statement.parameters if statement.display is None else {},
            template=ran.template,
            result=ran.encoded,
            row_count=len(result.rows),
            truncated=int(result.truncated),
            seconds=result.seconds,
            origin=origin,
            derived_from=derived_from,
            message_id=source.message_id,
            fingerprint=connector.fingerprint,
            data_version=ran.version,
            at=space.now(),
            result_digest=_digest(ran.encoded),
            chat_session_id=source.chat_session_id,
            audience=source.audience,
            external_id=external_id,
        )
        # Another call may have used the external id meanwhile.
        first = (
            None if external_id is None else _earlier(connection, connector, statement, external_id, source.audience)
        )
        if first is not None:
            return first
        stored = runs.as_stored(connection, new)
        runs.add(connection, replace(stored, model_id=space.embedded(connection, stored.vector)))
        if beside is not None:
            beside(connection, new.id)
    return _execution(new, result)


def earlier(
    space: ExecutionSpace, connector: AnyRow, statement: Statement, external_id: str, audience: str | None
) -> Execution | None:
    """The execution that was first sent with an external id; `Conflict` if it was another one."""
    with space.workspace.read() as connection:
        return _earlier(connection, connector, statement, external_id, audience)


def _earlier(
    connection: Connection, connector: AnyRow, statement: Statement, external_id: str, audience: str | None
) -> Execution | None:
    target = external_ids.target(connection, connector.project_id, "execution", external_id)
    row = None if target is None else runs.get(connection, connector.project_id, target)
    if row is None:
        return None
    execution = to_execution(row)
    stored = (execution.connector_id, _words(execution.sql_query), execution.parameters, execution.audience)
    if stored != (connector.id, _words(statement.sql), statement.parameters, audience):
        raise values.external_id_reused(external_id, "execution")
    return execution


def _words(sql: str) -> list[str]:
    """The SQL without what makes no difference at its end and between its words."""
    return sql.rstrip().rstrip(";").split()


def dry_run(space: ExecutionSpace, connector: AnyRow, statement: Statement) -> None:
    """Tries a statement by fetching one row; nothing is stored."""
    space.queries.dry_run(space.target(connector), statement.sql, statement.parameters)


def to_execution(row: AnyRow) -> Execution:
    """A stored execution."""
    return _execution(row, decode(row.result))


def _digest(encoded: dict[str, Any]) -> bytes:
    """The hash of a result without its duration."""
    hashed = {name: value for name, value in encoded.items() if name != "seconds"}
    return hashlib.blake2b(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


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
        external_id=row.external_id,
        audience=row.audience,
    )
