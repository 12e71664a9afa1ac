"""`.sessions`: conversations, answers, and what people say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from heedful.model import (
    Alert,
    Entry,
    Feedback,
    FeedbackMetrics,
    Message,
    Metadata,
    Page,
    Session,
    SessionDeletion,
)
from heedful.protocols.sessions import PAGE, Messages, SessionsProtocol, Shares
from heedful.ranking.ratings import normalise_rating
from heedful.sessions import conversations, outbox
from heedful.sessions import entries as _entries
from heedful.sessions import feedback as _feedback
from heedful.sessions.space import SessionSpace


class Sessions(SessionsProtocol):
    """The sessions of one project. Reading never makes one; `create`, messages, entries and recalls do."""

    def __init__(self, space: SessionSpace) -> None:
        self._space = space

    def create(self, session_id: str | None = None, *, metadata: Metadata | None = None) -> Session:
        return conversations.create(self._space, session_id, metadata)

    def get(self, session_id: str) -> Session:
        return conversations.get(self._space, session_id)

    def exists(self, session_id: str) -> bool:
        return conversations.exists(self._space, session_id)

    def list(self, *, where: Metadata | None = None, cursor: str | None = None, limit: int = PAGE) -> Page[Session]:
        return conversations.list_sessions(self._space, where, cursor, limit)

    def delete(self, session_id: str) -> SessionDeletion:
        return conversations.delete(self._space, session_id)

    def add_message(self, session_id: str, role: str, content: str, *, at: datetime | None = None) -> Message:
        return conversations.add_message(self._space, session_id, role, content, at)

    def add_messages(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> Messages:
        return conversations.add_messages(self._space, session_id, messages)

    def messages(
        self, session_id: str, *, cursor: str | None = None, limit: int = PAGE, newest_first: bool = False
    ) -> Page[Message]:
        return conversations.messages(self._space, session_id, cursor, limit, newest_first)

    def update_message(self, session_id: str, message_id: str, content: str) -> Message:
        return conversations.update_message(self._space, session_id, message_id, content)

    def delete_message(self, session_id: str, message_id: str) -> bool:
        return conversations.delete_message(self._space, session_id, message_id)

    def get_metadata(self, session_id: str) -> Metadata:
        return conversations.get_metadata(self._space, session_id)

    def update_metadata(self, session_id: str, metadata: Metadata, *, if_match: str | None = None) -> Metadata:
        return conversations.update_metadata(self._space, session_id, metadata, if_match)

    def delete_metadata(self, session_id: str, keys: str | Sequence[str], *, if_match: str | None = None) -> Metadata:
        return conversations.delete_metadata(self._space, session_id, keys, if_match)

    def add_entry(
        self,
        session_id: str,
        question: str,
        answer: str,
        *,
        context: str | None = None,
        recall_id: str | None = None,
        used: Shares | None = None,
        external_id: str | None = None,
    ) -> Entry:
        return _entries.add(self._space, session_id, question, answer, context, recall_id, used, external_id)

    def entry(self, session_id: str, qa_id: str) -> Entry:
        return _entries.get(self._space, session_id, qa_id)

    def entries(
        self, session_id: str, *, cursor: str | None = None, limit: int = PAGE, newest_first: bool = False
    ) -> Page[Entry]:
        return _entries.list_entries(self._space, session_id, cursor, limit, newest_first)

    def add_feedback(
        self,
        session_id: str,
        qa_id: str,
        feedback_text: str | None = None,
        feedback_score: int | None = None,
        *,
        author: str | None = None,
    ) -> bool:
        return _feedback.rate_entry(self._space, session_id, qa_id, feedback_text, feedback_score, author)

    def rate(
        self,
        external_id: str,
        rating: bool | int | float | str | None = None,
        *,
        comment: str | None = None,
        scale: Sequence[float] | None = None,
        author: str | None = None,
    ) -> bool:
        return _feedback.rate(self._space, external_id, normalise_rating(rating, scale=scale), comment, author)

    def delete_feedback(self, session_id: str, qa_id: str, *, author: str | None = None) -> bool:
        return _feedback.clear_entry(self._space, session_id, qa_id, author)

    def add_session_feedback(
        self,
        session_id: str,
        feedback: Mapping[str, Any],
        *,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> Feedback | None:
        return _feedback.rate_session(self._space, session_id, feedback, author, idempotency_key)

    def feedbacks(
        self, session_id: str, *, cursor: str | None = None, limit: int = PAGE, newest_first: bool = False
    ) -> Page[Feedback]:
        return _feedback.list_for_session(self._space, session_id, cursor, limit, newest_first)

    def feedback_metrics(self) -> FeedbackMetrics:
        return _feedback.metrics(self._space)

    def alerts(self, *, pending: bool = False, cursor: str | None = None, limit: int = PAGE) -> Page[Alert]:
        return outbox.list_alerts(self._space, pending, cursor, limit)

    def deliver_alerts(self) -> int:
        return self._space.dispatcher.deliver_due()

    def discard_alert(self, alert_id: str) -> Alert:
        return outbox.discard(self._space, alert_id)
