"""A real PostgreSQL server for tests: one for all workers, a new database for each test."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from postgresql_process import Server
from sharing import State, make_once, run_folder, shared_server

import heedful
from heedful.testing import WordEmbedder

QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "checkpoint_timeout=1h", "max_wal_size=4GB")
"""Settings of a server whose files nobody needs after a crash."""

_STARTED: dict[int, Server] = {}
"""Servers that this process started for others, too; they may outlast its use of them."""


def _start() -> State:
    server = Server(*QUICK)
    assert server.process is not None
    _STARTED[server.process.pid] = server
    return {"pid": server.process.pid, "url": server.url, "folder": str(server.folder)}


def _stop(known: State) -> None:
    pid = known["pid"]
    if pid in _STARTED:
        _STARTED.pop(pid).close()
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    # As a child of another process it stays in the list of processes, but its file goes.
    for _ in range(600):
        if not (Path(known["folder"]) / "data" / "postmaster.pid").exists():
            break
        time.sleep(0.05)
    shutil.rmtree(known["folder"], ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with shared_server(run_folder(tmp_path_factory, "postgresql"), _start, _stop) as known:
        yield known["url"]


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """A new database; its superuser is `postgres`, and a role `reader` may read all."""
    with new_database(postgresql_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the tables of a new store, to be copied; its owner has no right beyond it."""

    return make_template(
        tmp_path_factory,
        postgresql_server,
        "empty_store",
        lambda url: heedful.open(url, embedding=WordEmbedder()).close(),
    )


@pytest.fixture
def bare_database(postgresql_server: str) -> Iterator[str]:
    """The address of a new database in which a store can be made by one who has no right beyond it."""
    with new_store(postgresql_server, "bare") as url:
        yield url


@pytest.fixture
def empty_database(postgresql_server: str, postgresql_template: str) -> Iterator[str]:
    """The address of a new store."""
    with copied(postgresql_server, postgresql_template) as url:
        yield url


@contextlib.contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of a new database, as its superuser."""
    with _database(server, "test", "STRATEGY file_copy") as url:
        yield url


@contextlib.contextmanager
def copied(server: str, template: str) -> Iterator[str]:
    """The address of a new database like another one, to which nobody is connected."""
    with _database(server, "store", f"TEMPLATE {template} STRATEGY file_copy") as url:
        yield _as_keeper(url)


@contextlib.contextmanager
def new_store(server: str, prefix: str = "store", options: str = "STRATEGY file_copy") -> Iterator[str]:
    """The address of a new database that can become a store; its owner has no right beyond it."""
    with _database(server, prefix, options) as url:
        _add_vector(url)
        yield _as_keeper(url)


def make_template(factory: pytest.TempPathFactory, server: str, name: str, fill: Callable[[str], object]) -> str:
    """The name of a database that is filled once for all processes, and stays as long as its server."""
    url = server.replace("DATABASE", name)

    def make(folder: Path) -> None:
        _create(server, name, "")
        _add_vector(url)
        fill(_as_keeper(url))

    make_once(factory, f"{name}_{urlsplit(server).port}", make)
    return name


@contextlib.contextmanager
def _database(server: str, prefix: str, options: str) -> Iterator[str]:
    name = f"{prefix}_{uuid4().hex}"
    _create(server, name, options)
    try:
        yield server.replace("DATABASE", name)
    finally:
        # By a new connection: some tests kill the server.
        with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _create(server: str, name: str, options: str) -> None:
    with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER keeper {options}".encode())


def _add_vector(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")


def _as_keeper(url: str) -> str:
    return url.replace("postgres@", "keeper@")
