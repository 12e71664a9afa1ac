"""The same engine for asyncio: its methods are awaited, and no logic exists twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from heedful import bootstrap
from heedful.access.keys import Keys
from heedful.bootstrap import Projects
from heedful.clock import Clock
from heedful.engine import Heedful
from heedful.insight.service import Insight
from heedful.jobs.service import Jobs
from heedful.providers.embedding import Embedder
from heedful.providers.llm.contract import LanguageModel
from heedful.review.service import Review
from heedful.sessions.hooks import Hook
from heedful.sessions.service import Sessions
from heedful.sql.chat import Chat
from heedful.sql.chat_sessions import ChatSessions
from heedful.sql.connectors import Connectors
from heedful.sql.executions import Executions
from heedful.sql.feedback import FeedbackService
from heedful.sql.golden import GoldenExamples

THREADS = 8

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


Runner = Callable[[str, str, tuple[Any, ...], dict[str, Any]], Awaitable[Any]]
"""Runs a method, given its namespace, its name and its arguments."""


class _Awaiting:
    """Something whose calls are awaited."""

    def __init__(self, runner: Runner, namespace: str) -> None:
        self._runner = runner
        self._namespace = namespace


def _as_async(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[_Awaiting, Parameters], Coroutine[Any, Any, Result]]:
    async def run(self: _Awaiting, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        result: Result = await self._runner(self._namespace, method.__name__, args, kwargs)
        return result

    update_wrapper(run, method)
    return run


class AsyncSessions(_Awaiting):
    """Every method of `Sessions`, awaited."""

    create = _as_async(Sessions.create)
    get = _as_async(Sessions.get)
    exists = _as_async(Sessions.exists)
    list = _as_async(Sessions.list)
    delete = _as_async(Sessions.delete)
    add_message = _as_async(Sessions.add_message)
    add_messages = _as_async(Sessions.add_messages)
    messages = _as_async(Sessions.messages)
    get_metadata = _as_async(Sessions.get_metadata)
    update_metadata = _as_async(Sessions.update_metadata)
    delete_metadata = _as_async(Sessions.delete_metadata)
    add_entry = _as_async(Sessions.add_entry)
    entry = _as_async(Sessions.entry)
    entries = _as_async(Sessions.entries)
    add_feedback = _as_async(Sessions.add_feedback)
    delete_feedback = _as_async(Sessions.delete_feedback)
    add_session_feedback = _as_async(Sessions.add_session_feedback)
    feedbacks = _as_async(Sessions.feedbacks)
    feedback_metrics = _as_async(Sessions.feedback_metrics)
    alerts = _as_async(Sessions.alerts)
    deliver_alerts = _as_async(Sessions.deliver_alerts)
    discard_alert = _as_async(Sessions.discard_alert)


class AsyncInsight(_Awaiting):
    """Every method of `Insight`, awaited."""

    satisfaction = _as_async(Insight.satisfaction)
    trend = _as_async(Insight.trend)
    coverage = _as_async(Insight.coverage)
    usefulness = _as_async(Insight.usefulness)
    cache = _as_async(Insight.cache)
    themes = _as_async(Insight.themes)
    notes = _as_async(Insight.notes)
    digest = _as_async(Insight.digest)
    rows = _as_async(Insight.rows)
    export = _as_async(Insight.export)
    dictionary = _as_async(Insight.dictionary)


class AsyncConnectors(_Awaiting):
    """Every method of `Connectors`, awaited."""

    create = _as_async(Connectors.create)
    get = _as_async(Connectors.get)
    list = _as_async(Connectors.list)
    refresh = _as_async(Connectors.refresh)
    confirm = _as_async(Connectors.confirm)
    schema = _as_async(Connectors.schema)
    delete = _as_async(Connectors.delete)


class AsyncExecutions(_Awaiting):
    """Every method of `Executions`, awaited."""

    execute_query = _as_async(Executions.execute_query)
    execute_from_chat = _as_async(Executions.execute_from_chat)
    get = _as_async(Executions.get)
    list = _as_async(Executions.list)
    delete = _as_async(Executions.delete)


class AsyncFeedbackService(_Awaiting):
    """Every method of `FeedbackService`, awaited."""

    create = _as_async(FeedbackService.create)
    create_positive = _as_async(FeedbackService.create_positive)
    create_negative = _as_async(FeedbackService.create_negative)
    get = _as_async(FeedbackService.get)
    list = _as_async(FeedbackService.list)
    list_positive = _as_async(FeedbackService.list_positive)
    list_negative = _as_async(FeedbackService.list_negative)
    get_feedback_for_message = _as_async(FeedbackService.get_feedback_for_message)
    update = _as_async(FeedbackService.update)
    delete = _as_async(FeedbackService.delete)
    bulk_delete = _as_async(FeedbackService.bulk_delete)


class AsyncChat(_Awaiting):
    """Every method of `Chat`, awaited."""

    chat_to_sql = _as_async(Chat.chat_to_sql)
    chat_to_answer = _as_async(Chat.chat_to_answer)
    execution_cache_lookup = _as_async(Chat.execution_cache_lookup)


class AsyncChatSessions(_Awaiting):
    """Every method of `ChatSessions`, awaited."""

    create = _as_async(ChatSessions.create)
    get = _as_async(ChatSessions.get)
    list = _as_async(ChatSessions.list)
    delete = _as_async(ChatSessions.delete)
    get_questions = _as_async(ChatSessions.get_questions)


class AsyncGoldenExamples(_Awaiting):
    """Every method of `GoldenExamples`, awaited."""

    create = _as_async(GoldenExamples.create)
    promote = _as_async(GoldenExamples.promote)
    get = _as_async(GoldenExamples.get)
    list = _as_async(GoldenExamples.list)
    update = _as_async(GoldenExamples.update)
    delete = _as_async(GoldenExamples.delete)
    import_file = _as_async(GoldenExamples.import_file)
    import_examples = _as_async(GoldenExamples.import_examples)


class AsyncReview(_Awaiting):
    """Every method of `Review`, awaited."""

    list = _as_async(Review.list)
    get = _as_async(Review.get)
    assign = _as_async(Review.assign)
    resolve = _as_async(Review.resolve)
    dismiss = _as_async(Review.dismiss)
    reopen = _as_async(Review.reopen)
    fix = _as_async(Review.fix)
    ask_again = _as_async(Review.ask_again)
    undo = _as_async(Review.undo)


class AsyncKeys(_Awaiting):
    """Every method of `Keys`, awaited."""

    create = _as_async(Keys.create)
    list = _as_async(Keys.list)
    revoke = _as_async(Keys.revoke)
    create_token = _as_async(Keys.create_token)
    rotate_signing = _as_async(Keys.rotate_signing)


class AsyncJobs(_Awaiting):
    """Every method of `Jobs`, awaited."""

    improve = _as_async(Jobs.improve)
    list = _as_async(Jobs.list)
    get = _as_async(Jobs.get)
    cancel = _as_async(Jobs.cancel)
    retry = _as_async(Jobs.retry)


class AsyncHeedful(_Awaiting):
    """One project of one store; every method of `Heedful`, awaited. Use it in an `async with`, or close it."""

    def __init__(self, runner: Runner, closing: Callable[[], Awaitable[None]], shown: str) -> None:
        super().__init__(runner, "")
        self._closing = closing
        self._shown = shown
        self.sessions = AsyncSessions(runner, "sessions")
        self.insight = AsyncInsight(runner, "insight")
        self.connectors = AsyncConnectors(runner, "connectors")
        self.executions = AsyncExecutions(runner, "executions")
        self.feedback = AsyncFeedbackService(runner, "feedback")
        self.chat = AsyncChat(runner, "chat")
        self.chat_sessions = AsyncChatSessions(runner, "chat_sessions")
        self.golden_examples = AsyncGoldenExamples(runner, "golden_examples")
        self.review = AsyncReview(runner, "review")
        self.keys = AsyncKeys(runner, "keys")
        self.jobs = AsyncJobs(runner, "jobs")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return self._shown

    remember = _as_async(Heedful.remember)
    recall = _as_async(Heedful.recall)
    improve = _as_async(Heedful.improve)
    signal = _as_async(Heedful.signal)
    signal_recall = _as_async(Heedful.signal_recall)
    detect = _as_async(Heedful.detect)
    retract = _as_async(Heedful.retract)
    supersede = _as_async(Heedful.supersede)
    set_policy = _as_async(Heedful.set_policy)
    forget = _as_async(Heedful.forget)
    receipt = _as_async(Heedful.receipt)
    fact_stats = _as_async(Heedful.fact_stats)
    fact_history = _as_async(Heedful.fact_history)
    usefulness_stats = _as_async(Heedful.usefulness_stats)
    replay = _as_async(Heedful.replay)
    fact = _as_async(Heedful.fact)
    facts = _as_async(Heedful.facts)
    create_dataset = _as_async(Heedful.create_dataset)
    get_dataset = _as_async(Heedful.get_dataset)
    datasets = _as_async(Heedful.datasets)
    doctor = _as_async(Heedful.doctor)
    audit = _as_async(Heedful.audit)

    async def close(self) -> None:
        """Waits for calls that are under way, saves the indexes and lets go of the store."""
        await self._closing()


async def aopen(
    url_or_path: str | Path | None = None,
    *,
    project: str | None = None,
    clock: Clock | None = None,
    embedding: str | Embedder | None = None,
    language_model: str | LanguageModel | None = None,
    sessions: str | None = None,
    feedback_hook: Hook | None = None,
    metadata_hook: Hook | None = None,
    worker: bool = True,
) -> AsyncHeedful:
    """Opens a store for asyncio; see `open`."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="heedful")
    call = partial(
        bootstrap.open,
        url_or_path,
        project=project,
        clock=clock,
        embedding=embedding,
        language_model=language_model,
        sessions=sessions,
        feedback_hook=feedback_hook,
        metadata_hook=metadata_hook,
        worker=worker,
    )
    try:
        heedful = await asyncio.get_running_loop().run_in_executor(pool, call)
    except BaseException:
        pool.shutdown(wait=False)
        raise

    async def run(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        method = getattr(getattr(heedful, namespace) if namespace else heedful, name)
        return await asyncio.get_running_loop().run_in_executor(pool, partial(method, *args, **kwargs))

    async def close() -> None:
        await asyncio.to_thread(pool.shutdown)
        await asyncio.to_thread(heedful.close)

    return AsyncHeedful(run, close, f"<Async{repr(heedful)[1:]}")


def async_project(projects: Projects, project: str, pool: ThreadPoolExecutor) -> AsyncHeedful:
    """One of many projects, for asyncio: it is open while a call runs. Whoever calls closes `projects` and `pool`."""

    def call(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with projects.using(project) as heedful:
            return getattr(getattr(heedful, namespace) if namespace else heedful, name)(*args, **kwargs)

    async def run(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(pool, call, namespace, name, args, kwargs)

    async def close() -> None:
        """Others may use the store."""

    return AsyncHeedful(run, close, f"<AsyncHeedful {projects.host.database.name} project={project!r}>")
