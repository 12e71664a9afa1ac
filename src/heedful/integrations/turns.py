"""The part that all adapters share: memories before the model answers, the answer stored after it, no failure of
their own, and no agent that waits for Heedful longer than the deadline."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeAlias, TypedDict, TypeVar
from weakref import WeakKeyDictionary

from cachetools import TTLCache
from pydantic_core import to_json

from heedful.clock import new_id
from heedful.errors import HeedfulError, Invalid, Unavailable, quoted
from heedful.integrations.calls import Breaker, Calls, blocking, within
from heedful.memory.answer import as_prompt
from heedful.model import DEFAULT_DATASET, Metadata, Recall, RememberResult
from heedful.model.limits import MAX_CONTENT, MAX_QUERY

if TYPE_CHECKING:
    from heedful.aio import AsyncHeedful
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful

BlockingMemory: TypeAlias = "Heedful | RemoteHeedful"
AnyMemory: TypeAlias = "Heedful | RemoteHeedful | AsyncHeedful"

logger = logging.getLogger("heedful.integrations")

MAX_CHARACTERS = 8_000
"""Characters of memories in a prompt at most."""

MAX_RECALLED = 2_000
"""Characters of a question that are recalled for: of a longer one, such as with a log in it, its beginning and end."""

DEADLINE = 2.0
"""Seconds that an agent waits for memories, unless its adapter says otherwise."""

PATIENCE = 30.0
"""Seconds that an agent waits for what may not fail without its knowing, such as what it stores."""

PAUSE = 30.0
"""Seconds after a failure in which a memory is left alone."""

QUIET = 60.0
"""Seconds in which no warning is logged twice."""

FINISH = 5.0
"""Seconds that the end of a process, or closing a memory, waits for answers to be stored."""

RETRIES = 2.0, 10.0, 30.0
"""Seconds between the attempts to store an answer while Heedful is unavailable; at the end of a process, there are no
pauses."""

THREADS = 32
"""Calls of one memory that run at the same time for agents."""

MAX_LATE = 4
"""Calls of one memory that may still run after their deadline; while as many do, no other is started."""

MAX_WAITING = 1_000
"""Answers that wait to be stored."""

TRACE = "trace"
"""As `external_id`: the id of the current trace of OpenTelemetry."""

GAP = "\n…\n"
"""In place of the middle of a text that is too long."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Value = TypeVar("Value")

Scoped: TypeAlias = Value | Callable[[Any], Value]
"""A value, or a function of what the framework knows about a run, such as its user."""


class RunOptions(TypedDict, total=False):
    """The options of adapters, besides the memory and the session."""

    dataset: Scoped[str]
    top_k: int
    where: Scoped[Metadata | None]
    """Conditions on the metadata of what is recalled."""
    external_id: Scoped[str | None]
    """The answer's id for feedback, in place of that of the framework's run; `trace` is that of OpenTelemetry."""
    deadline: float
    """Seconds that an agent waits for memories; 2 if left out."""


class Options(RunOptions, total=False):
    """The options of adapters, besides the memory."""

    session_id: Scoped[str | None]
    """The session, in place of the framework's conversation."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The facts that were recalled for one question."""

    question: str
    prompt: str = ""
    """For the instructions of the model; empty if nothing was recalled."""
    recall_id: str | None = None
    trace_id: str | None = None
    """The trace in which they were recalled, if answers are known by it."""


class Runs:
    """The state of the runs that are followed, by key. Threads may share it; the oldest are forgotten, and those
    that didn't end within so many seconds."""

    def __init__(self, seconds: float = inf, most: int = 1_000) -> None:
        self._runs: TTLCache[Any, Any] = TTLCache(most, seconds)
        self._lock = threading.Lock()

    def get(self, key: Any, default: Any = None) -> Any:
        with self._lock:
            return self._runs.get(key, default)

    def put(self, key: Any, run: Any) -> None:
        with self._lock:
            self._runs[key] = run

    def pop(self, key: Any, default: Any = None) -> Any:
        with self._lock:
            return self._runs.pop(key, default)


class _Connection:
    """The limits that all adapters of a memory share; as some are made for each run, a limit of each would be none."""

    def __init__(self, threads: int = 1, late: int = 1, pause: float | None = None, memory: str = "") -> None:
        self._about = memory and f" ({memory})"
        self.is_closed = False
        self.calls = Calls(threads=threads, late=late)
        self.breaker = Breaker(PAUSE if pause is None else pause)
        # Stored in the order they are given.
        self.answers = Calls(threads=1, late=1)
        self.hurry = threading.Event()
        """Ends the pauses between attempts."""
        self._warned: dict[tuple[str, str], float] = {}

    def warn(self, doing: str, error: Exception) -> None:
        cause = doing, str(getattr(error, "code", type(error).__name__))
        now = time.monotonic()
        if now >= self._warned.get(cause, 0):
            self._warned[cause] = now + QUIET
            logger.warning("Heedful can't %s, so the agent goes on without it: %s%s", doing, error, self._about)

    def finish(self, seconds: float | None = None) -> None:
        """Waits for the answers that are being stored."""
        self.hurry.set()
        if left := self.answers.finish(FINISH if seconds is None else seconds):
            logger.warning("%d answers of agents may not be stored: there was no time left%s", left, self._about)

    def close(self) -> None:
        """The same, for the last time."""
        self.finish()
        self.is_closed = True


class Guard:
    """Lets an agent go on when Heedful fails; the log says so, once a minute for each cause. Threads may share it.

    Its attempts are made one after the other, and none while one is late. After a failure, none is made for `pause`
    seconds.
    """

    def __init__(self, *, pause: float | None = None) -> None:
        self._connection = _Connection(pause=pause)
        self._deadline: float | None = None

    def attempt(
        self, doing: str, method: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result | None:
        """The result of a method; None if it fails, takes longer than the deadline, or isn't tried."""
        with self.guarded(doing):
            if self._connection.breaker.allows():
                return self._within(self._seconds, partial(method, *args, **kwargs))
        return None

    async def aattempt(
        self, doing: str, method: Callable[Parameters, Any], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Any:
        """The same for asyncio; the method may be one that is awaited."""
        call = partial(method, *args, **kwargs)
        with self.guarded(doing):
            if not self._connection.breaker.allows():
                return None
            if inspect.iscoroutinefunction(method):
                with self._noted():
                    return await within(self._seconds, call())
            return await self._awithin(self._seconds, call)
        return None

    def demand(self, method: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """The result of a method; fails if the method does, or gives none for half a minute."""
        return self._within(PATIENCE, partial(method, *args, **kwargs))

    async def ademand(self, method: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """The same, awaited."""
        return await self._awithin(PATIENCE, partial(method, *args, **kwargs))

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """A block that may fail without the agent failing."""
        try:
            yield
        # Whatever it is: an agent that can't remember still answers.
        except Exception as error:
            if isinstance(error, Unavailable):
                self._connection.breaker.failed()
            self._connection.warn(doing, error)

    @property
    def _seconds(self) -> float:
        return DEADLINE if self._deadline is None else self._deadline

    def _within(self, seconds: float, call: Callable[[], Result]) -> Result:
        result: Result = self._connection.calls.run(seconds, partial(self._tried, call))
        return result

    async def _awithin(self, seconds: float, call: Callable[[], Result]) -> Result:
        result: Result = await self._connection.calls.arun(seconds, partial(self._tried, call))
        return result

    def _tried(self, call: Callable[[], Result]) -> Result:
        with self._noted():
            return call()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Notes that Heedful answered, also if that was late, as what was slow to start is there now; a refusal is an
        answer."""
        try:
            yield
        except HeedfulError as error:
            if not isinstance(error, Unavailable):
                self._connection.breaker.worked()
            raise
        self._connection.breaker.worked()


class Turns(Guard):
    """The turns of conversations with an agent. Threads and tasks may share it: it knows nothing of any one turn.

    `context` is what functions in the options take.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        dataset: Scoped[str] = DEFAULT_DATASET,
        top_k: int = 5,
        where: Scoped[Metadata | None] = None,
        session_id: Scoped[str | None] = None,
        external_id: Scoped[str | None] = None,
        deadline: float | None = None,
    ) -> None:
        if external_id == TRACE:
            trace_id()
        self._connection = _connection_of(memory)
        self._deadline = deadline
        self._memory: Any = memory
        self._options: dict[str, Any] = {"dataset": dataset, "top_k": top_k, "where": where}
        self._ids: dict[str, Any] = {"session_id": session_id, "external_id": external_id}

    def require_sync(self) -> Self:
        """The same, if the memory can be used by an agent that doesn't await it; else this fails."""
        if _is_awaited(self._memory):
            remedy = "Pass what heedful.open() or heedful.connect() returned; it is used in a thread where needed"
            raise Invalid("this adapter needs a memory that is not awaited", field="memory", remedy=remedy)

        return self

    def find(self, query: str, context: Any = None, **options: Any) -> Recall | None:
        """The facts for a query; None if it is blank, if Heedful fails, or takes longer than the deadline. `options`
        replace those that were given for all queries."""
        given = self._arguments(query, context, options)
        return None if given is None else self.attempt("recall", self._memory.recall, **given)

    async def afind(self, query: str, context: Any = None, **options: Any) -> Recall | None:
        """The same, awaited."""
        given = self._arguments(query, context, options)
        if given is None:
            return None
        recall: Recall | None = await self.aattempt("recall", self._memory.recall, **given)
        return recall

    def recall(self, question: str, context: Any = None) -> Memories:
        """The memories for a question; none if it is blank, if Heedful fails, or takes longer than the deadline."""
        return self._memories(question, self.find(question, context))

    async def arecall(self, question: str, context: Any = None, **options: Any) -> Memories:
        """The same, awaited."""
        return self._memories(question, await self.afind(question, context, **options))

    def store(
        self, session_id: str, memories: Memories, answer: Any, external_id: str | None = None, context: Any = None
    ) -> str | None:
        """Stores an answer with what it was made from, in the background; what is no text is stored as JSON.

        Returns the id by which it can be rated, which is the external id if there is one; None if there is no question,
        or no answer. The session and the id give way to those of the options. It has to be called where the memory is
        awaited, if it is one that is.
        """
        text = as_text(answer)
        if not (memories.question.strip() and text.strip()):
            return None
        with self.guarded("store the answer"):
            ids = scoped(self._ids, context)
            if ids["external_id"] == TRACE:
                ids["external_id"] = trace_id() or memories.trace_id
            name = ids["external_id"] or external_id or new_id()
            found = {"recall_id": memories.recall_id, "external_id": name}
            add = self._memory.sessions.add_entry
            if inspect.iscoroutinefunction(add):
                add = blocking(add, asyncio.get_running_loop())
            entry = partial(add, ids["session_id"] or session_id, memories.question, text, **found)
            self._connection.answers.later(partial(self._store, entry), MAX_WAITING)
            return str(name)
        return None

    def _arguments(self, query: str, context: Any, options: Mapping[str, Any]) -> dict[str, Any] | None:
        with self.guarded("recall"):
            if query.strip():
                return {"query": fitting(query, MAX_RECALLED), **scoped({**self._options, **options}, context)}
        return None

    def _memories(self, question: str, recall: Recall | None) -> Memories:
        question = fitting(question, MAX_QUERY)
        trace = trace_id() if self._ids["external_id"] == TRACE else None
        if recall is None:
            return Memories(question, trace_id=trace)
        return Memories(question, as_prompt(recall, max_characters=MAX_CHARACTERS), recall.recall_id, trace)

    def _store(self, add: Callable[[], Any]) -> None:
        with self.guarded("store the answer"):
            for pause in RETRIES:
                # It has an id of its own, so it is stored once, whatever came of an earlier attempt.
                with suppress(Unavailable):
                    self._tried(add)
                    return
                self._connection.hurry.wait(pause)
            self._tried(add)


_CONNECTIONS: WeakKeyDictionary[Any, _Connection] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _connection_of(memory: Any) -> _Connection:
    with _LOCK:
        found = _CONNECTIONS.get(memory)
        if found is None:
            found = _CONNECTIONS[memory] = _Connection(THREADS, MAX_LATE, memory=repr(memory))
            finish = partial(asyncio.to_thread, found.close) if _is_awaited(memory) else found.close
            hooks = getattr(memory, "_before_close", None)
            if isinstance(hooks, list):
                hooks.append(finish)
        return found


def _is_awaited(memory: Any) -> bool:
    return inspect.iscoroutinefunction(memory.recall)


@atexit.register
def _finish_all() -> None:
    end = time.monotonic() + FINISH
    for connection in list(_CONNECTIONS.values()):
        if not connection.is_closed:
            connection.finish(max(end - time.monotonic(), 0))


def finish(memory: AnyMemory, seconds: float | None = None) -> None:
    """Waits until the answers of agents are stored, where a process may be stopped without notice; `close` does so,
    too."""
    connection = _connection_of(memory)
    connection.finish(seconds)
    connection.hurry.clear()


async def afinish(memory: AsyncHeedful) -> None:
    """The same of a memory that is awaited."""
    await asyncio.to_thread(finish, memory)


def in_context(value: Any, context: Any) -> Any:
    """The value of an option, which may be a function."""
    return value(context) if callable(value) else value


def scoped(options: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """The values of options in a context."""
    found = {}
    for name, value in options.items():
        try:
            found[name] = in_context(value, context)
        except Exception as error:
            raise Invalid(f"the function for {name} failed: {quoted(error)}", field=name) from error
    return found


def fitting(text: str, limit: int) -> str:
    """A text as it can be stored, without the middle if it is too long."""
    text = text.replace("\0", " ").encode(errors="replace").decode()
    half = (limit - len(GAP)) // 2
    return text if len(text) <= limit else text[:half] + GAP + text[-half:]


def as_text(answer: Any) -> str:
    """An answer as it is stored: a text as it is, anything else as JSON."""
    if answer is None:
        return ""
    text = (
        answer
        if isinstance(answer, str)
        else to_json(answer, fallback=str, bytes_mode="base64", inf_nan_mode="null").decode()
    )
    return fitting(text, MAX_CONTENT)


def trace_id() -> str | None:
    """The id of OpenTelemetry's current trace; None outside of any."""
    try:
        from opentelemetry.trace import get_current_span
    except ImportError as error:
        remedy = "pip install opentelemetry-api"
        raise Unavailable("external_id='trace' needs OpenTelemetry", code="extra_missing", remedy=remedy) from error
    found = get_current_span().get_span_context().trace_id
    return f"{found:032x}" if found else None


def stored(result: RememberResult) -> RememberResult:
    """The same, if all was stored; else this fails with the first error."""
    for error in result.errors:
        raise Invalid(f"{error.source} is not stored: {error.message}", field="texts", value=error.source)
    return result


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from strings(part)
