"""`.sessions`: conversations, answers, and what people say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from heedful.model import Alert, Entry, Feedback, FeedbackMetrics, Message, Metadata, Page, Session, SessionDeletion

PAGE = 100

# Inside the class, `list` is a method.
Messages = list[Message]

Shares = Sequence[str] | Mapping[str, float]
"""Facts that an answer used, by id, with their share in it where that is known."""


class SessionsProtocol(Protocol):
    """The sessions of one project. Reading never makes one; `create`, messages, entries and recalls do."""

    def create(self, session_id: str | None = None, *, metadata: Metadata | None = None) -> Session:
        """Makes a session, with an id of its own if none is given. One that is there is returned as it is, with
        `metadata` merged into it."""

    def get(self, session_id: str) -> Session:
        """One session."""

    def exists(self, session_id: str) -> bool:
        """Whether there is such a session."""

    def list(self, *, where: Metadata | None = None, cursor: str | None = None, limit: int = PAGE) -> Page[Session]:
        """Sessions, the newest first; `where` compares metadata, as in `recall`."""

    def delete(self, session_id: str) -> SessionDeletion:
        """Removes a session with its messages, entries and feedback, and all that was learnt from it.

        A long session is removed in several steps, feedback first. If the process dies meanwhile, the session still has
        the rest: delete it again."""

    def add_message(self, session_id: str, role: str, content: str, *, at: datetime | None = None) -> Message:
        """Adds one message; the session is made if it is new."""

    def add_messages(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> Messages:
        """Adds many messages at once, in order; mappings have `role`, `content` and, if known, `at`."""

    def messages(
        self, session_id: str, *, cursor: str | None = None, limit: int = PAGE, newest_first: bool = False
    ) -> Page[Message]:
        """The messages of a session, in the order they were added."""

    def update_message(self, session_id: str, message_id: str, content: str) -> Message:
        """Changes what a message says; its place, its time and opinions about it stay. An unknown one is `NotFound`."""

    def delete_message(self, session_id: str, message_id: str) -> bool:
        """Removes a message; opinions about it stay in the ledger. An unknown one is `NotFound`."""

    def get_metadata(self, session_id: str) -> Metadata:
        """The metadata of a session."""

    def update_metadata(self, session_id: str, metadata: Metadata, *, if_match: str | None = None) -> Metadata:
        """Merges metadata by key and returns the result; a dotted key reaches inside.

        With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
        """

    def delete_metadata(self, session_id: str, keys: str | Sequence[str], *, if_match: str | None = None) -> Metadata:
        """Removes keys from the metadata and returns the rest; a dotted key reaches inside.

        With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
        """

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
        """Keeps an answer that you made yourself; the session is made if it is new.

        With the `recall_id` of the facts it was made from, ratings of it improve recall. `used` names those it used, or
        gives each a weight; if left out, `improve` detects them from the answer.

        `external_id` is an id of your own, such as that of a run, a trace or a message, which no other entry of the
        project has. Feedback may name it in place of the `qa_id`. The same entry with it again is stored once.
        """

    def entry(self, session_id: str, qa_id: str) -> Entry:
        """One question and answer."""

    def entries(
        self, session_id: str, *, cursor: str | None = None, limit: int = PAGE, newest_first: bool = False
    ) -> Page[Entry]:
        """The questions and answers of a session, in order."""

    def add_feedback(
        self,
        session_id: str,
        qa_id: str,
        feedback_text: str | None = None,
        feedback_score: int | None = None,
        *,
        author: str | None = None,
    ) -> bool:
        """Rates an answer from 1 to 5, says something of it, or both; False if there is no such entry.

        What the same author said of it before is replaced.
        """

    def rate(
        self,
        external_id: str,
        rating: bool | int | float | str | None = None,
        *,
        comment: str | None = None,
        scale: Sequence[float] | None = None,
        author: str | None = None,
    ) -> bool:
        """Rates the answer with this `external_id`, in whichever session it is, comments on it, or both.

        True if it is stored. False if there is no such answer yet: it then waits for it, a day by default (the setting
        `waiting_days`), and is stored when the answer is. What the same author said of it before is replaced.

        `rating` is a boolean, a word such as "up" or "VERY_NEGATIVE", or a number; `scale` has the worst and the best
        number, where the number alone doesn't say it: (0, 1), (1, 5), (-1, 1). See `normalise_rating`.
        """

    def delete_feedback(self, session_id: str, qa_id: str, *, author: str | None = None) -> bool:
        """Clears the rating and the text of an answer, or those of one author; False if there is no such entry.

        Given the external id of an answer that is not there yet, the rating of this author that waits for it goes.
        """

    def add_session_feedback(
        self,
        session_id: str,
        feedback: Mapping[str, Any],
        *,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> Feedback | None:
        """Rates a whole session: `{"rating": "up" | "down" | None, "comment": "…"}`.

        An author has one opinion, the latest; without an author each is kept. None if a hook kept it back.
        """

    def feedbacks(
        self, session_id: str, *, cursor: str | None = None, limit: int = PAGE, newest_first: bool = False
    ) -> Page[Feedback]:
        """The active feedback about a session as a whole."""

    def feedback_metrics(self) -> FeedbackMetrics:
        """All active feedback of the project, counted by the store."""

    def alerts(self, *, pending: bool = False, cursor: str | None = None, limit: int = PAGE) -> Page[Alert]:
        """Alerts, the newest first; with `pending`, those that are still to be delivered."""

    def deliver_alerts(self) -> int:
        """Delivers what is due now, and returns how many were; a background thread does it otherwise."""

    def discard_alert(self, alert_id: str) -> Alert:
        """Gives up an alert that can't be delivered."""
