"""heedful proxy: memories in front of any OpenAI-compatible endpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

import heedful
from heedful import settings
from heedful.errors import Invalid, quoted
from heedful.interfaces.cli.runner import Engine, Options, command, extra
from heedful.interfaces.cli.screen import echo
from heedful.model import DEFAULT_DATASET

if TYPE_CHECKING:
    from heedful.interfaces.http.state import Caller

    FindCaller = Callable[[str], Caller]

KEY = "HEEDFUL_PROXY_KEY"


@command(None, as_json=False)
@click.option("--upstream", metavar="URL", help="The base URL of the endpoint behind it; HEEDFUL_UPSTREAM.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8002, show_default=True, help="The port; 0 for any that is free.")
@click.option("-d", "--dataset", metavar="NAME", default=DEFAULT_DATASET, show_default=True, help="The dataset.")
@click.option("-k", "--top-k", default=5, show_default=True, help="How many facts a question gets at most.")
@click.option("--max-body", default=25_000_000, show_default=True, help="The largest question, in bytes.")
@click.option("--quiet", is_flag=True, help="No line for each request; warnings and errors are still written.")
def proxy(
    options: Options,
    /,
    upstream: str | None,
    host: str,
    port: int,
    dataset: str,
    top_k: int,
    max_body: int,
    quiet: bool,
) -> None:
    """Programs use its address as their base URL. HEEDFUL_UPSTREAM_API_KEY is sent to the endpoint; without it, the
    key that programs send. On 127.0.0.1, programs need no key of Heedful's; elsewhere, or if it is set, they need
    HEEDFUL_PROXY_KEY or a key of the store.
    """
    with extra("server", "the proxy"):
        from heedful.integrations.proxy.app import Proxy, Upstream, is_local, serve
        from heedful.interfaces.http.config import MIN_KEY_LENGTH, Config

    config = settings.load(store=options.store)
    url = upstream or config.upstream
    if url is None or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        problem = "upstream is not set" if url is None else f"upstream is {quoted(url)}, which is no address"
        remedy = "Name the base URL of the endpoint, such as --upstream https://api.openai.com/v1"
        raise Invalid(problem, field="upstream", value=url, remedy=remedy)
    key = os.environ.get(KEY) or None
    if key is not None and len(key) < MIN_KEY_LENGTH:
        problem = f"{KEY} has {len(key)} characters, the least is {MIN_KEY_LENGTH}"
        raise Invalid(problem, field=KEY, remedy="Set a longer one, or none")
    listening = Config(host=host, port=port, max_body=max_body, quiet=quiet)
    with _opened(options, key) as (memory, project, find_caller):
        is_open = is_local(host) and key is None
        if not is_open and find_caller is None:
            remedy = f"Set {KEY}: keys of a server can't be checked here"
            raise Invalid(f"on {host}, callers need a key", field="host", value=host, remedy=remedy)
        app = Proxy(
            memory,
            Upstream(url, config.upstream_api_key),
            project=project,
            max_body=max_body,
            find_caller=None if is_open else find_caller,
            dataset=dataset,
            top_k=top_k,
        )
        # Ctrl-C is how it is stopped.
        with suppress(KeyboardInterrupt):
            serve(app, listening, lambda address: echo(f"proxy on {address}/v1, in front of {url}", err=True))


@contextmanager
def _opened(options: Options, key: str | None) -> Iterator[tuple[Engine, str, FindCaller | None]]:
    """The memory, its project, and how callers are found; None if none can be."""
    from heedful.access.credentials import digest, matches
    from heedful.errors import Forbidden
    from heedful.interfaces.http.state import Caller, Callers
    from heedful.model import SCOPES
    from heedful.store import Store

    address = options.remote()
    project = options.project or settings.load(store=options.store).project
    if address is not None:

        def find(presented: str) -> Caller:
            if key is None or not matches(presented, digest(key)):
                raise Forbidden("the key is not valid", code="key_invalid", remedy=f"Use the one in {KEY}")
            return Caller("proxy", None, frozenset(SCOPES))

        with heedful.connect(address, project=project) as remote:
            yield remote, project, None if key is None else find
        return
    store = Store(options.store, **options.providers)
    with store.open_only(project) as memory, closing(Callers(store, key)) as callers:
        yield memory, project, callers.find
