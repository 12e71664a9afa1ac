"""Sessions, messages and entries as MongoDB documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from heedful.clock import from_stored
from heedful.errors import NotFound
from heedful.ledger.rating_signals import EntryRow, Uses
from heedful.model import Metadata
from heedful.sessions.mongo.collections import (
    IN_ORDER,
    Document,
    InView,
    Part,
    described,
    matching,
    to_document,
    to_row,
    updated,
)
from heedful.sessions.mongo.feedback import MongoFeedbacks
from heedful.sessions.session_store import OPINION_ROWS, MessageRow, Removed, SessionRow
from heedful.storage.rows import MAX_ROWS

_HEAD = ("number", "session_id", "metadata", "at", "revision")


class MongoConversations(InView):
    """See `Conversations`."""

    def session(self, session_id: str) -> SessionRow | None:
        document = self._view.sessions.find_one(self._key(session_id), _HEAD)
        return None if document is None else _session(document)

    def create(self, session_id: str, metadata: Metadata, at: int) -> bool:
        if self._view.session_number(session_id) is not None:
            return False
        new = {
            **self._key(session_id),
            "session_id": session_id,
            "number": self._view.next_numbers("sessions"),
            **described(metadata),
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
        query = {"$and": matching(where)} if where else {}
        return [_session(document) for document in self._view.sessions.page(query, after, limit, fields=_HEAD)]

    def set_metadata(self, current: SessionRow, metadata: Metadata, at: int) -> bool:
        query = {**self._key(current.session_id), "number": current.number, "revision": current.revision}
        change = {"$set": {**described(metadata), **updated(at)}, "$inc": {"revision": 1}}
        return self._view.sessions.update(query, change) == 1

    def add_messages(self, session_id: str, new: Sequence[MessageRow]) -> None:
        numbers = self._numbers(session_id, len(new), max(message.at for message in new))
        if numbers is None:
            raise NotFound(f"there is no session {session_id!r}", field="session_id", value=session_id)
        session, first = numbers
        self._view.messages.insert(
            [to_document(message) | {"session": session, "number": number} for number, message in enumerate(new, first)]
        )

    def messages(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[MessageRow]:
        documents = self._page(self._view.messages, session_id, after, limit, newest_first)
        return [to_row(MessageRow, document) for document in documents]

    def message(self, message_id: str, session_id: str | None = None) -> MessageRow | None:
        query: Document = {"_id": message_id}
        if session_id is not None:
            query["session"] = self._view.session_number(session_id)
        document = self._view.messages.find_one(query)
        return None if document is None else to_row(MessageRow, document)

    def set_content(self, message_id: str, content: str) -> None:
        self._view.messages.update({"_id": message_id}, {"$set": {"content": content}})

    def delete_message(self, message_id: str) -> None:
        self._view.messages.delete({"_id": message_id})

    def add_entry(self, new: EntryRow) -> bool:
        numbers = self._numbers(new.session_id, 1, new.at)
        if numbers is None:
            return False
        self._view.entries.insert([to_document(new) | {"session": numbers[0], "number": numbers[1]}])
        return True

    def entry(self, session_id: str, qa_id: str) -> EntryRow | None:
        in_session = {"session_id": session_id}
        return self._find_entry({"_id": qa_id, **in_session}) or self._find_entry({"external_id": qa_id, **in_session})

    def external_entry(self, external_id: str, *, or_id: bool = False) -> EntryRow | None:
        found = self._find_entry({"external_id": external_id})
        return self._find_entry({"_id": external_id}) if found is None and or_id else found

    def entries(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[EntryRow]:
        return [_entry(document) for document in self._page(self._view.entries, session_id, after, limit, newest_first)]

    def entries_of(self, session_ids: Sequence[str] | None) -> Iterable[EntryRow]:
        for query in self._view.in_sessions(session_ids):
            yield from map(_entry, self._view.entries.find(query, IN_ORDER))

    def set_used(self, qa_id: str, used: Uses) -> None:
        self._view.entries.update({"_id": qa_id}, {"$set": {"used": used}})

    def delete(self, session_id: str, at: int) -> Removed | None:
        session = self._view.session_number(session_id)
        if session is None:
            return None
        opinions = MongoFeedbacks(self._view)
        withdrawn = opinions.in_session(session, MAX_ROWS // OPINION_ROWS)
        opinions.withdraw(withdrawn, None, at)
        room = MAX_ROWS - OPINION_ROWS * len(withdrawn)
        ids: dict[str, list[str]] = {}
        for part in (self._view.messages, self._view.entries, self._view.feedbacks, self._view.outbox):
            documents = part.find({"session": session}, IN_ORDER, room, ["_id"]) if room > 0 else ()
            ids[part.name] = [document["_id"] for document in documents]
            room -= len(ids[part.name])
        if room > 0:
            # The session first: its content is found through it, so everything disappears at once.
            self._view.sessions.delete(self._key(session_id))
        for name, these in ids.items():
            Part(self._view, name).delete({"_id": {"$in": these}})
        return Removed(len(ids["messages"]), len(ids["entries"]), withdrawn, is_last=room > 0)

    def _find_entry(self, query: Document) -> EntryRow | None:
        document = self._view.entries.find_one(query)
        return None if document is None else _entry(document)

    def _key(self, session_id: str) -> Document:
        return {"_id": self._view.session_key(session_id)}

    def _numbers(self, session_id: str, count: int, at: int) -> tuple[int, int] | None:
        """The number of a session, and the first of `count` new numbers in it."""
        before = self._view.sessions.change(
            self._key(session_id), {"$inc": {"last": count}, "$set": updated(at)}, ["number", "last"]
        )
        return None if before is None else (before["number"], before["last"] + 1)

    def _page(
        self, part: Part, session_id: str, after: int | None, limit: int, newest_first: bool
    ) -> Iterator[Document]:
        return part.page({"session": self._view.session_number(session_id)}, after, limit, newest_first)


def _session(document: Document) -> SessionRow:
    at = document["at"]
    return to_row(SessionRow, document, created_at=at["created"], updated_at=at["updated"])


def _entry(document: Document) -> EntryRow:
    used = document["used"] and [(fact, share, links) for fact, share, links in document["used"]]
    return to_row(EntryRow, document, used=used, external_id=document.get("external_id"))
