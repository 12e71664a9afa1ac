"""The collections, their indexes, and the project's part of them as one transaction sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

from bson import encode
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.int64 import Int64
from pymongo import ASCENDING, DESCENDING, IndexModel, ReturnDocument, WriteConcern
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.database import Database

from heedful.clock import from_stored
from heedful.model import DEFAULT_PROJECT, Metadata
from heedful.storage.facts import tag
from heedful.storage.filters import conditions
from heedful.storage.ledger import RETRACTION
from heedful.storage.rows import batches
from heedful.storage.sessions.base import Change
from heedful.storage.stored_bytes import count_with

Document = dict[str, Any]
Row = TypeVar("Row")


class _PlainIntegers(TypeDecoder):
    """Reads 64-bit integers as `int`, like the shorter ones."""

    bson_type = Int64

    def transform_bson(self, value: Any) -> int:
        return int(value)


CODEC: CodecOptions[Document] = CodecOptions(tz_aware=True, type_registry=TypeRegistry([_PlainIntegers()]))

PARTITIONS = 16
"""Partitions of a project's negative opinions; writers of the same one wait for each other."""

_OF_SESSION = IndexModel([("project", ASCENDING), ("session", ASCENDING), ("number", ASCENDING)])

INDEXES: dict[str, list[IndexModel]] = {
    "sessions": [
        IndexModel([("project", ASCENDING), ("number", ASCENDING)], unique=True),
        IndexModel([("project", ASCENDING), ("tags.key", ASCENDING), ("tags.value", ASCENDING)]),
        IndexModel([("metadata.$**", ASCENDING)]),
        IndexModel([("feedbacks.rating", ASCENDING)]),
        IndexModel([("project", ASCENDING)], partialFilterExpression={"unprocessed_event": {"$exists": True}}),
    ],
    "messages": [_OF_SESSION],
    "entries": [
        _OF_SESSION,
        IndexModel(
            [("project", ASCENDING), ("external_id", ASCENDING)],
            unique=True,
            partialFilterExpression={"external_id": {"$type": "string"}},
        ),
    ],
    "waiting": [
        IndexModel([("project", ASCENDING), ("external_id", ASCENDING)], unique=True),
        IndexModel([("until", ASCENDING)], expireAfterSeconds=0),
    ],
    "feedbacks": [
        _OF_SESSION,
        IndexModel(
            [("project", ASCENDING), ("target_type", ASCENDING), ("target_id", ASCENDING), ("number", ASCENDING)]
        ),
    ],
    "events": [
        IndexModel([("project", ASCENDING), ("idempotency_key", ASCENDING)], unique=True),
        IndexModel([("project", ASCENDING), ("target_id", ASCENDING)]),
        IndexModel(
            [("project", ASCENDING), ("partition", ASCENDING), ("place", ASCENDING)],
            partialFilterExpression={"partition": {"$exists": True}},
        ),
    ],
    "partitions": [IndexModel([("project", ASCENDING), ("partition", ASCENDING)], unique=True)],
    "outbox": [
        _OF_SESSION,
        IndexModel([("project", ASCENDING), ("next_at", ASCENDING)]),
        IndexModel([("project", ASCENDING), ("number", ASCENDING)]),
    ],
}


def create_indexes(database: Database[Document]) -> None:
    """Creates missing collections and indexes."""
    for name, indexes in INDEXES.items():
        database[name].create_indexes(indexes)


class Part:
    """One collection's documents of a project; every operation is part of the transaction, if there is one."""

    def __init__(self, view: View, name: str) -> None:
        self._view = view
        self._session = view.session
        self._collection: Collection[Document] = view.database[name]
        self.name = name

    def find_one(self, query: Document, fields: Sequence[str] | None = None) -> Document | None:
        return self._collection.find_one(self._in_project(query), _projection(fields), session=self._session)

    def find(
        self, query: Document, sort: Sequence[tuple[str, int]], limit: int = 0, fields: Document | None = None
    ) -> Iterator[Document]:
        with self._collection.find(
            self._in_project(query), fields, sort=list(sort), limit=limit, session=self._session
        ) as cursor:
            yield from cursor

    def aggregate(self, query: Document, *steps: Document) -> list[Document]:
        with self._collection.aggregate(
            [{"$match": self._in_project(query)}, *steps], allowDiskUse=True, session=self._session
        ) as cursor:
            return list(cursor)

    def insert(self, new: Sequence[Document]) -> None:
        self._view.has_written = True
        documents = [{**document, "project": self._view.project} for document in new]
        count_with(lambda: sum(len(encode(document)) for document in documents))
        if len(documents) == 1:
            self._collection.insert_one(documents[0], session=self._session)
        elif documents:
            self._collection.insert_many(documents, session=self._session)

    def update(self, query: Document, change: Document) -> int:
        """Changes all matching documents; returns how many."""
        self._view.has_written = True
        count_with(lambda: len(encode(change)))
        return self._collection.update_many(self._in_project(query), change, session=self._session).matched_count

    def change(
        self, query: Document, change: Document, fields: Sequence[str], *, create: bool = False
    ) -> Document | None:
        """Changes one document, and returns its previous version. With `create`, one that is missing is made."""
        self._view.has_written = True
        count_with(lambda: len(encode(change)))
        return self._collection.find_one_and_update(
            self._in_project(query),
            change,
            _projection(fields),
            upsert=create,
            return_document=ReturnDocument.BEFORE,
            session=self._session,
        )

    def delete(self, query: Document) -> int:
        self._view.has_written = True
        return self._collection.delete_many(self._in_project(query), session=self._session).deleted_count

    def _in_project(self, query: Document) -> Document:
        return {**query, "project": self._view.project}


class View:
    """A project in one transaction, or without one on a server that has none."""

    def __init__(self, database: Database[Document], project: str, session: ClientSession | None) -> None:
        self.database = database
        self.project = project
        self.session = session
        self.has_written = False
        self.sessions = Part(self, "sessions")
        self.messages = Part(self, "messages")
        self.entries = Part(self, "entries")
        self.feedbacks = Part(self, "feedbacks")
        self.events = Part(self, "events")
        self.waiting = Part(self, "waiting")
        self.outbox = Part(self, "outbox")
        self.partitions = Part(self, "partitions")

    def session_key(self, session_id: str) -> Any:
        """The `_id` of a session's document."""
        if self.project == DEFAULT_PROJECT:
            return session_id
        return {"project": self.project, "session_id": session_id}

    def in_sessions(self, session_ids: Sequence[str] | None) -> Iterator[Document]:
        """Conditions for documents of these sessions, or of all."""
        if session_ids is None:
            yield {}
            return
        for run in batches(session_ids):
            keys = [self.session_key(session_id) for session_id in run]
            documents = self.sessions.find({"_id": {"$in": keys}}, [("_id", ASCENDING)], fields={"number": 1})
            yield {"session": {"$in": [session_id["number"] for session_id in documents]}}

    def next_numbers(self, name: str, count: int = 1) -> int:
        """The first of `count` new numbers of this name in the project.

        They are taken outside the transaction, so that writers don't wait for each other; some may stay unused.
        """
        before = without_journal(self.database, "counters").find_one_and_update(
            {"_id": self.project}, {"$inc": {name: count}}, upsert=True
        )
        return 1 + int((before or {}).get(name, 0))

    def places(self, session: int, count: int) -> Iterator[Document]:
        """Positions of the next negative opinions of a session, given or retracted, as fields of their events.

        They are taken inside the transaction. So nobody who sees a place can later find a new one before it.
        """
        if not count:
            return
        partition = session % PARTITIONS
        self.has_written = True
        after = without_journal(self.database, self.partitions.name).find_one_and_update(
            {"project": self.project, "partition": partition},
            {"$inc": {"last": count}},
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=self.session,
        )
        assert after is not None
        for position in range(after["last"] - count + 1, after["last"] + 1):
            yield {"partition": partition, "place": position}


def updated(at: int) -> Document:
    """The fields to update when something is written to a session."""
    return {"updated_at": from_stored(at), "at.updated": at}


def without_journal(database: Database[Document], name: str) -> Collection[Document]:
    """A collection whose writes don't wait for the journal: the next durable write covers them."""
    return database.get_collection(name, write_concern=WriteConcern(1, j=False))


def _projection(fields: Sequence[str] | None) -> Document | None:
    return None if fields is None else dict.fromkeys(fields, 1)


_CHANGE_FIELDS = dict.fromkeys(("place", "kind", "target_id"), 1)


class MongoChanges:
    """See `base.Changes`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def newest(self) -> dict[int, int]:
        return {
            document["partition"]: document["last"]
            for document in self._view.partitions.find({}, [("partition", ASCENDING)])
        }

    def positions(self) -> dict[int, int]:
        result = {}
        for partition in self.newest():
            for document in self._view.events.find({"partition": partition}, [("place", DESCENDING)], 1, {"place": 1}):
                result[partition] = int(document["place"])
        return result

    def changes_after(self, partition: int, position: int, limit: int) -> list[Change]:
        query = {"partition": partition, "place": {"$gt": position}}
        return [
            Change(document["place"], document["_id"], True)
            if document["kind"] != RETRACTION
            # The retraction event decides, even if the opinion's own document is updated later.
            else Change(document["place"], document["target_id"], False)
            for document in self._view.events.find(query, [("place", ASCENDING)], limit, _CHANGE_FIELDS)
        ]


def to_row(kind: Callable[..., Row], document: Document, **values: Any) -> Row:
    """A document as a dataclass: its fields by name (`_id` for `id`), or from `values`."""
    for name, key in _keys(kind):
        if name not in values:
            values[name] = document[key]
    return kind(**values)


@cache
def _keys(kind: Callable[..., object]) -> list[tuple[str, str]]:
    """The fields of a dataclass, each with its name in documents."""
    return [(field.name, "_id" if field.name == "id" else field.name) for field in fields(cast(Any, kind))]


def between(field: str, since: int | None, until: int | None) -> Document:
    """The condition for a period, which may be open on both sides; `until` is exclusive."""
    limits = {} if since is None else {"$gte": since}
    limits |= {} if until is None else {"$lt": until}
    return {field: limits} if limits else {}


_COMPARISONS = {"<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
# Texts are stored with a leading quote, which distinguishes them; "#" is the next character after it.
_TEXTS = {"<": {"$gte": '"'}, "<=": {"$gte": '"'}, ">": {"$lt": "#"}, ">=": {"$lt": "#"}}


def matching(where: Metadata) -> list[Document]:
    """One condition on session documents for each in `where`; all must hold."""
    return [_one(key, operator, value) for key, operator, value in conditions(where)]


def _one(key: str, operator: str, value: Any) -> Document:
    if operator == "exists":
        return _having(key) if value else _lacking(key)
    if operator == "in":
        return _having(key, value={"$in": [tag(item) for item in value]})
    if operator == "only":
        return _lacking(key, value={"$nin": [tag(item) for item in value]})
    if operator == "=":
        return _having(key, value=tag(value))
    if operator == "!=":
        return _lacking(key, value=tag(value))
    if isinstance(value, str):
        return _having(key, value={**_TEXTS[operator], _COMPARISONS[operator]: tag(value)})
    return _having(key, number={_COMPARISONS[operator]: float(value)})


def _having(key: str, **required: Any) -> Document:
    return {"tags": {"$elemMatch": {"key": key, **required}}}


def _lacking(key: str, **required: Any) -> Document:
    return {"tags": {"$not": {"$elemMatch": {"key": key, **required}}}}
