"""Every method of the engine that can be called over a wire, with its verb, its path and its scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from heedful.model import Scope
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

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

OWNERS: dict[str, type] = {
    "": HeedfulProtocol,
    "sessions": SessionsProtocol,
    "insight": InsightProtocol,
    "connectors": ConnectorsProtocol,
    "executions": ExecutionsProtocol,
    "feedback": FeedbackServiceProtocol,
    "chat": ChatProtocol,
    "chat_sessions": ChatSessionsProtocol,
    "golden_examples": GoldenExamplesProtocol,
    "review": ReviewProtocol,
    "keys": KeysProtocol,
    "jobs": JobsProtocol,
}
"""The namespaces of the engine."""

LOCAL = frozenset({"close", "golden_examples.import_file", "insight.export"})
"""What happens where the caller is: nothing of it is sent, or what is sent is another operation."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of the engine, as a call over a wire."""

    name: str
    """As in Python, with its namespace: "sessions.add_feedback"."""
    method: Method
    path: str
    """Below the project; names in braces are parameters."""
    scope: Scope
    repeatable: bool = False
    """Whether sending it twice does what sending it once does, without a key."""
    missing: str | None = None
    """What is not there when the engine returns False."""
    slow: bool = False
    """Whether it may take minutes."""
    writes_with: str | None = None
    """The parameter with which it writes, so that the scope `write` is needed too."""
    restricted: str | None = None
    """The parameter for which the scope `admin` is needed too."""
    queries: bool = False
    """Whether it may ask a connector's database, or reads SQL that somebody sent."""
    everywhere: bool = False
    """Whether it concerns all projects, so that a key of the whole server is needed."""
    undoes: str | None = None
    """The parameter that names an event to retract, which needs the scope of the call that made it."""
    batch: bool = False
    """Whether feedback comes by the thousands, so that only the server's own limit bounds the body."""
    secret: bool = False
    """Whether its result is shown once and must not be kept, not even for a retry."""

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def verb(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def also_reads(self) -> bool:
        """Whether the scope `read` is needed too: what is done with an item of the queue is answered with that item."""
        return self.namespace == "review" and self.scope != "read"

    @property
    def function(self) -> Callable[..., Any]:
        return method(self.name)


def method(name: str) -> Callable[..., Any]:
    """The method of the engine that has this name, with its namespace."""
    namespace, _, verb = name.rpartition(".")
    function: Callable[..., Any] = getattr(OWNERS[namespace], verb)
    return function


def _get(name: str, path: str, scope: Scope = "read", *, slow: bool = False) -> Operation:
    return Operation(name, "GET", path, scope, repeatable=True, slow=slow)


def _post(
    name: str,
    path: str,
    scope: Scope,
    *,
    repeatable: bool = False,
    slow: bool = False,
    queries: bool = False,
    batch: bool = False,
) -> Operation:
    return Operation(name, "POST", path, scope, repeatable=repeatable, slow=slow, queries=queries, batch=batch)


def _delete(name: str, path: str, scope: Scope) -> Operation:
    return Operation(name, "DELETE", path, scope)


_SESSION = "/sessions/{session_id}"
_ENTRY = "/sessions/{session_id}/entries/{qa_id}"
_CONNECTOR = "/connectors/{connector_id}"
_EXECUTION = "/executions/{execution_id}"
_MESSAGE = "/chat-messages/{chat_message_id}"
_CHAT = "/chat-sessions/{chat_session_id}"
_EXAMPLE = "/golden-examples/{example_id}"
_ITEM = "/review/{item_id}"
_JOB = "/jobs/{job_id}"

_ALL = (
    Operation("recall", "POST", "/recall", "read", repeatable=True, slow=True, writes_with="session_id"),
    _post("remember", "/facts", "write", repeatable=True, slow=True),
    _post("improve", "/improve", "write", repeatable=True, slow=True),
    _post("signal", "/signals", "feedback", batch=True),
    _post("signal_recall", "/recalls/{recall_id}/signals", "feedback"),
    _post("detect", "/recalls/{recall_id}/detect", "read", repeatable=True),
    _get("receipt", "/recalls/{recall_id}"),
    Operation("retract", "POST", "/events/{event_id}/retract", "feedback", repeatable=True, undoes="event_id"),
    _post("supersede", "/facts/{fact_id}/supersede", "write"),
    Operation("set_policy", "PUT", "/policy", "write", repeatable=True),
    Operation("forget", "POST", "/forget", "write", restricted="author"),
    _get("fact", "/facts/{fact_id}"),
    _get("facts", "/facts"),
    _get("fact_stats", "/facts/{fact_id}/stats"),
    _get("fact_history", "/facts/{fact_id}/history"),
    _get("usefulness_stats", "/stats/usefulness"),
    _get("check_facts", "/stats/facts", slow=True),
    _post("replay", "/replay", "read", repeatable=True, slow=True),
    _get("datasets", "/datasets"),
    _get("get_dataset", "/datasets/{dataset}"),
    Operation("create_dataset", "PUT", "/datasets/{dataset}", "write", repeatable=True),
    _post("doctor", "/doctor", "admin", repeatable=True, slow=True),
    _post("sessions.create", "/sessions", "write"),
    _get("sessions.list", "/sessions"),
    _get("sessions.get", _SESSION),
    _get("sessions.exists", f"{_SESSION}/exists"),
    _delete("sessions.delete", _SESSION, "write"),
    _post("sessions.add_message", f"{_SESSION}/messages", "write"),
    _get("sessions.messages", f"{_SESSION}/messages"),
    _post("sessions.add_messages", f"{_SESSION}/messages/batch", "write"),
    Operation("sessions.update_message", "PATCH", f"{_SESSION}/messages/{{message_id}}", "write", repeatable=True),
    _delete("sessions.delete_message", f"{_SESSION}/messages/{{message_id}}", "write"),
    _get("sessions.get_metadata", f"{_SESSION}/metadata"),
    Operation("sessions.update_metadata", "PATCH", f"{_SESSION}/metadata", "write"),
    _delete("sessions.delete_metadata", f"{_SESSION}/metadata", "write"),
    _post("sessions.add_entry", f"{_SESSION}/entries", "write"),
    _get("sessions.entries", f"{_SESSION}/entries"),
    _get("sessions.entry", _ENTRY),
    Operation("sessions.add_feedback", "PUT", f"{_ENTRY}/feedback", "feedback", repeatable=True, missing="entry"),
    Operation("sessions.rate", "PUT", "/entries/{external_id}/rating", "feedback", repeatable=True),
    Operation("sessions.delete_feedback", "DELETE", f"{_ENTRY}/feedback", "feedback", repeatable=True, missing="entry"),
    _post("sessions.add_session_feedback", f"{_SESSION}/feedback", "feedback"),
    _get("sessions.feedbacks", f"{_SESSION}/feedback"),
    _get("sessions.feedback_metrics", "/metrics/feedback"),
    _get("sessions.alerts", "/alerts", "admin"),
    _post("sessions.deliver_alerts", "/alerts/deliver", "admin", repeatable=True, slow=True),
    _delete("sessions.discard_alert", "/alerts/{alert_id}", "admin"),
    _get("insight.satisfaction", "/insight/satisfaction"),
    _get("insight.trend", "/insight/trend"),
    _get("insight.coverage", "/insight/coverage"),
    _get("insight.usefulness", "/insight/usefulness"),
    _get("insight.cache", "/insight/cache"),
    _get("insight.themes", "/insight/themes", slow=True),
    _get("insight.notes", "/insight/notes", slow=True),
    _get("insight.digest", "/insight/digest", slow=True),
    _get("insight.rows", "/insight/rows", slow=True),
    _get("insight.dictionary", "/insight/dictionary"),
    _post("connectors.create", "/connectors", "admin", slow=True, queries=True),
    _get("connectors.list", "/connectors"),
    _get("connectors.get", _CONNECTOR),
    _post("connectors.refresh", f"{_CONNECTOR}/refresh", "admin", repeatable=True, slow=True, queries=True),
    _post("connectors.confirm", f"{_CONNECTOR}/confirm", "admin", repeatable=True, slow=True, queries=True),
    _get("connectors.schema", f"{_CONNECTOR}/schema"),
    _delete("connectors.delete", _CONNECTOR, "admin"),
    _post("executions.execute_query", "/executions", "write", slow=True, queries=True),
    _get("executions.list", "/executions"),
    _post("executions.execute_from_chat", f"{_MESSAGE}/execute", "write", slow=True, queries=True),
    _get("executions.get", _EXECUTION),
    _delete("executions.delete", _EXECUTION, "write"),
    _post("feedback.create", "/feedback", "feedback"),
    _get("feedback.list", "/feedback"),
    _post("feedback.create_positive", "/feedback/positive", "feedback"),
    _get("feedback.list_positive", "/feedback/positive"),
    _post("feedback.create_negative", "/feedback/negative", "feedback"),
    _get("feedback.list_negative", "/feedback/negative"),
    _post("feedback.bulk_delete", "/feedback/bulk-delete", "feedback", batch=True),
    _get("feedback.get_feedback_for_message", f"{_MESSAGE}/feedback"),
    _get("feedback.get", "/feedback/{feedback_id}"),
    Operation("feedback.update", "PATCH", "/feedback/{feedback_id}", "feedback"),
    _delete("feedback.delete", "/feedback/{feedback_id}", "feedback"),
    _post("chat.execution_cache_lookup", "/execution-cache-lookup", "write", repeatable=True, slow=True, queries=True),
    _post("chat.confirm_suggestion", "/confirm-suggestion", "write", slow=True, queries=True),
    _get("chat.execution_cache_coverage", "/execution-cache-coverage", slow=True),
    _post("chat.chat_to_sql", f"{_CHAT}/chat-to-sql", "write", slow=True, queries=True),
    _post("chat.chat_to_answer", f"{_CHAT}/chat-to-answer", "write", slow=True, queries=True),
    _post("chat_sessions.create", "/chat-sessions", "write"),
    _get("chat_sessions.list", "/chat-sessions"),
    _get("chat_sessions.get", _CHAT),
    _delete("chat_sessions.delete", _CHAT, "write"),
    _get("chat_sessions.get_questions", f"{_CHAT}/questions"),
    _post("golden_examples.create", "/golden-examples", "write", queries=True),
    _get("golden_examples.list", "/golden-examples"),
    _post("golden_examples.promote", "/golden-examples/promote", "write", queries=True),
    _post(
        "golden_examples.import_examples", "/golden-examples/import", "write", repeatable=True, slow=True, queries=True
    ),
    _get("golden_examples.get", _EXAMPLE),
    Operation("golden_examples.update", "PATCH", _EXAMPLE, "write", queries=True),
    _delete("golden_examples.delete", _EXAMPLE, "write"),
    _get("review.list", "/review"),
    _get("review.get", _ITEM),
    _post("review.assign", f"{_ITEM}/assign", "feedback"),
    _post("review.resolve", f"{_ITEM}/resolve", "feedback"),
    _post("review.dismiss", f"{_ITEM}/dismiss", "feedback"),
    _post("review.reopen", f"{_ITEM}/reopen", "feedback"),
    _post("review.fix", f"{_ITEM}/fix", "write", queries=True),
    _post("review.ask_again", f"{_ITEM}/ask-again", "read", repeatable=True, slow=True, queries=True),
    _post("review.undo", "/review/events/{event_id}/undo", "write", repeatable=True),
    Operation("keys.create", "POST", "/keys", "admin", secret=True),
    _get("keys.list", "/keys", "admin"),
    Operation("keys.rotate_signing", "POST", "/keys/rotate-signing", "admin", everywhere=True),
    _get("audit", "/audit", "admin"),
    _delete("keys.revoke", "/keys/{key_id}", "admin"),
    Operation("keys.create_token", "POST", "/tokens", "feedback", repeatable=True, batch=True, secret=True),
    _get("jobs.list", "/jobs"),
    _post("jobs.improve", "/jobs/improve", "write", repeatable=True),
    _get("jobs.get", _JOB),
    _post("jobs.cancel", f"{_JOB}/cancel", "write", repeatable=True),
    _post("jobs.retry", f"{_JOB}/retry", "write"),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}
