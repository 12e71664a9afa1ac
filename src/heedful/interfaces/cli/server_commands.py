"""serve, dashboard, mcp, keys, audit: the store for other programs and browsers, and who may call it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

import heedful
from heedful import settings
from heedful.bootstrap import reseal_connectors as reseal
from heedful.bootstrap import store_audit
from heedful.errors import Invalid, extra_missing, quoted
from heedful.interfaces.cli.runner import Decorator, Engine, Group, Options, command, extra, runs
from heedful.interfaces.cli.screen import echo, minute, show_result, show_table
from heedful.model import AuditEntry, FeedbackToken, Key, NewKey, Page, SigningRotation

if TYPE_CHECKING:
    from heedful.interfaces.http.config import Config

LOST_KEY_HINT = "this store has keys; lost yours? --new-key prints another, and revokes those for everything"


_host = click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all."
)


def _port(port: int) -> Decorator:
    return click.option("--port", default=port, show_default=True, help="The port; 0 for any that is free.")


def _config(options: Options, command: str, **given: Any) -> Config:
    from heedful.interfaces.http.config import Config

    return Config(
        store=options.local(command),
        **options.providers,
        **given,
        admin_key=os.environ.get("HEEDFUL_ADMIN_KEY") or None,
        trusted_proxies=settings.load(store=options.store).trusted_proxies,
    )


def _ready(title: str, config: Config, hint: str = LOST_KEY_HINT) -> Callable[[str, NewKey | None], None]:
    """A function that says where a server is, and with which key it can be called."""

    def ready(address: str, key: NewKey | None) -> None:
        if key is not None:
            echo(f"key for everything, shown once: {key.api_key}")
        echo(f"{title} on {address}", err=True)
        if key is None and config.admin_key is None:
            echo(hint, err=True)

    return ready


@command(None, as_json=False)
@_host
@_port(8000)
@click.option("--workers", default=1, show_default=True, help="How many processes share the store.")
@click.option(
    "--rate-limit", default=1000, show_default=True, help="Calls per second for each key and worker; 0 for no limit."
)
@click.option("--max-body", default=25_000_000, show_default=True, help="The largest request, in bytes.")
@click.option(
    "--max-written",
    default=1000,
    show_default=True,
    help="Megabytes that a project may store within an hour through each worker; 0 for no limit.",
)
@click.option("--new-key", is_flag=True, help="Revoke all server-wide keys, and print a new one.")
@click.option(
    "--cors-origin", "cors_origins", multiple=True, help="Allow pages of this origin, * for all; may be repeated."
)
@click.option("--worker/--no-worker", default=True, show_default=True, help="Also run jobs; see heedful worker.")
@click.option("--quiet", is_flag=True, help="No line for each request; warnings and errors are still written.")
def serve(options: Options, /, cors_origins: tuple[str, ...], **given: Any) -> None:
    """The first time, a key for everything is printed; HEEDFUL_ADMIN_KEY sets one instead."""
    with extra("server", "serving"):
        from heedful.interfaces.http.app import serve as run
    configured = settings.load(store=options.store)
    pages = {"api_docs": configured.api_docs, "mcp": configured.mcp}
    config = _config(options, "serve", cors_origins=list(cors_origins), **pages, **given)
    # Ctrl-C is how it is stopped; what was under way has ended when it arrives here.
    with suppress(KeyboardInterrupt):
        run(config, _ready("serving", config))


def show_link(link: str | None) -> None:
    """Prints the link that logs in, where there is one."""
    if link is not None:
        echo(f"log in here, once, within 10 minutes: {link}")


@command("store", as_json=False)
@_host
@_port(8001)
@click.option("--open/--no-open", "open_browser", default=False, show_default=True, help="Open it in a browser.")
def dashboard(options: Options, host: str, port: int, open_browser: bool) -> None:
    """On this machine, a printed link logs in, once. Others need a key: the first time, one for everything is printed;
    HEEDFUL_ADMIN_KEY sets one instead.
    """
    with extra("server", "the dashboard"):
        from heedful.interfaces.dashboard.app import serve
    config = _config(options, "dashboard", host=host, port=port, quiet=True)
    announce = _ready("dashboard", config, LOST_KEY_HINT.replace("--new-key", "heedful serve --new-key"))

    def ready(address: str, key: NewKey | None, link: str | None) -> None:
        announce(address, key)
        show_link(link)
        if open_browser:
            click.launch(address)

    # Ctrl-C is how it is stopped.
    with suppress(KeyboardInterrupt):
        serve(config, ready)


@command(None, as_json=False)
@click.option(
    "--tools",
    type=click.Choice(["agent", "all"]),
    default="agent",
    show_default=True,
    help="The five tools that agents need, or all.",
)
def mcp(options: Options, tools: str) -> None:
    """It reads standard input until that ends, and writes to standard output."""
    if find_spec("mcp") is None:
        raise extra_missing("mcp", "mcp is not installed")
    with settings.for_agents():
        asyncio.run(_serve(options, tools))


async def _serve(options: Options, tools: str) -> None:
    from heedful.interfaces.mcp.serving import serve

    address = options.remote()
    if address is not None:
        opened = await heedful.aconnect(address, project=options.project)
    else:
        opened = await heedful.aopen(options.store, project=options.project, **options.providers)
    async with opened as store:
        await serve(store, heedful.__version__, tools)


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def _read_seconds(context: click.Context, parameter: click.Parameter, typed: str) -> int:
    """A time such as 90, 30m, 1h or 2d."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", typed)
    if match is None:
        raise click.BadParameter(f"{typed!r} is no time; use seconds, or 30m, 1h, 2d")
    return int(match[1]) * _UNITS[match[2]]


keys = Group("keys")


@keys.runs("create", "name", name="add", needs="any project", rate_limit={"metavar": "CALLS"})
def create(key: NewKey) -> str:
    """Add a key. It is shown only once."""
    return f"{key.api_key}\nkey_id {key.key_id}; it may: {', '.join(key.scopes)}. It is not shown again."


@keys.runs("list")
def list_keys(keys: list[Key]) -> None:
    """List keys, oldest first, including revoked ones."""
    show_table(
        keys,
        "name",
        ("scopes", lambda key: ", ".join(key.scopes)),
        "created=created_at",
        ("last used", lambda key: key.last_used_at or "never"),
        ("state", lambda key: "active" if key.revoked_at is None else f"revoked {minute(key.revoked_at)}"),
        "key_id",
        less=("created", "last used"),
    )


def _ask_revoke(heedful: Engine, key_id: str) -> str | None:
    name = next((key.name for key in heedful.keys.list() if key.key_id == key_id), None)
    return name and f"Revoke key {name}? Who uses it is refused from then on."


@keys.runs("revoke", "key_id", asks=_ask_revoke)
def revoke(key: Key) -> str:
    """Revoke a key."""
    return f"{key.name} is revoked; running servers reject it within a second"


def _target(text: str) -> dict[str, str]:
    """The target written as session_id=ID,qa_id=ID or execution_id=ID,question=TEXT, whose values may have commas."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"invalid target {quoted(text)}", field="targets", value=text, remedy="Write it as session_id=ID")
    if name == "execution_id":
        execution, suggested, question = value.partition(",question=")
        return {name: execution, "question": question} if suggested else {name: value}
    session, answer, qa_id = value.rpartition(",qa_id=")
    return {name: session, "qa_id": qa_id} if answer else {name: value}


@keys.runs(
    "create_token",
    name="token",
    needs="any project",
    targets={
        "multiple": True,
        "metavar": "KEY=ID[,KEY=ID]",
        "callback": lambda context, parameter, texts: [_target(text) for text in texts],
        "help": "What may be rated, as session_id=ID or session_id=ID,qa_id=ID; may be repeated.",
    },
    author="Who gives the feedback, if you know it; without it, a visitor does.",
    subject={"metavar": "ID"},
    expires_in={"metavar": "SECONDS"},
)
def token(issued: FeedbackToken) -> str:
    """Create a token that lets a browser rate for a while.

    It is for some targets, and expires.
    """
    return f"{issued.token}\nfor {issued.author}, until {issued.expires_at:%Y-%m-%d %H:%M:%S}"


@keys.runs(
    "rotate_signing",
    needs="store",
    worker=False,
    grace={
        "type": str,
        "metavar": "TIME",
        "callback": _read_seconds,
        "help": "How long the old secret stays valid: 90, 30m, 1h, 2d.",
    },
)
def rotate_signing(rotation: SigningRotation) -> str:
    """Rotate the secret that signs tokens and logins.

    It is the secret of the whole store. Those signed with the old secret end at once, or after --grace.
    """
    if rotation.former_good_until > rotation.rotated_at:
        return f"existing tokens and logins stay valid until {rotation.former_good_until:%Y-%m-%d %H:%M:%S}"
    return "existing tokens and logins are no longer valid; running servers reject them within a second"


@command("store", group=keys)
def reseal_connectors(options: Options, as_json: bool) -> None:
    """Encrypt the URLs of all connectors again.

    It takes the first key of HEEDFUL_SECRET_KEY. For the whole store, after a new key was put before the old one,
    which can be removed afterwards.
    """
    count = reseal(options.local("keys reseal-connectors"))
    done = f"URLs encrypted with the first key: {count}; the other keys can be removed"
    show_result({"connectors": count}, as_json, lambda _: done)


def _audited(options: Options, typed: Mapping[str, Any]) -> AbstractContextManager[Any]:
    if options.whole_store:
        return nullcontext(SimpleNamespace(audit=partial(store_audit, options.store)))
    return options.open(worker=False)


@runs("audit", needs="store", opens=_audited)
def audit(page: Page[AuditEntry]) -> None:
    """For the whole store; with --project, or on a server, for that project."""
    show_table(
        page,
        "at:%Y-%m-%d %H:%M:%S | kind | operation | code | times | caller | address | project | target",
        less=("target", "project", "times", "kind", "caller"),
        empty="No refused requests and no admin actions.",
    )
