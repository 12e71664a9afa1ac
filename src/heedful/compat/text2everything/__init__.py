"""The calls of text2everything_sdk for feedback, executions and the cache, on Heedful.

`from heedful.compat.text2everything import Text2EverythingClient` and go on: each `project_id` is a project of the
store. `base_url` may be a store's URL or path; an address of the other system is not contacted, and the store of the
settings is used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from heedful import engine
from heedful.api import AnyHeedful, checks
from heedful.api.calls import Arguments, Call
from heedful.api.parameters import UNCHANGED
from heedful.compat.foreign_api import PAGE_LIMIT, every
from heedful.engine import Heedful
from heedful.model import (
    BulkDeletion,
    CacheLookup,
    ChatAnswer,
    ChatQuestion,
    ChatSession,
    ChatSql,
    Connector,
    Execution,
    ExecutionFeedback,
    FeedbackList,
    GoldenExample,
)
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
        self.feedback = Feedback(self._store)
        self.executions = Executions(self._store)
        self.chat = Chat(self._store)
        self.chat_sessions = ChatSessions(self._store)
        self.connectors = Connectors(self._store)
        self.golden_examples = GoldenExamples(self._store)

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

    def _store(self) -> Store:
        """The store, opened when it is first used."""
        with self._lock:
            if self._open is None:
                worker = self._background_jobs
                self._open = Store(
                    self._url, max_open_projects=MAX_OPEN_PROJECTS, background_jobs=worker, **self._options
                )
            return self._open


class _Calls:
    """Some of the calls of the client, on a project that is open for as long as each of them runs."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def _in(self, project_id: str) -> AnyHeedful:
        def run(call: Call, arguments: Arguments) -> Any:
            with self._store().using(project_id) as project:
                return engine.run(project, call, arguments)

        return AnyHeedful(run)


def _paged(listed: Callable[..., FeedbackList], skip: int = 0, limit: int | None = None) -> list[ExecutionFeedback]:
    """As many as `limit` says, from as many calls as it takes; all, if it says nothing."""
    items: list[ExecutionFeedback] = []
    while True:
        most = PAGE_LIMIT if limit is None else min(PAGE_LIMIT, limit - len(items))
        page = listed(skip=skip + len(items), limit=most)
        items += page.items
        if not page.items or skip + len(items) >= page.total or len(items) == limit:
            return items


class Feedback(_Calls):
    def create(
        self,
        project_id: str,
        chat_message_id: str | None = None,
        feedback: str | None = None,
        is_positive: bool = True,
        execution_id: str | None = None,
    ) -> ExecutionFeedback:
        return self._in(project_id).feedback.create(
            is_positive=is_positive, feedback=feedback, execution_id=execution_id, chat_message_id=chat_message_id
        )

    def create_positive(
        self,
        project_id: str,
        chat_message_id: str | None = None,
        feedback_text: str | None = None,
        execution_id: str | None = None,
    ) -> ExecutionFeedback:
        return self.create(project_id, chat_message_id, feedback_text, True, execution_id)

    def create_negative(
        self,
        project_id: str,
        chat_message_id: str | None = None,
        feedback: str | None = None,
        execution_id: str | None = None,
    ) -> ExecutionFeedback:
        return self.create(project_id, chat_message_id, feedback, False, execution_id)

    def get(self, project_id: str, feedback_id: str) -> ExecutionFeedback:
        return self._in(project_id).feedback.get(feedback_id)

    def list(
        self, project_id: str, skip: int = 0, limit: int | None = None, search: str | None = None
    ) -> list[ExecutionFeedback]:
        """As many as `limit` says; all, if it says nothing."""
        return _paged(partial(self._in(project_id).feedback.list, search=search), skip, limit)

    def list_positive(self, project_id: str) -> Feedbacks:
        return _paged(self._in(project_id).feedback.list_positive)

    def list_negative(self, project_id: str) -> Feedbacks:
        return _paged(self._in(project_id).feedback.list_negative)

    def get_feedback_for_message(self, project_id: str, chat_message_id: str) -> Feedbacks:
        return _paged(partial(self._in(project_id).feedback.get_feedback_for_message, chat_message_id))

    def update(
        self, project_id: str, feedback_id: str, feedback: str | None = UNCHANGED, is_positive: bool = UNCHANGED
    ) -> ExecutionFeedback:
        return self._in(project_id).feedback.update(feedback_id, feedback=feedback, is_positive=is_positive)

    def delete(self, project_id: str, feedback_id: str) -> bool:
        return self._in(project_id).feedback.delete(feedback_id)

    def bulk_delete(self, project_id: str, feedback_ids: Sequence[str]) -> BulkDeletion:
        return self._in(project_id).feedback.bulk_delete(feedback_ids)


# Inside the class above, `list` is a method.
Feedbacks = list[ExecutionFeedback]
Questions = list[ChatQuestion]
ManySessions = list[ChatSession]
ManyConnectors = list[Connector]
Examples = list[GoldenExample]


class Executions(_Calls):
    def execute_query(
        self,
        project_id: str,
        connector_id: str | None = None,
        sql_query: str = "",
        chat_message_id: str | None = None,
        question: str | None = None,
        audience: str | None = None,
    ) -> Execution:
        return self._in(project_id).executions.execute_query(
            sql_query, connector_id=connector_id, chat_message_id=chat_message_id, question=question, audience=audience
        )

    def execute_from_chat(self, project_id: str, chat_message_id: str, connector_id: str | None = None) -> Execution:
        return self._in(project_id).executions.execute_from_chat(chat_message_id, connector_id=connector_id)

    def get(self, project_id: str, execution_id: str) -> Execution:
        return self._in(project_id).executions.get(execution_id)


class Chat(_Calls):
    def chat_to_sql(
        self,
        project_id: str,
        chat_session_id: str,
        query: str,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
    ) -> ChatSql:
        return self._in(project_id).chat.chat_to_sql(
            chat_session_id, query, connector_id=connector_id, feedback_cutoff=feedback_cutoff
        )

    def chat_to_answer(
        self,
        project_id: str,
        chat_session_id: str,
        query: str,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
    ) -> ChatAnswer:
        return self._in(project_id).chat.chat_to_answer(
            chat_session_id, query, connector_id=connector_id, feedback_cutoff=feedback_cutoff
        )

    def execution_cache_lookup(
        self,
        project_id: str,
        user_query: str,
        connector_id: str | None = None,
        max_age_days: float = 30,
        similarity_threshold: float = 0.65,
        limit: int = 50,
        top_n: int = 5,
        only_positive_feedback: bool = False,
        audience: str | None = None,
        author: str | None = None,
    ) -> CacheLookup:
        return self._in(project_id).chat.execution_cache_lookup(
            user_query,
            connector_id=connector_id,
            max_age_days=max_age_days,
            similarity_threshold=similarity_threshold,
            limit=limit,
            top_n=top_n,
            only_positive_feedback=only_positive_feedback,
            audience=audience,
            author=author,
        )


class ChatSessions(_Calls):
    def create(self, project_id: str, name: str | None = None, audience: str | None = None) -> ChatSession:
        return self._in(project_id).chat_sessions.create(name=name, audience=audience)

    def get(self, project_id: str, chat_session_id: str) -> ChatSession:
        return self._in(project_id).chat_sessions.get(chat_session_id)

    def list(self, project_id: str) -> ManySessions:
        return [*every(self._in(project_id).chat_sessions.list)]

    def delete(self, project_id: str, chat_session_id: str) -> bool:
        return self._in(project_id).chat_sessions.delete(chat_session_id)

    def get_questions(self, project_id: str, chat_session_id: str) -> Questions:
        return self._in(project_id).chat_sessions.get_questions(chat_session_id)


class Connectors(_Calls):
    def create(self, project_id: str, name: str, url: str, privileged: bool = False) -> Connector:
        return self._in(project_id).connectors.create(name, url, privileged=privileged)

    def list(self, project_id: str) -> ManyConnectors:
        return self._in(project_id).connectors.list()

    def delete(self, project_id: str, connector_id: str) -> bool:
        return self._in(project_id).connectors.delete(connector_id)


class GoldenExamples(_Calls):
    def create(
        self,
        project_id: str,
        user_query: str,
        sql_query: str,
        connector_id: str | None = None,
        audience: str | None = None,
    ) -> GoldenExample:
        return self._in(project_id).golden_examples.create(
            user_query, sql_query, connector_id=connector_id, audience=audience
        )

    def list(self, project_id: str) -> Examples:
        return self._in(project_id).golden_examples.list(limit=10_000)

    def delete(self, project_id: str, example_id: str) -> bool:
        return self._in(project_id).golden_examples.delete(example_id)
