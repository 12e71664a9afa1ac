"""The part that all adapters share: memories before the model answers, the answer stored after it, no failure of
their own, and no agent that waits for Heedful longer than the deadline."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from heedful.errors import Invalid, Unavailable
from heedful.memory.answer import as_prompt
from heedful.model import DEFAULT_DATASET, Entry, Metadata, Recall

if TYPE_CHECKING:
    from heedful.aio import AsyncHeedful
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful

BlockingMemory: TypeAlias = "Heedful | RemoteHeedful"
AnyMemory: TypeAlias = "Heedful | RemoteHeedful | AsyncHeedful"

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
    """The facts that were recalled for one question."""

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
        """The result of a method; None if it fails, or takes longer than the deadline."""
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
        self, memory: AnyMemory, *, dataset: str = DEFAULT_DATASET, top_k: int = 5, where: Metadata | None = None
    ) -> None:
        super().__init__(_calls_of(memory))
        self._memory: Any = memory
        self._options: dict[str, Any] = {"dataset": dataset, "top_k": top_k, "where": where}

    def require_sync(self) -> Self:
        """The same, if the memory can be used by an agent that doesn't await it; else this fails."""
        if inspect.iscoroutinefunction(self._memory.recall):
            remedy = "Pass what heedful.open() or heedful.connect() returned; it is used in a thread where needed"
            raise Invalid("this adapter needs a memory that is not awaited", field="memory", remedy=remedy)

        return self

    def find(self, query: str, **options: Any) -> Recall | None:
        """The facts for a query; None if Heedful fails, or takes longer than the deadline. `options` replace those that
        were given for all queries."""
        return self.attempt("recall", self._memory.recall, query, **{**self._options, **options})

    async def afind(self, query: str, **options: Any) -> Recall | None:
        """The same, awaited."""
        recall: Recall | None = await self.aattempt(
            "recall", self._memory.recall, query, **{**self._options, **options}
        )
        return recall

    def recall(self, question: str) -> Memories:
        """The memories for a question; none if Heedful fails, or takes longer than the deadline."""
        return _memories(question, self.find(question))

    async def arecall(self, question: str, **options: Any) -> Memories:
        """The same, awaited."""
        return _memories(question, await self.afind(question, **options))

    def store(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> str | None:
        """Stores an answer with what it was made from; returns its `qa_id`, or None if Heedful fails. After the
        deadline, it may still be stored."""
        add = self._add_entry(session_id, memories, answer, external_id)
        entry: Entry | None = self.attempt("store the answer", add)
        return None if entry is None else entry.qa_id

    async def astore(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> str | None:
        """The same, awaited."""
        add = self._add_entry(session_id, memories, answer, external_id)
        entry: Entry | None = await self.aattempt("store the answer", add)
        return None if entry is None else entry.qa_id

    def _add_entry(self, session_id: str, memories: Memories, answer: str, external_id: str | None) -> partial[Any]:
        ids = {"recall_id": memories.recall_id, "external_id": external_id}
        return partial(self._memory.sessions.add_entry, session_id, memories.question, answer, **ids)


_CALLS: WeakKeyDictionary[Any, Calls] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _calls_of(memory: Any) -> Calls:
    """The same for all adapters of a memory, some of which are made for each run: a limit of each would be none."""
    with _LOCK:
        return _CALLS.setdefault(memory, Calls(threads=THREADS, late=MAX_LATE))


def _memories(question: str, recall: Recall | None) -> Memories:
    if recall is None:
        return Memories(question)
    return Memories(question, as_prompt(recall, max_characters=MAX_CHARACTERS), recall.recall_id)


class Calls:
    """Runs calls in threads, in the order they come. Threads and tasks may share it.

    A call that takes longer than its caller waits runs on, and its result is dropped; one that has not begun by then is
    not made. At most `threads` run at the same time. While `late` of them run longer than their callers waited, no
    other is started.
    """

    def __init__(self, *, threads: int, late: int) -> None:
        self._max_threads = threads
        self._max_late = late
        self._threads = 0
        self._waiting: dict[Future[Any], tuple[float, Callable[[], Any]]] = {}
        self._running: dict[Future[Any], float] = {}
        """When each of them is late."""
        self._lock = threading.Lock()

    def run(self, seconds: float, call: Callable[[], Any]) -> Any:
        """The result of a call, within this many seconds."""
        future = self._start(seconds, call)
        try:
            if not wait([future], seconds).done:
                raise _too_slow(seconds)
            return future.result()
        finally:
            self._drop(future)

    async def arun(self, seconds: float, call: Callable[[], Any]) -> Any:
        """The same, awaited."""
        future = self._start(seconds, call)
        try:
            return await within(seconds, asyncio.wrap_future(future))
        finally:
            self._drop(future)

    def _start(self, seconds: float, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            late = sum(moment < time.monotonic() for moment in self._running.values())
            if late >= self._max_late:
                raise Unavailable(f"no call is started while {late} earlier ones have no answer")
            if self._threads < self._max_threads:
                # Not those of a pool, which the interpreter waits for when it exits.
                threading.Thread(target=self._work, name="heedful-agent", daemon=True).start()
                self._threads += 1
            self._waiting[future] = seconds, partial(copy_context().run, call)
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                future = next(iter(self._waiting))
                seconds, call = self._waiting.pop(future)
                if not future.set_running_or_notify_cancel():
                    continue
                self._running[future] = time.monotonic() + seconds
            self._finish(future, call)

    def _finish(self, future: Future[Any], call: Callable[[], Any]) -> None:
        result, failure = None, None
        # Whatever it is, it is the caller's.
        try:
            result = call()
        except BaseException as error:
            failure = error
        with self._lock:
            del self._running[future]
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)

    def _drop(self, future: Future[Any]) -> None:
        """Forgets a call that nobody waits for any more."""
        with self._lock:
            self._waiting.pop(future, None)


async def within(seconds: float, call: Awaitable[Any]) -> Any:
    """The result of a call that is awaited, within this many seconds; then it is cancelled."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError:
        if limit.expired():
            raise _too_slow(seconds) from None
        raise


def _too_slow(seconds: float) -> Unavailable:
    return Unavailable(f"it did not answer within {seconds:g} seconds")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from strings(part)
