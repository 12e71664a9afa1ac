"""`.chat_sessions`: conversations about data. They are sessions, kept where all sessions are."""

from __future__ import annotations

from heedful.clock import from_stored
from heedful.errors import NotFound
from heedful.executions import chat_log, checks
from heedful.executions.space import ExecutionSpace
from heedful.ids import new_id
from heedful.memory import checks as values
from heedful.model import ChatQuestion, ChatSession, Metadata, Page
from heedful.sessions import conversations
from heedful.storage.sessions.base import SessionRow

LIMIT = 100
KIND = {"kind": "chat"}
"""The metadata that tell a chat session from others."""


# Inside the class, `list` is a method.
Questions = list[ChatQuestion]


class ChatSessions:
    """The chat sessions of one project."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def create(self, *, name: str | None = None) -> ChatSession:
        """Begins a conversation."""
        metadata: Metadata = dict(KIND)
        if name is not None:
            metadata["name"] = values.name("name", name)
        session_id = new_id()
        conversations.create(self._space.sessions, session_id, metadata)
        return self.get(session_id)

    def get(self, chat_session_id: str) -> ChatSession:
        """One chat session."""
        return _shown(row_of(self._space, chat_session_id))

    def list(self, *, cursor: str | None = None, limit: int = LIMIT) -> Page[ChatSession]:
        """Chat sessions, the newest first."""
        checks.whole("limit", limit, 1, 1_000)
        found = conversations.listed(self._space.sessions, dict(KIND), cursor, limit)
        return Page(
            items=[
                ChatSession(
                    id=each.session_id,
                    name=each.metadata.get("name"),
                    created_at=each.created_at,
                    updated_at=each.updated_at,
                )
                for each in found.items
            ],
            next_cursor=found.next_cursor,
        )

    def delete(self, chat_session_id: str) -> bool:
        """Removes a conversation with its messages; executions stay, as they belong to their connector."""
        row_of(self._space, chat_session_id)
        conversations.delete(self._space.sessions, chat_session_id)
        return True

    def get_questions(self, chat_session_id: str) -> Questions:
        """What was asked, oldest first, with the SQL it got."""
        row_of(self._space, chat_session_id)
        return [
            ChatQuestion(
                chat_message_id=turn.message_id,
                question=turn.question,
                sql_query=turn.sql,
                origin=turn.origin,
                created_at=from_stored(turn.at),
            )
            for turn in chat_log.turns(self._space.sessions, chat_session_id)
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


def _shown(row: SessionRow) -> ChatSession:
    return ChatSession(
        id=row.session_id,
        name=row.metadata.get("name"),
        created_at=from_stored(row.created_at),
        updated_at=from_stored(row.updated_at),
    )
