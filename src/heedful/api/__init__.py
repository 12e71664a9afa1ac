"""Every call, declared once: name, parameters with their types, result, scope, route and documentation.

Nothing heavy is imported here, so that a client needs neither a database nor a model."""

from __future__ import annotations

from collections.abc import Callable
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


class _Part(cached_property[Calls]):
    """The calls of a namespace, made when they are first used: a server makes a `Heedful` for each call."""

    def __init__(self, namespace: type[Calls]) -> None:
        super().__init__(lambda heedful: namespace(heedful._run))
        self.namespace = namespace


class AnyHeedful(Memory):
    """One project of one store, here or on a server: all calls, by namespace, run by the same runner."""

    sessions = _Part(Sessions)
    insight = _Part(Insight)
    connectors = _Part(Connectors)
    executions = _Part(Executions)
    feedback = _Part(FeedbackService)
    chat = _Part(Chat)
    chat_sessions = _Part(ChatSessions)
    golden_examples = _Part(GoldenExamples)
    review = _Part(Review)
    keys = _Part(Keys)
    jobs = _Part(Jobs)

    @cached_property
    def _before_close(self) -> list[Callable[[], None]]:
        """Finishes what others do with it."""
        return []

    def close(self) -> None:
        """Finishes what runs, and closes the store or the connection to the server."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


NAMESPACES: dict[str, type[Namespace]] = {
    "": Memory,
    **{name: part.namespace for name, part in vars(AnyHeedful).items() if isinstance(part, _Part)},
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
