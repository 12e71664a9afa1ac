"""A real server on a free loopback port, in a thread of the test's own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from threaded import threaded

from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.client.transport import connect
from heedful.interfaces.http import middleware
from heedful.interfaces.http.app import create
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ServerConfig
from heedful.interfaces.http.state import ServerState
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder

KEY = "an-admin-key-for-the-tests"

# Tests are refused on purpose, thousands of times.
middleware.REFUSED_SECONDS = 0.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs."""

    url: str
    key: str
    clock: ManualClock
    state: ServerState

    def connect(self, project: str = "default", key: str | None = None, **options: Any) -> RemoteHeedful:
        return connect(self.url, api_key=key or self.key, project=project, **options)


@contextmanager
def running(
    path: Path | str,
    *,
    language_model: Any = None,
    sessions: str | None = None,
    feedback_hook: Any = None,
    clock: ManualClock | None = None,
    keep_alive: int = 5,
    port: int = 0,
    **settings: Any,
) -> Iterator[Running]:
    """Serves a store until the block ends, on a port that is free if none is given."""
    clock = clock or ManualClock()
    opened = Store(
        path,
        clock=clock,
        embedding=WordEmbedder(),
        language_model=language_model,
        sessions=sessions,
        feedback_hook=feedback_hook,
    )
    config = Config(store=str(path), admin_key=KEY, **{"rate_limit": 0, **settings})
    with serving(config, opened, keep_alive, port) as (url, state):
        yield Running(url, KEY, clock, state)


@contextmanager
def serving(config: Config, opened: Store, keep_alive: int = 5, port: int = 0) -> Iterator[tuple[str, ServerState]]:
    """The address of a server, and what it has."""
    app = create(config, opened)
    options = {"timeout_graceful_shutdown": 10, "timeout_keep_alive": keep_alive}
    with threaded(uvicorn.Server(ServerConfig(app, config, **options)), port) as url:
        yield url, app.state
