"""`.executions`: SQL that runs on a connector, guarded, read-only and within limits, and is kept with its result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import from_stored, new_id
from heedful.errors import NotFound
from heedful.ledger import proven_sql
from heedful.model import Execution, Origin, Page, QueryResult
from heedful.results import Result, decode
from heedful.sessions.session_store import page
from heedful.sql import chat_sessions, records
from heedful.sql.records import NewRun
from heedful.sql.sandbox.pool import Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage import external_ids
from heedful.storage.rows import AnyRow, to_model


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


def execute_query(
    space: ExecutionSpace,
    sql_query: str,
    connector_id: str | None,
    question: str | None,
    parameters: dict[str, Any] | None,
    chat_message_id: str | None,
    external_id: str | None,
    audience: str | None,
) -> Execution:
    checks.sql(sql_query)
    if external_id is not None:
        checks.name("external_id", external_id)
    turn = None
    if chat_message_id is not None:
        space.check_message(chat_message_id)
        turn = chat_sessions.turn(space.sessions, chat_message_id)
    if question is None and turn is not None:
        question = turn.question
    source = QuestionSource(
        None if question is None else checks.question("question", question),
        chat_message_id,
        chat_session_id=None if turn is None else turn.chat_session_id,
        audience=audience if audience is not None or turn is None else turn.audience,
    )
    connector = space.read_connector(connector_id)
    statement = Statement(sql_query, checks.metadata("parameters", parameters or {}))
    if external_id is not None:
        with space.workspace.read() as connection:
            first = _earlier(connection, connector, statement, external_id, source.audience)
        if first is not None:
            return first
    return execute(space, connector, statement, source, "query", external_id=external_id)


def execute_from_chat(space: ExecutionSpace, chat_message_id: str, connector_id: str | None) -> Execution:
    turn = chat_sessions.turn(space.sessions, chat_message_id)
    if turn is None:
        message = f"no message {chat_message_id!r} with SQL in project {space.workspace.project!r}"
        remedy = "Use the chat_message_id that chat_to_sql() returned"
        raise NotFound(message, field="chat_message_id", value=chat_message_id, remedy=remedy)
    connector = space.read_connector(connector_id or turn.connector_id)
    source = QuestionSource(
        turn.question, chat_message_id, chat_session_id=turn.chat_session_id, audience=turn.audience
    )
    # What was suggested and is run is a proven query with other values, like any other.
    origin: Origin = "rebound" if turn.origin == "suggested" else turn.origin
    return execute(space, connector, turn.statement, source, origin, turn.derived_from)


def get_execution(space: ExecutionSpace, execution_id: str) -> Execution:
    with space.workspace.read() as connection:
        return to_execution(space.execution(connection, execution_id))


def list_executions(space: ExecutionSpace, connector_id: str | None, cursor: str | None, limit: int) -> Page[Execution]:
    after = checks.cursor(cursor)
    with space.workspace.read() as connection:
        connector = None if connector_id is None else space.connector(connection, connector_id).id
        project = space.project(connection)
        return page(lambda count: records.list_runs(connection, project, connector, after, count), limit, to_execution)


def delete_execution(space: ExecutionSpace, execution_id: str) -> bool:
    with space.workspace.write() as connection:
        row = space.execution(connection, execution_id)
        proven_sql.retain_sql(connection, row)
        records.remove_runs(connection, row.project_id, row.connector_id, [row.id])
    space.proofs.forget(row.connector_id)
    return True


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
    ran = space.queries.run(space.target(connector), statement)
    result = ran.result
    vector = source.vector
    if vector is None and source.question is not None:
        vector = space.vector(source.question)
    # A hit says nothing that isn't stored elsewhere; whoever rates it waits for the disk.
    with space.workspace.direct(write=True, durable=origin not in records.OF_CACHE) as direct:
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
        if external_id is not None:
            # Another call may have used the external id meanwhile.
            first = _earlier(connection, connector, statement, external_id, source.audience)
            if first is not None:
                return first
        stored = records.as_stored(connection, new)
        records.add_run(connection, replace(stored, model_id=space.embedded(connection, stored.vector)))
        if beside is not None:
            beside(connection, new.id)
    return _execution(new, result)


def _earlier(
    connection: Connection, connector: AnyRow, statement: Statement, external_id: str, audience: str | None
) -> Execution | None:
    """The execution that was first sent with an external id; `Conflict` if it was another one."""
    target = external_ids.target(connection, connector.project_id, "execution", external_id)
    row = None if target is None else records.get_run(connection, connector.project_id, target)
    if row is None:
        return None
    execution = to_execution(row)
    stored = (execution.connector_id, _words(execution.sql_query), execution.parameters, execution.audience)
    if stored != (connector.id, _words(statement.sql), statement.parameters, audience):
        raise checks.external_id_reused(external_id, "execution")
    return execution


def _words(sql: str) -> list[str]:
    """The SQL without what makes no difference at its end and between its words."""
    return sql.rstrip().rstrip(";").split()


def to_execution(row: AnyRow) -> Execution:
    return _execution(row, decode(row.result))


def _digest(encoded: dict[str, Any]) -> bytes:
    """The hash of a result without its duration."""
    hashed = {name: value for name, value in encoded.items() if name != "seconds"}
    return hashlib.blake2b(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _execution(row: Any, result: Result) -> Execution:
    return to_model(
        Execution,
        row,
        execution_id=row.id,
        result=QueryResult.of(result),
        execution_time_ms=round(row.seconds * 1000),
        chat_message_id=row.message_id,
        created_at=from_stored(row.at),
    )
