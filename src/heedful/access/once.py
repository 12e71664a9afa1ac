"""Calls that may be sent again: the first result is the result of every retry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heedful.errors import Conflict
from heedful.ids import new_id
from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.storage import requests, scopes

LEASE = 120_000_000
"""How long a call may take before another may take its place, in stored time."""


def once(workspace: Workspace, key: str, call: str, arguments: Any, work: Callable[[], Any]) -> Any:
    """What `work` returned when it was first done under this key; JSON.

    The same key with other arguments is a `Conflict`, and so is a call that is still under way. A call that failed
    may be sent again; so may one whose process died, and whether that one was done nobody knows.
    """
    checks.idempotency_key(key)
    mark = new_id()
    made = requests.fingerprint(call, arguments)
    with workspace.database.write() as connection:
        now = workspace.now()
        project = scopes.ensure_project(connection, workspace.project, now)
        first = requests.earlier(connection, project, key, made)
        if first is not None and "result" in first:
            return first["result"]
        if first is None:
            requests.keep(connection, project, key, made, {"mark": mark, "until": now + LEASE}, now)
        elif now >= first["until"]:
            requests.replace(connection, project, key, {"mark": mark, "until": now + LEASE}, now)
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
        with workspace.database.write() as connection:
            requests.forget(connection, project, key)
        raise
    with workspace.database.write() as connection:
        requests.replace(connection, project, key, {"result": result}, workspace.now())
    return result
