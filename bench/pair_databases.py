"""Databases of each kind that connectors lead to, filled from SQL, with a reader's URL for each."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.postgresql import serving

Scripts = Mapping[str, Sequence[str]]
"""The statements of each database, by its name."""

Urls = dict[str, str]


def databases(kind: str, folder: Path, scripts: Scripts) -> AbstractContextManager[Urls]:
    """The URLs of new databases by their names, until the block ends."""
    return _KINDS[kind](folder, scripts)


@contextmanager
def _sqlite(folder: Path, scripts: Scripts) -> Iterator[Urls]:
    for name, statements in scripts.items():
        connection = sqlite3.connect(folder / f"{name}.db")
        with connection:
            connection.executescript(";\n".join(statements))
        connection.close()
    yield {name: f"sqlite:///{folder / name}.db" for name in scripts}


@contextmanager
def _duckdb(folder: Path, scripts: Scripts) -> Iterator[Urls]:
    import duckdb

    for name, statements in scripts.items():
        with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
            for statement in statements:
                connection.execute(statement)
    yield {name: f"duckdb:///{folder / name}.duckdb" for name in scripts}


@contextmanager
def _postgresql(folder: Path, scripts: Scripts) -> Iterator[Urls]:
    import psycopg

    with serving(folder / "postgresql") as server:
        for name, statements in scripts.items():
            with psycopg.connect(server.database(name)) as connection:
                for statement in statements:
                    connection.execute(statement.encode())
        yield {name: server.connector(name) for name in scripts}


@contextmanager
def _mariadb(folder: Path, scripts: Scripts) -> Iterator[Urls]:
    import pymysql

    program = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise SystemExit("No mariadbd was found. Install mariadb-server-core.")
    data = folder / "mariadb"
    data.mkdir()
    tables = Path("/usr/share/mysql")
    files = [(tables / f"mysql_system_tables{part}.sql").read_text(encoding="utf-8") for part in ("", "_data")]
    first = f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n{''.join(files)}"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    command = [program, "--no-defaults", f"--datadir={data}", "--user=root"]
    subprocess.run([*command, "--bootstrap"], input=first.encode(), check=True, capture_output=True, timeout=60)
    address = ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder / 'mariadb.sock'}"]
    process = subprocess.Popen([*command, *address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            if process.poll() is not None:
                raise SystemExit(f"mariadbd ended with {process.returncode}.")
            try:
                connection = pymysql.connect(host="127.0.0.1", port=port, user="root")
                break
            except pymysql.Error:
                time.sleep(0.05)
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER 'reader'@'127.0.0.1'")
            for name, statements in scripts.items():
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
                cursor.execute(f"GRANT SELECT ON {name}.* TO 'reader'@'127.0.0.1'")
                cursor.execute(f"USE {name}")
                for statement in statements:
                    cursor.execute(statement)
            connection.commit()
        yield {name: f"mysql+pymysql://reader@127.0.0.1:{port}/{name}" for name in scripts}
    finally:
        process.terminate()
        process.wait(30)


_KINDS: dict[str, Callable[[Path, Scripts], AbstractContextManager[Urls]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "duckdb": _duckdb,
    "mariadb": _mariadb,
}
KINDS = tuple(_KINDS)
