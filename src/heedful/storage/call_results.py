"""Idempotency: the first result of a call with a key is the result of every retry.

Keys are the caller's own: what one caller uses, another can neither take nor read.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from heedful import request_context
from heedful.errors import Conflict
from heedful.model import Metadata
from heedful.storage.schema import requests


def fingerprint(call: str, arguments: Any) -> bytes:
    """Identifies equal calls: a hash of the operation and its arguments."""
    canonical = orjson.dumps([call, arguments], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=16).digest()


def earlier_result(
    connection: Connection, project: int, key: str, fingerprint: bytes, *, lock: bool = False
) -> Metadata | None:
    """The result of the first call with this key, if any; `lock` prevents concurrent changes."""
    statement = select(requests.c.fingerprint, requests.c.result).where(*_matching(project, key))
    row = connection.execute(statement.with_for_update() if lock else statement).first()
    if row is None:
        return None
    if row.fingerprint != fingerprint:
        message = f"idempotency_key {key!r} was used for another call"
        remedy = "Use a new key for each different call"
        raise Conflict(message, code="idempotency_key_reused", field="idempotency_key", value=key, remedy=remedy)
    result: Metadata = row.result
    return result


def store_result(connection: Connection, project: int, key: str, fingerprint: bytes, result: Metadata, at: int) -> None:
    """Stores the result of a call for its retries."""
    row = {"project_id": project, "caller": request_context.subject(), "idempotency_key": key, "at": at}
    connection.execute(insert(requests).values(**row, fingerprint=fingerprint, result=result))


def replace(connection: Connection, project: int, key: str, result: Metadata, at: int) -> None:
    """Replaces the stored result."""
    connection.execute(update(requests).where(*_matching(project, key)).values(result=result, at=at))


def forget(connection: Connection, project: int, key: str) -> None:
    """Makes a key usable again."""
    connection.execute(delete(requests).where(*_matching(project, key)))


def _matching(project: int, key: str) -> tuple[ColumnElement[bool], ...]:
    return (
        requests.c.project_id == project,
        requests.c.caller == request_context.subject(),
        requests.c.idempotency_key == key,
    )
