"""`heedful dashboard`: pages for people who look at feedback."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from heedful import settings
from heedful.cli.common import Options, extra
from heedful.cli.output import echo
from heedful.cli.serve import LOST
from heedful.cli.there import needs_store
from heedful.model import NewKey


@click.command()
@click.option("--store", metavar="URL_OR_PATH", help="The store; HEEDFUL_STORE, or heedful.db in this folder.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8001, show_default=True, help="The port; 0 for any that is free.")
@click.option("--open/--no-open", "open_browser", default=False, show_default=True, help="Open it in a browser.")
@needs_store
def dashboard(options: Options, store: str | None, host: str, port: int, open_browser: bool) -> None:
    """Serve the dashboard of the store.

    People log in with a key. The first time, one for everything is printed; HEEDFUL_ADMIN_KEY sets one instead.
    """
    with extra("dashboard", "the dashboard"):
        from heedful.dashboard.serve import serve
        from heedful.server.config import Config
    config = Config(
        store=store or options.local("dashboard"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
        host=host,
        port=port,
        admin_key=os.environ.get("HEEDFUL_ADMIN_KEY") or None,
        trusted_proxies=settings.load().trusted_proxies,
        quiet=True,
    )

    def ready(address: str, key: NewKey | None) -> None:
        if key is not None:
            echo(f"key for everything, shown once: {key.api_key}")
        echo(f"dashboard on {address}", err=True)
        if key is None and config.admin_key is None:
            echo(LOST.replace("--new-key", "heedful serve --new-key"), err=True)
        if open_browser:
            click.launch(address)

    # Ctrl-C is how it is stopped.
    with suppress(KeyboardInterrupt):
        serve(config, ready)
