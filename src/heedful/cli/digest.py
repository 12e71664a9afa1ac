"""digest."""

from __future__ import annotations

from datetime import datetime

import click

from heedful.cli.common import Options, as_json, print_json
from heedful.cli.output import echo
from heedful.cli.there import needs_project
from heedful.clock import to_stored
from heedful.errors import Invalid
from heedful.opening import Host


@click.command()
@click.option("--since", type=click.DateTime(), help="From when on (UTC); seven days before the end, if left out.")
@click.option("--until", type=click.DateTime(), help="Until when (UTC); now, if left out.")
@click.option("--send", is_flag=True, help="Send it to digest_email and digest_webhook of the settings, now.")
@as_json
@needs_project
def digest(options: Options, since: datetime | None, until: datetime | None, send: bool, as_json: bool) -> None:
    """Sum up what people said in a week, or in another time."""
    if send:
        _send(options, since, until)
        return
    with options.open(worker=False) as heedful:
        found = heedful.insight.digest(since=since, until=until)
    if as_json:
        print_json(found)
    else:
        echo(found.text, nl=False)


def _send(options: Options, since: datetime | None, until: datetime | None) -> None:
    host = Host(
        options.local("digest --send"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
    )
    try:
        if not host.digest_channels:
            raise Invalid(
                "there is nowhere to send the digest to",
                field="digest_email",
                remedy="Set digest_email or digest_webhook in heedful.toml, or HEEDFUL_DIGEST_EMAIL",
            )
        project = host.project(options.project or host.default_project)
        try:
            found = project.insight.digest(since=since, until=until)
            start, stop = to_stored(found.since), to_stored(found.until)
            sent = project._send_digest(host.digest_channels, start, stop, again=True)
        finally:
            project.close()
    finally:
        host.close()
    if not sent:
        echo("nobody said anything in this time; nothing was sent")
    for row in sent:
        echo(f"{row.channel}: " + ("delivered" if row.delivered_at else f"waits in the outbox ({row.error})"))
