"""`.review`: what people were unhappy with, as work to do."""

from __future__ import annotations

from typing import Annotated

from heedful.api import parameters as t
from heedful.api.calls import Namespace, call
from heedful.model import Page, ReviewCase, ReviewComparison, ReviewEvent, ReviewItem


class Review(Namespace, name="review"):
    """The review queue of one project. Items are created when somebody reads the queue, or by a worker."""

    @call("GET", "/review")
    def list(
        self,
        *,
        status: t.ItemStatus | None = "open",
        assignee: Annotated[str | None, t.Means("Only items assigned to this person.", t.ID_LIMITS)] = None,
        dataset: Annotated[t.DatasetName | None, t.Means("Only questions about this dataset.")] = None,
        target_type: t.ItemTarget | None = None,
        cursor: Annotated[
            t.Cursor | None,
            t.Means("The `next_cursor` of the previous page.", {"pattern": r"^[0-9]{1,18}(\.[0-9]{1,18}){2}$"}),
        ] = None,
        limit: t.Limit = 50,
    ) -> Page[ReviewItem]:
        """Items, those with the most opinions first, then the newest; `status=None` lists all."""

    @call("GET", "/review/{item_id}")
    def get(self, item_id: t.ItemId) -> ReviewCase:
        """An item with the answer, the evidence, all opinions, what was done, and what can be done."""

    @call("POST", "/review/{item_id}/assign", "feedback")
    def assign(
        self,
        item_id: t.ItemId,
        assignee: t.Assignee | None,
        *,
        author: t.Reviewer | None = None,
        if_match: t.IfMatch | None = None,
    ) -> ReviewItem:
        """Says who sees to an item; None for nobody."""

    @call("POST", "/review/{item_id}/resolve", "feedback")
    def resolve(
        self,
        item_id: t.ItemId,
        *,
        note: t.ActionNote | None = None,
        author: t.Reviewer | None = None,
        if_match: t.IfMatch | None = None,
    ) -> ReviewItem:
        """Says that an item is fixed. A negative opinion that is given afterwards opens it again.

        Of an item that you resolved before, another note is kept beside the first.
        """

    @call("POST", "/review/{item_id}/dismiss", "feedback")
    def dismiss(
        self,
        item_id: t.ItemId,
        *,
        note: t.ActionNote | None = None,
        author: t.Reviewer | None = None,
        if_match: t.IfMatch | None = None,
    ) -> ReviewItem:
        """Says that there is nothing to fix, even if others complain again."""

    @call("POST", "/review/{item_id}/reopen", "feedback")
    def reopen(
        self,
        item_id: t.ItemId,
        *,
        note: t.ActionNote | None = None,
        author: t.Reviewer | None = None,
        if_match: t.IfMatch | None = None,
    ) -> ReviewItem:
        """Says that an item is work to do after all."""

    @call("POST", "/review/{item_id}/fix", "write", queries=True)
    def fix(
        self,
        item_id: t.ItemId,
        action: t.FixAction,
        *,
        fact_id: t.FactId | None = None,
        text: t.Text | None = None,
        by: t.OtherFactId | None = None,
        event_id: Annotated[t.EventId | None, t.Means("The opinion, from the item's `opinions`.")] = None,
        execution_id: t.ExecutionId | None = None,
        question: Annotated[t.Question | None, t.Means("A question other than that of the item or execution.")] = None,
        sql_query: t.SqlQuery | None = None,
        connector_id: Annotated[t.ConnectorId | None, t.Means("A connector other than that of the item.")] = None,
        note: t.ActionNote | None = None,
        author: Annotated[t.Author | None, t.Means("Who does it.")] = None,
        if_match: t.IfMatch | None = None,
    ) -> ReviewEvent:
        """Does something about an item; `undo` reverts it.

        `supersede` replaces the fact `fact_id` with `text`, or with the fact `by`. `retract` retracts the opinion
        `event_id`. `teach` makes a fact of the correction in it, or of `text`, since a visitor's word alone teaches
        nothing. `block` says that the execution `execution_id` is wrong, with `note` as the reason. `promote` makes a
        golden example of it, of its own `question` or another; if nobody says that it is right, the reviewer does.
        `add_example` adds the golden example `sql_query`, for the item's question and connector or for others. The item
        stays open until it is resolved.
        """

    @call("POST", "/review/{item_id}/ask-again", repeatable=True, slow=True, queries=True)
    def ask_again(self, item_id: t.ItemId) -> ReviewComparison:
        """Asks an item's question again, and compares the answer now with the disliked one. Nothing is stored.

        Feedback ranks the facts, even if it did not before. For an execution, it is the SQL that the cache would run.
        """

    @call("POST", "/review/events/{event_id}/undo", "write", repeatable=True)
    def undo(
        self,
        event_id: Annotated[
            t.EventId,
            t.Means("The action, from the item's `history`; for an opinion that reopened the item, use `retract`."),
        ],
        *,
        author: Annotated[t.Author | None, t.Means("Who undoes it.")] = None,
    ) -> ReviewEvent:
        """Undoes an action on an item with everything it did. Doing it again changes nothing."""
