"""Alerts on their way, and leases of writers, as MongoDB documents."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from pymongo import ASCENDING, ReturnDocument
from pymongo.database import Database
from pymongo.errors import ConnectionFailure, DuplicateKeyError

from heedful.clock import new_id
from heedful.errors import Unavailable
from heedful.notifications.outbox import AlertRow
from heedful.sessions.mongo.collections import Document, InView, to_document, to_row, without_journal


class MongoOutbox(InView):
    """See `Outbox`."""

    def add(self, session_id: str | None, new: Sequence[AlertRow]) -> None:
        if not new:
            return
        session = None if session_id is None else self._view.session_number(session_id)
        numbered = enumerate(new, self._view.next_numbers("outbox", len(new)))
        self._view.outbox.insert(
            [to_document(alert) | {"session": session, "number": number} for number, alert in numbered]
        )

    def claim(self, channels: Sequence[str], now: int, until: int, limit: int) -> list[AlertRow]:
        due = {"next_at": {"$lte": now}, "channel": {"$in": list(channels)}}
        documents = self._view.outbox.find(due, [("next_at", ASCENDING), ("number", ASCENDING)], limit)
        claimed = [to_row(AlertRow, document) for document in documents]
        if claimed:
            ids = [alert.id for alert in claimed]
            self._view.outbox.update({"_id": {"$in": ids}}, {"$set": {"next_at": until}})
        return claimed

    def settle(
        self, alert_id: str, attempts: int, next_at: int | None, delivered_at: int | None, error: str | None
    ) -> None:
        outcome = {"attempts": attempts, "next_at": next_at, "delivered_at": delivered_at, "error": error}
        self._view.outbox.update({"_id": alert_id}, {"$set": outcome})

    def due_at(self, channels: Sequence[str]) -> int | None:
        query = {"next_at": {"$ne": None}, "channel": {"$in": list(channels)}}
        for first in self._view.outbox.find(query, [("next_at", ASCENDING)], 1):
            return int(first["next_at"])
        return None

    def list(self, after: int | None, limit: int, pending: bool) -> list[AlertRow]:
        query = {"next_at": {"$ne": None}} if pending else {}
        return [to_row(AlertRow, document) for document in self._view.outbox.page(query, after, limit)]

    def get(self, alert_id: str) -> AlertRow | None:
        document = self._view.outbox.find_one({"_id": alert_id})
        return None if document is None else to_row(AlertRow, document)


LEASE_MS = 20_000  # How long a lease lasts unless it is returned.


class ProjectLeases:
    """The leases of one store; its threads wait here, other processes at the server."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._holder = new_id()
        self._queue = threading.Lock()

    def take(self, database: Database[Document], until: float) -> bool:
        """Waits for the lease; False if the previous one was never returned."""
        if not self._queue.acquire(timeout=max(0.0, until - time.monotonic())):
            raise _busy()
        try:
            while (orderly := self._try_take(database)) is None:
                if time.monotonic() > until:
                    raise _busy()
                time.sleep(0.01)
            return orderly
        except BaseException:
            self._queue.release()
            raise

    def release(self, database: Database[Document]) -> None:
        try:
            without_journal(database, "leases").update_one(
                {"_id": self._project, "holder": self._holder}, {"$set": {"holder": None}}
            )
        except ConnectionFailure:
            # Everything is written. The next holder will check for inconsistencies, and find none.
            pass
        finally:
            self._queue.release()

    def abandon(self) -> None:
        """Ends the lease without telling the server: the next holder checks and repairs."""
        self._queue.release()

    def _try_take(self, database: Database[Document]) -> bool | None:
        """Whether the previous lease was returned; None if somebody still holds it."""
        # By the server's clock, since those of the writers may differ.
        free = [{"holder": None}, {"holder": self._holder}, {"$expr": {"$lt": ["$until", "$$NOW"]}}]
        before = without_journal(database, "leases").find_one_and_update(
            {"_id": self._project, "$or": free},
            [{"$set": {"holder": self._holder, "until": {"$add": ["$$NOW", LEASE_MS]}}}],
            return_document=ReturnDocument.BEFORE,
        )
        if before is not None:
            return before["holder"] is None
        with suppress(DuplicateKeyError):
            without_journal(database, "leases").insert_one({"_id": self._project, "holder": None})
        return None


def _busy() -> Unavailable:
    return Unavailable("other writers hold the store", code="store_busy", remedy="Try again")
