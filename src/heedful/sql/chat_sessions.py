"""`.chat_sessions`: conversations about data. They are sessions, kept where all sessions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import orjson

from heedful.clock import from_stored
from heedful.errors import NotFound
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import ChatQuestion, ChatSession, Metadata, Origin, Page
from heedful.protocols.sql import PAGE_LIMIT, ChatSessionsProtocol, Questions
from heedful.sessions import conversations
from heedful.sessions.space import SessionSpace
from heedful.sql import checks
from heedful.sql.runs import Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import MessageRow, SessionRow

KIND = {"kind": "chat"}
"""The metadata that mark a chat session."""


class ChatSessions(ChatSessionsProtocol):
    """The chat sessions of one project."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def create(self, *, name: str | None = None, audience: str | None = None) -> ChatSession:
        metadata: Metadata = dict(KIND)
        if audience is not None:
            metadata["audience"] = values.audience(audience)
        if name is not None:
            metadata["name"] = values.name("name", name)
        session_id = new_id()
        conversations.create(self._space.sessions, session_id, metadata)
        return self.get(session_id)

    def get(self, chat_session_id: str) -> ChatSession:
        return _to_session(row_of(self._space, chat_session_id))

    def list(self, *, cursor: str | None = None, limit: int = PAGE_LIMIT) -> Page[ChatSession]:
        checks.whole_number("limit", limit, 1, 1_000)
        sessions = conversations.list_sessions(self._space.sessions, dict(KIND), cursor, limit)
        return Page(
            items=[
                ChatSession(
                    id=session.session_id,
                    name=session.metadata.get("name"),
                    created_at=session.created_at,
                    updated_at=session.updated_at,
                    audience=session.metadata.get("audience"),
                )
                for session in sessions.items
            ],
            next_cursor=sessions.next_cursor,
        )

    def delete(self, chat_session_id: str) -> bool:
        row_of(self._space, chat_session_id)
        conversations.delete(self._space.sessions, chat_session_id)
        return True

    def get_questions(self, chat_session_id: str) -> Questions:
        row_of(self._space, chat_session_id)
        return [
            ChatQuestion(
                chat_message_id=turn.message_id,
                question=turn.question,
                sql_query=turn.sql,
                origin=turn.origin,
                created_at=from_stored(turn.at),
            )
            for turn in turns(self._space.sessions, chat_session_id)
        ]


def row_of(space: ExecutionSpace, chat_session_id: str) -> SessionRow:
    """A chat session of this project."""
    values.identifier("chat_session_id", chat_session_id)
    row: SessionRow | None = space.sessions.store.read(lambda tx: tx.conversations.session(chat_session_id))
    if row is None or row.metadata.get("kind") != KIND["kind"]:
        raise NotFound(
            f"no chat session {chat_session_id!r} in project {space.workspace.project!r}",
            field="chat_session_id",
            value=chat_session_id,
            remedy="Create one: chat_sessions.create()",
        )
    return row


def _to_session(row: SessionRow) -> ChatSession:
    return ChatSession(
        id=row.session_id,
        name=row.metadata.get("name"),
        created_at=from_stored(row.created_at),
        updated_at=from_stored(row.updated_at),
        audience=row.metadata.get("audience"),
    )


MAX_MESSAGES = 1_000
"""How many messages of a chat session are read."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question, and the message that answers it."""

    message_id: str
    question: str
    connector_id: str
    statement: Statement
    origin: Origin
    derived_from: str | None
    at: int
    chat_session_id: str | None
    audience: str | None

    @property
    def sql(self) -> str:
        """The SQL as people read it."""
        return self.statement.display or self.statement.sql


def store_turn(
    space: SessionSpace,
    session_id: str,
    audience: str | None,
    question: str,
    connector_id: str,
    statement: Statement,
    origin: Origin,
    derived_from: str | None,
) -> str:
    """Writes a question and its answer; returns the id of the answer."""
    now = space.now()
    body = {
        "question": question,
        "connector_id": connector_id,
        "sql_query": statement.sql,
        "parameters": statement.parameters,
        "display": statement.display,
        "origin": origin,
        "derived_from": derived_from,
        "chat_session_id": session_id,
        "audience": audience,
    }
    question_row = MessageRow(new_id(), "user", question, now)
    answer_row = MessageRow(new_id(), "assistant", orjson.dumps(body).decode(), now)
    space.store.write(lambda tx: tx.conversations.add_messages(session_id, [question_row, answer_row]))
    return answer_row.id


def turns(space: SessionSpace, session_id: str, last: int = MAX_MESSAGES // 2) -> list[Turn]:
    """The newest turns of a session, oldest first."""

    def read(tx: Transaction) -> list[MessageRow]:
        return tx.conversations.messages(session_id, None, 2 * last, True)

    rows = space.store.read(read)[::-1]
    return [turn for row in rows if (turn := _turn(row)) is not None]


def turn(space: SessionSpace, message_id: str) -> Turn | None:
    """The turn whose answer a message is."""
    row = space.store.read(lambda tx: tx.conversations.message(message_id))
    return None if row is None else _turn(row)


def _turn(row: MessageRow) -> Turn | None:
    if row.role != "assistant":
        return None
    try:
        body = orjson.loads(row.content)
        return Turn(
            message_id=row.id,
            question=body["question"],
            connector_id=body["connector_id"],
            statement=Statement(body["sql_query"], body["parameters"], body["display"]),
            origin=cast(Origin, body["origin"]),
            derived_from=body["derived_from"],
            at=row.at,
            chat_session_id=body.get("chat_session_id"),
            audience=body.get("audience"),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError):
        # Somebody else's message in the same session.
        return None
