"""What a crash can leave on a server without transactions, and how it is mended.

Every write there is a row of single steps, in this order: the session's document, then words, then the ledger, then
what follows from the ledger. Whatever the row is cut off at, what is missing follows from what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.storage.ledger import RETRACTION
from heedful.storage.mongo.collections import Document, Part, View
from heedful.storage.mongo.feedbacks import MOST_SHOWN, event_of, show


@dataclass(slots=True)
class Faults:
    """Places where documents contradict each other."""

    orphans: list[tuple[str, int]] = field(default_factory=list)
    """(collection, session) of what is left of sessions that are gone."""
    unrecorded: list[Document] = field(default_factory=list)
    """Opinions without an event."""
    retracted: list[str] = field(default_factory=list)
    """Opinions that stand although they were taken back."""
    misshown: list[int] = field(default_factory=list)
    """Sessions whose document does not show the opinions that stand."""

    def __str__(self) -> str:
        counted = [
            (len(self.orphans), "leftovers of deleted sessions"),
            (len(self.unrecorded), "opinions without an event"),
            (len(self.retracted), "retracted opinions that stand"),
            (len(self.misshown), "sessions that show other opinions than stand"),
        ]
        return ", ".join(f"{count} {what}" for count, what in counted if count)


def faults(view: View) -> Faults:
    """Looks through the whole project."""
    return Faults(
        orphans=[
            (part.name, session)
            for part in (view.messages, view.entries, view.feedbacks, view.outbox)
            for session in _orphans(view, part)
        ],
        unrecorded=view.feedbacks.aggregate({}, *_joined("events", "_id", "event"), {"$match": {"event": []}}),
        retracted=[
            each["target_id"]
            for each in view.events.aggregate(
                {"kind": RETRACTION},
                *_joined("feedbacks", "target_id", "said"),
                {"$match": {"said.standing": True}},
            )
        ],
        misshown=[each["number"] for each in view.sessions.aggregate({}, *_compared(view))],
    )


def mend(view: View) -> str:
    """Puts right what `faults` finds; returns what that was."""
    found: list[str] = []
    # What is put right first can show more to put right: an opinion that no longer stands is still shown.
    while str(wrong := faults(view)):
        found.append(str(wrong))
        for name, session in wrong.orphans:
            Part(view, name).delete({"session": session})
        gone = {session for name, session in wrong.orphans if name == "feedbacks"}
        view.events.insert([event_of(said) for said in wrong.unrecorded if said["session"] not in gone])
        view.feedbacks.update({"_id": {"$in": wrong.retracted}}, {"$set": {"standing": False}})
        for session in wrong.misshown:
            show(view, session)
    return ", ".join(found)


def _orphans(view: View, part: Part) -> list[int]:
    found = part.aggregate(
        {"session": {"$ne": None}},
        {"$group": {"_id": "$session"}},
        {
            "$lookup": {
                "from": "sessions",
                "localField": "_id",
                "foreignField": "number",
                "pipeline": [{"$match": {"project": view.project}}, {"$project": {"_id": 1}}],
                "as": "there",
            }
        },
        {"$match": {"there": []}},
    )
    return [each["_id"] for each in found]


def _joined(name: str, key: str, under: str) -> list[Document]:
    return [{"$lookup": {"from": name, "localField": key, "foreignField": "_id", "as": under}}]


def _compared(view: View) -> list[Document]:
    standing = {"project": view.project, "target_type": "session", "standing": True}
    return [
        {"$project": {"number": 1, "shown": "$feedbacks.id"}},
        {
            "$lookup": {
                "from": "feedbacks",
                "localField": "number",
                "foreignField": "session",
                "pipeline": [
                    {"$match": standing},
                    {"$sort": {"number": -1}},
                    {"$limit": MOST_SHOWN},
                    {"$sort": {"number": 1}},
                    {"$project": {"_id": 1}},
                ],
                "as": "stand",
            }
        },
        {"$match": {"$expr": {"$ne": ["$shown", "$stand._id"]}}},
    ]
