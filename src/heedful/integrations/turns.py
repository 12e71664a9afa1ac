"""What every adapter does: memories before the model answers, the answer stored after it, and no failure of its own."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heedful.errors import Invalid
from heedful.memory.answer import as_prompt
from heedful.model import DEFAULT_DATASET, Entry, Metadata, Recall

if TYPE_CHECKING:
    from heedful.aio import AsyncHeedful
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful

logger = logging.getLogger("heedful.integrations")

MAX_CHARACTERS = 8_000
"""Characters of memories in a prompt at most."""


@dataclass(frozen=True, slots=True)
class Memories:
    """What was recalled for one question."""

    question: str
    prompt: str = ""
    """For the instructions of the model; empty if nothing was recalled."""
    recall_id: str | None = None


class Guard:
    """Lets an agent go on when Heedful fails; the log says so once, until it works again. Threads may share it."""

    def __init__(self) -> None:
        self._failing = False

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """A block that may fail without the agent failing."""
        try:
            yield
        # Whatever it is: an agent that can't remember still answers.
        except Exception as error:
            if not self._failing:
                logger.warning("Heedful can't %s, so the agent goes on without it: %s", doing, error)
            self._failing = True
        else:
            self._failing = False


class Turns(Guard):
    """The turns of conversations with an agent. Threads and tasks may share it: it knows nothing of any one turn."""

    def __init__(
        self,
        memory: Heedful | RemoteHeedful | AsyncHeedful,
        *,
        dataset: str = DEFAULT_DATASET,
        top_k: int = 5,
        where: Metadata | None = None,
    ) -> None:
        super().__init__()
        self._memory: Any = memory
        self._options: dict[str, Any] = {"dataset": dataset, "top_k": top_k, "where": where}
        self._is_async = inspect.iscoroutinefunction(memory.recall)

    def require_sync(self) -> None:
        """Fails if the memory can't be used by an agent that doesn't await it."""
        if self._is_async:
            raise Invalid(
                "this adapter needs a memory that is not awaited",
                field="memory",
                remedy="Pass what heedful.open() or heedful.connect() returned; it is used in a thread where needed",
            )

    def recall(self, question: str) -> Memories:
        """The memories for a question; none if Heedful fails."""
        found: Recall | None = None
        with self.guarded("recall"):
            found = self._memory.recall(question, **self._options)
        return _memories(question, found)

    async def arecall(self, question: str) -> Memories:
        """The same, awaited."""
        found: Recall | None = None
        with self.guarded("recall"):
            found = await self._call(self._memory.recall, question, **self._options)
        return _memories(question, found)

    def store(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> str | None:
        """Stores an answer with what it was made from; returns its `qa_id`, or None if Heedful fails."""
        entry: Entry | None = None
        with self.guarded("store the answer"):
            entry = self._memory.sessions.add_entry(
                session_id, memories.question, answer, recall_id=memories.recall_id, external_id=external_id
            )
        return None if entry is None else entry.qa_id

    async def astore(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> str | None:
        """The same, awaited."""
        entry: Entry | None = None
        with self.guarded("store the answer"):
            entry = await self._call(
                self._memory.sessions.add_entry,
                session_id,
                memories.question,
                answer,
                recall_id=memories.recall_id,
                external_id=external_id,
            )
        return None if entry is None else entry.qa_id

    async def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Awaits a method of either kind of memory; one that blocks runs in a thread."""
        if self._is_async:
            return await method(*args, **kwargs)
        return await asyncio.to_thread(method, *args, **kwargs)


def _memories(question: str, found: Recall | None) -> Memories:
    if found is None:
        return Memories(question)
    return Memories(question, as_prompt(found, max_characters=MAX_CHARACTERS), found.recall_id)
