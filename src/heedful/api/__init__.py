"""Every call, declared once: name, parameters with their types, result, scope, route and documentation.

Nothing heavy is imported here, so that a client needs neither a database nor a model."""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import Self, TypeVar

from heedful.api.calls import Call, Namespace, calls_of
from heedful.api.insight import Insight
from heedful.api.keys import Jobs, Keys
from heedful.api.memory import Memory
from heedful.api.review import Review
from heedful.api.sessions import Sessions
from heedful.api.sql import Chat, ChatSessions, Connectors, Executions, FeedbackService, GoldenExamples

__all__ = [
    "ALL_CALLS",
    "CALLS",
    "NAMESPACES",
    "AnyHeedful",
    "Chat",
    "ChatSessions",
    "Connectors",
    "Executions",
    "FeedbackService",
    "GoldenExamples",
    "Insight",
    "Jobs",
    "Keys",
    "Memory",
    "Review",
    "Sessions",
]

Calls = TypeVar("Calls", bound=Namespace)

NAMESPACES: dict[str, type[Namespace]] = {
    "": Memory,
    "sessions": Sessions,
    "insight": Insight,
    "connectors": Connectors,
    "executions": Executions,
    "feedback": FeedbackService,
    "chat": Chat,
    "chat_sessions": ChatSessions,
    "golden_examples": GoldenExamples,
    "review": Review,
    "keys": Keys,
    "jobs": Jobs,
}
"""By the attribute of `Heedful`; its own methods have none."""

ALL_CALLS: dict[str, Call] = {
    call.name: call for namespace in NAMESPACES.values() for call in calls_of(namespace).values()
}
"""By name, local ones too."""

CALLS: dict[str, Call] = {
    # A path without parameters goes before those that it would match, too.
    call.name: call
    for call in sorted(ALL_CALLS.values(), key=lambda call: call.path.count("{"))
    if call.method != "LOCAL"
}
"""Those that can be sent over a wire, by name, in the order in which a server matches their paths."""


def _of(namespace: type[Calls]) -> cached_property[Calls]:
    return cached_property(lambda heedful: namespace(heedful._run))


class AnyHeedful(Memory):
    """One project of one store, here or on a server: all calls, by namespace, run by the same runner."""

    # Made when they are first used: a server makes a `Heedful` for each call.
    sessions = _of(Sessions)
    insight = _of(Insight)
    connectors = _of(Connectors)
    executions = _of(Executions)
    feedback = _of(FeedbackService)
    chat = _of(Chat)
    chat_sessions = _of(ChatSessions)
    golden_examples = _of(GoldenExamples)
    review = _of(Review)
    keys = _of(Keys)
    jobs = _of(Jobs)

    def close(self) -> None:
        """Finishes what runs, and closes the store or the connection to the server."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
