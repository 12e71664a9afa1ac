"""`.sessions`: conversations, answers, and what people say of them."""

from __future__ import annotations

from typing import Annotated

from heedful.api import parameters as t
from heedful.api.calls import Namespace, call
from heedful.model import (
    Alert,
    Entry,
    Feedback,
    FeedbackMetrics,
    Message,
    Metadata,
    Page,
    RatingResult,
    Session,
    SessionDeletion,
)

# Inside the class, `list` is a method.
Messages = list[Message]


class Sessions(Namespace, name="sessions"):
    """The sessions of one project. Reading never makes one; `create`, messages, entries and recalls do."""

    @call("POST", "/sessions", "write")
    def create(
        self,
        session_id: Annotated[t.SessionId | None, t.Means("The session's name; generated if left out.")] = None,
        *,
        metadata: Annotated[Metadata | None, t.Means("Metadata of the session, merged into what is stored.")] = None,
    ) -> Session:
        """Makes a session, with an id of its own if none is given. One that is there is returned as it is, with
        `metadata` merged into it."""

    @call("GET", "/sessions/{session_id}")
    def get(self, session_id: t.SessionId) -> Session:
        """One session."""

    @call("GET", "/sessions/{session_id}/exists")
    def exists(self, session_id: t.SessionId) -> bool:
        """Whether there is such a session."""

    @call("GET", "/sessions")
    def list(
        self, *, where: t.Where | None = None, cursor: t.Cursor | None = None, limit: t.Limit = t.PAGE
    ) -> Page[Session]:
        """Sessions, the newest first; `where` compares metadata, as in `recall`."""

    @call("DELETE", "/sessions/{session_id}", "write")
    def delete(self, session_id: t.SessionId) -> SessionDeletion:
        """Removes a session with its messages, entries and feedback, and all that was learnt from it.

        A long session is removed in several steps, feedback first. If the process dies meanwhile, the session still has
        the rest: delete it again."""

    @call("POST", "/sessions/{session_id}/messages", "write")
    def add_message(
        self,
        session_id: t.SessionId,
        role: t.Role,
        content: t.Content,
        *,
        at: Annotated[t.Moment | None, t.Means("The time of the message; now if left out.")] = None,
    ) -> Message:
        """Adds one message; the session is made if it is new."""

    @call("POST", "/sessions/{session_id}/messages/batch", "write")
    def add_messages(self, session_id: t.SessionId, messages: t.NewMessages) -> Messages:
        """Adds many messages at once, in order; mappings have `role`, `content` and, if known, `at`."""

    @call("GET", "/sessions/{session_id}/messages")
    def messages(
        self,
        session_id: t.SessionId,
        *,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
        newest_first: t.NewestFirst = False,
    ) -> Page[Message]:
        """The messages of a session, in the order they were added."""

    @call("PATCH", "/sessions/{session_id}/messages/{message_id}", "write", repeatable=True)
    def update_message(self, session_id: t.SessionId, message_id: t.MessageId, content: t.Content) -> Message:
        """Changes what a message says; its place, its time and opinions about it stay. An unknown one is `NotFound`."""

    @call("DELETE", "/sessions/{session_id}/messages/{message_id}", "write")
    def delete_message(self, session_id: t.SessionId, message_id: t.MessageId) -> bool:
        """Removes a message; opinions about it stay in the ledger. An unknown one is `NotFound`."""

    @call("GET", "/sessions/{session_id}/metadata")
    def get_metadata(self, session_id: t.SessionId) -> Metadata:
        """The metadata of a session."""

    @call("PATCH", "/sessions/{session_id}/metadata", "write")
    def update_metadata(
        self,
        session_id: t.SessionId,
        metadata: Annotated[Metadata, t.Means("The new values by key; a dot reaches inside a mapping.")],
        *,
        if_match: t.IfMatch | None = None,
    ) -> Metadata:
        """Merges metadata by key and returns the result; a dotted key reaches inside.

        With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
        """

    @call("DELETE", "/sessions/{session_id}/metadata", "write")
    def delete_metadata(
        self, session_id: t.SessionId, keys: t.MetadataKeys, *, if_match: t.IfMatch | None = None
    ) -> Metadata:
        """Removes keys from the metadata and returns the rest; a dotted key reaches inside.

        With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
        """

    @call("POST", "/sessions/{session_id}/entries", "write")
    def add_entry(
        self,
        session_id: t.SessionId,
        question: t.Question,
        answer: Annotated[t.Answer, t.Means("Your agent's answer; empty if it gave none in words.")],
        *,
        context: t.EntryContext | None = None,
        recall_id: Annotated[
            t.RecallId | None, t.Means("The recall that showed the facts, from `recall(…).recall_id`.")
        ] = None,
        used: t.UsedFacts | None = None,
        external_id: t.ExternalId | None = None,
    ) -> Entry:
        """Keeps an answer that you made yourself; the session is made if it is new.

        With the `recall_id` of the facts it was made from, ratings of it improve recall. `used` names those it used, or
        gives each a weight; if left out, `improve` detects them from the answer.

        `external_id` is an id of your own, such as that of a run, a trace or a message, which no other entry of the
        project has. Feedback may name it in place of the `qa_id`. The same entry with it again is stored once.
        """

    @call("GET", "/sessions/{session_id}/entries/{qa_id}")
    def entry(self, session_id: t.SessionId, qa_id: t.QaId) -> Entry:
        """One question and answer."""

    @call("GET", "/sessions/{session_id}/entries")
    def entries(
        self,
        session_id: t.SessionId,
        *,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
        newest_first: t.NewestFirst = False,
    ) -> Page[Entry]:
        """The questions and answers of a session, in order."""

    @call("PUT", "/sessions/{session_id}/entries/{qa_id}/feedback", "feedback", repeatable=True, missing="entry")
    def add_feedback(
        self,
        session_id: t.SessionId,
        qa_id: t.QaId,
        feedback_text: t.FeedbackText | None = None,
        feedback_score: t.FeedbackScore | None = None,
        *,
        author: t.Author | None = None,
    ) -> bool:
        """Rates an answer from 1 to 5, says something of it, or both; False if there is no such entry.

        What the same author said of it before is replaced.
        """

    @call("PUT", "/entries/{external_id}/rating", "feedback", repeatable=True)
    def rate(
        self,
        external_id: Annotated[t.ExternalId, t.Means("The answer: an ID of your own for it, or its `qa_id`.")],
        rating: t.AnyRating | None = None,
        *,
        comment: t.Comment | None = None,
        scale: t.Scale | None = None,
        author: t.Author | None = None,
    ) -> RatingResult:
        """Rates the answer with this `external_id` or `qa_id`, in whichever session it is, comments on it, or both.

        The `status` of the result is `stored`, or `waiting` if there is no such answer yet: the rating then waits for
        it, a day by default (the setting `waiting_days`), and is stored when the answer is. What the same author said
        of it before is replaced.

        `rating` is a boolean, a word such as "up" or "VERY_NEGATIVE", or a number; `scale` has the worst and the best
        number, where the number alone doesn't say it: (0, 1), (1, 5), (-1, 1). See `normalise_rating`.
        """

    @call("DELETE", "/sessions/{session_id}/entries/{qa_id}/feedback", "feedback", repeatable=True)
    def delete_feedback(
        self,
        session_id: t.SessionId,
        qa_id: t.QaId,
        *,
        author: Annotated[t.Author | None, t.Means("Only feedback of this author.")] = None,
    ) -> bool:
        """Clears the rating and the text of an answer, or those of one author; False if there is nothing to clear.

        Given the external id of an answer that is not there yet, the rating of this author that waits for it goes.
        """

    @call("POST", "/sessions/{session_id}/feedback", "feedback")
    def add_session_feedback(
        self,
        session_id: t.SessionId,
        feedback: t.SessionFeedback,
        *,
        author: t.Author | None = None,
        idempotency_key: t.IdempotencyKey | None = None,
    ) -> Feedback | None:
        """Rates a whole session: `{"rating": "up" | "down" | None, "comment": "…"}`.

        An author has one opinion, the latest; without an author each is kept. None if a hook kept it back.
        """

    @call("GET", "/sessions/{session_id}/feedback")
    def feedbacks(
        self,
        session_id: t.SessionId,
        *,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
        newest_first: t.NewestFirst = False,
    ) -> Page[Feedback]:
        """The active feedback about a session as a whole."""

    @call("GET", "/metrics/feedback")
    def feedback_metrics(self) -> FeedbackMetrics:
        """All active feedback of the project, counted by the store."""

    @call("GET", "/alerts", "admin")
    def alerts(
        self,
        *,
        pending: Annotated[bool, t.Means("Only alerts that still have to be delivered.")] = False,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
    ) -> Page[Alert]:
        """Alerts, the newest first; with `pending`, those that are still to be delivered."""

    @call("POST", "/alerts/deliver", "admin", repeatable=True, slow=True)
    def deliver_alerts(self) -> int:
        """Delivers what is due now, and returns how many were; a background thread does it otherwise."""

    @call("DELETE", "/alerts/{alert_id}", "admin")
    def discard_alert(self, alert_id: t.AlertId) -> Alert:
        """Gives up an alert that can't be delivered."""
