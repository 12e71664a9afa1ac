"""`.chat_sessions`: conversations about data. They are sessions, kept where all sessions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import orjson

from heedful.api import checks
from heedful.clock import from_stored, new_id
from heedful.errors import NotFound
from heedful.model import ChatQuestion, ChatSession, Metadata, Origin, Page, Session
from heedful.sessions import conversations
from heedful.sessions.session_store import MessageRow, SessionRow
from heedful.sessions.space import SessionSpace
from heedful.sql.sandbox.pool import Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage.rows import to_model

KIND = {"kind": "chat"}
"""The metadata that mark a chat session."""


def create_chat(space: ExecutionSpace, name: str | None, audience: str | None) -> ChatSession:
    metadata: Metadata = dict(KIND)
    if audience is not None:
        metadata["audience"] = audience
    if name is not None:
        metadata["name"] = checks.name("name", name)
    session_id = new_id()
    conversations.create(space.sessions, session_id, metadata)
    return get_chat(space, session_id)


def get_chat(space: ExecutionSpace, chat_session_id: str) -> ChatSession:
    return _to_chat(row_of(space, chat_session_id))


def list_chats(space: ExecutionSpace, cursor: str | None, limit: int) -> Page[ChatSession]:
    page = conversations.list_sessions(space.sessions, dict(KIND), cursor, limit)
    return Page(items=[_to_chat(session) for session in page.items], next_cursor=page.next_cursor)


def delete_chat(space: ExecutionSpace, chat_session_id: str) -> bool:
    row_of(space, chat_session_id)
    conversations.delete(space.sessions, chat_session_id)
    return True


def get_questions(space: ExecutionSpace, chat_session_id: str) -> list[ChatQuestion]:
    row_of(space, chat_session_id)
    return [
        to_model(
            ChatQuestion, turn, chat_message_id=turn.message_id, sql_query=turn.sql, created_at=from_stored(turn.at)
        )
        for turn in turns(space.sessions, chat_session_id)
    ]


def row_of(space: ExecutionSpace, chat_session_id: str) -> SessionRow:
    """A chat session of this project."""
    row: SessionRow | None = space.sessions.store.read(lambda tx: tx.conversations.session(chat_session_id))
    if row is None or row.metadata.get("kind") != KIND["kind"]:
        project, remedy = space.workspace.project, "Create one: chat_sessions.create()"
        raise NotFound.in_project(project, "chat session", chat_session_id, "chat_session_id", remedy)
    return row


def _to_chat(session: SessionRow | Session) -> ChatSession:
    about = session.metadata
    return to_model(ChatSession, session, id=session.session_id, name=about.get("name"), audience=about.get("audience"))


MAX_MESSAGES = 1_000
"""How many messages of a chat session are read."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
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


def store_turn(space: SessionSpace, session_id: str, turn: ChatTurn) -> None:
    body = {
        "question": turn.question,
        "connector_id": turn.connector_id,
        "sql_query": turn.statement.sql,
        "parameters": turn.statement.parameters,
        "display": turn.statement.display,
        "origin": turn.origin,
        "derived_from": turn.derived_from,
        "chat_session_id": turn.chat_session_id,
        "audience": turn.audience,
    }
    question = MessageRow(new_id(), "user", turn.question, turn.at)
    answer = MessageRow(turn.message_id, "assistant", orjson.dumps(body).decode(), turn.at)
    space.store.write(lambda tx: tx.conversations.add_messages(session_id, [question, answer]))


def turns(space: SessionSpace, session_id: str, last: int = MAX_MESSAGES // 2) -> list[ChatTurn]:
    """The newest turns of a session, oldest first."""
    rows = space.store.read(lambda tx: tx.conversations.messages(session_id, None, 2 * last, True))[::-1]
    return [turn for row in rows if (turn := _turn(row)) is not None]


def turn(space: SessionSpace, message_id: str) -> ChatTurn | None:
    """The turn whose answer a message is."""
    row = space.store.read(lambda tx: tx.conversations.message(message_id))
    return None if row is None else _turn(row)


def _turn(row: MessageRow) -> ChatTurn | None:
    if row.role != "assistant":
        return None
    try:
        body = orjson.loads(row.content)
        return ChatTurn(
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
