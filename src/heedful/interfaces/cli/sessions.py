"""sessions: conversations, their messages, metadata, answers and alerts."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from rich.markup import escape

import heedful
from heedful.clock import system_clock
from heedful.errors import Conflict, Invalid
from heedful.files import FOLDER_MODE
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    confirm,
    console,
    cursor,
    done,
    echo,
    extra,
    if_match,
    limit,
    more,
    needs_project,
    newest_first,
    pairs,
    print_json,
    progress,
    shortened,
    table,
    yes,
)
from heedful.interfaces.cli.entries import add_entry, add_feedback, delete_feedback, entries, entry, rate
from heedful.interfaces.cli.feedback import add_session_feedback, alerts, discard_alert, feedback_metrics, feedbacks
from heedful.model import NewKey, Session
from heedful.simulate import traffic
from heedful.simulate.traffic import Embedding


@click.group()
def sessions() -> None:
    """Conversations: messages, answers, metadata and feedback."""


@sessions.command("add")
@click.argument("session_id", required=False)
@click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@as_json
@click.pass_obj
def create(options: Options, session_id: str | None, metadata: tuple[str, ...], as_json: bool) -> None:
    """Add a session; without an id, one is generated."""
    with options.open() as heedful:
        _show(heedful.sessions.create(session_id, metadata=pairs("metadata", metadata)), as_json)


@sessions.command("show")
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
def list_sessions(options: Options, where: tuple[str, ...], cursor: str | None, limit: int, as_json: bool) -> None:
    """List sessions, the newest first."""
    with options.open() as heedful:
        page = heedful.sessions.list(where=pairs("where", where), cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo("No sessions. They are made by: heedful recall QUESTION --session-id NAME")
        return
    rows = table("session_id", "created", "updated", "metadata", less=("updated",))
    for session in page.items:
        metadata = ", ".join(f"{key}={value}" for key, value in session.metadata.items())
        rows.add_row(
            escape(session.session_id),
            f"{session.created_at:%Y-%m-%d %H:%M}",
            f"{session.updated_at:%Y-%m-%d %H:%M}",
            escape(shortened(metadata)),
        )
    console().print(rows)
    more(page)


@sessions.command("remove")
@click.argument("session_id")
@yes
@as_json
@needs_project
def delete(options: Options, session_id: str, yes: bool, as_json: bool) -> None:
    """Remove a session and everything learnt from it."""
    confirm(f"Delete session {session_id}, with what was learnt from it?", yes)
    with options.open() as heedful:
        result = heedful.sessions.delete(session_id)
    if as_json:
        print_json(result)
    else:
        echo(
            f"{result.session_id} deleted: {result.messages} messages, {result.entries} entries, "
            f"{result.feedbacks} feedbacks, {result.forgotten_facts} learnt facts"
        )


@sessions.command()
@click.argument("session_id")
@click.argument("role")
@click.argument("content")
@as_json
@click.pass_obj
def add_message(options: Options, session_id: str, role: str, content: str, as_json: bool) -> None:
    """Add a message; - reads it from standard input."""
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
    rows = table("at", "role", "content", "message_id", less=("message_id",))
    for each in page.items:
        rows.add_row(
            f"{each.at:%Y-%m-%d %H:%M}", escape(each.role), escape(shortened(each.content, 100)), each.message_id
        )
    console().print(rows)
    more(page)


@sessions.command()
@click.argument("session_id")
@click.argument("message_id")
@click.argument("content")
@as_json
@needs_project
def update_message(options: Options, session_id: str, message_id: str, content: str, as_json: bool) -> None:
    """Change a message; - reads it from standard input."""
    text = sys.stdin.read() if content == "-" else content
    with options.open() as heedful:
        changed = heedful.sessions.update_message(session_id, message_id, text)
    if as_json:
        print_json(changed)
    else:
        echo(f"message {changed.message_id} changed")


@sessions.command("remove-message")
@click.argument("session_id")
@click.argument("message_id")
@yes
@as_json
@needs_project
def delete_message(options: Options, session_id: str, message_id: str, yes: bool, as_json: bool) -> None:
    """Remove a message. Opinions about it stay."""
    confirm(f"Delete message {message_id} of session {session_id}?", yes)
    with options.open() as heedful:
        heedful.sessions.delete_message(session_id, message_id)
    done(f"message {message_id} deleted", message_id, as_json)


@sessions.command()
@click.argument("session_id")
@click.argument("assignments", metavar="KEY=VALUE...", nargs=-1, required=True)
@if_match
@as_json
@needs_project
def update_metadata(
    options: Options, session_id: str, assignments: tuple[str, ...], if_match: str | None, as_json: bool
) -> None:
    """Merge metadata into that of a session.

    A dotted key addresses a nested one.
    """
    metadata = pairs("metadata", assignments)
    if metadata is None:
        raise Invalid("metadata is missing", field="metadata", remedy="Write it as KEY=VALUE")
    with options.open() as heedful:
        heedful.sessions.update_metadata(session_id, metadata, if_match=if_match)
        _show(heedful.sessions.get(session_id), as_json)


@sessions.command("remove-metadata")
@click.argument("session_id")
@click.argument("keys", nargs=-1, required=True)
@if_match
@as_json
@needs_project
def delete_metadata(
    options: Options, session_id: str, keys: tuple[str, ...], if_match: str | None, as_json: bool
) -> None:
    """Remove keys from the metadata of a session.

    A dotted key addresses a nested one.
    """
    with options.open() as heedful:
        heedful.sessions.delete_metadata(session_id, keys, if_match=if_match)
        _show(heedful.sessions.get(session_id), as_json)


for command in (
    entries,
    entry,
    add_entry,
    add_feedback,
    rate,
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
    created, updated = (f"{time:%Y-%m-%d %H:%M}" for time in (session.created_at, session.updated_at))
    echo(f"{session.session_id}  created {created}, updated {updated}")
    for key, value in session.metadata.items():
        echo(f"  {key}: {value}")


STORE = "demo.db"
PROJECT = "demo"

SEED = 4
"""The traffic that is also in the pictures of the documentation."""

CLOSING_HOUR = 17
"""When the help desk closes, in UTC."""

INTERRUPTED = 130
"""The exit code of what Ctrl-C stopped before it was done."""

SUMMARY_LABELS = {
    "facts": "facts remembered",
    "learnt facts": "learnt",
    **{name: name for name in ("sessions", "entries", "ratings", "comments", "signals", "executions")},
}
"""The labels of the counts that are printed after filling a store."""

Run = Callable[[str, str, int, Callable[[str, NewKey | None], None]], None]


def show_dashboard(options: Options, port: int, keep: Path | None) -> None:
    """Fills a store, if it is not there yet, and serves its dashboard until Ctrl-C; only what is kept stays."""
    run = _dashboard()
    # Ctrl-C is how it is stopped.
    with suppress(KeyboardInterrupt), _folder(keep) as name:
        store = Path(name) / STORE
        demo_key = _fill_or_remove(store, options.embedding)

        def ready(address: str, key: NewKey | None) -> None:
            login_key = demo_key or key
            if login_key is not None:
                echo(f"key to log in with: {login_key.api_key}")
            echo(f"dashboard on {address}/p/{PROJECT}/overview", err=True)
            echo("Ctrl-C stops it", err=True)

        run(str(store), "127.0.0.1", port, ready)


def _fill_or_remove(store: Path, embedding: Embedding) -> NewKey | None:
    """The same as `fill_or_reuse`; what was filled in part when somebody pressed Ctrl-C is of no use, and goes."""
    before = _files(store)
    try:
        return fill_or_reuse(store, embedding)
    except KeyboardInterrupt:
        if store not in before:
            for file in _files(store) - before:
                file.unlink(missing_ok=True)
            echo("stopped; nothing is kept", err=True)
        sys.exit(INTERRUPTED)


def _files(store: Path) -> set[Path]:
    """The files of a store that are there, and of the shop beside it."""
    return {*store.parent.glob(f"{STORE}*"), *store.parent.glob(traffic.warehouse_file(store).name)}


def fill_or_reuse(store: Path, embedding: Embedding, *, sessions: int = traffic.SESSIONS) -> NewKey | None:
    """Fills a store that is not there. One that is there is used as it is: it gets a key, as its first was shown."""
    if not store.exists():
        store.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        echo(f"filling {store.parent} with four weeks of a help desk, about a minute…", err=True)
        with progress("visits of four weeks") as show:
            filled = fill_demo(store, system_clock(), embedding, sessions=sessions, progress=show)
        echo(", ".join(f"{filled.counts.get(name, 0)} {word}" for name, word in SUMMARY_LABELS.items()))
        return None
    with heedful.open(store, project=PROJECT, embedding=embedding, worker=False) as memory:
        if not traffic.is_filled(memory):
            raise Conflict(
                f"{store} was not completely filled by this command",
                field="keep",
                value=str(store.parent),
                remedy="Delete it, or name another folder",
            )
        return memory.keys.create("demo", scopes=["admin"])


def fill_demo(
    store: Path,
    now: datetime,
    embedding: Embedding = None,
    *,
    sessions: int = traffic.SESSIONS,
    progress: traffic.Progress | None = None,
) -> traffic.Filled:
    """Fills a store with the help desk that the demo shows at a moment."""
    start, end = _four_weeks(now)
    return traffic.fill(
        store,
        project=PROJECT,
        days=(end - start) / timedelta(days=1),
        seed=SEED,
        until=end,
        embedding=embedding,
        sessions=sessions,
        progress=progress,
    )


def _four_weeks(now: datetime) -> tuple[datetime, datetime]:
    """The 14 days that the dashboard shows first, and the 14 that it compares them with, up to the last closing hour.

    The few ratings of a night would look like a change.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    end = today + timedelta(hours=CLOSING_HOUR)
    return today - timedelta(days=traffic.DAYS - 1), end if end <= now else end - timedelta(days=1)


def _folder(keep: Path | None) -> AbstractContextManager[str]:
    if keep is not None:
        return nullcontext(str(keep))
    return tempfile.TemporaryDirectory(prefix="heedful-demo-", ignore_cleanup_errors=True)


def _dashboard() -> Run:
    """What serves a dashboard; asked for before anything is filled, because it is an extra."""
    with extra("server", "the dashboard"):
        from heedful.interfaces.dashboard.app import run
    return run
