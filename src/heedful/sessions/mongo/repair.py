"""Repairs after a crash on a server without transactions.

Every write there is a row of single steps, in this order: the session's document, then words, then the ledger, then
what follows from the ledger. Whatever the row is cut off at, what is missing follows from what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.ledger.events import RETRACTION
from heedful.sessions.mongo.collections import Document, Part, View
from heedful.sessions.mongo.feedback import MAX_EMBEDDED, event_of, update_embedded


@dataclass(slots=True)
class Inconsistencies:
    """Contradictions between documents."""

    orphans: list[tuple[str, int]] = field(default_factory=list)
    """(collection, session) of remains of deleted sessions."""
    unrecorded: list[Document] = field(default_factory=list)  # Opinions without an event.
    retracted: list[str] = field(default_factory=list)  # Opinions that are active although they were retracted.
    outdated: list[int] = field(default_factory=list)  # Sessions whose document doesn't embed the active opinions.

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
