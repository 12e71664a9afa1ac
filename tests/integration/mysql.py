"""A real MySQL-compatible server for tests: MariaDB, if `mariadb-server-core` of Debian is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from mongodb import free_port
from postgresql_process import owner

SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
REQUIRED = bool(os.environ.get("HEEDFUL_REQUIRE_MYSQL"))
_TABLES = Path("/usr/share/mysql")
_SMALL = ("--no-defaults", "--skip-log-bin", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M")


@contextmanager
def _server() -> Iterator[int]:
    """The port of a new server."""
    assert SERVER is not None
    folder = Path(tempfile.mkdtemp(prefix="heedful-mysql-"))
    data, log = folder / "data", folder / "log"
    data.mkdir()
    if who := owner():
        for each in (folder, data):
            os.chown(each, who["user"], who["group"])
    try:
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
                 f"--socket={folder / 'socket'}", "--innodb-flush-log-at-trx-commit=0"],
                stdout=output, stderr=output, cwd="/", start_new_session=True, **who,
            )  # fmt: skip
        try:
            _wait(process, port, log)
            yield port
        finally:
            process.terminate()
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[int]:
    if SERVER is None:
        why = "MySQL connectors are NOT tested here: install mariadb-server-core (apt-get install mariadb-server-core)"
        if REQUIRED:
            pytest.fail(why)
        pytest.skip(why)
    with _server() as port:
        yield port


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
