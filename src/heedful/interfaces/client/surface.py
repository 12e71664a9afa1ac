"""What `heedful.connect` returns: every method of the engine, with the parameters and the results it has there."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from heedful.interfaces.client.transport import Transport
from collections.abc import Iterable, Mapping
from pathlib import Path

from heedful.errors import Invalid, quoted
from heedful.memory import documents
from heedful.model import Document, FileError, Hit, Message, Signal, Target
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
from heedful.protocols.engine import Source
from heedful.protocols.sql import UNCHANGED
from heedful.sql.example_files import read

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Remote:
    """Something whose calls are sent to a server."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport = transport
        self._namespace = namespace


def _remote(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[_Remote, Parameters], Result]:
    def call(self: _Remote, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        result: Result = self._transport.call(f"{self._namespace}{method.__name__}", args, kwargs)
        return result

    update_wrapper(call, method)
    return call


class RemoteSessions(_Remote):
    """Every method of `Sessions`, over HTTP."""

    create = _remote(SessionsProtocol.create)
    get = _remote(SessionsProtocol.get)
    exists = _remote(SessionsProtocol.exists)
    list = _remote(SessionsProtocol.list)
    delete = _remote(SessionsProtocol.delete)
    add_message = _remote(SessionsProtocol.add_message)
    add_messages = _remote(SessionsProtocol.add_messages)
    messages = _remote(SessionsProtocol.messages)
    update_message = _remote(SessionsProtocol.update_message)
    delete_message = _remote(SessionsProtocol.delete_message)
    get_metadata = _remote(SessionsProtocol.get_metadata)
    update_metadata = _remote(SessionsProtocol.update_metadata)
    delete_metadata = _remote(SessionsProtocol.delete_metadata)
    add_entry = _remote(SessionsProtocol.add_entry)
    entry = _remote(SessionsProtocol.entry)
    entries = _remote(SessionsProtocol.entries)
    add_feedback = _remote(SessionsProtocol.add_feedback)
    rate = _remote(SessionsProtocol.rate)
    delete_feedback = _remote(SessionsProtocol.delete_feedback)
    add_session_feedback = _remote(SessionsProtocol.add_session_feedback)
    feedbacks = _remote(SessionsProtocol.feedbacks)
    feedback_metrics = _remote(SessionsProtocol.feedback_metrics)
    alerts = _remote(SessionsProtocol.alerts)
    deliver_alerts = _remote(SessionsProtocol.deliver_alerts)
    discard_alert = _remote(SessionsProtocol.discard_alert)


class RemoteInsight(_Remote):
    """Every method of `Insight`, over HTTP."""

    satisfaction = _remote(InsightProtocol.satisfaction)
    trend = _remote(InsightProtocol.trend)
    coverage = _remote(InsightProtocol.coverage)
    usefulness = _remote(InsightProtocol.usefulness)
    cache = _remote(InsightProtocol.cache)
    themes = _remote(InsightProtocol.themes)
    notes = _remote(InsightProtocol.notes)
    digest = _remote(InsightProtocol.digest)
    rows = _remote(InsightProtocol.rows)
    export = _remote(InsightProtocol.export)
    dictionary = _remote(InsightProtocol.dictionary)


class RemoteConnectors(_Remote):
    """Every method of `Connectors`, over HTTP."""

    create = _remote(ConnectorsProtocol.create)
    get = _remote(ConnectorsProtocol.get)
    list = _remote(ConnectorsProtocol.list)
    refresh = _remote(ConnectorsProtocol.refresh)
    confirm = _remote(ConnectorsProtocol.confirm)
    schema = _remote(ConnectorsProtocol.schema)
    delete = _remote(ConnectorsProtocol.delete)


class RemoteExecutions(_Remote):
    """Every method of `Executions`, over HTTP."""

    execute_query = _remote(ExecutionsProtocol.execute_query)
    execute_from_chat = _remote(ExecutionsProtocol.execute_from_chat)
    get = _remote(ExecutionsProtocol.get)
    list = _remote(ExecutionsProtocol.list)
    delete = _remote(ExecutionsProtocol.delete)


class RemoteFeedbackService(_Remote):
    """Every method of `FeedbackService`, over HTTP."""

    create = _remote(FeedbackServiceProtocol.create)
    create_positive = _remote(FeedbackServiceProtocol.create_positive)
    create_negative = _remote(FeedbackServiceProtocol.create_negative)
    get = _remote(FeedbackServiceProtocol.get)
    list = _remote(FeedbackServiceProtocol.list)
    list_positive = _remote(FeedbackServiceProtocol.list_positive)
    list_negative = _remote(FeedbackServiceProtocol.list_negative)
    get_feedback_for_message = _remote(FeedbackServiceProtocol.get_feedback_for_message)
    update = _remote(FeedbackServiceProtocol.update)
    delete = _remote(FeedbackServiceProtocol.delete)
    bulk_delete = _remote(FeedbackServiceProtocol.bulk_delete)


class RemoteChat(_Remote):
    """Every method of `Chat`, over HTTP."""

    chat_to_sql = _remote(ChatProtocol.chat_to_sql)
    chat_to_answer = _remote(ChatProtocol.chat_to_answer)
    execution_cache_lookup = _remote(ChatProtocol.execution_cache_lookup)
    confirm_suggestion = _remote(ChatProtocol.confirm_suggestion)
    execution_cache_coverage = _remote(ChatProtocol.execution_cache_coverage)


class RemoteChatSessions(_Remote):
    """Every method of `ChatSessions`, over HTTP."""

    create = _remote(ChatSessionsProtocol.create)
    get = _remote(ChatSessionsProtocol.get)
    list = _remote(ChatSessionsProtocol.list)
    delete = _remote(ChatSessionsProtocol.delete)
    get_questions = _remote(ChatSessionsProtocol.get_questions)


class RemoteGoldenExamples(_Remote):
    """Every method of `GoldenExamples`, over HTTP."""

    create = _remote(GoldenExamplesProtocol.create)
    promote = _remote(GoldenExamplesProtocol.promote)
    get = _remote(GoldenExamplesProtocol.get)
    list = _remote(GoldenExamplesProtocol.list)
    update = _remote(GoldenExamplesProtocol.update)
    delete = _remote(GoldenExamplesProtocol.delete)
    import_file = _remote(GoldenExamplesProtocol.import_file)
    import_examples = _remote(GoldenExamplesProtocol.import_examples)


class RemoteReview(_Remote):
    """Every method of `Review`, over HTTP."""

    list = _remote(ReviewProtocol.list)
    get = _remote(ReviewProtocol.get)
    assign = _remote(ReviewProtocol.assign)
    resolve = _remote(ReviewProtocol.resolve)
    dismiss = _remote(ReviewProtocol.dismiss)
    reopen = _remote(ReviewProtocol.reopen)
    fix = _remote(ReviewProtocol.fix)
    ask_again = _remote(ReviewProtocol.ask_again)
    undo = _remote(ReviewProtocol.undo)


class RemoteKeys(_Remote):
    """Every method of `Keys`, over HTTP."""

    create = _remote(KeysProtocol.create)
    list = _remote(KeysProtocol.list)
    revoke = _remote(KeysProtocol.revoke)
    create_token = _remote(KeysProtocol.create_token)
    rotate_signing = _remote(KeysProtocol.rotate_signing)


class RemoteJobs(_Remote):
    """Every method of `Jobs`, over HTTP."""

    improve = _remote(JobsProtocol.improve)
    list = _remote(JobsProtocol.list)
    get = _remote(JobsProtocol.get)
    cancel = _remote(JobsProtocol.cancel)
    retry = _remote(JobsProtocol.retry)


class RemoteHeedful(_Remote):
    """One project on a server. Threads may share it; close it when done, or use it in a `with`."""

    def __init__(self, transport: Transport, display_name: str) -> None:
        super().__init__(transport, "")
        self._display_name = display_name
        self.sessions = RemoteSessions(transport, "sessions.")
        self.insight = RemoteInsight(transport, "insight.")
        self.connectors = RemoteConnectors(transport, "connectors.")
        self.executions = RemoteExecutions(transport, "executions.")
        self.feedback = RemoteFeedbackService(transport, "feedback.")
        self.chat = RemoteChat(transport, "chat.")
        self.chat_sessions = RemoteChatSessions(transport, "chat_sessions.")
        self.golden_examples = RemoteGoldenExamples(transport, "golden_examples.")
        self.review = RemoteReview(transport, "review.")
        self.keys = RemoteKeys(transport, "keys.")
        self.jobs = RemoteJobs(transport, "jobs.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return self._display_name

    remember = _remote(HeedfulProtocol.remember)
    recall = _remote(HeedfulProtocol.recall)
    improve = _remote(HeedfulProtocol.improve)
    signal = _remote(HeedfulProtocol.signal)
    signal_recall = _remote(HeedfulProtocol.signal_recall)
    detect = _remote(HeedfulProtocol.detect)
    retract = _remote(HeedfulProtocol.retract)
    supersede = _remote(HeedfulProtocol.supersede)
    set_policy = _remote(HeedfulProtocol.set_policy)
    forget = _remote(HeedfulProtocol.forget)
    receipt = _remote(HeedfulProtocol.receipt)
    fact_stats = _remote(HeedfulProtocol.fact_stats)
    fact_history = _remote(HeedfulProtocol.fact_history)
    usefulness_stats = _remote(HeedfulProtocol.usefulness_stats)
    replay = _remote(HeedfulProtocol.replay)
    datasets = _remote(HeedfulProtocol.datasets)
    create_dataset = _remote(HeedfulProtocol.create_dataset)
    get_dataset = _remote(HeedfulProtocol.get_dataset)
    fact = _remote(HeedfulProtocol.fact)
    facts = _remote(HeedfulProtocol.facts)
    check_facts = _remote(HeedfulProtocol.check_facts)
    doctor = _remote(HeedfulProtocol.doctor)
    audit = _remote(HeedfulProtocol.audit)

    def close(self) -> None:
        """Closes the connections to the server."""
        self._transport.close()


Arguments = dict[str, Any]


def adapted(name: str, values: Arguments) -> tuple[str, Arguments, list[FileError]]:
    """The operation that does it, its arguments, and the files that could not be read."""
    errors: list[FileError] = []
    values = {key: value for key, value in values.items() if value is not UNCHANGED}
    if name == "remember":
        values["texts"], errors = _read(values["texts"])
    elif name == "golden_examples.import_file":
        values["examples"] = list(read(Path(values.pop("path"))))
        name = "golden_examples.import_examples"
    for key, adapt in _ADAPTED.get(name, {}).items():
        if key in values:
            values[key] = adapt(key, values[key])
    return name, values, errors


def _read(texts: Source) -> tuple[list[str | Document] | Any, list[FileError]]:
    """Texts and documents; files and folders are read here, where they are."""
    if not isinstance(texts, str | Path | Document | list | tuple):
        return texts, []
    sources: list[str | Document] = []
    errors: list[FileError] = []
    for item in documents.as_list(texts):
        if isinstance(item, Path):
            opened, refused = documents.read_path(item)
            sources += opened
            errors += refused
        else:
            sources.append(item)
    return (texts if isinstance(texts, str) else sources), errors


def _example(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an example needs of a record; the file may have other columns."""
    return {key: record[key] for key in ("question", "sql_query") if key in record}


def _ids(field: str, value: Any) -> list[Any]:
    if not isinstance(value, Iterable):
        raise Invalid(f"{field} must be a list of facts, got {quoted(value)}", field=field, value=value)
    items = [value] if isinstance(value, str | Hit) else list(value)
    return [item.fact_id if isinstance(item, Hit) else item for item in items]


def _listed(field: str, value: Any) -> list[Any]:
    """One or many, as a list."""
    if isinstance(value, Signal | Target | Mapping | str):
        return [value]
    if not isinstance(value, Iterable):
        raise Invalid(f"{field} must be a list, got {quoted(value)}", field=field, value=value)
    return list(value)


def _one_or_none(field: str, value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _all(field: str, value: Any) -> list[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise Invalid(f"{field} must be a list, got {quoted(value)}", field=field, value=value)
    return list(value)


def _messages(field: str, value: Any) -> list[Any]:
    """Messages without their ids: where they are added, they get others."""
    return [
        each.model_dump(exclude={"message_id"}) if isinstance(each, Message) else each for each in _all(field, value)
    ]


def _examples(field: str, value: Any) -> list[Any]:
    return [_example(each) if isinstance(each, Mapping) else each for each in _all(field, value)]


_ADAPTED: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "improve": {"session_ids": _one_or_none},
    "signal": {"signals": _listed},
    "signal_recall": {"used": _ids, "helpful": _ids, "not_helpful": _ids},
    "sessions.add_messages": {"messages": _messages},
    "sessions.delete_metadata": {"keys": _listed},
    "keys.create_token": {"targets": _listed},
    "golden_examples.import_examples": {"examples": _examples},
}
