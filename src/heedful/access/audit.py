"""The audit trail: who was refused what, and what admins did."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from heedful.api import checks
from heedful.errors import Forbidden, HeedfulError
from heedful.model import AUDIT_KINDS, AuditEntry, AuditKind, Page
from heedful.storage import Database, audit
from heedful.storage.audit import Refusal
from heedful.storage.rows import to_model


def list_entries(
    database: Database,
    project: str | None,
    kind: AuditKind | None,
    since: datetime | None,
    cursor: str | None,
    limit: int,
) -> Page[AuditEntry]:
    """A page of the entries of a project, or of the whole store, the newest first."""
    if kind is not None:
        checks.one_of("kind", kind, AUDIT_KINDS)
    start, before = checks.bound("since", since), checks.cursor(cursor)
    with database.read(project) as connection:
        rows = audit.list_entries(connection, project, kind, start, before, limit + 1)
    return Page(
        items=[to_model(AuditEntry, row) for row in rows[:limit]],
        next_cursor=str(rows[limit - 1].seq) if len(rows) > limit else None,
    )


logger = logging.getLogger("heedful.audit")

BURST_LIMIT = 300  # Entries that a process writes at once at most.

RATE_PER_SECOND = 0.1
"""Entries a second that it writes in the long run; what is beyond is added up in one entry a minute."""

FLUSH_SECONDS = 1.0  # Seconds between two batches.
SUMMARY_CODE = "more_like_this"  # The code of an entry that summarises others; `times` has their number.

_CODES = frozenset(
    {
        "store_as_connector",
        "query_busy",
        "rate_limited",
        "server_busy",
        "write_limited",
        "too_slow",
        "headers_too_large",
    }
)
_FAMILIES = ("connector_", "sql_", "role_", "secret_", "destination_")


def is_refusal(error: HeedfulError) -> bool:
    """Whether an error is the answer of a rule that guards something, and not a slip of the caller's."""
    return isinstance(error, Forbidden) or error.code in _CODES or error.code.startswith(_FAMILIES)


class Refusals:
    """Takes refusals from any thread, and writes them in one of its own."""

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now
        self._lock = threading.Lock()
        self._counts: Counter[Refusal] = Counter()
        self._omitted = 0
        self._tokens, self._at = float(BURST_LIMIT), time.monotonic()
        self._reported_at = -60.0
        self._arrived, self._closing = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, refusal: Refusal) -> None:
        """Counts a refusal; it is in the store within about a second."""
        with self._lock:
            if refusal in self._counts or len(self._counts) < BURST_LIMIT:
                self._counts[refusal] += 1
            else:
                self._omitted += 1
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="heedful-audit", daemon=True)
                self._thread.start()
        self._arrived.set()

    def flush(self, *, last: bool = False) -> None:
        with self._lock:
            counts, self._counts = self._counts, Counter()
            at = time.monotonic()
            self._tokens = min(float(BURST_LIMIT), self._tokens + (at - self._at) * RATE_PER_SECOND)
            self._at = at
            fitting = counts.most_common(int(self._tokens))
            self._tokens -= len(fitting)
            self._omitted += counts.total() - sum(times for _, times in fitting)
            if self._omitted and (last or at - self._reported_at >= 60):
                fitting.append((Refusal("", SUMMARY_CODE), self._omitted))
                self._omitted, self._reported_at = 0, at
        if not fitting:
            return
        try:
            with self._database.write(durable=False) as connection:
                audit.note_refusals(connection, self._now(), fitting)
        except HeedfulError as error:
            # A store that can't be written must not keep callers from being told why they were refused.
            logger.error("%d refusals are not in the audit trail: %s", sum(times for _, times in fitting), error)

    def close(self) -> None:
        self._closing.set()
        self._arrived.set()
        if self._thread is not None:
            self._thread.join()
        self.flush(last=True)

    def _work(self) -> None:
        while not self._closing.is_set():
            self._arrived.wait()
            self._arrived.clear()
            self._closing.wait(FLUSH_SECONDS)
            self.flush()
