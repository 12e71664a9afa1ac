"""An item of the review queue on a screen."""

from __future__ import annotations

from rich.markup import escape

from heedful.cli.common import console, shortened, table
from heedful.cli.output import echo
from heedful.model import ReviewCase, ReviewEvidence


def show(case: ReviewCase) -> None:
    """Prints all that is known of an item."""
    item = case.item
    sees = f", {item.assignee} sees to it" if item.assignee else ""
    echo(f"{item.target_type} {item.item_id}: {item.status}{sees}, {item.opinions} against {item.against}")
    for name, text in (("asked", item.question), ("answered", case.answer), ("SQL", case.sql_query)):
        if text is not None:
            echo(f"  {name}: {text}")
    if case.execution_id is not None:
        echo(f"  execution: {case.execution_id}")
    if case.evidence:
        _evidence(case.evidence)
    said = table("said", "score", "author", "at", "comment", "event_id", numbers=("score",))
    for each in case.opinions:
        said.add_row(
            "right" if each.positive else "wrong",
            "" if each.score is None else str(each.score),
            escape(each.author or ""),
            f"{each.at:%Y-%m-%d %H:%M}",
            escape(shortened(each.comment or "", 50)),
            each.event_id,
        )
    console().print(said)
    if case.history:
        done = table("done", "author", "at", "note", "event_id")
        for event in case.history:
            done.add_row(
                event.action + (" (undone)" if event.undone else ""),
                escape(event.author or ""),
                f"{event.at:%Y-%m-%d %H:%M}",
                escape(shortened(event.note or "", 50)),
                event.event_id,
            )
        console().print(done)
    if case.mends:
        echo(f"to mend it: heedful review mend {item.item_id} {'|'.join(case.mends)} …")


def _evidence(evidence: list[ReviewEvidence]) -> None:
    numbers = ("rank", "score", "share")
    rows = table(*numbers, "fact", "fact_id", numbers=numbers)
    for each in evidence:
        text = "(forgotten)" if each.text is None else shortened(each.text)
        rows.add_row(
            "" if each.rank is None else str(each.rank),
            "" if each.score is None else f"{each.score:.4f}",
            "" if each.share is None else f"{each.share:.2f}",
            escape(text) + (" (superseded)" if each.superseded else ""),
            each.fact_id,
        )
    console().print(rows)
