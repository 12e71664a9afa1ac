"""What the dashboard has while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import FIFOCache
from starlette.requests import Request

from heedful.interfaces.dashboard.logins import Logins, Visitor
from heedful.interfaces.dashboard.registry import Action, ActionResult
from heedful.interfaces.dashboard.rendering import environment
from heedful.interfaces.http.callers import Caller
from heedful.interfaces.http.limits import RateLimiter
from heedful.interfaces.http.reading import path_of
from heedful.interfaces.http.state import State

Value = TypeVar("Value")
Result = TypeVar("Result")

COOKIE = "heedful_login"

STRANGER = Caller("", "", frozenset())
"""Everybody who isn't logged in."""

MAX_NOTES = 10_000
"""Notes that are kept at once."""

MAX_PENDING = 20_000_000
"""Characters of the forms that are kept at once."""


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An action that somebody was about to do when their login had expired."""

    project: str
    action: str
    fields: dict[str, str]


class Notes(Generic[Value]):
    """Values by name; the oldest are forgotten when there are too many."""

    def __init__(self, most: int = MAX_NOTES, size: Callable[[Value], int] | None = None) -> None:
        self._values: FIFOCache[str, Value] = FIFOCache(most, size)
        self._lock = threading.Lock()

    def put(self, name: str, value: Value) -> bool:
        """Keeps a value; False if there was one, which stays."""
        with self._lock:
            if name in self._values:
                return False
            self._values[name] = value
            return True

    def get(self, name: str) -> Value | None:
        with self._lock:
            return self._values.get(name)

    def take(self, name: str) -> Value | None:
        with self._lock:
            return self._values.pop(name, None)


def _size(action: PendingAction) -> int:
    return MAX_PENDING // MAX_NOTES + sum(len(name) + len(value) for name, value in action.fields.items())


class Site:
    """One store, its projects, and who is logged in. It is one process, so that what it notes is in its memory."""

    def __init__(self, state: State, actions: dict[str, Action], hours: float) -> None:
        self.state = state
        self.store = state.store
        self.actions = actions
        self.logins = Logins(state.store, state.config.admin_key, hours)
        self.refusals = state.refusals
        self.limiter = RateLimiter()
        self.templates = environment()
        self.notice: Notes[ActionResult] = Notes()
        """What the next page of a login shows."""
        self.pending: Notes[PendingAction] = Notes(MAX_PENDING, _size)
        """What a login was about to do."""
        self.posted: Notes[bool] = Notes()
        """Forms that were done."""

    def project_names(self, only: str | None) -> list[str]:
        """The projects that somebody may see."""
        if only is not None:
            return [only]
        names = self.store.projects()
        return names or [self.store.default_project]

    async def visitor(self, request: Request) -> Visitor | None:
        """Who sent a request, if they are logged in; it counts for them."""
        cookie = request.cookies.get(COOKIE)
        visitor = None if cookie is None else await self.state.run_lookup(lambda: self.logins.visitor(cookie))
        if visitor is not None:
            await self.state.admit(request, visitor.caller)
        return visitor

    async def run(self, request: Request, visitor: Visitor | None, work: Callable[[], Result]) -> Result:
        """Runs what makes a page, when it is its turn: by the project and the key of a login, as calls of the API.
        Whoever isn't logged in shares one turn with all others who aren't."""
        caller = STRANGER if visitor is None else visitor.caller
        project = caller.project
        if project is None:
            project = path_of(request.path_params).get("project", "")
        return await self.state.run(self.state.calls, project, caller, work)

    def close(self) -> None:
        self.logins.close()
        self.state.close()
