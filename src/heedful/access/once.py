"""Calls that may be sent again: the first result is the result of every retry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from heedful.errors import Conflict
from heedful.ids import new_id
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
    *,
    secret: bool = False,
) -> Any:
    """What `work` returned when it was first done under this key; JSON.

    The same key with other arguments is a `Conflict`, and so is a call that is still under way. A call that failed
    may be sent again; so may one whose process died, and whether that one was done nobody knows. What is `secret` is
    returned once and not kept: sending that again is a `Conflict` too.
    """
    mine = new_id()
    checks.idempotency_key(key)
    with database.write(project) as connection:
        at = now()
        number = scopes.ensure_project(connection, project, at)
        first = requests.earlier(connection, number, key, fingerprint)
        if first is not None and "shown" in first:
            raise Conflict(
                f"the call with idempotency_key {key!r} is done, and its secret was shown once",
                code="shown_once",
                field="idempotency_key",
                value=key,
                remedy="If you don't have it: revoke what was made, and make another with a new idempotency_key",
            )
        if first is not None and "result" in first:
            return first["result"]
        lease = {"until": at + LEASE, "holder": mine}
        if first is None:
            requests.keep(connection, number, key, fingerprint, lease, at)
        elif at >= first["until"]:
            requests.replace(connection, number, key, lease, at)
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
        with database.write(project) as connection:
            if _holds(connection, number, key, fingerprint, mine):
                requests.forget(connection, number, key)
        raise
    with database.write(project) as connection:
        if _holds(connection, number, key, fingerprint, mine):
            requests.replace(connection, number, key, {"shown": True} if secret else {"result": result}, now())
    return result


def _holds(connection: Connection, project: int, key: str, fingerprint: bytes, holder: str) -> bool:
    """Whether nobody has taken the place of this call, which took longer than its lease."""
    kept = requests.earlier(connection, project, key, fingerprint)
    return kept is not None and kept.get("holder") == holder
