"""Writers of a project take turns, on a server that has no transactions.

A turn is a document with its holder's name and an end; one that was never given back tells of a crash.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from pymongo import ReturnDocument
from pymongo.database import Database
from pymongo.errors import ConnectionFailure, DuplicateKeyError

from heedful.errors import Unavailable
from heedful.ids import new_id
from heedful.storage.mongo.collections import Document, unhurried

LEASE_MS = 20_000
"""How long a turn lasts if nobody gives it back."""


class Turns:
    """The turns of one store; its threads queue up here, other processes at the server."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._holder = new_id()
        self._queue = threading.Lock()

    def take(self, database: Database[Document], until: float) -> bool:
        """Waits for the turn; False if the one before was never given back."""
        if not self._queue.acquire(timeout=max(0.0, until - time.monotonic())):
            raise _busy()
        try:
            while (orderly := self._took(database)) is None:
                if time.monotonic() > until:
                    raise _busy()
                time.sleep(0.01)
            return orderly
        except BaseException:
            self._queue.release()
            raise

    def give_back(self, database: Database[Document]) -> None:
        """Ends the turn in good order."""
        try:
            unhurried(database, "turns").update_one(
                {"_id": self._project, "holder": self._holder}, {"$set": {"holder": None}}
            )
        except ConnectionFailure:
            # All that was to be written is. The next turn will look for faults, and find none.
            pass
        finally:
            self._queue.release()

    def abandon(self) -> None:
        """Ends the turn without a word to the server: whoever is next looks for what is to be mended."""
        self._queue.release()

    def _took(self, database: Database[Document]) -> bool | None:
        """Whether the turn before was given back; None if somebody has it still."""
        # By the clock of the server, since those of the writers may differ.
        free = [{"holder": None}, {"holder": self._holder}, {"$expr": {"$lt": ["$until", "$$NOW"]}}]
        before = unhurried(database, "turns").find_one_and_update(
            {"_id": self._project, "$or": free},
            [{"$set": {"holder": self._holder, "until": {"$add": ["$$NOW", LEASE_MS]}}}],
            return_document=ReturnDocument.BEFORE,
        )
        if before is not None:
            return before["holder"] is None
        with suppress(DuplicateKeyError):
            unhurried(database, "turns").insert_one({"_id": self._project, "holder": None})
        return None


def _busy() -> Unavailable:
    return Unavailable("other writers hold the store", code="store_busy", remedy="Try again")
