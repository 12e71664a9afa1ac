"""What every part of the sessions works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heedful.errors import NotFound
from heedful.memory.workspace import Workspace
from heedful.notifications.dispatcher import Dispatcher
from heedful.sessions.hooks import Hook
from heedful.storage.sessions import SessionStore


def do_nothing() -> None:
    """What follows feedback where a worker looks for it."""


@dataclass(frozen=True, slots=True)
class SessionSpace:
    """The sessions of one project, and the facts that answers are made from, if there are any."""

    store: SessionStore
    project: str
    now: Callable[[], int]
    dispatcher: Dispatcher
    workspace: Workspace | None = None
    feedback_hook: Hook | None = None
    metadata_hook: Hook | None = None
    waiting_days: int = 1
    """How long a rating waits for its entry; 0 is for ever."""
    feedback_changed: Callable[[], object] = do_nothing
    """Called after feedback was stored or retracted."""

    def missing(self, session_id: str) -> NotFound:
        """The error for an unknown session."""
        return NotFound(
            f"no session {session_id!r} in project {self.project!r}",
            field="session_id",
            value=session_id,
            remedy="Create it first: sessions.create(session_id), or recall(…, session_id=…)",
        )
