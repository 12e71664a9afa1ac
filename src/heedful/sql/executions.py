"""`.executions`: SQL that ran on a connector."""

from __future__ import annotations

from typing import Any

from heedful.errors import NotFound
from heedful.memory import checks as values
from heedful.model import Execution, Origin, Page
from heedful.protocols.sql import PAGE_LIMIT, ExecutionsProtocol
from heedful.sessions import checks as paging
from heedful.sessions.conversations import page
from heedful.sql import chat_sessions, checks
from heedful.sql import runs as running
from heedful.sql.runs import QuestionSource, Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import proofs, runs


class Executions(ExecutionsProtocol):
    """The executions of one project."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def execute_query(
        self,
        sql_query: str,
        *,
        connector_id: str | None = None,
        question: str | None = None,
        parameters: dict[str, Any] | None = None,
        chat_message_id: str | None = None,
        external_id: str | None = None,
        audience: str | None = None,
    ) -> Execution:
        checks.sql(sql_query)
        audience = values.audience(audience)
        if external_id is not None:
            values.external_id(external_id)
        message = self._message(chat_message_id)
        turn = None if message is None else chat_sessions.turn(self._space.sessions, message)
        if question is None and turn is not None:
            question = turn.question
        source = QuestionSource(
            None if question is None else checks.question("question", question),
            message,
            chat_session_id=None if turn is None else turn.chat_session_id,
            audience=audience if audience is not None or turn is None else turn.audience,
        )
        with self._space.workspace.read() as connection:
            connector = self._space.connector(connection, connector_id)
        statement = Statement(sql_query, values.metadata("parameters", parameters or {}))
        if external_id is not None:
            first = running.earlier(self._space, connector, statement, external_id, source.audience)
            if first is not None:
                return first
        return running.execute(self._space, connector, statement, source, "query", external_id=external_id)

    def execute_from_chat(self, chat_message_id: str, *, connector_id: str | None = None) -> Execution:
        name = values.identifier("chat_message_id", chat_message_id)
        turn = chat_sessions.turn(self._space.sessions, name)
        if turn is None:
            raise NotFound(
                f"no message {name!r} with SQL in project {self._space.workspace.project!r}",
                field="chat_message_id",
                value=name,
                remedy="Use the chat_message_id that chat_to_sql() returned",
            )
        with self._space.workspace.read() as connection:
            connector = self._space.connector(connection, connector_id or turn.connector_id)
        source = QuestionSource(turn.question, name, chat_session_id=turn.chat_session_id, audience=turn.audience)
        # What was suggested and is run is a proven query with other values, like any other.
        origin: Origin = "rebound" if turn.origin == "suggested" else turn.origin
        return running.execute(self._space, connector, turn.statement, source, origin, turn.derived_from)

    def get(self, execution_id: str) -> Execution:
        with self._space.workspace.read() as connection:
            row = self._space.execution(connection, values.identifier("execution_id", execution_id))
        return running.to_execution(row)

    def list(
        self, *, connector_id: str | None = None, cursor: str | None = None, limit: int = PAGE_LIMIT
    ) -> Page[Execution]:
        after = paging.cursor(cursor)
        with self._space.workspace.read() as connection:
            connector = None if connector_id is None else self._space.connector(connection, connector_id).id
            project = self._space.project(connection)
            return page(
                lambda count: runs.list_runs(connection, project, connector, after, count), limit, running.to_execution
            )

    def delete(self, execution_id: str) -> bool:
        name = values.identifier("execution_id", execution_id)
        with self._space.workspace.write() as connection:
            project = self._space.project(connection)
            row = self._space.execution(connection, name)
            proofs.retain_sql(connection, project, row)
            runs.remove(connection, project, row.id)
        self._space.proofs.forget(row.connector_id)
        return True

    def _message(self, chat_message_id: str | None) -> str | None:
        if chat_message_id is None:
            return None
        name = values.identifier("chat_message_id", chat_message_id)
        if self._space.sessions.store.read(lambda tx: tx.conversations.message(name)) is None:
            raise NotFound(
                f"no message {name!r} in project {self._space.workspace.project!r}", field="chat_message_id", value=name
            )
        return name
