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


def _awaited(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[_Awaiting, Parameters], Coroutine[Any, Any, Result]]:
    async def run(self: _Awaiting, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        result: Result = await self._runner(self._namespace, method.__name__, args, kwargs)
        return result

    update_wrapper(run, method)
    return run


class AsyncSessions(_Awaiting):
    """Every method of `Sessions`, awaited."""

    create = _awaited(Sessions.create)
    get = _awaited(Sessions.get)
    exists = _awaited(Sessions.exists)
    list = _awaited(Sessions.list)
    delete = _awaited(Sessions.delete)
    add_message = _awaited(Sessions.add_message)
    add_messages = _awaited(Sessions.add_messages)
    messages = _awaited(Sessions.messages)
    get_metadata = _awaited(Sessions.get_metadata)
    update_metadata = _awaited(Sessions.update_metadata)
    delete_metadata = _awaited(Sessions.delete_metadata)
    add_entry = _awaited(Sessions.add_entry)
    entry = _awaited(Sessions.entry)
    entries = _awaited(Sessions.entries)
    add_feedback = _awaited(Sessions.add_feedback)
    delete_feedback = _awaited(Sessions.delete_feedback)
    add_session_feedback = _awaited(Sessions.add_session_feedback)
    feedbacks = _awaited(Sessions.feedbacks)
    feedback_metrics = _awaited(Sessions.feedback_metrics)
    alerts = _awaited(Sessions.alerts)
    deliver_alerts = _awaited(Sessions.deliver_alerts)
    discard_alert = _awaited(Sessions.discard_alert)


class AsyncInsight(_Awaiting):
    """Every method of `Insight`, awaited."""

    satisfaction = _awaited(Insight.satisfaction)
    trend = _awaited(Insight.trend)
    coverage = _awaited(Insight.coverage)
    usefulness = _awaited(Insight.usefulness)
    cache = _awaited(Insight.cache)
    themes = _awaited(Insight.themes)
    notes = _awaited(Insight.notes)
    digest = _awaited(Insight.digest)
    rows = _awaited(Insight.rows)
    export = _awaited(Insight.export)
    dictionary = _awaited(Insight.dictionary)


class AsyncConnectors(_Awaiting):
    """Every method of `Connectors`, awaited."""

    create = _awaited(Connectors.create)
    get = _awaited(Connectors.get)
    list = _awaited(Connectors.list)
    refresh = _awaited(Connectors.refresh)
    confirm = _awaited(Connectors.confirm)
    schema = _awaited(Connectors.schema)
    delete = _awaited(Connectors.delete)


class AsyncExecutions(_Awaiting):
    """Every method of `Executions`, awaited."""

    execute_query = _awaited(Executions.execute_query)
    execute_from_chat = _awaited(Executions.execute_from_chat)
    get = _awaited(Executions.get)
    list = _awaited(Executions.list)
    delete = _awaited(Executions.delete)


class AsyncFeedbackService(_Awaiting):
    """Every method of `FeedbackService`, awaited."""

    create = _awaited(FeedbackService.create)
    create_positive = _awaited(FeedbackService.create_positive)
    create_negative = _awaited(FeedbackService.create_negative)
    get = _awaited(FeedbackService.get)
    list = _awaited(FeedbackService.list)
    list_positive = _awaited(FeedbackService.list_positive)
    list_negative = _awaited(FeedbackService.list_negative)
    get_feedback_for_message = _awaited(FeedbackService.get_feedback_for_message)
    update = _awaited(FeedbackService.update)
    delete = _awaited(FeedbackService.delete)
    bulk_delete = _awaited(FeedbackService.bulk_delete)


class AsyncChat(_Awaiting):
    """Every method of `Chat`, awaited."""

    chat_to_sql = _awaited(Chat.chat_to_sql)
    chat_to_answer = _awaited(Chat.chat_to_answer)
    execution_cache_lookup = _awaited(Chat.execution_cache_lookup)


class AsyncChatSessions(_Awaiting):
    """Every method of `ChatSessions`, awaited."""

    create = _awaited(ChatSessions.create)
    get = _awaited(ChatSessions.get)
    list = _awaited(ChatSessions.list)
    delete = _awaited(ChatSessions.delete)
    get_questions = _awaited(ChatSessions.get_questions)


class AsyncGoldenExamples(_Awaiting):
    """Every method of `GoldenExamples`, awaited."""

    create = _awaited(GoldenExamples.create)
    promote = _awaited(GoldenExamples.promote)
    get = _awaited(GoldenExamples.get)
    list = _awaited(GoldenExamples.list)
    update = _awaited(GoldenExamples.update)
    delete = _awaited(GoldenExamples.delete)
    import_file = _awaited(GoldenExamples.import_file)
    import_examples = _awaited(GoldenExamples.import_examples)


class AsyncReview(_Awaiting):
    """Every method of `Review`, awaited."""

    list = _awaited(Review.list)
    get = _awaited(Review.get)
    assign = _awaited(Review.assign)
    resolve = _awaited(Review.resolve)
    dismiss = _awaited(Review.dismiss)
    reopen = _awaited(Review.reopen)
    mend = _awaited(Review.mend)
    ask_again = _awaited(Review.ask_again)
    undo = _awaited(Review.undo)


class AsyncKeys(_Awaiting):
    """Every method of `Keys`, awaited."""

    create = _awaited(Keys.create)
    list = _awaited(Keys.list)
    revoke = _awaited(Keys.revoke)
    create_token = _awaited(Keys.create_token)
    rotate_signing = _awaited(Keys.rotate_signing)


class AsyncJobs(_Awaiting):
    """Every method of `Jobs`, awaited."""

    improve = _awaited(Jobs.improve)
    list = _awaited(Jobs.list)
    get = _awaited(Jobs.get)
    cancel = _awaited(Jobs.cancel)
    retry = _awaited(Jobs.retry)


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

    remember = _awaited(Heedful.remember)
    recall = _awaited(Heedful.recall)
    improve = _awaited(Heedful.improve)
    signal = _awaited(Heedful.signal)
    signal_recall = _awaited(Heedful.signal_recall)
    detect = _awaited(Heedful.detect)
    retract = _awaited(Heedful.retract)
    supersede = _awaited(Heedful.supersede)
    set_policy = _awaited(Heedful.set_policy)
    forget = _awaited(Heedful.forget)
    receipt = _awaited(Heedful.receipt)
    fact_stats = _awaited(Heedful.fact_stats)
    fact_history = _awaited(Heedful.fact_history)
    usefulness_stats = _awaited(Heedful.usefulness_stats)
    replay = _awaited(Heedful.replay)
    fact = _awaited(Heedful.fact)
    facts = _awaited(Heedful.facts)
    create_dataset = _awaited(Heedful.create_dataset)
    get_dataset = _awaited(Heedful.get_dataset)
    datasets = _awaited(Heedful.datasets)
    doctor = _awaited(Heedful.doctor)
    audit = _awaited(Heedful.audit)

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


def hosted(projects: Projects, project: str, pool: ThreadPoolExecutor) -> AsyncHeedful:
    """One of many projects, for asyncio: it is open while a call runs. Whoever calls closes `projects` and `pool`."""

    def call(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with projects.using(project) as heedful:
            return getattr(getattr(heedful, namespace) if namespace else heedful, name)(*args, **kwargs)

    async def run(namespace: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(pool, call, namespace, name, args, kwargs)

    async def close() -> None:
        """Others may use the store."""

    return AsyncHeedful(run, close, f"<AsyncHeedful {projects.host.database.name} project={project!r}>")
