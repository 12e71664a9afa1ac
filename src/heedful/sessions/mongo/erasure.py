"""Erasure of a person in MongoDB. A server without transactions may cut it off: doing it again finishes it."""

from __future__ import annotations

import re

from heedful.ledger.erasure import PERSON_KEYS, PLACEHOLDER, Erased, PersonRecords
from heedful.sessions.mongo.collections import Document, InView, described, updated
from heedful.sessions.mongo.feedback import update_embedded
from heedful.storage import facts


class MongoErasure(InView):
    """See `Erasure`."""

    def is_known(self, name: str) -> bool:
        view, by_name = self._view, {"author": name}
        queries = (
            *((view.feedbacks, by_name), (view.events, by_name)),
            *((view.waiting, {"ratings.author": name}), (view.sessions, _sessions_naming(name))),
        )
        return any(part.find_one(query, ["_id"]) is not None for part, query in queries)

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        view = self._view
        by_name, by_pseudonym = {"author": erased.name}, {"author": erased.pseudonym}
        self._release_keys(erased)
        waited = self._clear_waiting(erased)
        replacement: Document = {"author": erased.pseudonym, "extra": {}}
        view.feedbacks.update({**by_name, "target_type": "session"}, {"$set": {**replacement, "comment": ""}})
        view.feedbacks.update(by_name, {"$set": {**replacement, "comment": None}})
        view.events.update(by_name, {"$set": by_pseudonym})
        rows = list(view.feedbacks.find(by_pseudonym))
        for session in sorted({row["session"] for row in rows if row["target_type"] == "session"}):
            update_embedded(view, session)
        self._clear_sessions(erased, at)
        own_sessions = list(view.sessions.find(_sessions_naming(erased.pseudonym), fields=["number", "session_id"]))
        in_sessions = {"session": {"$in": [document["number"] for document in own_sessions]}}
        entries = list(view.entries.find(in_sessions, fields=["recall_id"]))
        opinions = [*(row["_id"] for row in rows), *waited]
        return PersonRecords(
            opinions=opinions,
            rated=[(row["session_id"], row["target_id"]) for row in rows if row["target_type"] == "entry"],
            sessions=[document["session_id"] for document in own_sessions],
            entries=[document["_id"] for document in entries],
            messages=[document["_id"] for document in view.messages.find(in_sessions, fields=["_id"])],
            recalls=[document["recall_id"] for document in entries if document["recall_id"] is not None],
            alerts=self._clear_alerts(erased, frozenset(opinions)),
            events=len(list(view.events.find(by_pseudonym, fields=["_id"]))),
        )

    def _release_keys(self, erased: Erased) -> None:
        """Replaces idempotency keys that contain the name; a retry with one counts as a new call."""
        for part in (self._view.events, self._view.feedbacks):
            for document in part.find({"author": erased.name}, fields=["idempotency_key"]):
                if erased.is_in_key(document["idempotency_key"]):
                    part.update({"_id": document["_id"]}, {"$set": {"idempotency_key": document["_id"]}})

    def _clear_waiting(self, erased: Erased) -> list[str]:
        """Removes ratings that wait for an entry, and external ids that name the person; returns the ids of the
        ratings."""
        view, removed = self._view, []
        for document in list(view.waiting.find({"ratings.author": erased.name})):
            removed += [rating["id"] for rating in document["ratings"] if rating["author"] == erased.name]
            view.waiting.update({"_id": document["_id"]}, {"$pull": {"ratings": {"author": erased.name}}})
        named = {"external_id": {"$regex": re.escape(erased.name), "$options": "i"}}
        for part in (view.waiting, view.entries):
            for document in list(part.find(named, fields=["external_id"])):
                if not erased.is_named_in(document["external_id"]):
                    continue
                if part is view.waiting:
                    part.delete({"_id": document["_id"]})
                else:
                    part.update({"_id": document["_id"]}, {"$set": {"external_id": None}})
        return removed

    def _clear_sessions(self, erased: Erased, at: int) -> None:
        view = self._view
        for document in view.sessions.find(_sessions_naming(erased.name), fields=["number", "metadata"]):
            in_session = {"session": document["number"]}
            view.messages.update(in_session, {"$set": {"content": ""}})
            view.entries.update(in_session, {"$set": {"question": PLACEHOLDER, "answer": "", "context": None}})
            # Last: until then, another run still finds the session by the name.
            renamed = {**described(erased.rename_in(document["metadata"])), **updated(at)}
            view.sessions.update({"_id": document["_id"]}, {"$set": renamed, "$inc": {"revision": 1}})

    def _clear_alerts(self, erased: Erased, opinions: frozenset[str]) -> int:
        cleared = 0
        for document in list(self._view.outbox.find({}, fields=["payload"])):
            payload = erased.without_opinions(document["payload"], opinions)
            if payload is not None:
                self._view.outbox.update({"_id": document["_id"]}, {"$set": {"payload": payload, "error": None}})
                cleared += 1
        return cleared


def _sessions_naming(name: str) -> Document:
    """A query for sessions whose metadata name somebody."""
    return {"tags": {"$elemMatch": {"key": {"$in": list(PERSON_KEYS)}, "value": facts.tag(name)}}}
