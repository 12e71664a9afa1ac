"""keys, audit: who may call a server about this project, and who was refused."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import click
from rich.markup import escape

from heedful.bootstrap import reseal_connectors as reseal
from heedful.bootstrap import store_audit
from heedful.errors import Invalid, quoted
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    confirm,
    console,
    cursor,
    echo,
    limit,
    more,
    needs_project,
    needs_store,
    print_json,
    table,
    yes,
)
from heedful.model import AUDIT_KINDS, SCOPES, AuditKind, Scope
from heedful.protocols.access import DEFAULT_SCOPES

# Its type has a parameter from click 8.4 on.
if TYPE_CHECKING:
    _IntType = click.ParamType[int]
else:
    _IntType = click.ParamType


class _Seconds(_IntType):
    """A time such as 90, 30m, 1h or 2d."""

    name = "time"
    _units: ClassVar = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", str(value))
        if match is None:
            self.fail(f"{value!r} is no time; use seconds, or 30m, 1h, 2d", param, ctx)
        return int(match[1]) * self._units[match[2]]


@click.group()
def keys() -> None:
    """Keys to a server, for this project."""


@keys.command("add")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    default=DEFAULT_SCOPES,
    show_default=True,
    help="What it may do; may be repeated.",
)
@click.option("--rate-limit", type=int, metavar="CALLS", help="Calls per second; by default, the server's limit.")
@as_json
@click.pass_obj
def create(options: Options, name: str, scopes: tuple[Scope, ...], rate_limit: int | None, as_json: bool) -> None:
    """Add a key. It is shown only once."""
    with options.open() as heedful:
        key = heedful.keys.create(name, scopes=scopes, rate_limit=rate_limit)
    if as_json:
        print_json(key)
    else:
        echo(f"{key.api_key}\nkey_id {key.key_id}; it may: {', '.join(key.scopes)}. It is not shown again.")


@keys.command("list")
@as_json
@needs_project
def list_keys(options: Options, as_json: bool) -> None:
    """List keys, oldest first, including revoked ones."""
    with options.open() as heedful:
        keys = heedful.keys.list()
    if as_json:
        print_json(keys)
        return
    rows = table("name", "scopes", "created", "last used", "state", "key_id", less=("created", "last used"))
    for key in keys:
        rows.add_row(
            escape(key.name),
            ", ".join(key.scopes),
            f"{key.created_at:%Y-%m-%d %H:%M}",
            "never" if key.last_used_at is None else f"{key.last_used_at:%Y-%m-%d %H:%M}",
            "active" if key.revoked_at is None else f"revoked {key.revoked_at:%Y-%m-%d %H:%M}",
            key.key_id,
        )
    console().print(rows)


@keys.command()
@click.argument("key_id")
@yes
@as_json
@needs_project
def revoke(options: Options, key_id: str, yes: bool, as_json: bool) -> None:
    """Revoke a key."""
    confirm(f"Revoke key {key_id}? Who uses it is refused from then on.", yes)
    with options.open() as heedful:
        key = heedful.keys.revoke(key_id)
    if as_json:
        print_json(key)
    else:
        echo(f"{key.name} is revoked; running servers reject it within a second")


@keys.command()
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    metavar="KEY=ID[,KEY=ID]",
    help="What may be rated, as session_id=ID or session_id=ID,qa_id=ID; may be repeated.",
)
@click.option("--author", metavar="NAME", help="Who gives the feedback, if you know it; without it, a visitor does.")
@click.option("--subject", metavar="ID", help="An id that distinguishes visitors; only its hash is stored.")
@click.option("--expires-in", default=600, show_default=True, metavar="SECONDS", help="How long it is valid.")
@as_json
@click.pass_obj
def token(
    options: Options,
    targets: tuple[str, ...],
    author: str | None,
    subject: str | None,
    expires_in: int,
    as_json: bool,
) -> None:
    """Create a token that lets a browser rate for a while.

    It is for some targets, and expires.
    """
    with options.open() as heedful:
        issued = heedful.keys.create_token(
            [_target(target) for target in targets], author=author, subject=subject, expires_in=expires_in
        )
    if as_json:
        print_json(issued)
    else:
        echo(f"{issued.token}\nfor {issued.author}, until {issued.expires_at:%Y-%m-%d %H:%M:%S}")


@keys.command("rotate-signing")
@click.option(
    "--grace",
    type=_Seconds(),
    default=0,
    show_default=True,
    help="How long the old secret stays valid: 90, 30m, 1h, 2d.",
)
@as_json
@needs_store
def rotate_signing(options: Options, grace: int, as_json: bool) -> None:
    """Rotate the secret that signs tokens and logins.

    It is the secret of the whole store. Those signed with the old secret end at once, or after --grace.
    """
    with options.open(worker=False) as heedful:
        rotation = heedful.keys.rotate_signing(grace=grace)
    if as_json:
        print_json(rotation)
    elif rotation.former_good_until > rotation.rotated_at:
        echo(f"existing tokens and logins stay valid until {rotation.former_good_until:%Y-%m-%d %H:%M:%S}")
    else:
        echo("existing tokens and logins are no longer valid; running servers reject them within a second")


@keys.command("reseal-connectors")
@as_json
@needs_store
def reseal_connectors(options: Options, as_json: bool) -> None:
    """Encrypt the URLs of all connectors again.

    It takes the first key of HEEDFUL_SECRET_KEY. For the whole store, after a new key was put before the old one,
    which can be removed afterwards.
    """
    count = reseal(options.local("keys reseal-connectors"))
    if as_json:
        print_json({"connectors": count})
    else:
        echo(f"{count} connectors are encrypted with the first key; the others can be removed")


def _target(text: str) -> dict[str, str]:
    """What is named as session_id=ID,qa_id=ID or execution_id=ID,question=TEXT; both may have commas of their own."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"invalid target {quoted(text)}", field="targets", value=text, remedy="Write it as session_id=ID")
    if name == "execution_id":
        execution, suggested, question = value.partition(",question=")
        return {name: execution, "question": question} if suggested else {name: value}
    session, answer, qa_id = value.rpartition(",qa_id=")
    return {name: session, "qa_id": qa_id} if answer else {name: value}


@click.command()
@click.option("--kind", type=click.Choice(AUDIT_KINDS), help="Only entries of this kind.")
@click.option("--since", type=click.DateTime(), help="Only from this time on (UTC).")
@cursor
@limit
@as_json
@needs_store
def audit(
    options: Options, kind: AuditKind | None, since: datetime | None, cursor: str | None, limit: int, as_json: bool
) -> None:
    """Show refused requests and admin actions, newest first.

    For the whole store; with --project, or on a server, for that project.
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
        echo("No refused requests and no admin actions.")
        return
    rows = table(
        "at",
        "kind",
        "operation",
        "code",
        "times",
        "caller",
        "address",
        "project",
        "target",
        numbers=("times",),
        less=("target", "project", "times", "kind", "caller"),
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
