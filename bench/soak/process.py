"""One process of the simulated year: `python -m bench.soak.process ROLE STORE CLOCK PORT`.

A server, a dashboard or a worker on the clock that all of them share. The worker does what is due each time it is sent
a line, and answers with one.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

from bench.soak.clock import SharedClock
from heedful.interfaces.dashboard.app import create as create_dashboard
from heedful.interfaces.http.app import create as create_server
from heedful.interfaces.http.app import set_up
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig
from heedful.jobs.worker import Worker
from heedful.sessions.hooks import AlertHook
from heedful.store import Store
from heedful.testing import WordEmbedder

KEY = "an-admin-key-for-the-simulated-year"


class Desk:
    """A channel that takes every alert."""

    name = "desk"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        """There is nobody to tell."""


def main(arguments: list[str]) -> None:
    role, store, clock, port = arguments
    config = Config(store=store, admin_key=KEY, rate_limit=0, quiet=True, worker=False)
    set_up(config)
    opened = Store(store, clock=SharedClock(Path(clock)), embedding=WordEmbedder(), feedback_hook=AlertHook(Desk()))
    if role == "worker":
        _work(opened)
        return
    app = create_server(config, opened) if role == "server" else create_dashboard(opened, admin_key=KEY)
    listening = socket.create_server(("127.0.0.1", int(port)), backlog=512)
    uvicorn.Server(ServerConfig(app, config, log_level="warning")).run(sockets=[listening])


def _work(opened: Store) -> None:
    for _ in sys.stdin:
        # A worker checks once a minute of the system's clock whether maintenance is due; a new one checks at once.
        Worker(opened.queue, opened.run_job, opened.now).drain()
        print("done", flush=True)
    opened.close()


if __name__ == "__main__":
    main(sys.argv[1:])
