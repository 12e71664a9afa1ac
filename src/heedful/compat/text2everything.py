"""The calls of text2everything_sdk for feedback, executions and the cache, on Heedful.

`from heedful.compat.text2everything import Text2EverythingClient` and go on: each `project_id` is a project of the
store. `base_url` may be a store's URL or path; an address of the other system is not contacted, and the store of the
settings is used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from heedful.compat.text2everything_parts import (
    Chat,
    ChatSessions,
    Connectors,
    Executions,
    Feedback,
    GoldenExamples,
)
from heedful.engine import Heedful
from heedful.memory import checks
from heedful.store import Store

__all__ = ["Text2EverythingClient"]

MAX_OPEN_PROJECTS = 32
"""Projects that stay open while nobody uses them."""


class Text2EverythingClient:
    """One store, all of whose projects are at hand. Use it in a `with`, or close it."""

    def __init__(
        self,
        base_url: str | Path | None = None,
        access_token: str | None = None,
        workspace_name: str | None = None,
        **options: Any,
    ) -> None:
        # Tokens and workspaces are the other system's; here, whoever can read the file may use it.
        del access_token, workspace_name
        self._url = None if str(base_url or "").startswith(("http://", "https://")) else base_url
        self._background_jobs = checks.flag("worker", options.pop("worker", True))
        self._options = options
        self._open: Store | None = None
        self._exit_stack = ExitStack()
        self._projects: dict[str, Heedful] = {}
        self._lock = threading.Lock()
        self.feedback = Feedback(self._using)
        self.executions = Executions(self._using)
        self.chat = Chat(self._using)
        self.chat_sessions = ChatSessions(self._using)
        self.connectors = Connectors(self._using)
        self.golden_examples = GoldenExamples(self._using)

    def __enter__(self) -> Text2EverythingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def project(self, project_id: str) -> Heedful:
        """The whole of Heedful for one project; it stays open until the client is closed."""
        store = self._store()
        with self._lock:
            if project_id not in self._projects:
                self._projects[project_id] = Heedful(self._exit_stack.enter_context(store.using(project_id)))
            return self._projects[project_id]

    def close(self) -> None:
        """Closes the store."""
        with self._lock:
            opened, self._open = self._open, None
            self._projects.clear()
            self._exit_stack.close()
        if opened is not None:
            opened.close()

    @contextmanager
    def _using(self, project_id: str) -> Iterator[Heedful]:
        with self._store().using(project_id) as project:
            yield Heedful(project)

    def _store(self) -> Store:
        """The store, opened when it is first used."""
        with self._lock:
            if self._open is None:
                self._open = Store(
                    self._url,
                    max_open_projects=MAX_OPEN_PROJECTS,
                    background_jobs=self._background_jobs,
                    **self._options,
                )
            return self._open
