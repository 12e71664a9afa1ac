"""sessions: conversations, their messages and metadata."""

from __future__ import annotations

import sys

import click
from rich.markup import escape

from heedful.cli.common import (
    Options,
    as_json,
    console,
    cursor,
    if_match,
    limit,
    more,
    pairs,
    print_json,
    shortened,
    table,
)
from heedful.cli.entries import add_entry, add_feedback, delete_feedback, entries, entry
from heedful.cli.opinions import add_session_feedback, alerts, discard_alert, feedback_metrics, feedbacks
from heedful.cli.output import echo
from heedful.cli.there import needs_project
from heedful.errors import Invalid
from heedful.model import Session

newest_first = click.option("--newest-first", is_flag=True, help="Begin at the end.")


@click.group()
def sessions() -> None:
    """Conversations: messages, answers, metadata, and what people say of them."""


@sessions.command()
@click.argument("session_id", required=False)
@click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@as_json
@click.pass_obj
def create(options: Options, session_id: str | None, metadata: tuple[str, ...], as_json: bool) -> None:
    """Make a session, with an id of its own if none is given."""
    with options.open() as heedful:
        _show(heedful.sessions.create(session_id, metadata=pairs("metadata", metadata)), as_json)


@sessions.command()
@click.argument("session_id")
@as_json
@needs_project
def get(options: Options, session_id: str, as_json: bool) -> None:
    """Show one session."""
    with options.open() as heedful:
        _show(heedful.sessions.get(session_id), as_json)


@sessions.command("list")
@click.option("--where", multiple=True, metavar="KEY=VALUE", help="Only sessions with this metadata; may be repeated.")
@cursor
@limit
@as_json
@needs_project
def listed(options: Options, where: tuple[str, ...], cursor: str | None, limit: int, as_json: bool) -> None:
    """List sessions, the newest first."""
    with options.open() as heedful:
        page = heedful.sessions.list(where=pairs("where", where), cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo("No sessions. They are made by: heedful recall QUESTION --session-id NAME")
        return
    rows = table("session_id", "created", "updated", "metadata")
    for each in page.items:
        about = ", ".join(f"{key}={value}" for key, value in each.metadata.items())
        rows.add_row(
            escape(each.session_id),
            f"{each.created_at:%Y-%m-%d %H:%M}",
            f"{each.updated_at:%Y-%m-%d %H:%M}",
            escape(shortened(about)),
        )
    console().print(rows)
    more(page)


@sessions.command()
@click.argument("session_id")
@click.option("--yes", is_flag=True, help="Don't ask.")
@as_json
@needs_project
def delete(options: Options, session_id: str, yes: bool, as_json: bool) -> None:
    """Remove a session with all that is in it and was learnt from it."""
    if not yes:
        click.confirm(f"Delete session {session_id}?", abort=True, err=True)
    with options.open() as heedful:
        gone = heedful.sessions.delete(session_id)
    if as_json:
        print_json(gone)
    else:
        echo(
            f"{gone.session_id} deleted: {gone.messages} messages, {gone.entries} entries, {gone.feedbacks} feedbacks, "
            f"{gone.forgotten_facts} learnt facts"
        )


@sessions.command()
@click.argument("session_id")
@click.argument("role")
@click.argument("content")
@as_json
@click.pass_obj
def add_message(options: Options, session_id: str, role: str, content: str, as_json: bool) -> None:
    """Add a message; a single - reads CONTENT from standard input."""
    text = sys.stdin.read() if content == "-" else content
    with options.open() as heedful:
        added = heedful.sessions.add_message(session_id, role, text)
    if as_json:
        print_json(added)
    else:
        echo(f"message {added.message_id}")


@sessions.command()
@click.argument("session_id")
@cursor
@limit
@newest_first
@as_json
@needs_project
def messages(
    options: Options, session_id: str, cursor: str | None, limit: int, newest_first: bool, as_json: bool
) -> None:
    """Show the messages of a session."""
    with options.open() as heedful:
        page = heedful.sessions.messages(session_id, cursor=cursor, limit=limit, newest_first=newest_first)
    if as_json:
        print_json(page)
        return
    rows = table("at", "role", "content")
    for each in page.items:
        rows.add_row(f"{each.at:%Y-%m-%d %H:%M}", escape(each.role), escape(shortened(each.content, 100)))
    console().print(rows)
    more(page)


@sessions.command()
@click.argument("session_id")
@click.argument("pairs_given", metavar="KEY=VALUE...", nargs=-1, required=True)
@if_match
@as_json
@needs_project
def update_metadata(
    options: Options, session_id: str, pairs_given: tuple[str, ...], if_match: str | None, as_json: bool
) -> None:
    """Merge metadata into a session's; a dotted key reaches inside."""
    given = pairs("metadata", pairs_given)
    if given is None:
        raise Invalid("no metadata is given", field="metadata", remedy="Write it as KEY=VALUE")
    with options.open() as heedful:
        heedful.sessions.update_metadata(session_id, given, if_match=if_match)
        _show(heedful.sessions.get(session_id), as_json)


@sessions.command()
@click.argument("session_id")
@click.argument("keys", nargs=-1, required=True)
@if_match
@as_json
@needs_project
def delete_metadata(
    options: Options, session_id: str, keys: tuple[str, ...], if_match: str | None, as_json: bool
) -> None:
    """Remove keys from a session's metadata; a dotted key reaches inside."""
    with options.open() as heedful:
        heedful.sessions.delete_metadata(session_id, keys, if_match=if_match)
        _show(heedful.sessions.get(session_id), as_json)


for command in (
    entries,
    entry,
    add_entry,
    add_feedback,
    delete_feedback,
    add_session_feedback,
    feedbacks,
    feedback_metrics,
    alerts,
    discard_alert,
):
    sessions.add_command(command)


def _show(session: Session, as_json: bool) -> None:
    if as_json:
        print_json(session)
        return
    echo(f"{session.session_id}  made {session.created_at:%Y-%m-%d %H:%M}, written {session.updated_at:%Y-%m-%d %H:%M}")
    for key, value in session.metadata.items():
        echo(f"  {key}: {value}")
