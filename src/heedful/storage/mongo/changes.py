"""Which negative opinions were given and taken back, for those who follow them."""

from __future__ import annotations

from pymongo import ASCENDING, DESCENDING

from heedful.storage.ledger import RETRACTION
from heedful.storage.mongo.collections import View
from heedful.storage.sessions.base import Change

_SHOWN = dict.fromkeys(("place", "kind", "target_id"), 1)


class MongoChanges:
    """See `base.Changes`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def newest(self) -> dict[int, int]:
        return {each["lane"]: each["last"] for each in self._view.lanes.find({}, [("lane", ASCENDING)])}

    def reached(self) -> dict[int, int]:
        found = {}
        for lane in self.newest():
            for each in self._view.events.find({"lane": lane}, [("place", DESCENDING)], 1, {"place": 1}):
                found[lane] = int(each["place"])
        return found

    def behind(self, lane: int, place: int, limit: int) -> list[Change]:
        wanted = {"lane": lane, "place": {"$gt": place}}
        return [
            Change(each["place"], each["_id"], True)
            if each["kind"] != RETRACTION
            # An opinion falls with the event that says so, even if its own document is still to follow.
            else Change(each["place"], each["target_id"], False)
            for each in self._view.events.find(wanted, [("place", ASCENDING)], limit, _SHOWN)
        ]
