"""review: what people disliked, as work to do."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from heedful import model
from heedful.interfaces.cli.fact_commands import show_hits
from heedful.interfaces.cli.runner import Engine, Group
from heedful.interfaces.cli.screen import echo, show_table
from heedful.text import shortened

review = Group("review", first="list show assign resolve dismiss reopen fix ask-again")


def _list_items(heedful: Engine, status: Any, **given: Any) -> model.Page[model.ReviewItem]:
    return heedful.review.list(status=None if status == "all" else status, **given)


@review.runs(
    "list",
    does=_list_items,
    status={"type": click.Choice([*model.REVIEW_STATUSES, "all"]), "help": "Only items with this status."},
)
def list_items(page: model.Page[model.ReviewItem]) -> None:
    """List items, those with the most opinions first."""
    show_table(
        page,
        "negative=opinions | positive | about=target_type | status | assignee",
        ("question", lambda item: escape(shortened(item.question or item.target_id, 60))),
        "comment:40 | last=last_at | item_id",
        less=("last", "assignee", "about", "positive", "status"),
        empty="Nothing to review.",
    )


@review.runs("get", "item_id", name="show")
def get(case: model.ReviewCase) -> None:
    """Show an item: answer, evidence, opinions, and what was done."""
    item = case.item
    echo(f"{item.target_type} {_state(item)}, {item.opinions} negative, {item.positive} positive")
    texts = {"asked": item.question, "answered": case.answer, "SQL": case.sql_query, "execution": case.execution_id}
    for name, text in texts.items():
        if text is not None:
            echo(f"  {name}: {text}")
    if case.evidence:
        show_table(case.evidence, "rank | score:.4f | share:.2f", ("fact", _evidence_text), "fact_id")
    rated = ("opinion", lambda opinion: "right" if opinion.positive else "wrong")
    show_table(case.opinions, rated, "score | author | at | comment:50 | event_id")
    if case.history:
        done = ("done", lambda event: event.action + (" (undone)" if event.undone else ""))
        show_table(case.history, done, "author | at | note:50 | event_id")
    if case.fixes:
        echo(f"to fix it: heedful review fix {item.item_id} {'|'.join(case.fixes)} …")


def _evidence_text(evidence: model.ReviewEvidence) -> str:
    text = "(forgotten)" if evidence.text is None else shortened(evidence.text)
    return text + (" (superseded)" if evidence.superseded else "")


def _state(item: model.ReviewItem) -> str:
    return f"{item.item_id}: {item.status}" + (f", assigned to {item.assignee}" if item.assignee else "")


@review.runs(
    "assign",
    *("item_id", "assignee"),
    does=lambda heedful, item_id, assignee=None, **given: heedful.review.assign(item_id, assignee, **given),
    assignee={"required": False},
    help="Assign an item; without ASSIGNEE, unassign it.",
)
@review.runs("resolve", "item_id", help="Mark an item as resolved; a later complaint reopens it.")
@review.runs("dismiss", "item_id", help="Mark an item as needing no fix.")
@review.runs("reopen", "item_id", help="Reopen an item.")
def _show_state(item: model.ReviewItem) -> str:
    return f"item {_state(item)}"


@review.runs(
    "fix",
    "item_id",
    "action",
    fact_id="supersede: the fact that is wrong.",
    text="supersede, teach: what is true.",
    by={"metavar": "ID", "help": "supersede: instead of --text, a fact that is true."},
    event_id="retract, teach: the opinion.",
    execution_id="block, promote: the execution.",
    question="promote, add_example: the question, if it is another.",
    sql_query="add_example: the SQL that answers it.",
    connector_id="add_example: the connector, if it is another.",
    help="Fix what an item complains about.",
)
@review.runs("undo", "event_id", help="Undo an action with everything it did.")
def _show_action(event: model.ReviewEvent) -> str:
    if event.undone:
        return f"{event.action}, event {event.event_id}, is undone"
    return f"{event.action}, event {event.event_id}; to undo it: heedful review undo {event.event_id}"


@review.runs("ask_again", "item_id")
def ask_again(comparison: model.ReviewComparison) -> str:
    """Ask the question again, and compare."""
    echo(comparison.question)
    without, used = (" without feedback", " with it") if comparison.usefulness_weight == 0 else ("", "")
    echo(f"  before{without}: {comparison.before or '-'}")
    echo(f"  now{used}: {comparison.after or '-'}")
    if comparison.reason is not None:
        echo(f"  because {comparison.reason}")
    if comparison.evidence_after:
        show_hits(comparison.evidence_after)
    return "changed" if comparison.changed else "nothing changed"
