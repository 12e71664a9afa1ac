"""What every adapter does: memories before the model answers, the answer stored after it, no failure of its own, and no
agent that waits for Heedful longer than the deadline."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from heedful.errors import Invalid
from heedful.integrations.calls import Calls, within
from heedful.memory.answer import as_prompt
from heedful.model import DEFAULT_DATASET, Entry, Metadata, Recall

if TYPE_CHECKING:
    from heedful.aio import AsyncHeedful
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful

logger = logging.getLogger("heedful.integrations")

MAX_CHARACTERS = 8_000
"""Characters of memories in a prompt at most."""

DEADLINE = 2.0
"""Seconds that an agent waits for one call of Heedful's: to recall, and to store its answer."""

THREADS = 32
"""Calls of one memory that run at the same time for agents."""

MAX_LATE = 4
"""Calls of one memory that may still run after their deadline; while as many do, no other is started."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Memories:
    """What was recalled for one question."""

    question: str
    prompt: str = ""
    """For the instructions of the model; empty if nothing was recalled."""
    recall_id: str | None = None


class Guard:
    """Lets an agent go on when Heedful fails; the log says so once, until it works again. Threads may share it.

    Its attempts are made one after the other, and none while one is late, unless `calls` allows more.
    """

    def __init__(self, calls: Calls | None = None) -> None:
        self._failing = False
        self._calls = calls or Calls(threads=1, late=1)

    def attempt(
        self, doing: str, method: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result | None:
        """What a method returns; None if it fails, or takes longer than the deadline."""
        with self.guarded(doing):
            result: Result = self._calls.run(DEADLINE, partial(method, *args, **kwargs))
            return result
        return None

    async def aattempt(
        self, doing: str, method: Callable[Parameters, Any], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Any:
        """The same for asyncio; the method may be one that is awaited."""
        call = partial(method, *args, **kwargs)
        with self.guarded(doing):
            if inspect.iscoroutinefunction(method):
                return await within(DEADLINE, call())
            return await self._calls.arun(DEADLINE, call)
        return None

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
        super().__init__(_calls_of(memory))
        self._memory: Any = memory
        self._options: dict[str, Any] = {"dataset": dataset, "top_k": top_k, "where": where}

    def require_sync(self) -> None:
        """Fails if the memory can't be used by an agent that doesn't await it."""
        if inspect.iscoroutinefunction(self._memory.recall):
            raise Invalid(
                "this adapter needs a memory that is not awaited",
                field="memory",
                remedy="Pass what heedful.open() or heedful.connect() returned; it is used in a thread where needed",
            )

    def recall(self, question: str) -> Memories:
        """The memories for a question; none if Heedful fails, or takes longer than the deadline."""
        return _memories(question, self.attempt("recall", self._memory.recall, question, **self._options))

    async def arecall(self, question: str, **options: Any) -> Memories:
        """The same, awaited; `options` replace those that were given for all questions."""
        found = await self.aattempt("recall", self._memory.recall, question, **{**self._options, **options})
        return _memories(question, found)

    def store(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> str | None:
        """Stores an answer with what it was made from; returns its `qa_id`, or None if Heedful fails. After the
        deadline, it may still be stored."""
        entry: Entry | None = self.attempt(
            "store the answer", self._add_entry(session_id, memories, answer, external_id)
        )
        return None if entry is None else entry.qa_id

    async def astore(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> str | None:
        """The same, awaited."""
        entry: Entry | None = await self.aattempt(
            "store the answer", self._add_entry(session_id, memories, answer, external_id)
        )
        return None if entry is None else entry.qa_id

    def _add_entry(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> partial[Any]:
        return partial(
            self._memory.sessions.add_entry,
            session_id,
            memories.question,
            answer,
            recall_id=memories.recall_id,
            external_id=external_id,
        )


_CALLS: WeakKeyDictionary[Any, Calls] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _calls_of(memory: Any) -> Calls:
    """The same for all adapters of a memory, some of which are made for each run: a limit of each would be none."""
    with _LOCK:
        return _CALLS.setdefault(memory, Calls(threads=THREADS, late=MAX_LATE))


def _memories(question: str, found: Recall | None) -> Memories:
    if found is None:
        return Memories(question)
    return Memories(question, as_prompt(found, max_characters=MAX_CHARACTERS), found.recall_id)
