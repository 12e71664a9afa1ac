"""The parts of text2everything's client: its calls by their names there, on those of Heedful."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

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
from heedful.protocols.sql import UNCHANGED

PAGE_LIMIT = 1_000

Result = TypeVar("Result")


class Part:
    """Some of the calls, each in a project that is open for as long as it runs."""

    def __init__(self, using: Callable[[str], AbstractContextManager[Heedful]]) -> None:
        self._using = using

    def _in(self, project_id: str, call: Callable[[Heedful], Result]) -> Result:
        with self._using(project_id) as project:
            return call(project)


def _paged(
    listed: Callable[[int, int], FeedbackList], skip: int = 0, limit: int | None = None
) -> list[ExecutionFeedback]:
    """As many as `limit` says, from as many calls as it takes; all, if it says nothing."""
    found: list[ExecutionFeedback] = []
    while True:
        page = listed(skip + len(found), PAGE_LIMIT if limit is None else min(PAGE_LIMIT, limit - len(found)))
        found += page.items
        if not page.items or skip + len(found) >= page.total or len(found) == limit:
            return found


def _every_session(project: Heedful) -> list[ChatSession]:
    found = project.chat_sessions.list(limit=PAGE_LIMIT)
    sessions = found.items
    while found.next_cursor is not None:
        found = project.chat_sessions.list(limit=PAGE_LIMIT, cursor=found.next_cursor)
        sessions += found.items
    return sessions


class Feedback(Part):
    def create(
        self,
        project_id: str,
        chat_message_id: str | None = None,
        feedback: str | None = None,
        is_positive: bool = True,
        execution_id: str | None = None,
    ) -> ExecutionFeedback:
        return self._in(
            project_id,
            lambda project: project.feedback.create(
                is_positive=is_positive, feedback=feedback, execution_id=execution_id, chat_message_id=chat_message_id
            ),
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
        return self._in(project_id, lambda project: project.feedback.get(feedback_id))

    def list(
        self, project_id: str, skip: int = 0, limit: int | None = None, search: str | None = None
    ) -> list[ExecutionFeedback]:
        """As many as `limit` says; all, if it says nothing."""
        return self._in(
            project_id,
            lambda project: _paged(
                lambda at, most: project.feedback.list(skip=at, limit=most, search=search), skip, limit
            ),
        )

    def list_positive(self, project_id: str) -> Feedbacks:
        return self._in(
            project_id, lambda project: _paged(lambda at, most: project.feedback.list_positive(skip=at, limit=most))
        )

    def list_negative(self, project_id: str) -> Feedbacks:
        return self._in(
            project_id, lambda project: _paged(lambda at, most: project.feedback.list_negative(skip=at, limit=most))
        )

    def get_feedback_for_message(self, project_id: str, chat_message_id: str) -> Feedbacks:
        return self._in(
            project_id,
            lambda project: _paged(
                lambda at, most: project.feedback.get_feedback_for_message(chat_message_id, skip=at, limit=most)
            ),
        )

    def update(
        self, project_id: str, feedback_id: str, feedback: str | None = UNCHANGED, is_positive: bool = UNCHANGED
    ) -> ExecutionFeedback:
        return self._in(
            project_id, lambda project: project.feedback.update(feedback_id, feedback=feedback, is_positive=is_positive)
        )

    def delete(self, project_id: str, feedback_id: str) -> bool:
        return self._in(project_id, lambda project: project.feedback.delete(feedback_id))

    def bulk_delete(self, project_id: str, feedback_ids: Sequence[str]) -> BulkDeletion:
        return self._in(project_id, lambda project: project.feedback.bulk_delete(feedback_ids))


# Inside the class above, `list` is a method.
Feedbacks = list[ExecutionFeedback]
Questions = list[ChatQuestion]
ManySessions = list[ChatSession]
ManyConnectors = list[Connector]
Examples = list[GoldenExample]


class Executions(Part):
    def execute_query(
        self,
        project_id: str,
        connector_id: str | None = None,
        sql_query: str = "",
        chat_message_id: str | None = None,
        question: str | None = None,
        audience: str | None = None,
    ) -> Execution:
        return self._in(
            project_id,
            lambda project: project.executions.execute_query(
                sql_query,
                connector_id=connector_id,
                chat_message_id=chat_message_id,
                question=question,
                audience=audience,
            ),
        )

    def execute_from_chat(self, project_id: str, chat_message_id: str, connector_id: str | None = None) -> Execution:
        return self._in(
            project_id, lambda project: project.executions.execute_from_chat(chat_message_id, connector_id=connector_id)
        )

    def get(self, project_id: str, execution_id: str) -> Execution:
        return self._in(project_id, lambda project: project.executions.get(execution_id))


class Chat(Part):
    def chat_to_sql(
        self,
        project_id: str,
        chat_session_id: str,
        query: str,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
    ) -> ChatSql:
        return self._in(
            project_id,
            lambda project: project.chat.chat_to_sql(
                chat_session_id, query, connector_id=connector_id, feedback_cutoff=feedback_cutoff
            ),
        )

    def chat_to_answer(
        self,
        project_id: str,
        chat_session_id: str,
        query: str,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
    ) -> ChatAnswer:
        return self._in(
            project_id,
            lambda project: project.chat.chat_to_answer(
                chat_session_id, query, connector_id=connector_id, feedback_cutoff=feedback_cutoff
            ),
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
        return self._in(
            project_id,
            lambda project: project.chat.execution_cache_lookup(
                user_query,
                connector_id=connector_id,
                max_age_days=max_age_days,
                similarity_threshold=similarity_threshold,
                limit=limit,
                top_n=top_n,
                only_positive_feedback=only_positive_feedback,
                audience=audience,
                author=author,
            ),
        )


class ChatSessions(Part):
    def create(self, project_id: str, name: str | None = None, audience: str | None = None) -> ChatSession:
        return self._in(project_id, lambda project: project.chat_sessions.create(name=name, audience=audience))

    def get(self, project_id: str, chat_session_id: str) -> ChatSession:
        return self._in(project_id, lambda project: project.chat_sessions.get(chat_session_id))

    def list(self, project_id: str) -> ManySessions:
        return self._in(project_id, _every_session)

    def delete(self, project_id: str, chat_session_id: str) -> bool:
        return self._in(project_id, lambda project: project.chat_sessions.delete(chat_session_id))

    def get_questions(self, project_id: str, chat_session_id: str) -> Questions:
        return self._in(project_id, lambda project: project.chat_sessions.get_questions(chat_session_id))


class Connectors(Part):
    def create(self, project_id: str, name: str, url: str, privileged: bool = False) -> Connector:
        return self._in(project_id, lambda project: project.connectors.create(name, url, privileged=privileged))

    def list(self, project_id: str) -> ManyConnectors:
        return self._in(project_id, lambda project: project.connectors.list())

    def delete(self, project_id: str, connector_id: str) -> bool:
        return self._in(project_id, lambda project: project.connectors.delete(connector_id))


class GoldenExamples(Part):
    def create(
        self,
        project_id: str,
        user_query: str,
        sql_query: str,
        connector_id: str | None = None,
        audience: str | None = None,
    ) -> GoldenExample:
        return self._in(
            project_id,
            lambda project: project.golden_examples.create(
                user_query, sql_query, connector_id=connector_id, audience=audience
            ),
        )

    def list(self, project_id: str) -> Examples:
        return self._in(project_id, lambda project: project.golden_examples.list(limit=10_000))

    def delete(self, project_id: str, example_id: str) -> bool:
        return self._in(project_id, lambda project: project.golden_examples.delete(example_id))
