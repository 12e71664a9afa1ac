"""Locks by name, held until a transaction ends. SQLite has one writer at a time, so there they are nothing."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection


def lock_exclusive(connection: Connection, name: str) -> None:
    """Keeps others who name the same lock away until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (number(name),))


def lock_shared(connection: Connection, name: str) -> None:
    """Keeps those away who use `lock_exclusive`, but not those who share it."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock_shared(%s)", (number(name),))


def project(name: str) -> str:
    """The lock of those who write to a project."""
    return f"project {name}"


def number(name: str) -> int:
    """The number of a lock for PostgreSQL."""
    return int.from_bytes(hashlib.blake2b(f"heedful {name}".encode(), digest_size=8).digest(), "big", signed=True)
