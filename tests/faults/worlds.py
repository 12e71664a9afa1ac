"""Where a fault happens: a store in a file, and one on a PostgreSQL server that may be killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deeds import Facts
from postgresql import new_store
from postgresql_process import Server
from proxies import Proxy

import heedful
from heedful import Heedful
from heedful.providers.configured import embedder_from
from heedful.testing import WordEmbedder


@dataclass(frozen=True, slots=True)
class World:
    """A store."""

    url: str
    server: Server | None = None
    embedding: str | None = None
    """The model of its vectors, by name; the quick one of the tests if it has none."""

    @property
    def kind(self) -> str:
        return "sqlite" if self.server is None else "postgresql"

    def open(self, project: str, **options: Any) -> Heedful:
        embedder = WordEmbedder() if self.embedding is None else embedder_from(self.embedding)
        return heedful.open(self.url, project=project, **{"embedding": embedder, **options})

    def prepare(self, project: str, sessions: Sequence[str]) -> Facts:
        """Makes a project with facts to judge, and sessions."""
        with self.open(project) as store:
            for name in sessions:
                store.sessions.create(name)
            return Facts(*store.remember(texts_of(project)).fact_ids)


def texts_of(project: str) -> list[str]:
    """What is in a project before anybody writes."""
    return [f"the one fact of {project}", f"the other fact of {project}"]


def through(proxy: Proxy, world: World) -> str:
    """The address of a store behind a proxy."""
    assert world.server is not None
    return world.url.replace(f":{world.server.port}/", f":{proxy.port}/")


@pytest.fixture(scope="session")
def own_server() -> Iterator[Server]:
    """A server that waits for the disk, and that tests may kill; it runs again when they end."""
    server = Server()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def on_postgresql(own_server: Server) -> Iterator[World]:
    with new_store(own_server.url) as url:
        yield World(url, own_server)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> World:
    return World(str(tmp_path / "store.db"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def world(request: pytest.FixtureRequest) -> World:
    found: World = request.getfixturevalue(f"on_{request.param}")
    return found
