"""The calls of text2everything_sdk for feedback, executions and the cache, on Heedful.

`from heedful.compat.text2everything import Text2EverythingClient` and go on: each `project_id` is a project of the
store. `base_url` may be a store's URL or path; an address of the other system is not contacted, and the store of the
settings is used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heedful.engine import Heedful
from heedful.executions.feedback import UNCHANGED
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
from heedful.opening import open as open_store

__all__ = ["Text2EverythingClient"]

TOGETHER = 1_000


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
        self._store = None if str(base_url or "").startswith(("http://", "https://")) else base_url
        self._options = options
        self._open: dict[str, Heedful] = {}
        self._lock = threading.Lock()
        self.feedback = _Feedback(self)
        self.executions = _Executions(self)
        self.chat = _Chat(self)
        self.chat_sessions = _ChatSessions(self)
        self.connectors = _Connectors(self)
        self.golden_examples = _GoldenExamples(self)

    def __enter__(self) -> Text2EverythingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def project(self, project_id: str) -> Heedful:
        """The whole of Heedful for one project."""
        with self._lock:
            if project_id not in self._open:
                self._open[project_id] = open_store(self._store, project=project_id, **self._options)
            return self._open[project_id]

    def close(self) -> None:
        """Lets go of the store."""
        with self._lock:
            opened, self._open = list(self._open.values()), {}
        for heedful in opened:
            heedful.close()


class _Part:
    def __init__(self, client: Text2EverythingClient) -> None:
        self._client = client

    def _of(self, project_id: str) -> Heedful:
        return self._client.project(project_id)


def _paged(
    listed: Callable[[int, int], FeedbackList], skip: int = 0, limit: int | None = None
) -> list[ExecutionFeedback]:
    """As many as `limit` says, from as many calls as it takes; all, if it says nothing."""
    found: list[ExecutionFeedback] = []
    while True:
        page = listed(skip + len(found), TOGETHER if limit is None else min(TOGETHER, limit - len(found)))
        found += page.items
        if not page.items or skip + len(found) >= page.total or len(found) == limit:
            return found


class _Feedback(_Part):
    def create(
        self,
        project_id: str,
        chat_message_id: str | None = None,
        feedback: str | None = None,
        is_positive: bool = True,
        execution_id: str | None = None,
    ) -> ExecutionFeedback:
        return self._of(project_id).feedback.create(
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
        return self._of(project_id).feedback.get(feedback_id)

    def list(
        self, project_id: str, skip: int = 0, limit: int | None = None, search: str | None = None
    ) -> list[ExecutionFeedback]:
        """As many as `limit` says; all, if it says nothing."""
        listed = self._of(project_id).feedback.list
        return _paged(lambda at, most: listed(skip=at, limit=most, search=search), skip, limit)

    def list_positive(self, project_id: str) -> Feedbacks:
        listed = self._of(project_id).feedback.list_positive
        return _paged(lambda at, most: listed(skip=at, limit=most))

    def list_negative(self, project_id: str) -> Feedbacks:
        listed = self._of(project_id).feedback.list_negative
        return _paged(lambda at, most: listed(skip=at, limit=most))

    def get_feedback_for_message(self, project_id: str, chat_message_id: str) -> Feedbacks:
        listed = self._of(project_id).feedback.get_feedback_for_message
        return _paged(lambda at, most: listed(chat_message_id, skip=at, limit=most))

    def update(
        self, project_id: str, feedback_id: str, feedback: str | None = UNCHANGED, is_positive: bool = UNCHANGED
    ) -> ExecutionFeedback:
        return self._of(project_id).feedback.update(feedback_id, feedback=feedback, is_positive=is_positive)

    def delete(self, project_id: str, feedback_id: str) -> bool:
        return self._of(project_id).feedback.delete(feedback_id)

    def bulk_delete(self, project_id: str, feedback_ids: Sequence[str]) -> BulkDeletion:
        return self._of(project_id).feedback.bulk_delete(feedback_ids)


# Inside the class above, `list` is a method.
Feedbacks = list[ExecutionFeedback]
Questions = list[ChatQuestion]
ManySessions = list[ChatSession]
ManyConnectors = list[Connector]
Examples = list[GoldenExample]


class _Executions(_Part):
    def execute_query(
        self,
        project_id: str,
        connector_id: str | None = None,
        sql_query: str = "",
        chat_message_id: str | None = None,
        question: str | None = None,
    ) -> Execution:
        return self._of(project_id).executions.execute_query(
            sql_query, connector_id=connector_id, chat_message_id=chat_message_id, question=question
        )

    def execute_from_chat(self, project_id: str, chat_message_id: str, connector_id: str | None = None) -> Execution:
        return self._of(project_id).executions.execute_from_chat(chat_message_id, connector_id=connector_id)

    def get(self, project_id: str, execution_id: str) -> Execution:
        return self._of(project_id).executions.get(execution_id)


class _Chat(_Part):
    def chat_to_sql(
        self,
        project_id: str,
        chat_session_id: str,
        query: str,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
    ) -> ChatSql:
        return self._of(project_id).chat.chat_to_sql(
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
        return self._of(project_id).chat.chat_to_answer(
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
    ) -> CacheLookup:
        return self._of(project_id).chat.execution_cache_lookup(
            user_query,
            connector_id=connector_id,
            max_age_days=max_age_days,
            similarity_threshold=similarity_threshold,
            limit=limit,
            top_n=top_n,
            only_positive_feedback=only_positive_feedback,
        )


class _ChatSessions(_Part):
    def create(self, project_id: str, name: str | None = None) -> ChatSession:
        return self._of(project_id).chat_sessions.create(name=name)

    def get(self, project_id: str, chat_session_id: str) -> ChatSession:
        return self._of(project_id).chat_sessions.get(chat_session_id)

    def list(self, project_id: str) -> ManySessions:
        found = self._of(project_id).chat_sessions.list(limit=TOGETHER)
        sessions = found.items
        while found.next_cursor is not None:
            found = self._of(project_id).chat_sessions.list(limit=TOGETHER, cursor=found.next_cursor)
            sessions += found.items
        return sessions

    def delete(self, project_id: str, chat_session_id: str) -> bool:
        return self._of(project_id).chat_sessions.delete(chat_session_id)

    def get_questions(self, project_id: str, chat_session_id: str) -> Questions:
        return self._of(project_id).chat_sessions.get_questions(chat_session_id)


class _Connectors(_Part):
    def create(self, project_id: str, name: str, url: str, privileged: bool = False) -> Connector:
        return self._of(project_id).connectors.create(name, url, privileged=privileged)

    def list(self, project_id: str) -> ManyConnectors:
        return self._of(project_id).connectors.list()

    def delete(self, project_id: str, connector_id: str) -> bool:
        return self._of(project_id).connectors.delete(connector_id)


class _GoldenExamples(_Part):
    def create(
        self, project_id: str, user_query: str, sql_query: str, connector_id: str | None = None
    ) -> GoldenExample:
        return self._of(project_id).golden_examples.create(user_query, sql_query, connector_id=connector_id)

    def list(self, project_id: str) -> Examples:
        return self._of(project_id).golden_examples.list(limit=10_000)

    def delete(self, project_id: str, example_id: str) -> bool:
        return self._of(project_id).golden_examples.delete(example_id)
