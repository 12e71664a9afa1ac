"""Alerts on their way, as MongoDB documents."""

from __future__ import annotations

from collections.abc import Sequence

from pymongo import ASCENDING, DESCENDING

from heedful.storage.mongo.collections import Document, View
from heedful.storage.sessions.base import AlertRow


class MongoOutbox:
    """See `base.Outbox`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def add(self, session_id: str | None, new: Sequence[AlertRow]) -> None:
        if not new:
            return
        found = None
        if session_id is not None:
            found = self._view.sessions.find_one({"_id": self._view.session_key(session_id)}, ["number"])
        self._view.outbox.insert(
            [
                {
                    "_id": alert.id,
                    "session": None if found is None else found["number"],
                    "number": number,
                    "channel": alert.channel,
                    "payload": alert.payload,
                    "created_at": alert.created_at,
                    "attempts": 0,
                    "next_at": alert.next_at,
                    "delivered_at": None,
                    "error": None,
                }
                for number, alert in enumerate(new, self._view.next_numbers("outbox", len(new)))
            ]
        )

    def claim(self, channels: Sequence[str], now: int, until: int, limit: int) -> list[AlertRow]:
        due = {"next_at": {"$lte": now}, "channel": {"$in": list(channels)}}
        found = self._view.outbox.find(due, [("next_at", ASCENDING), ("number", ASCENDING)], limit)
        claimed = [_alert(each) for each in found]
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
        wanted = {"next_at": {"$ne": None}, "channel": {"$in": list(channels)}}
        for first in self._view.outbox.find(wanted, [("next_at", ASCENDING)], 1):
            return int(first["next_at"])
        return None

    def list(self, after: int | None, limit: int, pending: bool) -> list[AlertRow]:
        wanted: Document = {"next_at": {"$ne": None}} if pending else {}
        if after is not None:
            wanted["number"] = {"$lt": after}
        return [_alert(each) for each in self._view.outbox.find(wanted, [("number", DESCENDING)], limit)]

    def get(self, alert_id: str) -> AlertRow | None:
        found = self._view.outbox.find_one({"_id": alert_id})
        return None if found is None else _alert(found)


def _alert(found: Document) -> AlertRow:
    return AlertRow(
        id=found["_id"],
        channel=found["channel"],
        payload=found["payload"],
        created_at=found["created_at"],
        attempts=found["attempts"],
        next_at=found["next_at"],
        delivered_at=found["delivered_at"],
        error=found["error"],
        number=found["number"],
    )
