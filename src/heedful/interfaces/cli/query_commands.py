"""connect, connectors, run, ask, cache, golden, executions, feedback: SQL, what it gave, and whether it was right."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from heedful import model
from heedful.errors import HeedfulError, Invalid
from heedful.interfaces import reason_labels
from heedful.interfaces.cli.runner import STDIN, Engine, Group, runs
from heedful.interfaces.cli.screen import FittingTable, console, echo, show_table
from heedful.text import counted, shortened

MAX_ROWS = 20
"""Rows of a result that are shown."""

connectors = Group("connectors")
cache = Group("cache", "chat", first="lookup")
golden = Group("golden", "golden_examples", first="add promote import list update")
executions = Group("executions", first="list remove")
feedback = Group("feedback", first="add list show")

_SENSITIVE = {"metavar": "TABLE.COLUMN"}
_READING = "reading the schema"
_BY_NAME = {"metavar": "NAME"}


@runs("connectors.create", *("name", "url"), name="connect", needs=None, waits=_READING, sensitive_columns=_SENSITIVE)
def connect(connector: model.Connector) -> str:
    """Write secrets as ${VAR}."""
    return f"{connector.name}: {counted(connector.tables or 0, 'table')} in {connector.url}"


@connectors.runs("list")
def list_connectors(connectors: list[model.Connector]) -> None:
    """List connectors."""
    show_table(
        connectors,
        "name | url",
        ("tables", lambda connector: connector.tables or 0),
        "schema read=schema_at",
        ("state", lambda connector: "on" if connector.enabled else "to be confirmed"),
        "connector_id",
        less=("connector_id", "schema read"),
        empty="No connectors. Add one: heedful connect NAME URL",
    )


@connectors.runs("refresh", "connector_id", waits=_READING, connector_id=_BY_NAME, sensitive_columns=_SENSITIVE)
def refresh(connector: model.Connector) -> str:
    """Refresh the schema of a connector."""
    return f"{connector.name}: {counted(connector.tables or 0, 'table')}"


@connectors.runs("confirm", "connector_id", connector_id=_BY_NAME)
def confirm_connector(connector: model.Connector) -> str:
    """Enable an imported connector; check its URL first."""
    return f"{connector.name} is on: {counted(connector.tables or 0, 'table')} in {connector.url}"


@connectors.runs(
    "delete",
    "connector_id",
    name="remove",
    asks="Delete connector {connector_id}, its executions and examples?",
    connector_id=_BY_NAME,
    help="Remove a connector with its executions and golden examples.",
)
@golden.runs(
    "delete", "example_id", name="remove", asks="Delete golden example {example_id}?", help="Remove a golden example."
)
@executions.runs(
    "delete",
    "execution_id",
    name="remove",
    asks="Delete execution {execution_id}, with its result and what people said of it?",
    help="Remove an execution with its result.",
)
def _show_deleted(_: bool) -> str:
    return "deleted"


@runs("executions.execute_query", "sql_query", name="run", waits="running", sql_query=STDIN)
def run(execution: model.Execution) -> None:
    _show_execution(execution)


@cache.runs(
    "confirm_suggestion",
    *("user_query", "execution_id"),
    waits="running",
    help="Confirm a suggestion: run it, and prove it.",
)
@executions.runs("get", "execution_id", name="show", help="Show one execution with its result.")
def _show_execution(execution: model.Execution) -> None:
    console().print(_rows(execution.result))
    if execution.result.truncated:
        echo(f"cut off by the limit on {execution.result.truncated_by}")
    echo(f"execution {execution.execution_id}")


def _rows(result: model.QueryResult) -> FittingTable:
    rows = FittingTable([column.name for column in result.columns])
    for row in result.rows[:MAX_ROWS]:
        rows.add_row(*("" if value is None else escape(shortened(str(value), 60)) for value in row))
    if len(result.rows) > MAX_ROWS:
        rows.add_row(f"… {len(result.rows) - MAX_ROWS} more rows")
    return rows


def _ask(
    heedful: Engine, query: str, chat_session_id: str | None = None, audience: str | None = None, **given: Any
) -> model.ChatAnswer:
    if audience is not None and chat_session_id is not None:
        raise click.UsageError("--audience is for a new chat session; --chat-session has its own")
    session = chat_session_id or heedful.chat_sessions.create(audience=audience).id
    try:
        return heedful.chat.chat_to_answer(session, query, **given)
    except HeedfulError:
        if chat_session_id is None:
            heedful.chat_sessions.delete(session)
        raise


@runs(
    "chat.chat_to_answer",
    "query",
    waits="asking",
    does=_ask,
    chat_session_id={"required": False, "help": "Continue this one; by default, start a new one."},
)
@click.option("--audience", metavar="NAME", help="Whom a new chat session is for; everybody by default.")
def ask(answer: model.ChatAnswer, query: str) -> None:
    echo(answer.answer)
    if answer.execution_result is not None:
        echo(f"\n{answer.sql_query}")
        echo(f"{answer.origin}: {answer.explanation}")
        echo(f"execution {answer.execution_result.execution_id}  chat session {answer.chat_session_id}")
    _show_suggestion(query, answer.suggestion)


def _show_suggestion(user_query: str, likely: model.CacheSuggestion | None) -> None:
    if likely is None:
        return
    screen = console()
    screen.print(f"Did you mean: {escape(likely.question)}", highlight=False)
    screen.print(f"  {escape(likely.sql_query)}", highlight=False)
    confirm = f"heedful cache confirm-suggestion {shlex.quote(user_query)} {likely.execution_id}"
    screen.print(f"Confirm it: {escape(confirm)}", highlight=False, soft_wrap=True)


@cache.runs("execution_cache_lookup", "user_query", name="lookup", waits="looking it up")
@click.option("--explain", is_flag=True, help="Also show the gate that decided, and each difference.")
def lookup(result: model.CacheLookup, user_query: str, explain: bool) -> None:
    """Show what the cache has for a question, and why."""

    def why(match: model.CacheMatch) -> str:
        reasons = [match.reason, *([f"gate: {match.gate}", *match.differences] if explain else [])]
        return "\n".join(shortened(reason, 160) for reason in reasons)

    screen = console()
    if result.matches:
        show_table(result.matches, "decision | similarity=similarity_score:.3f | question:50", ("why", why))
    else:
        screen.print(f"nothing alike; {result.candidates_checked} looked at")
    if result.cache_hit:
        screen.print(f"\n{escape(result.matches[0].execution['sql_query'])}", highlight=False)
        screen.print(_rows(result.matches[0].execution["result"]))
    _show_suggestion(user_query, result.suggestion)


@cache.runs("execution_cache_coverage", name="coverage", waits="comparing questions")
def coverage(report: model.CacheCoverage) -> None:
    """Show what is proven, refused, and to be proven next."""
    echo(f"{counted(report.proven_questions, 'proven question')} of {counted(report.proven_kinds, 'kind')}")
    if report.proven:
        show_table(report.proven, "proven=questions | for example=example:50 | SQL=sql_template:70")
    if report.refused:
        why = ("refused because", lambda refusal: reason_labels.label(refusal.gate))
        example = ("for example", lambda refusal: shortened(refusal.examples[0], 60))
        show_table(report.refused, why, "asked | questions", example)
    if report.missing:
        likely = ("probably means", lambda gap: gap.suggestion and shortened(gap.suggestion.question, 50))
        show_table(report.missing, "to prove next=question:60 | asked | questions", likely)


@golden.runs("create", "question", "sql_query", name="add", needs=None, help="Add a golden example.")
@golden.runs("promote", "execution_id", help="Make a golden example of an execution that was rated right.")
def _show_example(example: model.GoldenExample) -> str:
    return f"example {example.id}"


@golden.runs(
    "import_file", "path", name="import", needs=None, waits="importing", path={"type": click.Path(path_type=Path)}
)
def import_examples(examples: list[model.GoldenExample]) -> str:
    """Add golden examples from a .csv or .jsonl file.

    It has the columns question and sql_query, and may have audience.
    """
    return counted(len(examples), "example")


@golden.runs("list")
def list_examples(examples: list[model.GoldenExample]) -> None:
    """List golden examples, the newest first."""
    show_table(examples, "question:50 | sql_query:70 | origin | audience | id", less=("audience",))


@golden.runs("update", "example_id")
def update_example(example: model.GoldenExample) -> str:
    """Update a golden example; omitted fields stay unchanged."""
    return f"{example.question}\n{example.sql_query}\netag {model.etag(example)}"


@executions.runs("list")
def list_executions(page: model.Page[model.Execution]) -> None:
    """List executions, the newest first."""
    show_table(
        page,
        "at=created_at | origin",
        ("rows", lambda execution: len(execution.result)),
        "question:40 | sql_query:40 | execution_id",
        less=("origin", "rows"),
        empty="Nothing ran yet. Run something: heedful run SQL --question TEXT",
    )


_RATING: dict[str, Any] = {"spelled": ("--positive/--negative",), "is_flag": None, "default": None}
_TEXT = {"spelled": ("--text", "--feedback")}


def _rate_execution(heedful: Engine, is_positive: bool | None = None, **given: Any) -> model.ExecutionFeedback:
    if is_positive is None:
        raise Invalid("the rating is missing", field="is_positive", remedy="Pass --positive or --negative")
    return heedful.feedback.create(is_positive=is_positive, **given)


@feedback.runs(
    "create",
    name="add",
    does=_rate_execution,
    is_positive={**_RATING, "required": False},
    feedback=_TEXT,
    chat_message_id={"spelled": ("--message", "--chat-message-id")},
)
def add_feedback(feedback: model.ExecutionFeedback) -> str:
    """Rate an execution as right or wrong."""
    return f"feedback {feedback.id}; to retract it: heedful feedback retract {feedback.id}"


def _list_feedback(heedful: Engine, is_positive: bool | None = None, **given: Any) -> model.FeedbackList:
    if is_positive is None:
        return heedful.feedback.list(**given)
    if "search" in given:
        raise Invalid("--search can't be combined with --positive or --negative", field="search", value=given["search"])
    return heedful.feedback.list_positive(**given) if is_positive else heedful.feedback.list_negative(**given)


@feedback.runs("list", does=_list_feedback)
@click.option("--positive/--negative", "is_positive", default=None, help="Only feedback of this kind.")
def list_feedback(page: model.FeedbackList) -> str:
    """List feedback, the newest first."""
    rating = ("rating", lambda opinion: "right" if opinion.is_positive else "wrong")
    columns = ("at=created_at", rating, "author | feedback:50 | execution_id | id")
    show_table(page.items, *columns, less=("execution_id",))
    return f"{len(page)} of {page.total}"


@feedback.runs("get", "feedback_id", name="show", help="Show feedback by its id.")
@feedback.runs(
    "update", "feedback_id", is_positive=_RATING, feedback=_TEXT, help="Update feedback; omitted fields stay unchanged."
)
def _show_feedback(feedback: model.ExecutionFeedback) -> str:
    subject = f"execution {feedback.execution_id}" if feedback.execution_id else f"message {feedback.chat_message_id}"
    return (
        f"{'right' if feedback.is_positive else 'wrong'}: {feedback.feedback or ''}\n"
        f"  {subject}  by {feedback.author or 'nobody named'}  etag {model.etag(feedback)}"
    )


@feedback.runs("delete", "feedback_id", name="retract")
def delete_feedback(_: bool) -> str:
    """Retract feedback."""
    return "retracted"
