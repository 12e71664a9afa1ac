"""connect, connectors, run, ask, cache, golden."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from heedful.errors import HeedfulError
from heedful.interfaces import gates
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    confirm,
    console,
    done,
    echo,
    if_match,
    needs_project,
    pairs,
    print_json,
    shortened,
    table,
    waiting,
    yes,
)
from heedful.interfaces.cli.tables import FittingTable
from heedful.model import CacheCoverage, CacheLookup, CacheSuggestion, Execution, QueryResult, etag

MAX_ROWS = 20
"""Rows of a result that are shown."""

connector = click.option(
    "-c",
    "--connector",
    "--connector-id",
    "connector_id",
    metavar="NAME",
    help="The connector, if the project has several.",
)

audience = click.option("--audience", metavar="NAME", help="Whom it is for; everybody by default.")

asker = click.option("--author", metavar="NAME", help="Who asks; your program by default.")

privileged = click.option("--privileged", is_flag=True, help="Accept a login that may do more than read.")

sensitive_columns = click.option(
    "--sensitive-column",
    "sensitive_columns",
    multiple=True,
    metavar="TABLE.COLUMN",
    help="A column whose values are not read to recognise them in questions; may be repeated.",
)


@click.command()
@click.argument("name")
@click.argument("url")
@click.option("--role", metavar="NAME", help="PostgreSQL: the role to run as.")
@privileged
@sensitive_columns
@as_json
@click.pass_obj
def connect(
    options: Options,
    name: str,
    url: str,
    role: str | None,
    privileged: bool,
    sensitive_columns: tuple[str, ...],
    as_json: bool,
) -> None:
    """Connect a database by its SQLAlchemy URL.

    Write secrets as ${VAR}.
    """
    with waiting("reading the schema"), options.open() as heedful:
        connector = heedful.connectors.create(
            name, url, role=role, privileged=privileged, sensitive_columns=sensitive_columns
        )
    if as_json:
        print_json(connector)
    else:
        echo(f"{connector.name}: {connector.tables} tables in {connector.url}")


@click.group()
def connectors() -> None:
    """Connected databases."""


@connectors.command("list")
@as_json
@needs_project
def list_connectors(options: Options, as_json: bool) -> None:
    """List connectors."""
    with options.open() as heedful:
        connectors = heedful.connectors.list()
    if as_json:
        print_json(connectors)
        return
    if not connectors:
        echo("No connectors. Add one: heedful connect NAME URL")
        return
    rows = table(
        "name",
        "url",
        "tables",
        "schema read",
        "state",
        "connector_id",
        numbers=("tables",),
        less=("connector_id", "schema read"),
    )
    for connector in connectors:
        read = "" if connector.schema_at is None else f"{connector.schema_at:%Y-%m-%d %H:%M}"
        state = "on" if connector.enabled else "to be confirmed"
        rows.add_row(
            escape(connector.name),
            escape(connector.url),
            str(connector.tables or 0),
            read,
            state,
            connector.connector_id,
        )
    console().print(rows)


@connectors.command()
@click.argument("name")
@sensitive_columns
@as_json
@needs_project
def refresh(options: Options, name: str, sensitive_columns: tuple[str, ...], as_json: bool) -> None:
    """Refresh the schema of a connector."""
    with waiting("reading the schema"), options.open() as heedful:
        connector = heedful.connectors.refresh(name, sensitive_columns=sensitive_columns or None)
    if as_json:
        print_json(connector)
    else:
        echo(f"{connector.name}: {connector.tables} tables")


@connectors.command("confirm")
@click.argument("name")
@privileged
@as_json
@needs_project
def confirm_connector(options: Options, name: str, privileged: bool, as_json: bool) -> None:
    """Enable an imported connector; check its URL first."""
    with options.open() as heedful:
        connector = heedful.connectors.confirm(name, privileged=privileged)
    if as_json:
        print_json(connector)
    else:
        echo(f"{connector.name} is on: {connector.tables} tables in {connector.url}")


@connectors.command("remove")
@click.argument("name")
@yes
@as_json
@needs_project
def delete(options: Options, name: str, yes: bool, as_json: bool) -> None:
    """Remove a connector with its executions and golden examples."""
    confirm(f"Delete connector {name}, its executions and examples?", yes)
    with options.open() as heedful:
        heedful.connectors.delete(name)
    done("deleted", name, as_json)


@click.command()
@click.argument("sql_query")
@connector
@click.option("--question", metavar="TEXT", help="What it answers, so that the cache can find it.")
@click.option(
    "--parameter", "parameters", multiple=True, metavar="KEY=VALUE", help="The value of :KEY; may be repeated."
)
@click.option(
    "--chat-message",
    "--chat-message-id",
    "chat_message_id",
    metavar="ID",
    help="The message of a chat that it belongs to.",
)
@click.option("--external-id", metavar="ID", help="Your own id for it, which feedback may name.")
@audience
@as_json
@needs_project
def run(
    options: Options,
    sql_query: str,
    connector_id: str | None,
    question: str | None,
    parameters: tuple[str, ...],
    chat_message_id: str | None,
    external_id: str | None,
    audience: str | None,
    as_json: bool,
) -> None:
    """Run one read-only statement; - reads it from standard input."""
    text = sys.stdin.read() if sql_query == "-" else sql_query
    with waiting("running"), options.open() as heedful:
        ran = heedful.executions.execute_query(
            text,
            connector_id=connector_id,
            question=question,
            parameters=pairs("parameters", parameters),
            chat_message_id=chat_message_id,
            external_id=external_id,
            audience=audience,
        )
    show(ran, as_json)


@click.command()
@click.argument("query")
@connector
@click.option(
    "--chat-session",
    "--chat-session-id",
    "chat_session_id",
    metavar="ID",
    help="Continue this one; by default, start a new one.",
)
@click.option("--feedback-cutoff", default=0.5, show_default=True, help="How reliable examples must be, 0 to 1.")
@click.option("--remark", "remarks", multiple=True, metavar="TEXT", help="What the model should know; may be repeated.")
@asker
@click.option("--audience", metavar="NAME", help="Whom a new chat session is for; everybody by default.")
@as_json
@needs_project
def ask(
    options: Options,
    query: str,
    connector_id: str | None,
    chat_session_id: str | None,
    feedback_cutoff: float,
    remarks: tuple[str, ...],
    author: str | None,
    audience: str | None,
    as_json: bool,
) -> None:
    """Answer a question about data, by proven or newly written SQL."""
    if audience is not None and chat_session_id is not None:
        raise click.UsageError("--audience is for a new chat session; --chat-session has its own")
    with waiting("asking"), options.open() as heedful:
        session = chat_session_id or heedful.chat_sessions.create(audience=audience).id
        try:
            answer = heedful.chat.chat_to_answer(
                session,
                query,
                connector_id=connector_id,
                feedback_cutoff=feedback_cutoff,
                remarks=remarks,
                author=author,
            )
        except HeedfulError:
            if chat_session_id is None:
                heedful.chat_sessions.delete(session)
            raise
    if as_json:
        print_json(answer)
        return
    echo(answer.answer)
    if answer.execution_result is not None:
        echo(f"\n{answer.sql_query}")
        echo(f"{answer.origin}: {answer.explanation}")
        echo(f"execution {answer.execution_result.execution_id}  chat session {answer.chat_session_id}")
    _show_suggestion(query, answer.suggestion)


@click.group()
def cache() -> None:
    """Executions that can be reused."""


@cache.command()
@click.argument("user_query")
@connector
@click.option("--max-age-days", default=30.0, show_default=True, help="How old it may be.")
@click.option(
    "--similarity-threshold", default=0.65, show_default=True, help="The similarity from which a match is considered."
)
@click.option("--limit", default=50, show_default=True, help="How many candidates are considered.")
@click.option("--top-n", default=5, show_default=True, help="How many candidates are shown.")
@click.option("--only-positive-feedback", is_flag=True, help="Only executions rated as right.")
@click.option("--reuse", type=click.Choice(("sql", "result")), default="sql", show_default=True, help="What to reuse.")
@click.option("--explain", is_flag=True, help="Also show the gate that decided, and each difference.")
@audience
@asker
@as_json
@needs_project
def lookup(
    options: Options,
    user_query: str,
    connector_id: str | None,
    max_age_days: float,
    similarity_threshold: float,
    limit: int,
    top_n: int,
    only_positive_feedback: bool,
    reuse: str,
    explain: bool,
    audience: str | None,
    author: str | None,
    as_json: bool,
) -> None:
    """Show what the cache has for a question, and why."""
    with waiting("looking it up"), options.open() as heedful:
        result = heedful.chat.execution_cache_lookup(
            user_query,
            connector_id=connector_id,
            max_age_days=max_age_days,
            similarity_threshold=similarity_threshold,
            limit=limit,
            top_n=top_n,
            only_positive_feedback=only_positive_feedback,
            reuse="result" if reuse == "result" else "sql",
            audience=audience,
            author=author,
        )
    if as_json:
        print_json(result)
    else:
        _show_lookup(result, explain)
        _show_suggestion(user_query, result.suggestion)


@cache.command()
@click.argument("user_query")
@click.argument("execution_id")
@connector
@click.option("--author", metavar="NAME", help="Who says so.")
@audience
@as_json
@needs_project
def confirm_suggestion(
    options: Options,
    user_query: str,
    execution_id: str,
    connector_id: str | None,
    author: str | None,
    audience: str | None,
    as_json: bool,
) -> None:
    """Confirm a suggestion: run it, and prove it."""
    with waiting("running"), options.open() as heedful:
        result = heedful.chat.confirm_suggestion(
            user_query, execution_id, connector_id=connector_id, author=author, audience=audience
        )
    show(result, as_json)


@cache.command()
@connector
@click.option("--max-age-days", default=30.0, show_default=True, help="How long ago a refused question was asked.")
@click.option("--limit", default=10, show_default=True, help="How many of each are shown.")
@as_json
@needs_project
def coverage(options: Options, connector_id: str | None, max_age_days: float, limit: int, as_json: bool) -> None:
    """Show what is proven, refused, and to be proven next."""
    with waiting("comparing questions"), options.open() as heedful:
        report = heedful.chat.execution_cache_coverage(
            connector_id=connector_id, max_age_days=max_age_days, limit=limit
        )
    if as_json:
        print_json(report)
    else:
        _show_coverage(report)


def _show_coverage(report: CacheCoverage) -> None:
    screen = console()
    echo(f"{report.proven_questions} proven questions of {report.proven_kinds} kinds")
    proven = table("proven", "for example", "SQL", numbers=("proven",))
    for kind in report.proven:
        proven.add_row(str(kind.questions), escape(shortened(kind.example, 50)), escape(shortened(kind.sql_template)))
    refused = table("refused because", "asked", "questions", "for example", numbers=("asked", "questions"))
    for refusal in report.refused:
        example = escape(shortened(refusal.examples[0], 60))
        refused.add_row(gates.label(refusal.gate), str(refusal.asked), str(refusal.questions), example)
    missing = table("to prove next", "asked", "questions", "probably means", numbers=("asked", "questions"))
    for gap in report.missing:
        likely = "" if gap.suggestion is None else escape(shortened(gap.suggestion.question, 50))
        missing.add_row(escape(shortened(gap.question, 60)), str(gap.asked), str(gap.questions), likely)
    for rows, items in ((proven, report.proven), (refused, report.refused), (missing, report.missing)):
        if items:
            screen.print(rows)


def _show_suggestion(user_query: str, likely: CacheSuggestion | None) -> None:
    if likely is None:
        return
    screen = console()
    screen.print(f"Did you mean: {escape(likely.question)}", highlight=False)
    screen.print(f"  {escape(likely.sql_query)}", highlight=False)
    confirm = f"heedful cache confirm-suggestion {shlex.quote(user_query)} {likely.execution_id}"
    screen.print(f"Confirm it: {escape(confirm)}", highlight=False, soft_wrap=True)


def _show_lookup(result: CacheLookup, explain: bool) -> None:
    screen = console()
    if not result.matches:
        screen.print(f"nothing alike; {result.candidates_checked} looked at")
        return
    rows = table("decision", "similarity", "question", "why", numbers=("similarity",))
    for match in result.matches:
        why = [match.reason, f"gate: {match.gate}", *match.differences] if explain else [match.reason]
        rows.add_row(
            match.decision,
            f"{match.similarity_score:.3f}",
            escape(shortened(match.question, 50)),
            escape("\n".join(shortened(each, 160) for each in why)),
        )
    screen.print(rows)
    first = result.matches[0]
    if result.cache_hit:
        screen.print(f"\n{escape(first.execution['sql_query'])}", highlight=False)
        screen.print(_rows(first.execution["result"]))


def show(ran: Execution, as_json: bool) -> None:
    """An execution with the first rows of its result."""
    if as_json:
        print_json(ran)
        return
    console().print(_rows(ran.result))
    if ran.result.truncated:
        echo(f"cut off by the limit on {ran.result.truncated_by}")
    echo(f"execution {ran.execution_id}")


def _rows(result: QueryResult) -> FittingTable:
    rows = table(*(column.name for column in result.columns))
    for row in result.rows[:MAX_ROWS]:
        rows.add_row(*("" if value is None else escape(shortened(str(value), 60)) for value in row))
    if len(result.rows) > MAX_ROWS:
        rows.add_row(f"… {len(result.rows) - MAX_ROWS} more rows")
    return rows


@click.group()
def golden() -> None:
    """Golden examples: questions with the SQL that answers them."""


@golden.command()
@click.argument("question")
@click.argument("sql_query")
@connector
@audience
@as_json
@click.pass_obj
def add(
    options: Options, question: str, sql_query: str, connector_id: str | None, audience: str | None, as_json: bool
) -> None:
    """Add a golden example."""
    with options.open() as heedful:
        example = heedful.golden_examples.create(question, sql_query, connector_id=connector_id, audience=audience)
    if as_json:
        print_json(example)
    else:
        echo(f"example {example.id}")


@golden.command()
@click.argument("execution_id")
@click.option("--question", metavar="TEXT", help="The question, reworded.")
@click.option("--audience", metavar="NAME", help="Whom it is for; the audience of the execution by default.")
@as_json
@needs_project
def promote(options: Options, execution_id: str, question: str | None, audience: str | None, as_json: bool) -> None:
    """Make a golden example of an execution that was rated right."""
    with options.open() as heedful:
        example = heedful.golden_examples.promote(execution_id, question=question, audience=audience)
    if as_json:
        print_json(example)
    else:
        echo(f"example {example.id}")


@golden.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@connector
@as_json
@click.pass_obj
def import_file(options: Options, path: Path, connector_id: str | None, as_json: bool) -> None:
    """Add golden examples from a .csv or .jsonl file.

    It has the columns question and sql_query, and may have audience.
    """
    with waiting("importing"), options.open() as heedful:
        examples = heedful.golden_examples.import_file(path, connector_id=connector_id)
    if as_json:
        print_json(examples)
    else:
        echo(f"{len(examples)} examples")


@golden.command("list")
@connector
@click.option("--skip", default=0, show_default=True, help="How many to skip.")
@click.option("--limit", default=100, show_default=True, help="How many at most.")
@as_json
@needs_project
def list_examples(options: Options, connector_id: str | None, skip: int, limit: int, as_json: bool) -> None:
    """List golden examples, the newest first."""
    with options.open() as heedful:
        examples = heedful.golden_examples.list(connector_id=connector_id, skip=skip, limit=limit)
    if as_json:
        print_json(examples)
        return
    rows = table("question", "sql_query", "origin", "audience", "id", less=("audience",))
    for example in examples:
        rows.add_row(
            escape(shortened(example.question, 50)),
            escape(shortened(example.sql_query)),
            example.origin,
            escape(example.audience or ""),
            example.id,
        )
    console().print(rows)


@golden.command()
@click.argument("example_id")
@click.option("--question", metavar="TEXT", help="The question, reworded.")
@click.option("--sql-query", metavar="SQL", help="The new SQL.")
@click.option("--audience", metavar="NAME", help="Whom it is for from now on.")
@if_match
@as_json
@needs_project
def update(
    options: Options,
    example_id: str,
    question: str | None,
    sql_query: str | None,
    audience: str | None,
    if_match: str | None,
    as_json: bool,
) -> None:
    """Update a golden example; omitted fields stay unchanged."""
    fields: dict[str, Any] = {"question": question, "sql_query": sql_query, "audience": audience}
    changed = {name: value for name, value in fields.items() if value is not None}
    with options.open() as heedful:
        example = heedful.golden_examples.update(example_id, **changed, if_match=if_match)
    if as_json:
        print_json(example)
    else:
        echo(f"{example.question}\n{example.sql_query}\netag {etag(example)}")


@golden.command("remove")
@click.argument("example_id")
@yes
@as_json
@needs_project
def delete_example(options: Options, example_id: str, yes: bool, as_json: bool) -> None:
    """Remove a golden example."""
    confirm(f"Delete golden example {example_id}?", yes)
    with options.open() as heedful:
        heedful.golden_examples.delete(example_id)
    done("deleted", example_id, as_json)
