"""The real server on a store that the test has open itself, for other systems' own clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from server import KEY, serving

from heedful import Heedful, settings
from heedful.engine import Project
from heedful.interfaces.http.config import Config
from heedful.store import Store


class _Opened(Store):
    """A store that is open already; a server leaves it so."""

    def __init__(self, store: Heedful) -> None:
        workspace = store._workspace
        self.database = workspace.database
        self.default_project = workspace.project
        self.clock = workspace._clock
        self.sessions = "elsewhere"
        self.config = settings.load()
        self.pool = store._project.executions.queries._pool
        self._held = store._project

    def serve_others(self) -> None:
        """Its caller is the operator."""

    @contextmanager
    def using(self, name: str) -> Iterator[Project]:
        yield self._held

    def open_projects(self, name: str | None = None) -> list[Project]:
        return [self._held]

    def close(self) -> None:
        pass


@contextmanager
def served(store: Heedful) -> Iterator[str]:
    """The address of a server for a store; its key is `KEY`."""
    with serving(Config(admin_key=KEY, rate_limit=0, worker=False), _Opened(store)) as (url, _):
        yield url


def client(url: str, **options: Any) -> httpx.Client:
    """A client that knows no system, with the key."""
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, **options)
