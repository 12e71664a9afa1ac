"""`heedful serve`: the loop over HTTP."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from heedful import settings
from heedful.cli.common import Options, extra
from heedful.cli.output import echo
from heedful.model import NewKey

LOST = "this store has keys; lost yours? --new-key prints another, and revokes those for everything"


@click.command()
@click.option("--store", metavar="URL_OR_PATH", help="The store; HEEDFUL_STORE, or heedful.db in this folder.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8000, show_default=True, help="The port; 0 for any that is free.")
@click.option("--workers", default=1, show_default=True, help="How many processes share the store.")
@click.option("--rate-limit", default=1000, show_default=True, help="Calls a second for a key and worker; 0: no limit.")
@click.option("--max-body", default=25_000_000, show_default=True, help="Bytes of the largest request.")
@click.option("--new-key", is_flag=True, help="Revoke the keys for everything, and print a new one.")
@click.option(
    "--cors-origin", "cors_origins", multiple=True, help="Pages of this origin may call, * for all; may be repeated."
)
@click.option("--worker/--no-worker", default=True, show_default=True, help="Also do jobs; see heedful worker.")
@click.option("--quiet", is_flag=True, help="No line for each request; warnings and errors are still written.")
@click.pass_obj
def serve(
    options: Options,
    store: str | None,
    host: str,
    port: int,
    workers: int,
    rate_limit: int,
    max_body: int,
    cors_origins: tuple[str, ...],
    new_key: bool,
    worker: bool,
    quiet: bool,
) -> None:
    """Serve the store over HTTP.

    The first time, a key for everything is printed; HEEDFUL_ADMIN_KEY sets one instead.
    """
    with extra("server", "serving"):
        from heedful.server.config import Config
        from heedful.server.serve import serve as run
    config = Config(
        store=store or options.local("serve"),
        embedding=options.embedding,
        language_model=options.language_model,
        sessions=options.sessions,
        host=host,
        port=port,
        workers=workers,
        rate_limit=rate_limit,
        max_body=max_body,
        cors_origins=list(cors_origins),
        new_key=new_key,
        admin_key=os.environ.get("HEEDFUL_ADMIN_KEY") or None,
        trusted_proxies=settings.load().trusted_proxies,
        worker=worker,
        quiet=quiet,
    )

    def ready(address: str, key: NewKey | None) -> None:
        if key is not None:
            echo(f"key for everything, shown once: {key.api_key}")
        echo(f"serving on {address}", err=True)
        if key is None and config.admin_key is None:
            echo(LOST, err=True)

    # Ctrl-C is how it is stopped; what was under way has ended when it arrives here.
    with suppress(KeyboardInterrupt):
        run(config, ready)
