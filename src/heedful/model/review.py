"""The review queue: what people were unhappy with, as work to do."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_args

from heedful.model.base import AuthorKind, Model
from heedful.model.insight import OpinionTarget
from heedful.model.memory import Hit

ReviewStatus = Literal["open", "resolved", "dismissed"]
ReviewKind = Literal["negative", "contradictory", "conflict"]
Fix = Literal["supersede", "retract", "teach", "block", "promote", "add_example"]
"""The fixes for an item: correct a fact; retract an opinion; make a fact of an opinion; say that an
execution is wrong, or that it is right; give the SQL for a question."""

ReviewAction = Literal[
    "assign", "resolve", "dismiss", "reopen", "supersede", "retract", "teach", "block", "promote", "add_example"
]

REVIEW_STATUSES: tuple[ReviewStatus, ...] = get_args(ReviewStatus)
FIXES: tuple[Fix, ...] = get_args(Fix)


class ReviewItem(Model):
    """Opinions that say the same, as one piece of work."""

    item_id: str
    """For all that is done to it."""
    kind: ReviewKind
    """Contradictory, if somebody else says the contrary of the same thing; a conflict, if `remember` noticed facts that
    say otherwise than this one."""
    target_type: OpinionTarget
    """The target of the opinions."""
    question: str | None
    """The question; None if it is not stored."""
    dataset: str | None
    """That was asked; None where it is about something else."""
    status: ReviewStatus
    """The status after the latest action of a reviewer."""
    assignee: str | None
    """Who is assigned to it."""
    opinions: int
    """Negative ones that are active. Without any, an item is no longer listed as open."""
    positive: int
    """Positive ones about the same things, of the thousand that were spoken of last."""
    comment: str | None
    """The newest comment, shortened."""
    opened_at: datetime
    """When the first opinion was given."""
    last_at: datetime
    """When the newest opinion was given."""
    changed_at: datetime
    """When somebody last acted on it; when it was opened, if nobody did."""


class ReviewOpinion(Model):
    """One opinion of an item."""

    event_id: str
    """The event that `retract` undoes."""
    target_type: OpinionTarget
    target_id: str
    """The session, entry, message, execution or fact."""
    session_id: str | None
    """None where it is about none."""
    positive: bool
    """Whether it says the contrary of the item."""
    score: int | None
    """1 (worst) to 5 (best), where one was given."""
    comment: str | None
    author: str | None
    author_kind: AuthorKind
    """Who the author is: a visitor's correction becomes a fact only if a reviewer teaches it."""
    at: datetime


class ReviewEvidence(Model):
    """A fact behind the answer, as it was shown."""

    fact_id: str
    text: str | None
    """None if it was forgotten since."""
    rank: int | None
    """None if the receipt is gone, or if it was not shown."""
    score: float | None
    relevance: float | None
    usefulness: float | None
    share: float | None
    """Its part in the answer."""
    superseded: bool
    """Whether another fact is recalled in its place."""


class ReviewEvent(Model):
    """Something that was done about an item."""

    event_id: str
    """The action that `undo` reverts."""
    action: ReviewAction
    """The action."""
    author: str | None
    """Who did it."""
    at: datetime
    """When."""
    note: str | None
    """Why."""
    details: dict[str, Any]
    """The object of the action, and its result."""
    undone: bool
    """Whether it was retracted."""


class ReviewCase(Model):
    """An item with all that is needed to fix it."""

    item: ReviewItem
    """The item itself; its `etag` goes into `if_match`."""
    answer: str | None
    """The newest answer that was disliked."""
    sql_query: str | None
    """The SQL, where it is about an execution."""
    execution_id: str | None
    recall_id: str | None
    """The recall behind the answer."""
    usefulness_weight: float | None
    """That of the recall: 0 if it was asked for without feedback; None if its receipt is gone."""
    evidence: list[ReviewEvidence]
    """The facts behind the answer, best first."""
    opinions: list[ReviewOpinion]
    """Those that are active, the newest first, at most 100 of each kind."""
    history: list[ReviewEvent]
    """The oldest first. An opinion that opened the item again is a `reopen` whose `details` name it as `opinion`; it is
    listed until it is retracted."""
    fixes: list[Fix]
    """The fixes that apply to it."""


class ReviewComparison(Model):
    """The same question, asked again."""

    question: str
    before: str | None
    """The answer that was disliked, or the SQL, where it is about an execution."""
    after: str | None
    """The answer, or the SQL that would run; None if there is none that may be used again."""
    reason: str | None
    """Why the cache decides so, where it is about an execution."""
    usefulness_weight: float | None
    """That of the recall behind the disliked answer: 0 if it was without feedback, while the new one is with it."""
    evidence_before: list[ReviewEvidence]
    """The facts behind the answer that was disliked."""
    evidence_after: list[Hit]
    """The facts behind the answer now."""
    changed: bool
    """Whether the answer or the order of the evidence differs."""
