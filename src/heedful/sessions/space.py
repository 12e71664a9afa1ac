"""The sessions of one project, as every part of this wing works on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heedful.errors import NotFound
from heedful.notifications.outbox import Dispatcher
from heedful.sessions.hooks import Hook
from heedful.sessions.session_store import SessionRow, SessionStore, Transaction
from heedful.workspace import Workspace


def do_nothing() -> None:
    """Follows feedback where no worker waits for it."""


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
    waiting_days: int = 1  # How long a rating waits for its entry; 0 is for ever.
    feedback_changed: Callable[[], object] = do_nothing  # Called after feedback was stored or retracted.

    def session(self, tx: Transaction, session_id: str) -> SessionRow:
        """A session, which must exist."""
        row = tx.conversations.session(session_id)
        if row is None:
            raise self.missing(session_id)
        return row

    def missing(self, session_id: str) -> NotFound:
        """The error for an unknown session."""
        remedy = "Create it first: sessions.create(session_id), or recall(…, session_id=…)"
        return NotFound.in_project(self.project, "session", session_id, "session_id", remedy)
