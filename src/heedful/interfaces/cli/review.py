"""review: what people disliked, as work to do."""

from __future__ import annotations

import click
from rich.markup import escape

from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    cursor,
    echo,
    if_match,
    more,
    needs_project,
    print_json,
    shortened,
    table,
)
from heedful.interfaces.cli.facts import print_hits
from heedful.model import (
    FIXES,
    OPINION_TARGETS,
    REVIEW_STATUSES,
    Fix,
    OpinionTarget,
    ReviewCase,
    ReviewEvent,
    ReviewEvidence,
    ReviewItem,
)

author = click.option("--author", metavar="NAME", help="Who performs the action.")
note = click.option("--note", metavar="TEXT", help="A note for other reviewers.")


@click.group()
def review() -> None:
    """Negative feedback as a queue: show, fix, resolve and undo."""


@review.command("list")
@click.option(
    "--status",
    type=click.Choice([*REVIEW_STATUSES, "all"]),
    default="open",
    show_default=True,
    help="Only items with this status.",
)
@click.option("--assignee", metavar="NAME", help="Only items assigned to this person.")
@click.option("--dataset", metavar="NAME", help="Only questions to this dataset.")
@click.option("--target-type", type=click.Choice(OPINION_TARGETS), help="Only opinions about targets of this type.")
@cursor
@click.option("--limit", default=50, show_default=True, help="How many at most.")
@as_json
@needs_project
def list_items(
    options: Options,
    status: str,
    assignee: str | None,
    dataset: str | None,
    target_type: OpinionTarget | None,
    cursor: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List items, those with the most opinions first."""
    with options.open() as heedful:
        page = heedful.review.list(
            status=next((each for each in REVIEW_STATUSES if each == status), None),
            assignee=assignee,
            dataset=dataset,
            target_type=target_type,
            cursor=cursor,
            limit=limit,
        )
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo("Nothing to review.")
        return
    numbers = ("opinions", "against")
    rows = table(
        *numbers,
        "about",
        "status",
        "assignee",
        "question",
        "comment",
        "last",
        "item_id",
        numbers=numbers,
        less=("last", "assignee", "about", "against", "status"),
    )
    for each in page.items:
        rows.add_row(
            str(each.opinions),
            str(each.against),
            each.target_type,
            each.status,
            escape(each.assignee or ""),
            escape(shortened(each.question or "", 40)),
            escape(shortened(each.comment or "", 40)),
            f"{each.last_at:%Y-%m-%d %H:%M}",
            each.item_id,
        )
    console().print(rows)
    more(page)


@review.command("show")
@click.argument("item_id")
@as_json
@needs_project
def get(options: Options, item_id: str, as_json: bool) -> None:
    """Show an item: answer, evidence, opinions, and what was done."""
    with options.open() as heedful:
        case = heedful.review.get(item_id)
    if as_json:
        print_json(case)
    else:
        show(case)


@review.command()
@click.argument("item_id")
@click.argument("assignee", required=False)
@author
@if_match
@as_json
@needs_project
def assign(
    options: Options, item_id: str, assignee: str | None, author: str | None, if_match: str | None, as_json: bool
) -> None:
    """Assign an item; without ASSIGNEE, unassign it."""
    with options.open() as heedful:
        _report(heedful.review.assign(item_id, assignee, author=author, if_match=if_match), as_json)


@review.command()
@click.argument("item_id")
@note
@author
@if_match
@as_json
@needs_project
def resolve(
    options: Options, item_id: str, note: str | None, author: str | None, if_match: str | None, as_json: bool
) -> None:
    """Mark an item as resolved; a later complaint reopens it."""
    with options.open() as heedful:
        _report(heedful.review.resolve(item_id, note=note, author=author, if_match=if_match), as_json)


@review.command()
@click.argument("item_id")
@note
@author
@if_match
@as_json
@needs_project
def dismiss(
    options: Options, item_id: str, note: str | None, author: str | None, if_match: str | None, as_json: bool
) -> None:
    """Mark an item as needing no fix."""
    with options.open() as heedful:
        _report(heedful.review.dismiss(item_id, note=note, author=author, if_match=if_match), as_json)


@review.command()
@click.argument("item_id")
@note
@author
@if_match
@as_json
@needs_project
def reopen(
    options: Options, item_id: str, note: str | None, author: str | None, if_match: str | None, as_json: bool
) -> None:
    """Reopen an item."""
    with options.open() as heedful:
        _report(heedful.review.reopen(item_id, note=note, author=author, if_match=if_match), as_json)


@review.command()
@click.argument("item_id")
@click.argument("action", type=click.Choice(FIXES))
@click.option("--fact-id", metavar="ID", help="supersede: the fact that is wrong.")
@click.option("--text", metavar="TEXT", help="supersede, teach: what is true.")
@click.option("--by", metavar="ID", help="supersede: instead of --text, a fact that is true.")
@click.option("--event-id", metavar="ID", help="retract, teach: the opinion.")
@click.option("--execution-id", metavar="ID", help="block, promote: the execution.")
@click.option("--question", metavar="TEXT", help="promote, add_example: the question, if it is another.")
@click.option("--sql-query", metavar="SQL", help="add_example: the SQL that answers it.")
@click.option("--connector-id", metavar="NAME", help="add_example: the connector, if it is another.")
@note
@author
@if_match
@as_json
@needs_project
def fix(
    options: Options,
    item_id: str,
    action: Fix,
    fact_id: str | None,
    text: str | None,
    by: str | None,
    event_id: str | None,
    execution_id: str | None,
    question: str | None,
    sql_query: str | None,
    connector_id: str | None,
    note: str | None,
    author: str | None,
    if_match: str | None,
    as_json: bool,
) -> None:
    """Fix what an item complains about."""
    with options.open() as heedful:
        event = heedful.review.fix(
            item_id,
            action,
            fact_id=fact_id,
            text=text,
            by=by,
            event_id=event_id,
            execution_id=execution_id,
            question=question,
            sql_query=sql_query,
            connector_id=connector_id,
            note=note,
            author=author,
            if_match=if_match,
        )
    _show_event(event, as_json)


@review.command("ask-again")
@click.argument("item_id")
@as_json
@needs_project
def ask_again(options: Options, item_id: str, as_json: bool) -> None:
    """Ask the question again, and compare."""
    with options.open() as heedful:
        comparison = heedful.review.ask_again(item_id)
    if as_json:
        print_json(comparison)
        return
    echo(comparison.question)
    echo(f"  before: {comparison.before or '-'}")
    echo(f"  now: {comparison.after or '-'}")
    if comparison.reason is not None:
        echo(f"  because {comparison.reason}")
    if comparison.evidence_after:
        print_hits(console(), comparison.evidence_after)
    echo("changed" if comparison.changed else "nothing changed")


@review.command()
@click.argument("event_id")
@author
@as_json
@needs_project
def undo(options: Options, event_id: str, author: str | None, as_json: bool) -> None:
    """Undo an action with everything it did."""
    with options.open() as heedful:
        _show_event(heedful.review.undo(event_id, author=author), as_json)


def _report(item: ReviewItem, as_json: bool) -> None:
    if as_json:
        print_json(item)
        return
    echo(f"item {item.item_id}: {item.status}" + (f", assigned to {item.assignee}" if item.assignee else ""))


def _show_event(event: ReviewEvent, as_json: bool) -> None:
    if as_json:
        print_json(event)
    elif event.undone:
        echo(f"{event.action}, event {event.event_id}, is undone")
    else:
        echo(f"{event.action}, event {event.event_id}; to undo it: heedful review undo {event.event_id}")


def show(case: ReviewCase) -> None:
    """Prints all that is known of an item."""
    item = case.item
    sees = f", assigned to {item.assignee}" if item.assignee else ""
    echo(f"{item.target_type} {item.item_id}: {item.status}{sees}, {item.opinions} against {item.against}")
    for name, text in (("asked", item.question), ("answered", case.answer), ("SQL", case.sql_query)):
        if text is not None:
            echo(f"  {name}: {text}")
    if case.execution_id is not None:
        echo(f"  execution: {case.execution_id}")
    if case.evidence:
        _evidence(case.evidence)
    opinions = table("opinion", "score", "author", "at", "comment", "event_id", numbers=("score",))
    for opinion in case.opinions:
        opinions.add_row(
            "right" if opinion.positive else "wrong",
            "" if opinion.score is None else str(opinion.score),
            escape(opinion.author or ""),
            f"{opinion.at:%Y-%m-%d %H:%M}",
            escape(shortened(opinion.comment or "", 50)),
            opinion.event_id,
        )
    console().print(opinions)
    if case.history:
        history = table("done", "author", "at", "note", "event_id")
        for event in case.history:
            history.add_row(
                event.action + (" (undone)" if event.undone else ""),
                escape(event.author or ""),
                f"{event.at:%Y-%m-%d %H:%M}",
                escape(shortened(event.note or "", 50)),
                event.event_id,
            )
        console().print(history)
    if case.fixes:
        echo(f"to fix it: heedful review fix {item.item_id} {'|'.join(case.fixes)} …")


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
