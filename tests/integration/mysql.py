"""A real MySQL-compatible server for tests: MariaDB, if `mariadb-server-core` of Debian is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from mongodb import free_port
from postgresql_process import owner
from sharing import State, run_folder, shared_server

SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
REQUIRED = bool(os.environ.get("HEEDFUL_REQUIRE_MYSQL"))
_TABLES = Path("/usr/share/mysql")
_SMALL = (
    "--no-defaults",
    "--skip-log-bin",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
)


_STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process started for others, too."""


def _start() -> State:
    """A new server."""
    assert SERVER is not None
    folder = Path(tempfile.mkdtemp(prefix="heedful-mysql-"))
    data, log = folder / "data", folder / "log"
    data.mkdir()
    if who := owner():
        for each in (folder, data):
            os.chown(each, who["user"], who["group"])
    tables = "".join(
        (_TABLES / name).read_text() for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
    )
    with log.open("ab") as output:
        subprocess.run(
            [SERVER, *_SMALL, "--bootstrap", f"--datadir={data}"],
            input=f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n{tables}".encode(),
            stdout=output, stderr=output, cwd="/", timeout=60, check=True, **who,
        )  # fmt: skip
        port = free_port()
        process = subprocess.Popen(
            [SERVER, *_SMALL, f"--datadir={data}", "--bind-address=127.0.0.1", f"--port={port}",
             f"--socket={folder / 'socket'}"],
            stdout=output, stderr=output, cwd="/", start_new_session=True, **who,
        )  # fmt: skip
    _STARTED[process.pid] = process
    known = {"pid": process.pid, "port": port, "folder": str(folder)}
    try:
        _wait(process, port, log)
    except BaseException:
        _stop(known)
        raise
    return known


def _stop(known: State) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(known["pid"], signal.SIGKILL)
    if known["pid"] in _STARTED:
        _STARTED.pop(known["pid"]).wait(30)
    shutil.rmtree(known["folder"], ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import pymysql

    for _ in range(600):
        assert process.poll() is None, f"MariaDB did not start:\n{log.read_text()[-3000:]}"
        try:
            pymysql.connect(host="127.0.0.1", port=port, user="root").close()
        except pymysql.Error:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"MariaDB does not answer:\n{log.read_text()[-3000:]}")


@contextlib.contextmanager
def own_server() -> Iterator[int]:
    """The port of a server that nobody else uses, for tests that change its global settings."""
    _require_server()
    known = _start()
    try:
        yield known["port"]
    finally:
        _stop(known)


def _require_server() -> None:
    if SERVER is None:
        why = "MySQL connectors are NOT tested here: install mariadb-server-core (apt-get install mariadb-server-core)"
        if REQUIRED:
            pytest.fail(why)
        pytest.skip(why)


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    _require_server()
    with shared_server(run_folder(tmp_path_factory, "mysql"), _start, _stop) as known:
        yield known["port"]


@pytest.fixture
def mysql_url(mysql_server: int) -> Iterator[str]:
    """A new database, and the URL of somebody who may only read it."""
    import pymysql

    name = f"test_{uuid4().hex}"
    with pymysql.connect(host="127.0.0.1", port=mysql_server, user="root") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        cursor.execute(f"CREATE USER '{name[:30]}'@'127.0.0.1'")
        cursor.execute(f"GRANT SELECT ON {name}.* TO '{name[:30]}'@'127.0.0.1'")
        yield f"mysql+pymysql://{name[:30]}@127.0.0.1:{mysql_server}/{name}"
        cursor.execute(f"DROP DATABASE {name}")
        cursor.execute(f"DROP USER '{name[:30]}'@'127.0.0.1'")
