"""A review queue in which all has happened that can happen, for tests that move it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful import Heedful, Signal
from heedful.model import ReviewCase, ReviewItem

WRONG = "When does the ferry to Cacilhas leave?"
FIXED = "Where is the ferry ticket office?"
NEVER_MIND = "How much is a ticket to Cacilhas?"


@dataclass(frozen=True, slots=True)
class Done:
    """Events of actions that stand and can be undone."""

    retracted: str
    superseded: str


def fill(store: Heedful) -> Done:
    """Items that are open, resolved and dismissed, one with notes, an action that was undone and two that were not."""
    ids = store.remember(
        [
            "The ferry to Cacilhas leaves at seven.",
            "The ferry ticket office is on the quay.",
            "A ticket to Cacilhas is two euros.",
        ],
        source="port",
    ).fact_ids
    for question in (WRONG, FIXED, NEVER_MIND):
        result = store.recall(question, session_id="ferry")
        assert result.qa_id is not None
        for author in ("ida", "ole"):
            store.sessions.add_feedback("ferry", result.qa_id, f"{author} disagrees.", 1, author=author)
    store.signal([Signal(fact_id=ids[1], signal_type="not_helpful", query=WRONG, context="That was not asked.")])
    items = {each.question: each for each in listed(store) if each.target_type == "entry"}
    wrong, fixed, minor = items[WRONG].item_id, items[FIXED].item_id, items[NEVER_MIND].item_id
    store.review.assign(wrong, "eva", author="rev")
    tried = store.review.fix(wrong, "supersede", fact_id=ids[0], text="It leaves at eight.", note="Tried.")
    store.review.undo(tried.event_id, author="eva")
    opinion = next(each for each in store.review.get(wrong).opinions if each.author == "ole")
    back = store.review.fix(wrong, "retract", event_id=opinion.event_id, note="Of another ferry.", author="eva")
    moved = store.review.fix(fixed, "supersede", fact_id=ids[1], text="The ferry ticket office has moved.")
    store.review.resolve(fixed, note="It moved.", author="eva")
    store.review.dismiss(minor, note="It is right.", author="eva")
    return Done(back.event_id, moved.event_id)


def listed(store: Heedful) -> list[ReviewItem]:
    return store.review.list(status=None).items


def told(store: Heedful) -> list[ReviewCase]:
    """All that the queue shows."""
    return [store.review.get(item.item_id) for item in listed(store)]


def without_ids(cases: list[ReviewCase]) -> list[dict[str, Any]]:
    """The same, but for what is new in each store when something is done there."""
    dumped = [case.model_dump() for case in cases]
    for case in dumped:
        for each in (*case["opinions"], *case["history"]):
            del each["event_id"]
    return dumped
