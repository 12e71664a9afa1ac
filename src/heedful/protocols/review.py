"""`.review`: what people were unhappy with, as work to do."""

from __future__ import annotations

from typing import Protocol

from heedful.model import Fix, OpinionTarget, Page, ReviewCase, ReviewComparison, ReviewEvent, ReviewItem, ReviewStatus

PAGE_LIMIT = 50


class ReviewProtocol(Protocol):
    """The review queue of one project. What people disliked becomes an item when somebody looks, or by a worker."""

    def list(
        self,
        *,
        status: ReviewStatus | None = "open",
        assignee: str | None = None,
        dataset: str | None = None,
        target_type: OpinionTarget | None = None,
        cursor: str | None = None,
        limit: int = PAGE_LIMIT,
    ) -> Page[ReviewItem]:
        """Items, those with the most opinions first, then the newest; `status=None` lists all."""

    def get(self, item_id: str) -> ReviewCase:
        """An item with the answer, the evidence, all opinions, what was done, and what can be done."""

    def assign(
        self, item_id: str, assignee: str | None, *, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        """Says who sees to an item; None for nobody."""

    def resolve(
        self, item_id: str, *, note: str | None = None, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        """Says that an item is fixed. A negative opinion that is given afterwards opens it again.

        Of an item that you resolved before, another note is kept beside the first.
        """

    def dismiss(
        self, item_id: str, *, note: str | None = None, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        """Says that there is nothing to fix, even if others complain again."""

    def reopen(
        self, item_id: str, *, note: str | None = None, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        """Says that an item is work to do after all."""

    def fix(
        self,
        item_id: str,
        action: Fix,
        *,
        fact_id: str | None = None,
        text: str | None = None,
        by: str | None = None,
        event_id: str | None = None,
        execution_id: str | None = None,
        question: str | None = None,
        sql_query: str | None = None,
        connector_id: str | None = None,
        note: str | None = None,
        author: str | None = None,
        if_match: str | None = None,
    ) -> ReviewEvent:
        """Does something about an item; `undo` reverts it.

        `supersede` replaces the fact `fact_id` with `text`, or with the fact `by`. `retract` retracts the opinion
        `event_id`. `teach` makes a fact of the correction in it, or of `text`, since a visitor's word alone teaches
        nothing. `block` says that the execution `execution_id` is wrong, with `note` as the reason. `promote` makes a
        golden example of it, of its own `question` or another; if nobody says that it is right, the reviewer does.
        `add_example` adds the golden example `sql_query`, for the item's question and connector or for others. The item
        stays open until it is resolved.
        """

    def ask_again(self, item_id: str) -> ReviewComparison:
        """Asks an item's question again, and compares what is answered now with what was disliked. Nothing is kept.

        Of an execution, it is what the cache would run, without running it.
        """

    def undo(self, event_id: str, *, author: str | None = None) -> ReviewEvent:
        """Undoes an action on an item with everything it did. Doing it again changes nothing."""
