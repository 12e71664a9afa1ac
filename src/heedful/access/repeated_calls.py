"""Calls that may be sent again: the first result is the result of every retry, and a lease says who runs it."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import new_id
from heedful.errors import Conflict, HeedfulError
from heedful.model import Metadata
from heedful.storage import Database, call_results, scopes
from heedful.threads import leave_parent_when_forked

LEASE = 60_000_000  # How long after its last sign of life another call may take the place of one, in stored time.


def run_once(
    database: Database,
    project: str,
    now: Callable[[], int],
    key: str,
    fingerprint: bytes,
    work: Callable[[], Any],
    *,
    secret: bool = False,
) -> Any:
    """The result of `work` when it was first done under this key; JSON.

    The same key with other arguments is a `Conflict`, and so is a call that is still in progress.
    A call that failed may be sent again; so may one whose process died, a minute later, and whether that one was done
    nobody knows. What is `secret` is returned once and not kept: sending that again is a `Conflict` too.
    """
    lease_id = new_id()
    checks.idempotency_key(key)
    with database.write(project) as connection:
        at = now()
        number = scopes.ensure_project(connection, project, at)
        first = call_results.earlier_result(connection, number, key, fingerprint, lock=True)
        if first is not None and "shown" in first:
            message = f"the call with idempotency_key {key!r} is done; its secret is shown only once"
            remedy = "If you don't have it: revoke what was made, and make another with a new idempotency_key"
            raise Conflict(message, code="shown_once", field="idempotency_key", value=key, remedy=remedy)
        if first is not None and "result" in first:
            return first["result"]
        if first is None:
            call_results.store_result(connection, number, key, fingerprint, _lease(lease_id, at), at)
        elif at >= first["until"]:
            call_results.replace(connection, number, key, _lease(lease_id, at), at)
        else:
            message = f"the call with idempotency_key {key!r} is still in progress"
            raise Conflict(message, code="in_progress", field="idempotency_key", value=key, remedy="Retry in a moment")

    def renew() -> None:
        # Not alone: who writes for long must not keep the lease of another from being renewed.
        with database.write(project, durable=False, exclusive=False) as connection:
            if _holds(connection, number, key, fingerprint, lease_id):
                at = now()
                call_results.replace(connection, number, key, _lease(lease_id, at), at)

    try:
        with HEARTBEAT.renewing(renew):
            result = work()
    except BaseException:
        with database.write(project) as connection:
            if _holds(connection, number, key, fingerprint, lease_id):
                call_results.forget(connection, number, key)
        raise
    with database.write(project) as connection:
        if _holds(connection, number, key, fingerprint, lease_id):
            call_results.replace(connection, number, key, {"shown": True} if secret else {"result": result}, now())
    return result


def _lease(holder: str, at: int) -> Metadata:
    return {"until": at + LEASE, "holder": holder}


def _holds(connection: Connection, project: int, key: str, fingerprint: bytes, holder: str) -> bool:
    """Whether nobody has taken the place of this call, which showed no sign of life for longer than its lease."""
    stored = call_results.earlier_result(connection, project, key, fingerprint, lock=True)
    return stored is not None and stored.get("holder") == holder


RENEW_SECONDS = 15.0  # Seconds between two renewals.

logger = logging.getLogger("heedful")


class Heartbeat:
    """Renews what is under way in one thread, which is there only while there is something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renewals: dict[object, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def renewing(self, renew: Callable[[], object]) -> Iterator[None]:
        """Calls `renew` now and then until the block ends, in the context of the caller."""
        context, mark = contextvars.copy_context(), object()
        with self._lock:
            self._renewals[mark] = lambda: context.run(renew)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heedful-leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._renewals[mark]

    def beat(self) -> None:
        """Renews all that is under way once."""
        with self._lock:
            renewals = list(self._renewals.values())
        for renew in renewals:
            try:
                renew()
            except HeedfulError as error:
                # The next one may succeed, long before the lease ends.
                logger.warning("the lease of a call can't be renewed: %s", error)

    def leave_parent(self) -> None:
        self._lock = threading.Lock()
        self._renewals = {}
        self._thread = None

    def _run(self) -> None:
        stop = threading.Event()
        while True:
            stop.wait(RENEW_SECONDS)
            with self._lock:
                if not self._renewals:
                    self._thread = None
                    return
            self.beat()


HEARTBEAT = Heartbeat()
leave_parent_when_forked(HEARTBEAT)
