"""Strands Agents: conversations and states of agents as sessions of Heedful."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strands.session.repository_session_manager import RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.content import Message
from strands.types.session import (
    Session,
    SessionAgent,
    SessionMessage,
    SessionType,
    decode_bytes_values,
    encode_bytes_values,
)

from heedful.api import Sessions
from heedful.compat import mongodb_session_manager as compat
from heedful.compat.foreign_api import every
from heedful.engine import sessions_of
from heedful.errors import NotFound
from heedful.integrations.turns import BlockingMemory, Guard
from heedful.model import Metadata
from heedful.sessions.space import SessionSpace
from heedful.store import session_space

DEFAULT_AGENT = "default"
"""The id of an agent that has no other."""
AGENTS = "strands_agent/"
"""How the keys of metadata that have the states of agents begin."""
PACKED = '{"strands": '
"""How the content of a message begins that is more than a text."""


@dataclass(frozen=True, slots=True)
class _Stored:
    heedful_id: str
    message: Message
    at: datetime


class HeedfulSessionRepository(SessionRepository):
    """The sessions of a memory for Strands' session managers.

    A message that is one text is that text, so that it can be read, searched and erased like any other; one with calls
    of tools, or of another agent than the default one, is JSON. The state of an agent is in the metadata.

    If Heedful fails while an agent works, the agent goes on, and the log says so once.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        # A conversation with a gap is worse than one that is slow.
        self._guard = Guard(pause=0)

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        self._guard.demand(self._sessions.create, session.session_id)
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        try:
            found = self._guard.demand(self._sessions.get, session_id)
        except NotFound:
            return None
        return Session(session_id, SessionType.AGENT, found.created_at.isoformat(), found.updated_at.isoformat())

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        self._guard.demand(self._put_agent, session_id, session_agent)

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        return self._guard.demand(self._agent, session_id, agent_id)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        def update() -> None:
            before = self._agent(session_id, session_agent.agent_id)
            if before is not None:
                session_agent.created_at = before.created_at
            self._put_agent(session_id, session_agent)

        self._guard.attempt("store the state of the agent", update)

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        message, at = session_message.to_message(), datetime.fromisoformat(session_message.created_at)
        add, content = self._sessions.add_message, _packed(agent_id, message)
        self._guard.attempt("store a message", add, session_id, message["role"], content, at=at)

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        found = self.list_messages(session_id, agent_id, limit=1, offset=message_id)
        return found[0] if found else None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Changes what a message says. Of one that is redacted, only what is left is stored."""
        stored = self._stored(session_id, agent_id)[session_message.message_id]
        update, content = self._sessions.update_message, _packed(agent_id, session_message.to_message())
        self._guard.demand(update, session_id, stored.heedful_id, content)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        messages = [
            SessionMessage(stored.message, number, created_at=stored.at.isoformat(), updated_at=stored.at.isoformat())
            for number, stored in enumerate(self._stored(session_id, agent_id))
        ]
        return messages[offset:] if limit is None else messages[offset : offset + limit]

    def _agent(self, session_id: str, agent_id: str) -> SessionAgent | None:
        packed = self._sessions.get_metadata(session_id).get(_agent_key(agent_id))
        return None if packed is None else SessionAgent.from_dict(json.loads(packed))

    def _put_agent(self, session_id: str, session_agent: SessionAgent) -> None:
        packed = json.dumps(session_agent.to_dict(), ensure_ascii=False)
        self._sessions.update_metadata(session_id, {_agent_key(session_agent.agent_id): packed})

    def _stored(self, session_id: str, agent_id: str) -> list[_Stored]:
        def read() -> list[_Stored]:
            found = []
            for message in every(self._sessions.messages, session_id):
                owner, unpacked = _unpacked(message.role, message.content)
                if owner == agent_id:
                    found.append(_Stored(message.message_id, unpacked, message.at))
            return found

        return self._guard.demand(read)


class HeedfulSessionManager(RepositorySessionManager):
    """A session manager of Strands whose sessions are those of a memory."""

    def __init__(self, memory: BlockingMemory, session_id: str) -> None:
        super().__init__(session_id, HeedfulSessionRepository(memory.sessions))


class MongoDBSessionManager(compat.MongoDBSessionManager, RepositorySessionManager):
    """`mongodb_session_manager.MongoDBSessionManager` as a session manager of Strands: messages and states of agents,
    feedback and metadata in one session, with the same arguments."""

    def _begin(self, session_id: str, space: SessionSpace) -> None:
        super()._begin(session_id, space)
        # Hooks for metadata are for those of the caller.
        bare = session_space(space.store, space.project, space.now, None, None, None, dispatcher=space.dispatcher)
        RepositorySessionManager.__init__(self, self.session_id, HeedfulSessionRepository(sessions_of(bare)))

    def get_metadata(self) -> Metadata:
        return _without_agents(super().get_metadata())

    def update_metadata(self, metadata: Metadata) -> Metadata:
        return _without_agents(super().update_metadata(metadata))

    def delete_metadata(self, metadata_keys: Sequence[str]) -> Metadata:
        return _without_agents(super().delete_metadata(metadata_keys))


def _without_agents(metadata: Metadata) -> Metadata:
    return {name: value for name, value in metadata.items() if not name.startswith(AGENTS)}


def _agent_key(agent_id: str) -> str:
    # A dot in a key would reach inside.
    return AGENTS + agent_id.replace("%", "%25").replace(".", "%2E")


def _packed(agent_id: str, message: Message) -> str:
    content: Sequence[Mapping[str, Any]] = message["content"]
    if agent_id == DEFAULT_AGENT and len(content) == 1 and set(content[0]) == {"text"}:
        text = str(content[0]["text"])
        if text.strip() and not text.startswith(PACKED):
            return text
    return json.dumps({"strands": {"agent_id": agent_id, "content": encode_bytes_values(content)}}, ensure_ascii=False)


def _unpacked(role: str, content: str) -> tuple[str, Message]:
    if not content.startswith(PACKED):
        return DEFAULT_AGENT, _message(role, [{"text": content}])
    packed = json.loads(content)["strands"]
    return packed["agent_id"], _message(role, decode_bytes_values(packed["content"]))


def _message(role: str, content: Any) -> Message:
    return {"role": "assistant" if role == "assistant" else "user", "content": content}
