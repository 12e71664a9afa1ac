"""feedback: what people say of executions."""

from __future__ import annotations

import csv
import sys
from typing import Any

import click
import orjson
from rich.markup import escape

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.insight.writing import escape_formula
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    done,
    echo,
    echo_json,
    idempotency_key,
    if_match,
    needs_project,
    print_json,
    shortened,
    table,
)
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.model import ExecutionFeedback, etag

FIELDS = list(ExecutionFeedback.model_fields)
PAGE_SIZE = 1_000


@click.group()
def feedback() -> None:
    """Feedback on executions: right or wrong, and why."""


@feedback.command()
@click.option("--positive/--negative", "is_positive", default=None, help="Whether it was right.")
@click.option("--text", "--feedback", "text", metavar="TEXT", help="Why.")
@click.option("--execution", "--execution-id", "execution_id", metavar="ID", help="What it is about.")
@click.option("--message", "--chat-message-id", "chat_message_id", metavar="ID", help="Or the message of a chat.")
@click.option("--author", metavar="NAME", help="Whose opinion it is; a later one replaces it.")
@idempotency_key
@as_json
@needs_project
def add(
    options: Options,
    is_positive: bool | None,
    text: str | None,
    execution_id: str | None,
    chat_message_id: str | None,
    author: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Rate an execution as right or wrong."""
    if is_positive is None:
        raise Invalid("the rating is missing", field="is_positive", remedy="Pass --positive or --negative")
    with options.open() as heedful:
        stored = heedful.feedback.create(
            is_positive=is_positive,
            feedback=text,
            execution_id=execution_id,
            chat_message_id=chat_message_id,
            author=author,
            idempotency_key=idempotency_key,
        )
    if as_json:
        print_json(stored)
    else:
        echo(f"feedback {stored.id}; to retract it: heedful feedback retract {stored.id}")


@feedback.command("list")
@click.option("--positive/--negative", "is_positive", default=None, help="Only feedback of this kind.")
@click.option("--search", metavar="TEXT", help="Only those whose text contains this.")
@click.option("--skip", default=0, show_default=True, help="How many to skip.")
@click.option("--limit", default=100, show_default=True, help="How many at most.")
@as_json
@needs_project
def list_feedback(
    options: Options, is_positive: bool | None, search: str | None, skip: int, limit: int, as_json: bool
) -> None:
    """List feedback, the newest first."""
    if search is not None and is_positive is not None:
        raise Invalid("--search can't be combined with --positive or --negative", field="search", value=search)
    with options.open() as heedful:
        if is_positive is None:
            page = heedful.feedback.list(skip=skip, limit=limit, search=search)
        elif is_positive:
            page = heedful.feedback.list_positive(skip=skip, limit=limit)
        else:
            page = heedful.feedback.list_negative(skip=skip, limit=limit)
    if as_json:
        print_json(page)
        return
    rows = table("at", "rating", "author", "feedback", "execution_id", "id", less=("execution_id",))
    for opinion in page:
        rows.add_row(
            f"{opinion.created_at:%Y-%m-%d %H:%M}",
            "right" if opinion.is_positive else "wrong",
            escape(opinion.author or ""),
            escape(shortened(opinion.feedback or "", 50)),
            opinion.execution_id or "",
            opinion.id,
        )
    console().print(rows)
    echo(f"{len(page)} of {page.total}")


@feedback.command("show")
@click.argument("feedback_id")
@as_json
@needs_project
def get(options: Options, feedback_id: str, as_json: bool) -> None:
    """Show feedback by its id."""
    with options.open() as heedful:
        _show(heedful.feedback.get(feedback_id), as_json)


@feedback.command()
@click.argument("feedback_id")
@click.option("--positive/--negative", "is_positive", default=None, help="The new rating.")
@click.option("--text", "--feedback", "text", metavar="TEXT", help="The new comment.")
@if_match
@as_json
@needs_project
def update(
    options: Options,
    feedback_id: str,
    is_positive: bool | None,
    text: str | None,
    if_match: str | None,
    as_json: bool,
) -> None:
    """Update feedback; omitted fields stay unchanged."""
    fields: dict[str, Any] = {"is_positive": is_positive, "feedback": text}
    changed = {name: value for name, value in fields.items() if value is not None}
    with options.open() as heedful:
        _show(heedful.feedback.update(feedback_id, **changed, if_match=if_match), as_json)


def _show(feedback: ExecutionFeedback, as_json: bool) -> None:
    if as_json:
        print_json(feedback)
        return
    subject = f"execution {feedback.execution_id}" if feedback.execution_id else f"message {feedback.chat_message_id}"
    echo(f"{'right' if feedback.is_positive else 'wrong'}: {feedback.feedback or ''}")
    echo(f"  {subject}  by {feedback.author or 'nobody named'}  etag {etag(feedback)}")


@feedback.command()
@click.argument("feedback_id")
@as_json
@needs_project
def retract(options: Options, feedback_id: str, as_json: bool) -> None:
    """Retract feedback."""
    with options.open() as heedful:
        heedful.feedback.delete(feedback_id)
    done("retracted", feedback_id, as_json)


@feedback.command()
@click.option(
    "--format", "kind", type=click.Choice(("csv", "jsonl")), default="jsonl", show_default=True, help="What to write."
)
@needs_project
def export(options: Options, kind: str) -> None:
    """Write all feedback to standard output."""
    with options.open() as heedful:
        if kind == "csv":
            writer = csv.DictWriter(sys.stdout, FIELDS)
            writer.writeheader()
            for each in _read_all(heedful):
                row = each.model_dump(mode="json")
                writer.writerow(
                    {name: escape_formula(value) if isinstance(value, str) else value for name, value in row.items()}
                )
        else:
            for each in _read_all(heedful):
                echo_json(orjson.dumps(each.model_dump(mode="json")).decode())


def _read_all(heedful: Heedful | RemoteHeedful) -> list[ExecutionFeedback]:
    feedbacks: list[ExecutionFeedback] = []
    while True:
        page = heedful.feedback.list(skip=len(feedbacks), limit=PAGE_SIZE)
        feedbacks += page.items
        if len(feedbacks) >= page.total or not page.items:
            return feedbacks
