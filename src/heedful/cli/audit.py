"""audit: who was refused what, and what admins did."""

from __future__ import annotations

from datetime import datetime

import click
from rich.markup import escape

from heedful.cli.common import Options, as_json, console, cursor, limit, more, print_json, table
from heedful.cli.output import echo
from heedful.cli.there import needs_store
from heedful.model import AUDIT_KINDS, AuditKind
from heedful.opening import store_audit


@click.command()
@click.option("--kind", type=click.Choice(AUDIT_KINDS), help="Only these.")
@click.option("--since", type=click.DateTime(), help="Only from then on (UTC).")
@cursor
@limit
@as_json
@needs_store
def audit(
    options: Options, kind: AuditKind | None, since: datetime | None, cursor: str | None, limit: int, as_json: bool
) -> None:
    """Show who was refused what, and what admins did, the newest first.

    Of the whole store; with --project, or on a server, of that project.
    """
    if options.whole_store:
        page = store_audit(options.store, kind=kind, since=since, cursor=cursor, limit=limit)
    else:
        with options.open(worker=False) as heedful:
            page = heedful.audit(kind=kind, since=since, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo("Nothing was refused, and no admin did anything.")
        return
    rows = table(
        "at", "kind", "operation", "code", "times", "caller", "address", "project", "target", numbers=("times",)
    )
    for each in page.items:
        rows.add_row(
            f"{each.at:%Y-%m-%d %H:%M:%S}",
            each.kind,
            escape(each.operation),
            each.code or "",
            str(each.times),
            escape(each.caller or ""),
            escape(each.address or ""),
            escape(each.project or ""),
            escape(each.target or ""),
        )
    console().print(rows)
    more(page)
