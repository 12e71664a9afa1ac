"""The real server on a store that the test has open itself, for other systems' own clients."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from server import KEY, serving

from heedful import Heedful
from heedful.bootstrap import Host
from heedful.interfaces.http.config import Config
from heedful.jobs.contract import Work


class _Opened(Host):
    """A store that is open already; a server leaves it so."""

    def __init__(self, store: Heedful) -> None:
        workspace = store._workspace
        self.database = workspace.database
        self.default_project = workspace.project
        self.clock = workspace._clock
        self.sessions = "elsewhere"
        self.pool = store._executions.queries._pool
        self._store = copy.copy(store)
        vars(self._store)["close"] = lambda: None

    def project(self, name: str, work: Work | None = None) -> Heedful:
        return self._store

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
