"""A real PostgreSQL server for tests: one for all workers, a new database for each test."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from postgresql_process import Server

import heedful
from heedful.testing import WordEmbedder

_STARTED: dict[int, Server] = {}
"""Servers that this process started for others, too; they may outlast its use of them."""


def _start() -> dict[str, Any]:
    server = Server("fsync=off")
    assert server.process is not None
    _STARTED[server.process.pid] = server
    return {"pid": server.process.pid, "url": server.url, "folder": str(server.folder), "users": []}


def _stop(known: dict[str, Any]) -> None:
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


def _runs(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[str]:
    """The address of a server that the first of several processes starts, and the last one stops."""
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state.json"
    with _locked(folder):
        known = json.loads(state.read_text()) if state.exists() else _start()
        known["users"].append(os.getpid())
        state.write_text(json.dumps(known))
    try:
        yield known["url"]
    finally:
        with _locked(folder):
            known = json.loads(state.read_text())
            known["users"] = [each for each in known["users"] if each != os.getpid() and _runs(each)]
            if known["users"]:
                state.write_text(json.dumps(known))
            else:
                state.unlink()
                _stop(known)


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    base = tmp_path_factory.getbasetemp()
    with shared((base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "postgresql") as url:
        yield url


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """A new database; its superuser is `postgres`, and a role `reader` may read all."""
    with _database(postgresql_server, "test", "") as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> Iterator[str]:
    """A database with the tables of a new store, to be copied; its owner has no right beyond it."""
    with new_store(postgresql_server, "template") as url:
        heedful.open(url, embedding=WordEmbedder()).close()
        yield url.rpartition("/")[2]


@pytest.fixture
def bare_database(postgresql_server: str) -> Iterator[str]:
    """The address of a new database in which a store can be made by one who has no right beyond it."""
    with _database(postgresql_server, "bare", "") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        yield _as_keeper(url)


@pytest.fixture
def empty_database(postgresql_server: str, postgresql_template: str) -> Iterator[str]:
    """The address of a new store."""
    with _database(postgresql_server, "store", f"TEMPLATE {postgresql_template}") as url:
        yield _as_keeper(url)


@contextlib.contextmanager
def new_store(server: str, prefix: str = "store", options: str = "") -> Iterator[str]:
    """The address of a new database that can become a store; its owner has no right beyond it."""
    with _database(server, prefix, options) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        yield _as_keeper(url)


@contextlib.contextmanager
def _database(server: str, prefix: str, options: str) -> Iterator[str]:
    name = f"{prefix}_{uuid4().hex}"
    with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER keeper {options}".encode())
    try:
        yield server.replace("DATABASE", name)
    finally:
        # By a new connection: some tests kill the server.
        with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _as_keeper(url: str) -> str:
    return url.replace("postgres@", "keeper@")
