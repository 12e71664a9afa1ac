"""Sessions, messages and entries as MongoDB documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pymongo import ASCENDING, DESCENDING

from heedful.clock import from_stored
from heedful.errors import NotFound
from heedful.model import Metadata
from heedful.storage.facts import flattened
from heedful.storage.mongo.collections import Document, Part, View, matching, updated
from heedful.storage.mongo.feedback import MongoFeedbacks
from heedful.storage.sessions.base import EntryRow, MessageRow, Removed, SessionRow, Uses

_HEAD = dict.fromkeys(("number", "session_id", "metadata", "at", "revision"), 1)


class MongoConversations:
    """See `base.Conversations`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def session(self, session_id: str) -> SessionRow | None:
        found = self._view.sessions.find_one(self._key(session_id), list(_HEAD))
        return None if found is None else _session(found)

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        if self._number(session_id) is not None:
            return False
        new = {
            **self._key(session_id),
            "session_id": session_id,
            "number": self._view.next_numbers("sessions"),
            **_described(metadata),
            "created_at": from_stored(at),
            "updated_at": from_stored(at),
            "at": {"created": at, "updated": at},
            "revision": 0,
            "last": 0,
            "feedbacks": [],
        }
        self._view.sessions.insert([new])
        return True

    def touch(self, session_id: str, at: int) -> bool:
        return self._view.sessions.update(self._key(session_id), {"$set": updated(at)}) == 1

    def sessions(self, after: int | None, limit: int, where: Metadata | None) -> list[SessionRow]:
        wanted: Document = {} if after is None else {"number": {"$lt": after}}
        if where:
            wanted["$and"] = matching(where)
        found = self._view.sessions.find(wanted, [("number", DESCENDING)], limit, _HEAD)
        return [_session(each) for each in found]

    def set_metadata(self, seen: SessionRow, metadata: Metadata, at: int) -> bool:
        wanted = {**self._key(seen.session_id), "number": seen.number, "revision": seen.revision}
        change = {"$set": {**_described(metadata), **updated(at)}, "$inc": {"revision": 1}}
        return self._view.sessions.update(wanted, change) == 1

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None:
        place = self._numbers(session_id, len(new), max(each.at for each in new))
        if place is None:
            raise NotFound(f"there is no session {session_id!r}", field="session_id", value=session_id)
        session, first = place
        self._view.messages.insert(
            [
                {
                    "_id": each.id,
                    "session": session,
                    "number": number,
                    "role": each.role,
                    "content": each.content,
                    "at": each.at,
                }
                for number, each in enumerate(new, first)
            ]
        )

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]:
        found = self._page(self._view.messages, session_id, after, limit, newest_first)
        return [_message(each) for each in found]

    def message(self, message_id: str) -> MessageRow | None:
        found = self._view.messages.find_one({"_id": message_id})
        return None if found is None else _message(found)

    def add_entry(self, new: EntryRow) -> bool:
        place = self._numbers(new.session_id, 1, new.at)
        if place is None:
            return False
        values = asdict(new)
        self._view.entries.insert([{"_id": values.pop("id"), **values, "session": place[0], "number": place[1]}])
        return True

    def has_entry(self, session_id: str, qa_id: str) -> bool:
        return self._view.entries.find_one({"_id": qa_id, "session_id": session_id}, ["_id"]) is not None

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        found = self._view.entries.find_one({"_id": qa_id, "session_id": session_id})
        return None if found is None else _entry(found)

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]:
        return [_entry(each) for each in self._page(self._view.entries, session_id, after, limit, newest_first)]

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        for wanted in self._view.inside(session_ids):
            yield from map(_entry, self._view.entries.find(wanted, [("session", ASCENDING), ("number", ASCENDING)]))

    def set_used(self, qa_id: str, used: Uses) -> None:
        self._view.entries.update({"_id": qa_id}, {"$set": {"used": used}})

    def delete(self, session_id: str, at: int) -> Removed | None:
        session = self._number(session_id)
        if session is None:
            return None
        opinions = MongoFeedbacks(self._view)
        stood = list(opinions.of_sessions([session_id]))
        opinions.withdraw(stood, None, at)
        # First of all the session itself: what is in it is found through its number, so all of it goes at once.
        self._view.sessions.delete(self._key(session_id))
        inside = {"session": session}
        self._view.feedbacks.delete(inside)
        self._view.outbox.delete(inside)
        return Removed(self._view.messages.delete(inside), self._view.entries.delete(inside), stood)

    def _key(self, session_id: str) -> Document:
        return {"_id": self._view.session_key(session_id)}

    def _number(self, session_id: str) -> int | None:
        found = self._view.sessions.find_one(self._key(session_id), ["number"])
        return None if found is None else found["number"]

    def _numbers(self, session_id: str, count: int, at: int) -> tuple[int, int] | None:
        """The number of a session, and the first of `count` numbers for what is written in it now."""
        before = self._view.sessions.change(
            self._key(session_id), {"$inc": {"last": count}, "$set": updated(at)}, ["number", "last"]
        )
        return None if before is None else (before["number"], before["last"] + 1)

    def _page(
        self, part: Part, session_id: str, after: int | None, limit: int, newest_first: bool
    ) -> Iterator[Document]:
        wanted: Document = {"session": self._number(session_id)}
        if after is not None:
            wanted["number"] = {"$lt" if newest_first else "$gt": after}
        return part.find(wanted, [("number", DESCENDING if newest_first else ASCENDING)], limit)


def _described(metadata: Metadata) -> Document:
    return {"metadata": metadata, "tags": flattened(metadata)}


def _session(found: Document) -> SessionRow:
    at: dict[str, Any] = found["at"]
    return SessionRow(
        found["number"], found["session_id"], found["metadata"], at["created"], at["updated"], found["revision"]
    )


def _message(found: Document) -> MessageRow:
    return MessageRow(found["_id"], found["role"], found["content"], found["at"], found["number"])


def _entry(found: Document) -> EntryRow:
    used = found["used"]
    return EntryRow(
        id=found["_id"],
        session_id=found["session_id"],
        question=found["question"],
        answer=found["answer"],
        context=found["context"],
        at=found["at"],
        dataset=found["dataset"],
        recall_id=found["recall_id"],
        used=None if used is None else [(fact, share, links) for fact, share, links in used],
        model=found["model"],
        usage=found["usage"],
        number=found["number"],
    )
