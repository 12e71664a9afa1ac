"""Opinions about sessions and entries as MongoDB documents: the ledger, and the texts beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from pymongo import ASCENDING, DESCENDING

from heedful.clock import DAY, from_stored
from heedful.errors import Conflict, NotFound
from heedful.ledger import events
from heedful.ledger.events import FEEDBACK, RETRACTION, Event
from heedful.ledger.opinions import FeedbackRow, deleted_key_error
from heedful.model import OpinionTarget
from heedful.sessions.mongo.collections import IN_ORDER, Document, View, to_row, updated
from heedful.sessions.mongo.reports import MongoReports
from heedful.storage.external_ids import WaitingRow
from heedful.storage.rows import batches

_STORED_FIELDS = (
    *("session_id", "target_type", "target_id", "author", "author_kind"),
    *("rating", "score", "comment", "extra", "at"),
)

_PROJECT = 0  # Stands for the number of the project, which documents name instead.
MAX_EMBEDDED = 100  # How many opinions, the newest, are embedded in a session's document; all are in `feedbacks`.


class MongoFeedbacks(MongoReports):
    """See `Feedbacks`."""

    def add(self, new: FeedbackRow, key: str, recorded_at: int) -> bool:
        if self._view.session is None and self._view.events.find_one({"idempotency_key": key}, ["_id"]):
            message = "this idempotency_key was used already"
            raise Conflict(message, code="idempotency_key_reused", field="idempotency_key", remedy="Use a new key")
        document = {name: getattr(new, name) for name in _STORED_FIELDS}
        document |= {"_id": new.id, "created_at": from_stored(new.at), "active": True}
        document |= {"idempotency_key": key, "recorded_at": recorded_at}
        change: Document = {"$inc": {"last": 1}, "$set": updated(new.at) | {"unprocessed_event": new.event_id}}
        if new.target_type == "session":
            change["$push"] = {"feedbacks": {"$each": [embedded_document(document)], "$slice": -MAX_EMBEDDED}}
        session = self._view.sessions.change(
            {"_id": self._view.session_key(new.session_id)}, change, ["number", "last"]
        )
        if session is None:
            return False
        document |= {"session": session["number"], "number": session["last"] + 1}
        for position in self._view.places(session["number"], int(new.rating == "down")):
            document |= position
        # The text first: its event can be derived from it, but not the other way round.
        self._view.feedbacks.insert([document])
        self._view.events.insert([event_of(document)])
        return True

    def with_key(self, key: str) -> FeedbackRow | None:
        event = self._view.events.find_one({"idempotency_key": key}, ["_id"])
        if event is None:
            return None
        row = self.get(event["_id"])
        if row is None:
            raise deleted_key_error(key)
        return row

    def get(self, feedback_id: str) -> FeedbackRow | None:
        document = self._view.feedbacks.find_one({"_id": feedback_id})
        return None if document is None else _feedback(document)

    def by_event_ids(self, event_ids: Sequence[str]) -> list[FeedbackRow]:
        return [
            _feedback(document)
            for run in batches(event_ids)
            for document in self._view.feedbacks.find({"_id": {"$in": list(run)}})
        ]

    def negatives(self, after: str | None, limit: int) -> list[str]:
        query: Document = {"active": True, "rating": "down"}
        if after is not None:
            query["_id"] = {"$gt": after}
        return [document["_id"] for document in self._view.feedbacks.find(query, limit=limit, fields=["_id"])]

    def active(self, target_type: OpinionTarget, target_ids: Sequence[str]) -> list[FeedbackRow]:
        of_type = {"target_type": target_type}
        return [row for run in batches(target_ids) for row in self._active(of_type | {"target_id": {"$in": list(run)}})]

    def active_by(self, author: str | None, target_type: OpinionTarget, target_id: str) -> list[FeedbackRow]:
        return list(self._active({"target_type": target_type, "target_id": target_id, "author": author}))

    def withdraw(self, rows: Sequence[FeedbackRow], author: str | None, at: int) -> list[str]:
        ids: dict[str, str] = {}
        for session_id, group in groupby(sorted(rows, key=lambda row: row.session_id), lambda row: row.session_id):
            ids |= self._withdraw(session_id, list(group), author, at)
        return [ids[row.id] for row in rows]

    def _withdraw(self, session_id: str, rows: Sequence[FeedbackRow], author: str | None, at: int) -> dict[str, str]:
        """Retracts opinions about one session and its entries; returns the retractions by opinion."""
        ids = [row.id for row in rows]
        retractions = [events.retraction(_PROJECT, row.id, author, at) for row in rows]
        key = {"_id": self._view.session_key(session_id)}
        change = {
            "$inc": {"last": len(rows)},
            "$pull": {"feedbacks": {"id": {"$in": ids}}},
            "$set": {"unprocessed_event": retractions[-1].id},
        }
        session = self._view.sessions.change(key, change, ["number", "last", "feedbacks.id"])
        if session is None:
            raise NotFound(f"there is no session {session_id!r}", field="session_id", value=session_id)
        negative = [row.id for row in rows if row.rating == "down"]
        positions = dict(zip(negative, self._view.places(session["number"], len(negative)), strict=True))
        self._view.events.insert(
            [
                _event(event, session=session["number"], seq=number, **positions.get(event.target_id, {}))
                for number, event in enumerate(retractions, session["last"] + 1)
            ]
        )
        self._view.feedbacks.update({"_id": {"$in": ids}}, {"$set": {"active": False}})
        embedded = [document["id"] for document in session["feedbacks"]]
        if len(embedded) == MAX_EMBEDDED and not set(ids).isdisjoint(embedded):
            update_embedded(self._view, session["number"])
        return {event.target_id: event.id for event in retractions}

    def retracted(self, session_ids: Sequence[str]) -> list[str]:
        return [
            document["_id"]
            for query in self._view.in_sessions(session_ids)
            for document in self._view.feedbacks.find({**query, "active": False}, IN_ORDER, fields=["_id"])
        ]

    def unprocessed(self, session_ids: Sequence[str] | None, limit: int | None = None) -> dict[str, str]:
        query: Document = {"unprocessed_event": {"$exists": True}}
        queries = [query]
        if session_ids is not None:
            keys = [self._view.session_key(session_id) for session_id in session_ids]
            queries = [{**query, "_id": {"$in": list(run)}} for run in batches(keys)]
        return {
            document["session_id"]: document["unprocessed_event"]
            for query in queries
            for document in self._view.sessions.find(
                query, [("number", ASCENDING)], limit or 0, ["session_id", "unprocessed_event"]
            )
        }

    def set_processed(self, events: Mapping[str, str]) -> None:
        for session_id, event_id in events.items():
            key = self._view.session_key(session_id)
            self._view.sessions.update(
                {"_id": key, "unprocessed_event": event_id}, {"$unset": {"unprocessed_event": ""}}
            )

    def wait(self, new: WaitingRow, until: int | None) -> None:
        self.stop_waiting(new.external_id, new.author)
        change = {"$push": {"ratings": asdict(new)}, "$set": {"until": None if until is None else from_stored(until)}}
        self._view.waiting.change({"external_id": new.external_id}, change, ["_id"], create=True)

    def waiting(self, external_id: str, at: int) -> list[WaitingRow]:
        # Made even if none waits: a rating that comes at the same moment then conflicts with the entry.
        change = {"$set": {"entry_at": at}, "$setOnInsert": {"ratings": [], "until": from_stored(at + DAY)}}
        before = self._view.waiting.change({"external_id": external_id}, change, ["ratings"], create=True)
        return [WaitingRow(**rating) for rating in (before or {}).get("ratings", ())]

    def waiting_since(self, at: int, limit: int) -> list[str]:
        documents = self._view.waiting.find({"ratings.at": {"$lt": at}}, [("external_id", ASCENDING)], limit)
        return [document["external_id"] for document in documents]

    def stop_waiting(self, external_id: str, author: str | None) -> int:
        return self._end_waiting(external_id, {"author": author})

    def end_waiting(self, external_id: str, ids: Sequence[str]) -> None:
        self._end_waiting(external_id, {"id": {"$in": list(ids)}})

    def _end_waiting(self, external_id: str, matching: Document) -> int:
        query = {"external_id": external_id, "ratings": {"$elemMatch": matching}}
        return self._view.waiting.update(query, {"$pull": {"ratings": matching}})

    def retraction_of(self, event_id: str) -> str | None:
        event = self._view.events.find_one({"target_id": event_id, "kind": RETRACTION}, ["_id"])
        return None if event is None else event["_id"]

    def of_session(self, session_id: str, after: int | None, limit: int, newest_first: bool) -> list[FeedbackRow]:
        query = {"target_type": "session", "target_id": session_id, "active": True}
        return [_feedback(document) for document in self._view.feedbacks.page(query, after, limit, newest_first)]

    def in_session(self, number: int, limit: int) -> list[FeedbackRow]:
        """The oldest active opinions about a session and its entries."""
        return list(self._active({"session": number}, limit))

    def of_sessions(self, session_ids: Sequence[str] | None) -> Iterable[FeedbackRow]:
        for query in self._view.in_sessions(session_ids):
            yield from self._active(query)

    def _active(self, query: Document, limit: int = 0) -> Iterator[FeedbackRow]:
        return map(_feedback, self._view.feedbacks.find({**query, "active": True}, IN_ORDER, limit))


def embedded_document(document: Document) -> Document:
    """An opinion as it is embedded in its session's document."""
    fields = {name: document[name] for name in ("rating", "comment", "created_at")}
    return {
        "id": document["_id"],
        **fields,
        **{k: v for k, v in document["extra"].items() if k not in fields and k != "id"},
    }


def update_embedded(view: View, session: int) -> None:
    """Rebuilds the opinions embedded in a session's document."""
    newest = view.feedbacks.find(
        {"session": session, "target_type": "session", "active": True}, [("number", DESCENDING)], MAX_EMBEDDED
    )
    view.sessions.update(
        {"number": session}, {"$set": {"feedbacks": [embedded_document(document) for document in newest][::-1]}}
    )


def event_of(document: Document) -> Document:
    score = document["score"]
    value = document["rating"] if score is None else str(score)
    names = ("target_type", "target_id", "author", "author_kind", "at", "recorded_at", "idempotency_key")
    same = {name: document[name] for name in names}
    event = Event(_PROJECT, FEEDBACK, source="add_feedback", value=value, id=document["_id"], **same)
    place = {name: document[name] for name in ("partition", "place") if name in document}
    return _event(event, session=document["session"], seq=document["number"], **place)


def _event(event: Event, **fields: Any) -> Document:
    """A document of the ledger."""
    row = event.row()
    del row["project_id"]
    return {"_id": row.pop("id"), **row, **fields}


def _feedback(document: Document) -> FeedbackRow:
    values = {"event_id": document["_id"], "updated_at": document["at"], "author_kind": document["author_kind"]}
    return to_row(FeedbackRow, document, **values, message_id=None)
