"""Locks by name, held until a transaction ends. On SQLite, which has one writer at a time, they do nothing."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection

from heedful.storage.dialects import dialect_of


def lock_exclusive(connection: Connection, name: str) -> None:
    """Takes a lock exclusively until the transaction ends."""
    dialect_of(connection).lock(connection, number(name), shared=False)


def lock_shared(connection: Connection, name: str) -> None:
    """Takes a lock together with others who share it, and excludes `lock_exclusive`."""
    dialect_of(connection).lock(connection, number(name), shared=True)


def project(name: str) -> str:
    """The name of the lock of a project's writers."""
    return f"project {name}"


def number(name: str) -> int:
    """The number of a lock for PostgreSQL."""
    return int.from_bytes(hashlib.blake2b(f"heedful {name}".encode(), digest_size=8).digest(), "big", signed=True)
