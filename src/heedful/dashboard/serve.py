"""Starting the dashboard: one process on one store."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn

from heedful.dashboard.app import create
from heedful.model import NewKey
from heedful.server.app import opened, set_up
from heedful.server.config import Config
from heedful.server.connections import Served
from heedful.server.serve import GRACE, first_key, listen

PORT = 8001


def run(store: str | None, host: str, port: int, ready: Callable[[str, NewKey | None], None]) -> None:
    """Serves the dashboard of a store until it is told to stop; `ready` gets the address, and the first key."""
    serve(Config(store=store, host=host, port=port, quiet=True), ready)


def serve(config: Config, ready: Callable[[str, NewKey | None], None]) -> None:
    """The same, with all that a server may be told."""
    set_up(config)
    listening, address = listen(config)
    store = opened(config)
    try:
        key = first_key(config, store)
        app = create(store, admin_key=config.admin_key)
    except BaseException:
        store.close()
        raise
    ready(address, key)
    settings = Served(app, config.limits, timeout_graceful_shutdown=GRACE)
    uvicorn.Server(settings).run(sockets=[listening])
