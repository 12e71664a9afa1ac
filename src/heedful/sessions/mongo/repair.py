"""Repairs after a crash on a server without transactions, and erasure of a person.

Every write there is a row of single steps, in this order: the session's document, then words, then the ledger, then
what follows from the ledger. Whatever the row is cut off at, what is missing follows from what is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pymongo import ASCENDING

from heedful.ledger.erasure import PERSON_KEYS, PLACEHOLDER, Erased, PersonRecords
from heedful.ledger.events import RETRACTION
from heedful.sessions.mongo.collections import Document, InView, Part, View, updated
from heedful.sessions.mongo.feedback import MAX_EMBEDDED, event_of, update_embedded
from heedful.storage import facts


@dataclass(slots=True)
class Inconsistencies:
    """Contradictions between documents."""

    orphans: list[tuple[str, int]] = field(default_factory=list)
    """(collection, session) of remains of deleted sessions."""
    unrecorded: list[Document] = field(default_factory=list)
    """Opinions without an event."""
    retracted: list[str] = field(default_factory=list)
    """Opinions that are active although they were retracted."""
    outdated: list[int] = field(default_factory=list)
    """Sessions whose document doesn't embed the active opinions."""

    def __str__(self) -> str:
        counts = [
            (len(self.orphans), "leftovers of deleted sessions"),
            (len(self.unrecorded), "opinions without an event"),
            (len(self.retracted), "retracted opinions that are active"),
            (len(self.outdated), "sessions with outdated opinions"),
        ]
        return ", ".join(f"{count} {kind}" for count, kind in counts if count)


def find_inconsistencies(view: View) -> Inconsistencies:
    """Checks a whole project."""
    return Inconsistencies(
        orphans=[
            (part.name, session)
            for part in (view.messages, view.entries, view.feedbacks, view.outbox)
            for session in _orphans(view, part)
        ],
        unrecorded=view.feedbacks.aggregate({}, _joined("events", "_id", "event"), {"$match": {"event": []}}),
        retracted=[
            document["target_id"]
            for document in view.events.aggregate(
                {"kind": RETRACTION},
                _joined("feedbacks", "target_id", "opinion"),
                {"$match": {"opinion.active": True}},
            )
        ],
        outdated=[document["number"] for document in view.sessions.aggregate({}, *_compared(view))],
    )


def repair(view: View) -> str:
    """Fixes what `find_inconsistencies` finds; returns a description."""
    repaired: list[str] = []
    # One fix can reveal another: an opinion made inactive may still be embedded.
    while str(wrong := find_inconsistencies(view)):
        repaired.append(str(wrong))
        for name, session in wrong.orphans:
            Part(view, name).delete({"session": session})
        deleted_sessions = {session for name, session in wrong.orphans if name == "feedbacks"}
        view.events.insert(
            [event_of(document) for document in wrong.unrecorded if document["session"] not in deleted_sessions]
        )
        view.feedbacks.update({"_id": {"$in": wrong.retracted}}, {"$set": {"active": False}})
        for session in wrong.outdated:
            update_embedded(view, session)
    return ", ".join(repaired)


def _orphans(view: View, part: Part) -> list[int]:
    in_project = [{"$match": {"project": view.project}}, {"$project": {"_id": 1}}]
    sessions = {"from": "sessions", "localField": "_id", "foreignField": "number", "pipeline": in_project}
    documents = part.aggregate(
        {"session": {"$ne": None}},
        {"$group": {"_id": "$session"}},
        {"$lookup": {**sessions, "as": "parents"}},
        {"$match": {"parents": []}},
    )
    return [document["_id"] for document in documents]


def _joined(name: str, key: str, under: str) -> Document:
    return {"$lookup": {"from": name, "localField": key, "foreignField": "_id", "as": under}}


def _compared(view: View) -> list[Document]:
    newest_active = [
        {"$match": {"project": view.project, "target_type": "session", "active": True}},
        {"$sort": {"number": -1}},
        {"$limit": MAX_EMBEDDED},
        {"$sort": {"number": 1}},
        {"$project": {"_id": 1}},
    ]
    feedbacks = {"from": "feedbacks", "localField": "number", "foreignField": "session", "pipeline": newest_active}
    return [
        {"$project": {"number": 1, "shown": "$feedbacks.id"}},
        {"$lookup": {**feedbacks, "as": "active"}},
        {"$match": {"$expr": {"$ne": ["$shown", "$active._id"]}}},
    ]


_ORDER = [("_id", ASCENDING)]


class MongoErasure(InView):
    """See `Erasure`."""

    def is_known(self, name: str) -> bool:
        view = self._view
        return any(
            part.find_one(query, ["_id"]) is not None
            for part, query in (
                (view.feedbacks, {"author": name}),
                (view.events, {"author": name}),
                (view.waiting, {"ratings.author": name}),
                (view.sessions, _sessions_naming(name)),
            )
        )

    def erase(self, erased: Erased, at: int) -> PersonRecords:
        view = self._view
        by_name, by_pseudonym = {"author": erased.name}, {"author": erased.pseudonym}
        self._release_keys(erased)
        waited = self._clear_waiting(erased)
        replacement: Document = {"author": erased.pseudonym, "extra": {}}
        view.feedbacks.update({**by_name, "target_type": "session"}, {"$set": {**replacement, "comment": ""}})
        view.feedbacks.update(by_name, {"$set": {**replacement, "comment": None}})
        view.events.update(by_name, {"$set": by_pseudonym})
        rows = list(view.feedbacks.find(by_pseudonym, _ORDER))
        for session in sorted({row["session"] for row in rows if row["target_type"] == "session"}):
            update_embedded(view, session)
        self._clear_sessions(erased, at)
        own_sessions = list(
            view.sessions.find(_sessions_naming(erased.pseudonym), _ORDER, fields=["number", "session_id"])
        )
        in_sessions = {"session": {"$in": [document["number"] for document in own_sessions]}}
        entries = list(view.entries.find(in_sessions, _ORDER, fields=["recall_id"]))
        opinions = [*(row["_id"] for row in rows), *waited]
        return PersonRecords(
            opinions=opinions,
            rated=[(row["session_id"], row["target_id"]) for row in rows if row["target_type"] == "entry"],
            sessions=[document["session_id"] for document in own_sessions],
            entries=[document["_id"] for document in entries],
            messages=[document["_id"] for document in view.messages.find(in_sessions, _ORDER, fields=["_id"])],
            recalls=[document["recall_id"] for document in entries if document["recall_id"] is not None],
            alerts=self._clear_alerts(erased, frozenset(opinions)),
            events=len(list(view.events.find(by_pseudonym, _ORDER, fields=["_id"]))),
        )

    def _release_keys(self, erased: Erased) -> None:
        """Replaces idempotency keys that contain the name; a retry with one counts as a new call."""
        for part in (self._view.events, self._view.feedbacks):
            for document in part.find({"author": erased.name}, _ORDER, fields=["idempotency_key"]):
                if erased.is_in_key(document["idempotency_key"]):
                    part.update({"_id": document["_id"]}, {"$set": {"idempotency_key": document["_id"]}})

    def _clear_waiting(self, erased: Erased) -> list[str]:
        """Removes ratings that wait for an entry, and external ids that name the person; returns the ids of the
        ratings."""
        view, removed = self._view, []
        for document in list(view.waiting.find({"ratings.author": erased.name}, _ORDER)):
            removed += [rating["id"] for rating in document["ratings"] if rating["author"] == erased.name]
            view.waiting.update({"_id": document["_id"]}, {"$pull": {"ratings": {"author": erased.name}}})
        named = {"external_id": {"$regex": re.escape(erased.name), "$options": "i"}}
        for part in (view.waiting, view.entries):
            for document in list(part.find(named, _ORDER, fields=["external_id"])):
                if not erased.is_named_in(document["external_id"]):
                    continue
                if part is view.waiting:
                    part.delete({"_id": document["_id"]})
                else:
                    part.update({"_id": document["_id"]}, {"$set": {"external_id": None}})
        return removed

    def _clear_sessions(self, erased: Erased, at: int) -> None:
        view = self._view
        for document in view.sessions.find(_sessions_naming(erased.name), _ORDER, fields=["number", "metadata"]):
            in_session = {"session": document["number"]}
            view.messages.update(in_session, {"$set": {"content": ""}})
            view.entries.update(in_session, {"$set": {"question": PLACEHOLDER, "answer": "", "context": None}})
            # Last: until then, another run still finds the session by the name.
            metadata = erased.rename_in(document["metadata"])
            described = {"metadata": metadata, "tags": facts.flattened(metadata), **updated(at)}
            view.sessions.update({"_id": document["_id"]}, {"$set": described, "$inc": {"revision": 1}})

    def _clear_alerts(self, erased: Erased, opinions: frozenset[str]) -> int:
        cleared = 0
        for document in list(self._view.outbox.find({}, _ORDER, fields=["payload"])):
            payload = erased.without_opinions(document["payload"], opinions)
            if payload is not None:
                self._view.outbox.update({"_id": document["_id"]}, {"$set": {"payload": payload, "error": None}})
                cleared += 1
        return cleared


def _sessions_naming(name: str) -> Document:
    """A query for sessions whose metadata name somebody."""
    return {"tags": {"$elemMatch": {"key": {"$in": list(PERSON_KEYS)}, "value": facts.tag(name)}}}
