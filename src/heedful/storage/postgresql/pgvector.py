"""The pgvector extension: whether it is installed, and how vectors are sent to it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from heedful.errors import Unavailable
from heedful.storage.half_vectors import Packed

MIN_VERSION = (0, 8)
"""The first version with iterative index scans, which continue until enough results pass a filter."""


def ensure(connection: Connection, name: str) -> None:
    """Installs the extension in the store called `name`, if needed."""
    if _version(connection) is None:
        _add(connection, name)
    version = _version(connection) or ""
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_VERSION:
        raise Unavailable(
            f"store {name} has pgvector {version}, and needs 0.8 or later",
            code="pgvector_missing",
            remedy="Install a later one on the server, and have an administrator run in this database: "
            "ALTER EXTENSION vector UPDATE",
        )
    if connection.exec_driver_sql("SELECT to_regtype('halfvec')").scalar() is None:
        raise Unavailable(
            f"store {name} has pgvector in a schema that is not searched",
            code="pgvector_missing",
            remedy="Have an administrator run in this database: ALTER EXTENSION vector SET SCHEMA public",
        )


def adapt(connection: Any, record: Any) -> None:
    """Sends vectors in binary form, not as text."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class PackedDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Packed) -> bytes:
            return obj.sent()

    connection.adapters.register_dumper(Packed, PackedDumper)


def _add(connection: Connection, name: str) -> None:
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    except (DBAPIError, Unavailable) as error:
        raise Unavailable(
            f"store {name} needs the extension pgvector, which is not there and can't be created ({error})",
            code="pgvector_missing",
            remedy="Install pgvector 0.8 or later on the server, and have an administrator run in this database: "
            "CREATE EXTENSION vector SCHEMA public",
        ) from error


def _version(connection: Connection) -> str | None:
    """The installed version; None if it is not installed."""
    version: str | None = connection.exec_driver_sql(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).scalar()
    return version
