"""The same engine for asyncio: its methods are awaited, and no logic exists twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from heedful.protocols import (
    ChatProtocol,
    ChatSessionsProtocol,
    ConnectorsProtocol,
    ExecutionsProtocol,
    FeedbackServiceProtocol,
    GoldenExamplesProtocol,
    HeedfulProtocol,
    InsightProtocol,
    JobsProtocol,
    KeysProtocol,
    ReviewProtocol,
    SessionsProtocol,
)

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

    create = _as_async(SessionsProtocol.create)
    get = _as_async(SessionsProtocol.get)
    exists = _as_async(SessionsProtocol.exists)
    list = _as_async(SessionsProtocol.list)
    delete = _as_async(SessionsProtocol.delete)
    add_message = _as_async(SessionsProtocol.add_message)
    add_messages = _as_async(SessionsProtocol.add_messages)
    messages = _as_async(SessionsProtocol.messages)
    update_message = _as_async(SessionsProtocol.update_message)
    delete_message = _as_async(SessionsProtocol.delete_message)
    get_metadata = _as_async(SessionsProtocol.get_metadata)
    update_metadata = _as_async(SessionsProtocol.update_metadata)
    delete_metadata = _as_async(SessionsProtocol.delete_metadata)
    add_entry = _as_async(SessionsProtocol.add_entry)
    entry = _as_async(SessionsProtocol.entry)
    entries = _as_async(SessionsProtocol.entries)
    add_feedback = _as_async(SessionsProtocol.add_feedback)
    rate = _as_async(SessionsProtocol.rate)
    delete_feedback = _as_async(SessionsProtocol.delete_feedback)
    add_session_feedback = _as_async(SessionsProtocol.add_session_feedback)
    feedbacks = _as_async(SessionsProtocol.feedbacks)
    feedback_metrics = _as_async(SessionsProtocol.feedback_metrics)
    alerts = _as_async(SessionsProtocol.alerts)
    deliver_alerts = _as_async(SessionsProtocol.deliver_alerts)
    discard_alert = _as_async(SessionsProtocol.discard_alert)


class AsyncInsight(_Awaiting):
    """Every method of `Insight`, awaited."""

    satisfaction = _as_async(InsightProtocol.satisfaction)
    trend = _as_async(InsightProtocol.trend)
    coverage = _as_async(InsightProtocol.coverage)
    usefulness = _as_async(InsightProtocol.usefulness)
    cache = _as_async(InsightProtocol.cache)
    themes = _as_async(InsightProtocol.themes)
    notes = _as_async(InsightProtocol.notes)
    digest = _as_async(InsightProtocol.digest)
    rows = _as_async(InsightProtocol.rows)
    export = _as_async(InsightProtocol.export)
    dictionary = _as_async(InsightProtocol.dictionary)


class AsyncConnectors(_Awaiting):
    """Every method of `Connectors`, awaited."""

    create = _as_async(ConnectorsProtocol.create)
    get = _as_async(ConnectorsProtocol.get)
    list = _as_async(ConnectorsProtocol.list)
    refresh = _as_async(ConnectorsProtocol.refresh)
    confirm = _as_async(ConnectorsProtocol.confirm)
    schema = _as_async(ConnectorsProtocol.schema)
    delete = _as_async(ConnectorsProtocol.delete)


class AsyncExecutions(_Awaiting):
    """Every method of `Executions`, awaited."""

    execute_query = _as_async(ExecutionsProtocol.execute_query)
    execute_from_chat = _as_async(ExecutionsProtocol.execute_from_chat)
    get = _as_async(ExecutionsProtocol.get)
    list = _as_async(ExecutionsProtocol.list)
    delete = _as_async(ExecutionsProtocol.delete)


class AsyncFeedbackService(_Awaiting):
    """Every method of `FeedbackService`, awaited."""

    create = _as_async(FeedbackServiceProtocol.create)
    create_positive = _as_async(FeedbackServiceProtocol.create_positive)
    create_negative = _as_async(FeedbackServiceProtocol.create_negative)
    get = _as_async(FeedbackServiceProtocol.get)
    list = _as_async(FeedbackServiceProtocol.list)
    list_positive = _as_async(FeedbackServiceProtocol.list_positive)
    list_negative = _as_async(FeedbackServiceProtocol.list_negative)
    get_feedback_for_message = _as_async(FeedbackServiceProtocol.get_feedback_for_message)
    update = _as_async(FeedbackServiceProtocol.update)
    delete = _as_async(FeedbackServiceProtocol.delete)
    bulk_delete = _as_async(FeedbackServiceProtocol.bulk_delete)


class AsyncChat(_Awaiting):
    """Every method of `Chat`, awaited."""

    chat_to_sql = _as_async(ChatProtocol.chat_to_sql)
    chat_to_answer = _as_async(ChatProtocol.chat_to_answer)
    execution_cache_lookup = _as_async(ChatProtocol.execution_cache_lookup)
    confirm_suggestion = _as_async(ChatProtocol.confirm_suggestion)
    execution_cache_coverage = _as_async(ChatProtocol.execution_cache_coverage)


class AsyncChatSessions(_Awaiting):
    """Every method of `ChatSessions`, awaited."""

    create = _as_async(ChatSessionsProtocol.create)
    get = _as_async(ChatSessionsProtocol.get)
    list = _as_async(ChatSessionsProtocol.list)
    delete = _as_async(ChatSessionsProtocol.delete)
    get_questions = _as_async(ChatSessionsProtocol.get_questions)


class AsyncGoldenExamples(_Awaiting):
    """Every method of `GoldenExamples`, awaited."""

    create = _as_async(GoldenExamplesProtocol.create)
    promote = _as_async(GoldenExamplesProtocol.promote)
    get = _as_async(GoldenExamplesProtocol.get)
    list = _as_async(GoldenExamplesProtocol.list)
    update = _as_async(GoldenExamplesProtocol.update)
    delete = _as_async(GoldenExamplesProtocol.delete)
    import_file = _as_async(GoldenExamplesProtocol.import_file)
    import_examples = _as_async(GoldenExamplesProtocol.import_examples)


class AsyncReview(_Awaiting):
    """Every method of `Review`, awaited."""

    list = _as_async(ReviewProtocol.list)
    get = _as_async(ReviewProtocol.get)
    assign = _as_async(ReviewProtocol.assign)
    resolve = _as_async(ReviewProtocol.resolve)
    dismiss = _as_async(ReviewProtocol.dismiss)
    reopen = _as_async(ReviewProtocol.reopen)
    fix = _as_async(ReviewProtocol.fix)
    ask_again = _as_async(ReviewProtocol.ask_again)
    undo = _as_async(ReviewProtocol.undo)


class AsyncKeys(_Awaiting):
    """Every method of `Keys`, awaited."""

    create = _as_async(KeysProtocol.create)
    list = _as_async(KeysProtocol.list)
    revoke = _as_async(KeysProtocol.revoke)
    create_token = _as_async(KeysProtocol.create_token)
    rotate_signing = _as_async(KeysProtocol.rotate_signing)


class AsyncJobs(_Awaiting):
    """Every method of `Jobs`, awaited."""

    improve = _as_async(JobsProtocol.improve)
    list = _as_async(JobsProtocol.list)
    get = _as_async(JobsProtocol.get)
    cancel = _as_async(JobsProtocol.cancel)
    retry = _as_async(JobsProtocol.retry)


class AsyncHeedful(_Awaiting):
    """One project of one store; every method of `Heedful`, awaited. Use it in an `async with`, or close it."""

    def __init__(self, runner: Runner, closing: Callable[[], Awaitable[None]], display_name: str) -> None:
        super().__init__(runner, "")
        self._closing = closing
        self._display_name = display_name
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
        return self._display_name

    remember = _as_async(HeedfulProtocol.remember)
    recall = _as_async(HeedfulProtocol.recall)
    improve = _as_async(HeedfulProtocol.improve)
    signal = _as_async(HeedfulProtocol.signal)
    signal_recall = _as_async(HeedfulProtocol.signal_recall)
    detect = _as_async(HeedfulProtocol.detect)
    retract = _as_async(HeedfulProtocol.retract)
    supersede = _as_async(HeedfulProtocol.supersede)
    set_policy = _as_async(HeedfulProtocol.set_policy)
    forget = _as_async(HeedfulProtocol.forget)
    receipt = _as_async(HeedfulProtocol.receipt)
    fact_stats = _as_async(HeedfulProtocol.fact_stats)
    fact_history = _as_async(HeedfulProtocol.fact_history)
    usefulness_stats = _as_async(HeedfulProtocol.usefulness_stats)
    replay = _as_async(HeedfulProtocol.replay)
    fact = _as_async(HeedfulProtocol.fact)
    facts = _as_async(HeedfulProtocol.facts)
    create_dataset = _as_async(HeedfulProtocol.create_dataset)
    get_dataset = _as_async(HeedfulProtocol.get_dataset)
    datasets = _as_async(HeedfulProtocol.datasets)
    check_facts = _as_async(HeedfulProtocol.check_facts)
    doctor = _as_async(HeedfulProtocol.doctor)
    audit = _as_async(HeedfulProtocol.audit)

    async def close(self) -> None:
        """Waits for running calls, saves the indexes and closes the store."""
        await self._closing()
