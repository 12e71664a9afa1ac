"""The conversations that pass: memories for each question, and answers that are stored while nobody waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from heedful.integrations.proxy.protocols import Asked, Reply, answer_name, session_name
from heedful.integrations.turns import BlockingMemory, Memories, Runs, Turns

REMEMBERED = 10_000
"""Responses, and sessions, that are remembered for what continues them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that is being answered."""

    session: str
    user: str | None
    memories: Memories
    answer_id: str | None
    """The id that the caller gives to the answer."""


class Conversations:
    """The conversations of all users of a memory. `options` are those of `Turns`."""

    def __init__(self, memory: BlockingMemory, **options: Any) -> None:
        self._memory = memory
        self._turns = Turns(memory, **options).require_sync()
        self._storing: set[asyncio.Task[None]] = set()
        self._turn_of = Runs(most=REMEMBERED)
        """By user and response."""
        self._sessions = Runs(most=REMEMBERED)
        """Those that are stored with their user."""

    async def ask(self, asked: Asked, user: str | None, session: str | None, answer_id: str | None) -> Turn | None:
        """The turn of a question, with the memories that this user may see; None of what asks nothing."""
        earlier: Turn | None = self._turn_of.get((user, asked.previous))
        if asked.question.strip():
            own = {"user": {"only": [] if user is None else [user]}}
            memories = await self._turns.arecall(asked.question, where=own)
        elif earlier is not None:
            memories = earlier.memories
        else:
            return None
        name = earlier.session if earlier and session is None else session_name(user, session, asked)
        return Turn(name, user, memories, answer_id)

    def keep(self, turn: Turn, reply: Reply) -> None:
        """Stores an answer in the background."""
        if reply.id is not None:
            self._turn_of.put((turn.user, reply.id), turn)
        if reply.is_answer:
            task = asyncio.create_task(self._store(turn, reply))
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    async def finish(self) -> None:
        """Waits for the answers that are being stored."""
        await asyncio.gather(*self._storing)

    async def _store(self, turn: Turn, reply: Reply) -> None:
        if turn.user is not None and not self._sessions.get(turn.session):
            create, metadata = self._memory.sessions.create, {"user": turn.user}
            if await self._turns.aattempt("store the user of a session", create, turn.session, metadata=metadata):
                self._sessions.put(turn.session, True)
        answer_id = turn.answer_id or reply.id
        name = None if answer_id is None else answer_name(answer_id)
        self._turns.store(turn.session, turn.memories, reply.text, name)
