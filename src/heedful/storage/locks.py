"""Locks by name, held until a transaction ends. SQLite has one writer at a time, so there they are nothing."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection

from heedful.storage.dialects import dialect_of


def lock_exclusive(connection: Connection, name: str) -> None:
    """Keeps others who name the same lock away until the transaction ends."""
    dialect_of(connection).lock(connection, number(name), shared=False)


def lock_shared(connection: Connection, name: str) -> None:
    """Keeps those away who use `lock_exclusive`, but not those who share it."""
    dialect_of(connection).lock(connection, number(name), shared=True)


def project(name: str) -> str:
    """The lock of those who write to a project."""
    return f"project {name}"


def number(name: str) -> int:
    """The number of a lock for PostgreSQL."""
    return int.from_bytes(hashlib.blake2b(f"heedful {name}".encode(), digest_size=8).digest(), "big", signed=True)
