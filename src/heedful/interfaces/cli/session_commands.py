"""sessions: conversations, their messages, answers, metadata, ratings and alerts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.markup import escape

from heedful import model
from heedful.engine import Heedful, project_of
from heedful.errors import NotFound
from heedful.interfaces.cli.runner import STDIN, Engine, Group, pairs
from heedful.interfaces.cli.screen import console, echo, minute, show_table
from heedful.text import counted, shortened

sessions = Group(
    "sessions",
    first="add show list remove add-message messages update-message remove-message update-metadata remove-metadata",
)


@sessions.runs("list")
def list_sessions(page: model.Page[model.Session]) -> None:
    """List sessions, the newest first."""
    show_table(
        page,
        "session_id | created=created_at | updated=updated_at",
        ("metadata", lambda session: shortened(", ".join(f"{key}={value}" for key, value in session.metadata.items()))),
        less=("updated",),
        empty="No sessions. They are made by: heedful recall QUESTION --session-id NAME",
    )


@sessions.runs("delete", "session_id", name="remove", asks="Delete session {session_id}, with what was learnt from it?")
def delete(result: model.SessionDeletion) -> str:
    """Remove a session and everything learnt from it."""
    return (
        f"{result.session_id} deleted: {counted(result.messages, 'message')}, {counted(result.entries, 'answer')}, "
        f"{counted(result.feedbacks, 'feedback')}, {counted(result.forgotten_facts, 'learnt fact')}"
    )


@sessions.runs("add_message", "session_id", "role", "content", needs=None, content=STDIN, at=None)
def add_message(message: model.Message) -> str:
    """Add a message; - reads it from standard input."""
    return f"message {message.message_id}"


@sessions.runs("messages", "session_id")
def messages(page: model.Page[model.Message]) -> None:
    """Show the messages of a session."""
    show_table(page, "at | role | content:100 | message_id", less=("message_id",))


@sessions.runs("update_message", "session_id", "message_id", "content", content=STDIN)
def update_message(message: model.Message) -> str:
    """Change a message; - reads it from standard input."""
    return f"message {message.message_id} changed"


@sessions.runs(
    "delete_message",
    *("session_id", "message_id"),
    name="remove-message",
    asks="Delete message {message_id} of session {session_id}?",
)
def delete_message(_: bool, message_id: str) -> str:
    """Remove a message. Opinions about it stay."""
    return f"message {message_id} deleted"


def _then_session(change: str) -> Callable[..., model.Session]:
    """A call about a session, of which the session is shown afterwards."""

    def run(heedful: Engine, session_id: str, **given: Any) -> model.Session:
        getattr(heedful.sessions, change)(session_id, **given)
        return heedful.sessions.get(session_id)

    return run


@sessions.runs("create", "session_id", name="add", needs=None, help="Add a session; without an id, one is generated.")
@sessions.runs("get", "session_id", name="show", help="Show one session.")
@sessions.runs(
    "update_metadata",
    *("session_id", "metadata"),
    does=_then_session("update_metadata"),
    metadata={"metavar": "KEY=VALUE..."},
    help="Merge metadata into that of a session.\n\nA dotted key addresses a nested one.",
)
@sessions.runs(
    "delete_metadata",
    *("session_id", "keys"),
    name="remove-metadata",
    does=_then_session("delete_metadata"),
    help="Remove keys from the metadata of a session.\n\nA dotted key addresses a nested one.",
)
def _show_session(session: model.Session) -> str:
    times = f"created {minute(session.created_at)}, updated {minute(session.updated_at)}"
    metadata = [f"{key}: {value}" for key, value in session.metadata.items()]
    return "\n  ".join([f"{session.session_id}  {times}", *metadata])


@sessions.runs("entries", "session_id")
def entries(page: model.Page[model.Entry]) -> None:
    """Show the questions and answers of a session."""
    show_table(page, "time | score=feedback_score | question:40 | answer:50 | qa_id", less=("time",))


@sessions.runs("entry", "session_id", "qa_id")
def entry(entry: model.Entry) -> None:
    """Show one question and answer with its evidence."""
    screen = console()
    screen.print(f"[bold]{escape(entry.question)}[/bold]")
    screen.print(escape(entry.answer))
    if entry.feedback_score is not None or entry.feedback_text:
        score = "" if entry.feedback_score is None else f"{entry.feedback_score} of 5  "
        screen.print(f"feedback: {score}{escape(entry.feedback_text or '')}")
    if entry.context:
        screen.print(f"\n{escape(entry.context)}")
    for used in entry.used or ():
        screen.print(f"  used {used.fact_id}  share {used.share:.2f}")


@sessions.runs(
    "add_entry",
    *("session_id", "question", "answer"),
    needs=None,
    answer=STDIN,
    used={"metavar": "FACT_ID", "help": "A fact that it used; may be repeated."},
)
def add_entry(entry: model.Entry) -> str:
    """Store an ANSWER; - reads it from standard input."""
    return f"qa_id {entry.qa_id}"


def _add_feedback(heedful: Engine, session_id: str, qa_id: str, **given: Any) -> bool:
    if not heedful.sessions.add_feedback(session_id, qa_id, **given):
        heedful.sessions.get(session_id)
        remedy = f"heedful sessions entries {session_id} lists them"
        raise NotFound(f"session {session_id!r} has no entry {qa_id!r}", field="qa_id", value=qa_id, remedy=remedy)
    return True


@sessions.runs("add_feedback", "session_id", "qa_id", does=_add_feedback, feedback_score={"metavar": "1-5"})
def add_feedback(_: bool) -> str:
    """Rate an answer, comment on it, or both."""
    return "stored\nIt counts for recall after: heedful improve"


def _remove_feedback(heedful: Engine, session_id: str, qa_id: str, **given: Any) -> bool:
    is_cleared = heedful.sessions.delete_feedback(session_id, qa_id, **given)
    if not is_cleared:
        entry_id = heedful.sessions.entry(session_id, qa_id).qa_id  # Fails if there is none.
        if isinstance(heedful, Heedful):
            rows = project_of(heedful).sessions.store.read(lambda tx: tx.feedbacks.active("entry", [entry_id]))
            by = sorted({row.author or "the program" for row in rows})
            echo(f"it is rated by {', '.join(by) or 'nobody'}", err=True)
    return is_cleared


@sessions.runs("delete_feedback", "session_id", "qa_id", name="remove-feedback", does=_remove_feedback)
def delete_feedback(is_cleared: bool) -> str:
    """Clear the feedback on an answer, and undo it."""
    return "cleared" if is_cleared else "nothing to clear"


def _read_number(context: click.Context, parameter: click.Parameter, rating: str | None) -> str | float | None:
    try:
        return None if rating is None else float(rating)
    except ValueError:
        return rating


@sessions.runs(
    "rate",
    *("external_id", "rating"),
    needs="store",
    rating={"callback": _read_number},
    scale={"nargs": 2, "multiple": False, "metavar": "WORST BEST", "spelled": ("--scale",)},
)
def rate(result: model.RatingResult) -> str:
    """Rate an answer by your EXTERNAL_ID or its qa_id.

    The id is the --external-id of recall or add-entry, or the qa_id they print, not that of a session. If no answer
    has it yet, the rating waits for one. RATING is up, down, neutral, another word for one of these, or a number.
    """
    return "\n".join(filter(None, (result.status, result.detail)))


def _add_session_feedback(
    heedful: Engine, session_id: str, rating: str, comment: str, extra: tuple[str, ...] = (), **given: Any
) -> model.Feedback | None:
    fields = {"rating": None if rating == "neutral" else rating, "comment": comment}
    return heedful.sessions.add_session_feedback(session_id, {**(pairs("extra", extra) or {}), **fields}, **given)


@sessions.runs("add_session_feedback", "session_id", needs=None, does=_add_session_feedback, feedback=None)
@click.option(
    "--rating",
    type=click.Choice([*model.RATINGS, "neutral"]),
    default="neutral",
    show_default=True,
    help="Your rating of the session.",
)
@click.option("--comment", metavar="TEXT", default="", help="Why.")
@click.option("--extra", multiple=True, metavar="KEY=VALUE", help="A further field to store with it; may be repeated.")
def add_session_feedback(feedback: model.Feedback) -> str:
    """Rate a whole session."""
    return f"feedback {feedback.feedback_id}; to retract it: heedful retract {feedback.feedback_id}"


@sessions.runs("feedbacks", "session_id")
def feedbacks(page: model.Page[model.Feedback]) -> None:
    """Show the feedback on a session as a whole."""
    rating = ("rating", lambda feedback: feedback.rating or "neutral")
    show_table(page, "at=created_at", rating, "author | comment:70 | feedback_id")


@sessions.runs("feedback_metrics")
def feedback_metrics(metrics: model.FeedbackMetrics) -> str:
    """Count all active feedback."""
    return (
        f"{counted(metrics.total, 'feedback')}: {metrics.positive} positive, {metrics.negative} negative, "
        f"{metrics.neutral} neutral; comments have {metrics.avg_comment_length:.0f} characters on average"
    )


def _state(alert: model.Alert) -> str:
    if alert.delivered_at is not None:
        return f"delivered {minute(alert.delivered_at)}"
    return "discarded" if alert.next_at is None else f"next try {minute(alert.next_at)}"


@sessions.runs("alerts")
def alerts(page: model.Page[model.Alert]) -> None:
    """Show alerts, the newest first."""
    show_table(
        page, "created=created_at | channel", ("state", _state), "attempts | error:50 | alert_id", less=("attempts",)
    )


@sessions.runs("discard_alert", "alert_id")
def discard_alert(alert: model.Alert) -> str:
    """Discard an alert that can't be delivered."""
    return "it was delivered before" if alert.delivered_at else "discarded"
