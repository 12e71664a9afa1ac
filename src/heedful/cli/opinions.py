"""sessions: what people say of a whole session, and the alerts about it."""

from __future__ import annotations

import click
from rich.markup import escape

from heedful.cli.common import (
    Options,
    as_json,
    console,
    cursor,
    idempotency_key,
    limit,
    more,
    pairs,
    print_json,
    shortened,
    table,
)
from heedful.cli.output import echo
from heedful.cli.there import needs_project
from heedful.model import RATINGS


@click.command()
@click.argument("session_id")
@click.option(
    "--rating",
    type=click.Choice([*RATINGS, "neutral"]),
    default="neutral",
    show_default=True,
    help="What you think of it.",
)
@click.option("--comment", metavar="TEXT", default="", help="Why.")
@click.option("--extra", multiple=True, metavar="KEY=VALUE", help="More to keep with it; may be repeated.")
@click.option("--author", metavar="NAME", help="Whose opinion it is; a later one replaces it.")
@idempotency_key
@as_json
@click.pass_obj
def add_session_feedback(
    options: Options,
    session_id: str,
    rating: str,
    comment: str,
    extra: tuple[str, ...],
    author: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Rate a whole session."""
    given = {**(pairs("extra", extra) or {}), "rating": None if rating == "neutral" else rating, "comment": comment}
    with options.open() as heedful:
        kept = heedful.sessions.add_session_feedback(session_id, given, author=author, idempotency_key=idempotency_key)
    assert kept is not None
    if as_json:
        print_json(kept)
    else:
        echo(f"feedback {kept.feedback_id}; to take it back: heedful retract {kept.feedback_id}")


@click.command()
@click.argument("session_id")
@cursor
@limit
@click.option("--newest-first", is_flag=True, help="Begin at the end.")
@as_json
@needs_project
def feedbacks(
    options: Options, session_id: str, cursor: str | None, limit: int, newest_first: bool, as_json: bool
) -> None:
    """Show what people say of a session as a whole."""
    with options.open() as heedful:
        page = heedful.sessions.feedbacks(session_id, cursor=cursor, limit=limit, newest_first=newest_first)
    if as_json:
        print_json(page)
        return
    rows = table("at", "rating", "author", "comment", "feedback_id")
    for each in page.items:
        rows.add_row(
            f"{each.created_at:%Y-%m-%d %H:%M}",
            each.rating or "neutral",
            escape(each.author or ""),
            escape(shortened(each.comment or "")),
            each.feedback_id,
        )
    console().print(rows)
    more(page)


@click.command()
@as_json
@needs_project
def feedback_metrics(options: Options, as_json: bool) -> None:
    """Count all feedback that stands."""
    with options.open() as heedful:
        metrics = heedful.sessions.feedback_metrics()
    if as_json:
        print_json(metrics)
    else:
        echo(
            f"{metrics.total} feedbacks: {metrics.positive} positive, {metrics.negative} negative, "
            f"{metrics.neutral} neutral; comments have {metrics.avg_comment_length:.0f} characters on average"
        )


@click.command()
@click.option("--pending", is_flag=True, help="Only those that are still to be delivered.")
@cursor
@limit
@as_json
@needs_project
def alerts(options: Options, pending: bool, cursor: str | None, limit: int, as_json: bool) -> None:
    """Show alerts, the newest first."""
    with options.open() as heedful:
        page = heedful.sessions.alerts(pending=pending, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    rows = table("made", "channel", "state", "attempts", "error", "alert_id", numbers=("attempts",))
    for each in page.items:
        if each.delivered_at is not None:
            state = f"delivered {each.delivered_at:%Y-%m-%d %H:%M}"
        else:
            state = "discarded" if each.next_at is None else f"next try {each.next_at:%Y-%m-%d %H:%M}"
        rows.add_row(
            f"{each.created_at:%Y-%m-%d %H:%M}",
            escape(each.channel),
            state,
            str(each.attempts),
            escape(shortened(each.error or "", 50)),
            each.alert_id,
        )
    console().print(rows)
    more(page)


@click.command()
@click.argument("alert_id")
@as_json
@needs_project
def discard_alert(options: Options, alert_id: str, as_json: bool) -> None:
    """Give up an alert that can't be delivered."""
    with options.open() as heedful:
        alert = heedful.sessions.discard_alert(alert_id)
    if as_json:
        print_json(alert)
    else:
        echo("it was delivered before" if alert.delivered_at else "discarded")
