"""Erasing a person from sessions, feedback and alerts as MongoDB documents.

Names are put in the place of names before anything is read by the new one, so that a run that was cut off is finished
by the next one with the same pseudonym.
"""

from __future__ import annotations

from pymongo import ASCENDING

from heedful.storage import facts
from heedful.storage.erasure.words import PERSON_KEYS, PLACEHOLDER, Erased
from heedful.storage.mongo.collections import Document, View, updated
from heedful.storage.mongo.feedbacks import show
from heedful.storage.sessions.base import Theirs

_ORDER = [("_id", ASCENDING)]


class MongoErasure:
    """See `base.Erasure`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def is_known(self, name: str) -> bool:
        view = self._view
        return any(
            part.find_one(wanted, ["_id"]) is not None
            for part, wanted in (
                (view.feedbacks, {"author": name}),
                (view.events, {"author": name}),
                (view.sessions, _named(name)),
            )
        )

    def erase(self, erased: Erased, at: int) -> Theirs:
        view = self._view
        by_name, by_pseudonym = {"author": erased.name}, {"author": erased.pseudonym}
        self._release_keys(erased)
        said: Document = {"author": erased.pseudonym, "extra": {}}
        view.feedbacks.update({**by_name, "target_type": "session"}, {"$set": {**said, "comment": ""}})
        view.feedbacks.update(by_name, {"$set": {**said, "comment": None}})
        view.events.update(by_name, {"$set": by_pseudonym})
        rows = list(view.feedbacks.find(by_pseudonym, _ORDER))
        for session in sorted({row["session"] for row in rows if row["target_type"] == "session"}):
            show(view, session)
        self._clear_sessions(erased, at)
        own = list(view.sessions.find(_named(erased.pseudonym), _ORDER, fields={"number": 1, "session_id": 1}))
        inside = {"session": {"$in": [each["number"] for each in own]}}
        entries = list(view.entries.find(inside, _ORDER, fields={"recall_id": 1}))
        opinions = [row["_id"] for row in rows]
        return Theirs(
            opinions=opinions,
            rated=[(row["session_id"], row["target_id"]) for row in rows if row["target_type"] == "entry"],
            sessions=[each["session_id"] for each in own],
            entries=[each["_id"] for each in entries],
            messages=[each["_id"] for each in view.messages.find(inside, _ORDER, fields={"_id": 1})],
            recalls=[each["recall_id"] for each in entries if each["recall_id"] is not None],
            alerts=self._clear_alerts(erased, frozenset(opinions)),
            events=len(list(view.events.find(by_pseudonym, _ORDER, fields={"_id": 1}))),
        )

    def _release_keys(self, erased: Erased) -> None:
        """Idempotency keys that have the name in them; whoever sends one again is a new caller."""
        for part in (self._view.events, self._view.feedbacks):
            for each in part.find({"author": erased.name}, _ORDER, fields={"idempotency_key": 1}):
                if erased.is_in_key(each["idempotency_key"]):
                    part.update({"_id": each["_id"]}, {"$set": {"idempotency_key": each["_id"]}})

    def _clear_sessions(self, erased: Erased, at: int) -> None:
        view = self._view
        for found in view.sessions.find(_named(erased.name), _ORDER, fields={"number": 1, "metadata": 1}):
            inside = {"session": found["number"]}
            view.messages.update(inside, {"$set": {"content": ""}})
            view.entries.update(inside, {"$set": {"question": PLACEHOLDER, "answer": "", "context": None}})
            # Last: as long as the session names them, another run finds it.
            metadata = erased.in_metadata(found["metadata"])
            described = {"metadata": metadata, "tags": facts.flattened(metadata), **updated(at)}
            view.sessions.update({"_id": found["_id"]}, {"$set": described, "$inc": {"revision": 1}})

    def _clear_alerts(self, erased: Erased, opinions: frozenset[str]) -> int:
        cleared = 0
        for each in list(self._view.outbox.find({}, _ORDER, fields={"payload": 1})):
            left = erased.in_alert(each["payload"], opinions)
            if left is not None:
                self._view.outbox.update({"_id": each["_id"]}, {"$set": {"payload": left, "error": None}})
                cleared += 1
        return cleared


def _named(name: str) -> Document:
    """Sessions whose metadata name somebody."""
    return {"tags": {"$elemMatch": {"key": {"$in": list(PERSON_KEYS)}, "value": facts.tag(name)}}}
