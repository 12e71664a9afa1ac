"""Sessions: conversations, answers, and what people said of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, get_args

from pydantic import Field

from heedful.model.base import AuthorKind, Metadata, Model, public

Rating = Literal["up", "down"]
FeedbackTarget = Literal["session", "entry"]

RATINGS: tuple[Rating, ...] = get_args(Rating)

NotLearntReason = Literal["visitor", "too_few_authors", "corrects_nothing", "personal_data"]

Item = TypeVar("Item")


class Page(Model, Generic[Item]):
    """A part of a list, and how to ask for the next one."""

    items: list[Item]
    next_cursor: str | None
    """Pass it as `cursor` to go on; None at the end."""


@public
class Session(Model):
    """One conversation."""

    session_id: str
    metadata: Metadata
    created_at: datetime
    updated_at: datetime
    """When anything in it was last written."""


class Message(Model):
    """One message of a session."""

    message_id: str
    role: str
    content: str
    at: datetime


class UsedFact(Model):
    """A fact that an answer was made from."""

    fact_id: str
    share: float
    """Its part in the answer; the shares of an answer add up to 1."""
    links: list[str] = Field(default_factory=list)
    """The links of the graph by which it was found."""


class Usage(Model):
    """The tokens that the language model counted; None if it did not report them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@public
class Entry(Model):
    """One question and answer of a session, with the active feedback."""

    qa_id: str
    question: str
    answer: str
    context: str
    """The texts that the answer was made from."""
    time: datetime
    feedback_text: str | None = None
    feedback_score: int | None = None
    recall_id: str | None = None
    """The receipt of the evidence."""
    dataset: str | None = None
    used: list[UsedFact] | None = None
    """The facts the answer used; None where that is not known yet."""
    model: str | None = None
    """The language model that wrote the answer; None if none did."""
    usage: Usage | None = None
    external_id: str | None = None
    """The caller's own id, such as that of a run or a trace."""


@public
class Feedback(Model):
    """One opinion about a session or an entry."""

    feedback_id: str
    """Also the id of its event: `retract` undoes it."""
    session_id: str
    target_type: FeedbackTarget
    target_id: str
    rating: Rating | None
    """Of an entry: up from 4, down to 2, else None."""
    score: int | None
    """1 to 5, for entries."""
    comment: str | None
    author: str | None
    author_kind: AuthorKind
    """Who the author is: a visitor changes no score and teaches nothing."""
    created_at: datetime
    extra: Metadata
    """Metadata added by hooks."""


@public
class NormalisedRating(Model):
    """A rating on the scales that Heedful uses; all None where nothing is rated."""

    value: float | None = None
    """From 0 (worst) to 1 (best)."""
    score: int | None = None
    """1 to 5."""
    rating: Rating | None = None
    """Up from a score of 4, down to 2, else None."""
    original: Any
    """The rating as it was given."""


class SessionDeletion(Model):
    """The data deleted with a session."""

    session_id: str
    messages: int
    entries: int
    feedbacks: int
    forgotten_facts: int
    """Facts that had been learnt in it."""


class LearntFact(Model):
    """A fact that `improve` made from a session."""

    fact_id: str
    text: str
    session_id: str
    qa_id: str
    learnt_from: Literal["answer", "feedback"]
    corrects: str | None = None
    """The fact that the feedback corrects."""


class NotLearnt(Model):
    """Feedback that would have taught a fact, and did not."""

    feedback_id: str
    """The opinion."""
    session_id: str
    qa_id: str
    """The answer that it is about."""
    learnt_from: Literal["answer", "feedback"]
    """The text that would have been learnt: the answer, or the correction in the comment."""
    reason: NotLearntReason
    """The author is a visitor; too few authors say so; it corrects no fact of the answer; or it would keep personal
    data that no fact has."""
    detail: str
    """The same in words."""


@public
class Improvement(Model):
    """The changes made by `improve`; all zero if there was nothing new."""

    dataset: str | None
    """None if several were improved."""
    entries: int
    """Answers whose ratings were looked at."""
    signals_added: int
    signals_retracted: int
    updated_facts: list[str]
    link_signals_added: int
    link_signals_retracted: int
    learnt: list[LearntFact]
    forgotten: list[str]
    """Learnt facts whose source is gone."""
    entities_added: int
    """Links to entities that the language model found."""
    visitor_ratings: int = 0
    """Ratings by visitors, which create no signals."""
    without_facts: int = 0
    """Rated answers that use no fact that could be recognised, so that their ratings move none."""
    not_learnt: list[NotLearnt] = Field(default_factory=list)
    """The newest hundred lessons that were not learnt, and why. A person can teach them from the review queue."""

    @property
    def changed(self) -> bool:
        """Whether anything did."""
        counts = (
            self.signals_added,
            self.signals_retracted,
            self.link_signals_added,
            self.link_signals_retracted,
            self.entities_added,
        )
        return any(counts) or bool(self.learnt or self.forgotten)


class Alert(Model):
    """One message in the outbox."""

    alert_id: str
    channel: str
    payload: dict[str, Any]
    created_at: datetime
    attempts: int
    next_at: datetime | None
    """When it is tried next; None when it was delivered or discarded."""
    delivered_at: datetime | None
    error: str | None
    """Why the last attempt failed."""


class RatingResult(Model):
    """The status of a rating. In Python, it is true if the rating is stored."""

    status: Literal["stored", "waiting", "refused"]
    """`waiting` for an answer with this id, which may still come; `refused` by a feedback hook."""
    detail: str | None = None
    """The same in words, unless it is stored."""

    def __bool__(self) -> bool:
        return self.status == "stored"


class FeedbackMetrics(Model):
    """All active feedback, counted."""

    total: int
    positive: int
    negative: int
    neutral: int
    avg_comment_length: float
