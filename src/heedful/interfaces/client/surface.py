"""What `heedful.connect` returns: every method of the engine, with the parameters and the results it has there."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from heedful.access.keys import Keys
from heedful.engine import Heedful
from heedful.insight.service import Insight
from heedful.jobs.service import Jobs
from heedful.review.service import Review
from heedful.sessions.service import Sessions
from heedful.sql.chat import Chat
from heedful.sql.chat_sessions import ChatSessions
from heedful.sql.connectors import Connectors
from heedful.sql.executions import Executions
from heedful.sql.feedback import FeedbackService
from heedful.sql.golden import GoldenExamples

if TYPE_CHECKING:
    from heedful.interfaces.client.transport import Transport
from collections.abc import Iterable, Mapping
from pathlib import Path

from heedful.errors import Invalid
from heedful.memory import documents
from heedful.model import Document, FileError, Hit, Message, Signal, Target
from heedful.sql.feedback import UNCHANGED
from heedful.sql.golden import read

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

    create = _remote(Sessions.create)
    get = _remote(Sessions.get)
    exists = _remote(Sessions.exists)
    list = _remote(Sessions.list)
    delete = _remote(Sessions.delete)
    add_message = _remote(Sessions.add_message)
    add_messages = _remote(Sessions.add_messages)
    messages = _remote(Sessions.messages)
    get_metadata = _remote(Sessions.get_metadata)
    update_metadata = _remote(Sessions.update_metadata)
    delete_metadata = _remote(Sessions.delete_metadata)
    add_entry = _remote(Sessions.add_entry)
    entry = _remote(Sessions.entry)
    entries = _remote(Sessions.entries)
    add_feedback = _remote(Sessions.add_feedback)
    delete_feedback = _remote(Sessions.delete_feedback)
    add_session_feedback = _remote(Sessions.add_session_feedback)
    feedbacks = _remote(Sessions.feedbacks)
    feedback_metrics = _remote(Sessions.feedback_metrics)
    alerts = _remote(Sessions.alerts)
    deliver_alerts = _remote(Sessions.deliver_alerts)
    discard_alert = _remote(Sessions.discard_alert)


class RemoteInsight(_Remote):
    """Every method of `Insight`, over HTTP."""

    satisfaction = _remote(Insight.satisfaction)
    trend = _remote(Insight.trend)
    coverage = _remote(Insight.coverage)
    usefulness = _remote(Insight.usefulness)
    cache = _remote(Insight.cache)
    themes = _remote(Insight.themes)
    notes = _remote(Insight.notes)
    digest = _remote(Insight.digest)
    rows = _remote(Insight.rows)
    export = _remote(Insight.export)
    dictionary = _remote(Insight.dictionary)


class RemoteConnectors(_Remote):
    """Every method of `Connectors`, over HTTP."""

    create = _remote(Connectors.create)
    get = _remote(Connectors.get)
    list = _remote(Connectors.list)
    refresh = _remote(Connectors.refresh)
    confirm = _remote(Connectors.confirm)
    schema = _remote(Connectors.schema)
    delete = _remote(Connectors.delete)


class RemoteExecutions(_Remote):
    """Every method of `Executions`, over HTTP."""

    execute_query = _remote(Executions.execute_query)
    execute_from_chat = _remote(Executions.execute_from_chat)
    get = _remote(Executions.get)
    list = _remote(Executions.list)
    delete = _remote(Executions.delete)


class RemoteFeedbackService(_Remote):
    """Every method of `FeedbackService`, over HTTP."""

    create = _remote(FeedbackService.create)
    create_positive = _remote(FeedbackService.create_positive)
    create_negative = _remote(FeedbackService.create_negative)
    get = _remote(FeedbackService.get)
    list = _remote(FeedbackService.list)
    list_positive = _remote(FeedbackService.list_positive)
    list_negative = _remote(FeedbackService.list_negative)
    get_feedback_for_message = _remote(FeedbackService.get_feedback_for_message)
    update = _remote(FeedbackService.update)
    delete = _remote(FeedbackService.delete)
    bulk_delete = _remote(FeedbackService.bulk_delete)


class RemoteChat(_Remote):
    """Every method of `Chat`, over HTTP."""

    chat_to_sql = _remote(Chat.chat_to_sql)
    chat_to_answer = _remote(Chat.chat_to_answer)
    execution_cache_lookup = _remote(Chat.execution_cache_lookup)


class RemoteChatSessions(_Remote):
    """Every method of `ChatSessions`, over HTTP."""

    create = _remote(ChatSessions.create)
    get = _remote(ChatSessions.get)
    list = _remote(ChatSessions.list)
    delete = _remote(ChatSessions.delete)
    get_questions = _remote(ChatSessions.get_questions)


class RemoteGoldenExamples(_Remote):
    """Every method of `GoldenExamples`, over HTTP."""

    create = _remote(GoldenExamples.create)
    promote = _remote(GoldenExamples.promote)
    get = _remote(GoldenExamples.get)
    list = _remote(GoldenExamples.list)
    update = _remote(GoldenExamples.update)
    delete = _remote(GoldenExamples.delete)
    import_file = _remote(GoldenExamples.import_file)
    import_examples = _remote(GoldenExamples.import_examples)


class RemoteReview(_Remote):
    """Every method of `Review`, over HTTP."""

    list = _remote(Review.list)
    get = _remote(Review.get)
    assign = _remote(Review.assign)
    resolve = _remote(Review.resolve)
    dismiss = _remote(Review.dismiss)
    reopen = _remote(Review.reopen)
    fix = _remote(Review.fix)
    ask_again = _remote(Review.ask_again)
    undo = _remote(Review.undo)


class RemoteKeys(_Remote):
    """Every method of `Keys`, over HTTP."""

    create = _remote(Keys.create)
    list = _remote(Keys.list)
    revoke = _remote(Keys.revoke)
    create_token = _remote(Keys.create_token)
    rotate_signing = _remote(Keys.rotate_signing)


class RemoteJobs(_Remote):
    """Every method of `Jobs`, over HTTP."""

    improve = _remote(Jobs.improve)
    list = _remote(Jobs.list)
    get = _remote(Jobs.get)
    cancel = _remote(Jobs.cancel)
    retry = _remote(Jobs.retry)


class RemoteHeedful(_Remote):
    """One project on a server. Threads may share it; close it when done, or use it in a `with`."""

    def __init__(self, transport: Transport, shown: str) -> None:
        super().__init__(transport, "")
        self._shown = shown
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
        return self._shown

    remember = _remote(Heedful.remember)
    recall = _remote(Heedful.recall)
    improve = _remote(Heedful.improve)
    signal = _remote(Heedful.signal)
    signal_recall = _remote(Heedful.signal_recall)
    detect = _remote(Heedful.detect)
    retract = _remote(Heedful.retract)
    supersede = _remote(Heedful.supersede)
    set_policy = _remote(Heedful.set_policy)
    forget = _remote(Heedful.forget)
    receipt = _remote(Heedful.receipt)
    fact_stats = _remote(Heedful.fact_stats)
    fact_history = _remote(Heedful.fact_history)
    usefulness_stats = _remote(Heedful.usefulness_stats)
    replay = _remote(Heedful.replay)
    datasets = _remote(Heedful.datasets)
    create_dataset = _remote(Heedful.create_dataset)
    get_dataset = _remote(Heedful.get_dataset)
    fact = _remote(Heedful.fact)
    facts = _remote(Heedful.facts)
    doctor = _remote(Heedful.doctor)
    audit = _remote(Heedful.audit)

    def close(self) -> None:
        """Lets go of the connections to the server."""
        self._transport.close()


Arguments = dict[str, Any]


def adapted(name: str, given: Arguments) -> tuple[str, Arguments, list[FileError]]:
    """The operation that does it, its arguments, and the files that could not be read."""
    errors: list[FileError] = []
    given = {key: value for key, value in given.items() if value is not UNCHANGED}
    if name == "remember":
        given["texts"], errors = _read(given["texts"])
    elif name == "golden_examples.import_file":
        given["examples"] = list(read(Path(given.pop("path"))))
        name = "golden_examples.import_examples"
    for key, adapt in _ADAPTED.get(name, {}).items():
        if key in given:
            given[key] = adapt(key, given[key])
    return name, given, errors


def _read(texts: documents.Source) -> tuple[list[str | Document] | Any, list[FileError]]:
    """Texts and documents; files and folders are read here, where they are."""
    if not isinstance(texts, str | Path | Document | list | tuple):
        return texts, []
    found: list[str | Document] = []
    errors: list[FileError] = []
    for item in documents.as_list(texts):
        if isinstance(item, Path):
            opened, refused = documents.read_path(item)
            found += opened
            errors += refused
        else:
            found.append(item)
    return (texts if isinstance(texts, str) else found), errors


def _example(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an example needs of a record; the file may have other columns."""
    return {key: record[key] for key in ("question", "sql_query") if key in record}


def _ids(field: str, given: Any) -> list[Any]:
    if not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list of facts, got {given!r}", field=field, value=given)
    many = [given] if isinstance(given, str | Hit) else list(given)
    return [each.fact_id if isinstance(each, Hit) else each for each in many]


def _listed(field: str, given: Any) -> list[Any]:
    """One or many, as a list."""
    if isinstance(given, Signal | Target | Mapping | str):
        return [given]
    if not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list, got {given!r}", field=field, value=given)
    return list(given)


def _one_or_none(field: str, given: Any) -> Any:
    return [given] if isinstance(given, str) else given


def _all(field: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list, got {given!r}", field=field, value=given)
    return list(given)


def _messages(field: str, given: Any) -> list[Any]:
    """Messages without their ids: where they are added, they get others."""
    return [
        each.model_dump(exclude={"message_id"}) if isinstance(each, Message) else each for each in _all(field, given)
    ]


def _examples(field: str, given: Any) -> list[Any]:
    return [_example(each) if isinstance(each, Mapping) else each for each in _all(field, given)]


_ADAPTED: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "improve": {"session_ids": _one_or_none},
    "signal": {"signals": _listed},
    "signal_recall": {"used": _ids, "helpful": _ids, "not_helpful": _ids},
    "sessions.add_messages": {"messages": _messages},
    "sessions.delete_metadata": {"keys": _listed},
    "keys.create_token": {"targets": _listed},
    "golden_examples.import_examples": {"examples": _examples},
}
