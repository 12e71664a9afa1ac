"""Calls that may be sent again: the first result is the result of every retry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heedful.errors import Conflict
from heedful.memory import checks
from heedful.storage import Database, requests, scopes

LEASE = 120_000_000
"""How long a call may take before another may take its place, in stored time."""


def once(
    database: Database,
    project: str,
    now: Callable[[], int],
    key: str,
    fingerprint: bytes,
    work: Callable[[], Any],
) -> Any:
    """What `work` returned when it was first done under this key; JSON.

    The same key with other arguments is a `Conflict`, and so is a call that is still under way. A call that failed
    may be sent again; so may one whose process died, and whether that one was done nobody knows.
    """
    checks.idempotency_key(key)
    with database.write() as connection:
        at = now()
        number = scopes.ensure_project(connection, project, at)
        first = requests.earlier(connection, number, key, fingerprint)
        if first is not None and "result" in first:
            return first["result"]
        if first is None:
            requests.keep(connection, number, key, fingerprint, {"until": at + LEASE}, at)
        elif at >= first["until"]:
            requests.replace(connection, number, key, {"until": at + LEASE}, at)
        else:
            raise Conflict(
                f"the call with idempotency_key {key!r} is still under way",
                code="in_progress",
                field="idempotency_key",
                value=key,
                remedy="Send it again in a moment",
            )
    try:
        result = work()
    except BaseException:
        with database.write() as connection:
            requests.forget(connection, number, key)
        raise
    with database.write() as connection:
        requests.replace(connection, number, key, {"result": result}, now())
    return result
