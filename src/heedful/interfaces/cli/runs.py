"""executions: what ran, and what it gave."""

from __future__ import annotations

import click
from rich.markup import escape

from heedful.interfaces.cli.common import (
    Options,
    as_json,
    confirm,
    console,
    cursor,
    done,
    echo,
    limit,
    more,
    needs_project,
    print_json,
    shortened,
    table,
    yes,
)
from heedful.interfaces.cli.executions import connector, show


@click.group()
def executions() -> None:
    """Executed SQL with its results."""


@executions.command("list")
@connector
@cursor
@limit
@as_json
@needs_project
def list_executions(options: Options, connector_id: str | None, cursor: str | None, limit: int, as_json: bool) -> None:
    """List executions, the newest first."""
    with options.open() as heedful:
        page = heedful.executions.list(connector_id=connector_id, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo("Nothing ran yet. Run something: heedful run SQL --question TEXT")
        return
    rows = table(
        "at", "origin", "rows", "question", "sql_query", "execution_id", numbers=("rows",), less=("origin", "rows")
    )
    for each in page.items:
        rows.add_row(
            f"{each.created_at:%Y-%m-%d %H:%M}",
            each.origin,
            str(len(each.result)),
            escape(shortened(each.question or "", 40)),
            escape(shortened(each.sql_query, 40)),
            each.execution_id,
        )
    console().print(rows)
    more(page)


@executions.command("remove")
@click.argument("execution_id")
@yes
@as_json
@needs_project
def delete(options: Options, execution_id: str, yes: bool, as_json: bool) -> None:
    """Remove an execution with its result."""
    confirm(f"Delete execution {execution_id}, with its result and what people said of it?", yes)
    with options.open() as heedful:
        heedful.executions.delete(execution_id)
    done("deleted", execution_id, as_json)


@executions.command("show")
@click.argument("execution_id")
@as_json
@needs_project
def get(options: Options, execution_id: str, as_json: bool) -> None:
    """Show one execution with its result."""
    with options.open() as heedful:
        show(heedful.executions.get(execution_id), as_json)
