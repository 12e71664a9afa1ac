"""serve, dashboard, mcp: the store for other programs and for browsers."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from importlib.util import find_spec

import click

import heedful
from heedful import settings
from heedful.errors import Unavailable
from heedful.interfaces.cli.common import Options, echo, extra, needs_store
from heedful.model import NewKey

LOST_KEY_HINT = "this store has keys; lost yours? --new-key prints another, and revokes those for everything"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8000, show_default=True, help="The port; 0 for any that is free.")
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
@click.pass_obj
def serve(
    options: Options,
    host: str,
    port: int,
    workers: int,
    rate_limit: int,
    max_body: int,
    max_written: int,
    cors_origins: tuple[str, ...],
    new_key: bool,
    worker: bool,
    quiet: bool,
) -> None:
    """Serve the store over HTTP.

    The first time, a key for everything is printed; HEEDFUL_ADMIN_KEY sets one instead.
    """
    with extra("server", "serving"):
        from heedful.interfaces.http.config import Config
        from heedful.interfaces.http.serve import serve as run
    configured = settings.load(store=options.store)
    config = Config(
        store=options.local("serve"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
        host=host,
        port=port,
        workers=workers,
        rate_limit=rate_limit,
        max_body=max_body,
        max_written=max_written,
        cors_origins=list(cors_origins),
        new_key=new_key,
        admin_key=os.environ.get("HEEDFUL_ADMIN_KEY") or None,
        trusted_proxies=configured.trusted_proxies,
        api_docs=configured.api_docs,
        mcp=configured.mcp,
        worker=worker,
        quiet=quiet,
    )

    def ready(address: str, key: NewKey | None) -> None:
        if key is not None:
            echo(f"key for everything, shown once: {key.api_key}")
        echo(f"serving on {address}", err=True)
        if key is None and config.admin_key is None:
            echo(LOST_KEY_HINT, err=True)

    # Ctrl-C is how it is stopped; what was under way has ended when it arrives here.
    with suppress(KeyboardInterrupt):
        run(config, ready)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8001, show_default=True, help="The port; 0 for any that is free.")
@click.option("--open/--no-open", "open_browser", default=False, show_default=True, help="Open it in a browser.")
@needs_store
def dashboard(options: Options, host: str, port: int, open_browser: bool) -> None:
    """Serve the dashboard of the store.

    People log in with a key. The first time, one for everything is printed; HEEDFUL_ADMIN_KEY sets one instead.
    """
    with extra("server", "the dashboard"):
        from heedful.interfaces.dashboard.app import serve
        from heedful.interfaces.http.config import Config
    config = Config(
        store=options.local("dashboard"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
        host=host,
        port=port,
        admin_key=os.environ.get("HEEDFUL_ADMIN_KEY") or None,
        trusted_proxies=settings.load(store=options.store).trusted_proxies,
        quiet=True,
    )

    def ready(address: str, key: NewKey | None) -> None:
        if key is not None:
            echo(f"key for everything, shown once: {key.api_key}")
        echo(f"dashboard on {address}", err=True)
        if key is None and config.admin_key is None:
            echo(LOST_KEY_HINT.replace("--new-key", "heedful serve --new-key"), err=True)
        if open_browser:
            click.launch(address)

    # Ctrl-C is how it is stopped.
    with suppress(KeyboardInterrupt):
        serve(config, ready)


@click.command()
@click.pass_obj
def mcp(options: Options) -> None:
    """Serve the store to an agent by MCP.

    It reads standard input until that ends, and writes to standard output.
    """
    if find_spec("mcp") is None:
        raise Unavailable("mcp is not installed", code="extra_missing", remedy='Run: pip install "heedful[mcp]"')
    with settings.for_agents():
        asyncio.run(_serve(options))


async def _serve(options: Options) -> None:
    from heedful.interfaces.mcp.serving import serve

    async with await options.aopen() as store:
        await serve(store, heedful.__version__)
