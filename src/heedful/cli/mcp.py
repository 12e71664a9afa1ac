"""mcp: the store as tools of an agent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib.util import find_spec

import click

import heedful
from heedful.cli.common import Options
from heedful.errors import Unavailable


@click.command()
@click.option("--store", metavar="URL_OR_PATH", help="The store, as before the command.")
@click.option("--project", metavar="NAME", help="The project, as before the command.")
@click.pass_obj
def mcp(options: Options, store: str | None, project: str | None) -> None:
    """Serve the store to an agent by MCP, on standard input and output, until the input ends."""
    if find_spec("mcp") is None:
        raise Unavailable("mcp is not installed", code="extra_missing", remedy='Run: pip install "heedful[mcp]"')
    chosen = replace(options, store=store or options.store, project=project or options.project)
    asyncio.run(_serve(chosen))


async def _serve(options: Options) -> None:
    from heedful.mcp_server.serving import serve

    async with await options.aopen() as store:
        await serve(store, heedful.__version__)
