"""sessions: questions, answers, and their ratings."""

from __future__ import annotations

import sys

import click
from rich.markup import escape

from heedful.errors import NotFound
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    cursor,
    done,
    echo,
    limit,
    more,
    needs_project,
    needs_store,
    newest_first,
    print_json,
    shortened,
    table,
)
from heedful.model import Entry


@click.command()
@click.argument("session_id")
@cursor
@limit
@newest_first
@as_json
@needs_project
def entries(
    options: Options, session_id: str, cursor: str | None, limit: int, newest_first: bool, as_json: bool
) -> None:
    """Show the questions and answers of a session."""
    with options.open() as heedful:
        page = heedful.sessions.entries(session_id, cursor=cursor, limit=limit, newest_first=newest_first)
    if as_json:
        print_json(page)
        return
    rows = table("time", "score", "question", "answer", "qa_id", numbers=("score",), less=("time",))
    for each in page.items:
        score = "" if each.feedback_score is None else str(each.feedback_score)
        question, answer = escape(shortened(each.question, 40)), escape(shortened(each.answer, 50))
        rows.add_row(f"{each.time:%Y-%m-%d %H:%M}", score, question, answer, each.qa_id)
    console().print(rows)
    more(page)


@click.command()
@click.argument("session_id")
@click.argument("qa_id")
@as_json
@needs_project
def entry(options: Options, session_id: str, qa_id: str, as_json: bool) -> None:
    """Show one question and answer with its evidence."""
    with options.open() as heedful:
        _show(heedful.sessions.entry(session_id, qa_id), as_json)


@click.command()
@click.argument("session_id")
@click.argument("question")
@click.argument("answer")
@click.option("--context", metavar="TEXT", help="What the answer was made from.")
@click.option("--recall", "--recall-id", "recall_id", metavar="ID", help="The recall whose facts it was made from.")
@click.option("--used", multiple=True, metavar="FACT_ID", help="A fact that it used; may be repeated.")
@click.option("--external-id", metavar="ID", help="Your own id for it, which feedback may name.")
@as_json
@click.pass_obj
def add_entry(
    options: Options,
    session_id: str,
    question: str,
    answer: str,
    context: str | None,
    recall_id: str | None,
    used: tuple[str, ...],
    external_id: str | None,
    as_json: bool,
) -> None:
    """Store an ANSWER; - reads it from standard input."""
    text = sys.stdin.read() if answer == "-" else answer
    with options.open() as heedful:
        added = heedful.sessions.add_entry(
            session_id,
            question,
            text,
            context=context,
            recall_id=recall_id,
            used=used or None,
            external_id=external_id,
        )
    if as_json:
        print_json(added)
    else:
        echo(f"qa_id {added.qa_id}")


@click.command()
@click.argument("session_id")
@click.argument("qa_id")
@click.option("--feedback-text", metavar="TEXT", help="What you think of the answer.")
@click.option("--feedback-score", type=int, metavar="1-5", help="1 is worst, 5 is best.")
@click.option("--author", metavar="NAME", help="Whose opinion it is; a later one replaces it.")
@as_json
@needs_project
def add_feedback(
    options: Options,
    session_id: str,
    qa_id: str,
    feedback_text: str | None,
    feedback_score: int | None,
    author: str | None,
    as_json: bool,
) -> None:
    """Rate an answer, comment on it, or both."""
    with options.open() as heedful:
        heedful.sessions.get(session_id)
        exists = heedful.sessions.add_feedback(session_id, qa_id, feedback_text, feedback_score, author=author)
    _check_entry(exists, session_id, qa_id)
    done("stored", qa_id, as_json)
    if not as_json:
        echo("It counts for recall after: heedful improve")


@click.command()
@click.argument("external_id")
@click.argument("rating", required=False)
@click.option("--comment", metavar="TEXT", help="What you think of the answer.")
@click.option("--scale", nargs=2, type=float, metavar="WORST BEST", help="The worst and the best number.")
@click.option("--author", metavar="NAME", help="Whose opinion it is; a later one replaces it.")
@as_json
@needs_store
def rate(
    options: Options,
    external_id: str,
    rating: str | None,
    comment: str | None,
    scale: tuple[float, float] | None,
    author: str | None,
    as_json: bool,
) -> None:
    """Rate the answer with your EXTERNAL_ID.

    The id is the --external-id of recall or add-entry, not that of a session. If no answer has it yet, the rating
    waits for one. RATING is up, down, neutral, another word for one of these, or a number.
    """
    with options.open() as heedful:
        stored = heedful.sessions.rate(external_id, _number(rating), comment=comment, scale=scale, author=author)
    done("stored" if stored else "waiting", external_id, as_json)
    if not stored and not as_json:
        echo(f"No answer has the external_id {external_id} yet; the rating counts once one has.")
        echo(f"To rate a session as a whole: heedful sessions add-session-feedback {external_id} --rating up")


def _number(rating: str | None) -> str | float | None:
    try:
        return None if rating is None else float(rating)
    except ValueError:
        return rating


@click.command("remove-feedback")
@click.argument("session_id")
@click.argument("qa_id")
@click.option("--author", metavar="NAME", help="Only opinions of this author.")
@as_json
@needs_project
def delete_feedback(options: Options, session_id: str, qa_id: str, author: str | None, as_json: bool) -> None:
    """Clear the feedback on an answer, and undo it."""
    with options.open() as heedful:
        heedful.sessions.get(session_id)
        exists = heedful.sessions.delete_feedback(session_id, qa_id, author=author)
    _check_entry(exists, session_id, qa_id)
    done("cleared", qa_id, as_json)


def _check_entry(exists: bool, session_id: str, qa_id: str) -> None:
    if not exists:
        raise NotFound(
            f"session {session_id!r} has no entry {qa_id!r}",
            field="qa_id",
            value=qa_id,
            remedy=f"heedful sessions entries {session_id} lists them",
        )


def _show(entry: Entry, as_json: bool) -> None:
    if as_json:
        print_json(entry)
        return
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
