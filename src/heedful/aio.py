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

    create = _awaited(SessionsProtocol.create)
    get = _awaited(SessionsProtocol.get)
    exists = _awaited(SessionsProtocol.exists)
    list = _awaited(SessionsProtocol.list)
    delete = _awaited(SessionsProtocol.delete)
    add_message = _awaited(SessionsProtocol.add_message)
    add_messages = _awaited(SessionsProtocol.add_messages)
    messages = _awaited(SessionsProtocol.messages)
    get_metadata = _awaited(SessionsProtocol.get_metadata)
    update_metadata = _awaited(SessionsProtocol.update_metadata)
    delete_metadata = _awaited(SessionsProtocol.delete_metadata)
    add_entry = _awaited(SessionsProtocol.add_entry)
    entry = _awaited(SessionsProtocol.entry)
    entries = _awaited(SessionsProtocol.entries)
    add_feedback = _awaited(SessionsProtocol.add_feedback)
    delete_feedback = _awaited(SessionsProtocol.delete_feedback)
    add_session_feedback = _awaited(SessionsProtocol.add_session_feedback)
    feedbacks = _awaited(SessionsProtocol.feedbacks)
    feedback_metrics = _awaited(SessionsProtocol.feedback_metrics)
    alerts = _awaited(SessionsProtocol.alerts)
    deliver_alerts = _awaited(SessionsProtocol.deliver_alerts)
    discard_alert = _awaited(SessionsProtocol.discard_alert)


class AsyncInsight(_Awaiting):
    """Every method of `Insight`, awaited."""

    satisfaction = _awaited(InsightProtocol.satisfaction)
    trend = _awaited(InsightProtocol.trend)
    coverage = _awaited(InsightProtocol.coverage)
    usefulness = _awaited(InsightProtocol.usefulness)
    cache = _awaited(InsightProtocol.cache)
    themes = _awaited(InsightProtocol.themes)
    notes = _awaited(InsightProtocol.notes)
    digest = _awaited(InsightProtocol.digest)
    rows = _awaited(InsightProtocol.rows)
    export = _awaited(InsightProtocol.export)
    dictionary = _awaited(InsightProtocol.dictionary)


class AsyncConnectors(_Awaiting):
    """Every method of `Connectors`, awaited."""

    create = _awaited(ConnectorsProtocol.create)
    get = _awaited(ConnectorsProtocol.get)
    list = _awaited(ConnectorsProtocol.list)
    refresh = _awaited(ConnectorsProtocol.refresh)
    confirm = _awaited(ConnectorsProtocol.confirm)
    schema = _awaited(ConnectorsProtocol.schema)
    delete = _awaited(ConnectorsProtocol.delete)


class AsyncExecutions(_Awaiting):
    """Every method of `Executions`, awaited."""

    execute_query = _awaited(ExecutionsProtocol.execute_query)
    execute_from_chat = _awaited(ExecutionsProtocol.execute_from_chat)
    get = _awaited(ExecutionsProtocol.get)
    list = _awaited(ExecutionsProtocol.list)
    delete = _awaited(ExecutionsProtocol.delete)


class AsyncFeedbackService(_Awaiting):
    """Every method of `FeedbackService`, awaited."""

    create = _awaited(FeedbackServiceProtocol.create)
    create_positive = _awaited(FeedbackServiceProtocol.create_positive)
    create_negative = _awaited(FeedbackServiceProtocol.create_negative)
    get = _awaited(FeedbackServiceProtocol.get)
    list = _awaited(FeedbackServiceProtocol.list)
    list_positive = _awaited(FeedbackServiceProtocol.list_positive)
    list_negative = _awaited(FeedbackServiceProtocol.list_negative)
    get_feedback_for_message = _awaited(FeedbackServiceProtocol.get_feedback_for_message)
    update = _awaited(FeedbackServiceProtocol.update)
    delete = _awaited(FeedbackServiceProtocol.delete)
    bulk_delete = _awaited(FeedbackServiceProtocol.bulk_delete)


class AsyncChat(_Awaiting):
    """Every method of `Chat`, awaited."""

    chat_to_sql = _awaited(ChatProtocol.chat_to_sql)
    chat_to_answer = _awaited(ChatProtocol.chat_to_answer)
    execution_cache_lookup = _awaited(ChatProtocol.execution_cache_lookup)


class AsyncChatSessions(_Awaiting):
    """Every method of `ChatSessions`, awaited."""

    create = _awaited(ChatSessionsProtocol.create)
    get = _awaited(ChatSessionsProtocol.get)
    list = _awaited(ChatSessionsProtocol.list)
    delete = _awaited(ChatSessionsProtocol.delete)
    get_questions = _awaited(ChatSessionsProtocol.get_questions)


class AsyncGoldenExamples(_Awaiting):
    """Every method of `GoldenExamples`, awaited."""

    create = _awaited(GoldenExamplesProtocol.create)
    promote = _awaited(GoldenExamplesProtocol.promote)
    get = _awaited(GoldenExamplesProtocol.get)
    list = _awaited(GoldenExamplesProtocol.list)
    update = _awaited(GoldenExamplesProtocol.update)
    delete = _awaited(GoldenExamplesProtocol.delete)
    import_file = _awaited(GoldenExamplesProtocol.import_file)
    import_examples = _awaited(GoldenExamplesProtocol.import_examples)


class AsyncReview(_Awaiting):
    """Every method of `Review`, awaited."""

    list = _awaited(ReviewProtocol.list)
    get = _awaited(ReviewProtocol.get)
    assign = _awaited(ReviewProtocol.assign)
    resolve = _awaited(ReviewProtocol.resolve)
    dismiss = _awaited(ReviewProtocol.dismiss)
    reopen = _awaited(ReviewProtocol.reopen)
    mend = _awaited(ReviewProtocol.mend)
    ask_again = _awaited(ReviewProtocol.ask_again)
    undo = _awaited(ReviewProtocol.undo)


class AsyncKeys(_Awaiting):
    """Every method of `Keys`, awaited."""

    create = _awaited(KeysProtocol.create)
    list = _awaited(KeysProtocol.list)
    revoke = _awaited(KeysProtocol.revoke)
    create_token = _awaited(KeysProtocol.create_token)
    rotate_signing = _awaited(KeysProtocol.rotate_signing)


class AsyncJobs(_Awaiting):
    """Every method of `Jobs`, awaited."""

    improve = _awaited(JobsProtocol.improve)
    list = _awaited(JobsProtocol.list)
    get = _awaited(JobsProtocol.get)
    cancel = _awaited(JobsProtocol.cancel)
    retry = _awaited(JobsProtocol.retry)


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

    remember = _awaited(HeedfulProtocol.remember)
    recall = _awaited(HeedfulProtocol.recall)
    improve = _awaited(HeedfulProtocol.improve)
    signal = _awaited(HeedfulProtocol.signal)
    signal_recall = _awaited(HeedfulProtocol.signal_recall)
    detect = _awaited(HeedfulProtocol.detect)
    retract = _awaited(HeedfulProtocol.retract)
    supersede = _awaited(HeedfulProtocol.supersede)
    set_policy = _awaited(HeedfulProtocol.set_policy)
    forget = _awaited(HeedfulProtocol.forget)
    receipt = _awaited(HeedfulProtocol.receipt)
    fact_stats = _awaited(HeedfulProtocol.fact_stats)
    fact_history = _awaited(HeedfulProtocol.fact_history)
    usefulness_stats = _awaited(HeedfulProtocol.usefulness_stats)
    replay = _awaited(HeedfulProtocol.replay)
    fact = _awaited(HeedfulProtocol.fact)
    facts = _awaited(HeedfulProtocol.facts)
    create_dataset = _awaited(HeedfulProtocol.create_dataset)
    get_dataset = _awaited(HeedfulProtocol.get_dataset)
    datasets = _awaited(HeedfulProtocol.datasets)
    doctor = _awaited(HeedfulProtocol.doctor)
    audit = _awaited(HeedfulProtocol.audit)

    async def close(self) -> None:
        """Waits for calls that are under way, saves the indexes and lets go of the store."""
        await self._closing()
