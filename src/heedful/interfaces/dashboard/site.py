"""What the dashboard has while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import FIFOCache

from heedful.access.audit import Refusals
from heedful.interfaces.dashboard.logins import Logins
from heedful.interfaces.dashboard.registry import Action, ActionResult
from heedful.interfaces.dashboard.rendering import environment
from heedful.interfaces.http.limits import RateLimiter
from heedful.store import Store

Value = TypeVar("Value")

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

    def __init__(self, store: Store, actions: dict[str, Action], admin_key: str | None, hours: float) -> None:
        self.store = store
        store.serve_others()
        self.actions = actions
        self.logins = Logins(store, admin_key, hours)
        self.refusals = Refusals(store.database, store.now)
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

    def close(self) -> None:
        self.refusals.close()
        self.logins.close()
        self.store.close()
