"""The collections, their indexes, and the project's part of them as one transaction sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
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
from heedful.ledger.events import RETRACTION
from heedful.model import DEFAULT_PROJECT, Metadata
from heedful.sessions.session_store import Change
from heedful.storage.facts import flattened, tag
from heedful.storage.filters import conditions
from heedful.storage.rows import batches, count_with

Document = dict[str, Any]

BY_ID = [("_id", ASCENDING)]
IN_ORDER = [("session", ASCENDING), ("number", ASCENDING)]  # Content of sessions, one session after the other.

Row = TypeVar("Row")


class _PlainIntegers(TypeDecoder):
    """Reads 64-bit integers as `int`, like the shorter ones."""

    bson_type = Int64

    def transform_bson(self, value: Any) -> int:
        return int(value)


CODEC: CodecOptions[Document] = CodecOptions(tz_aware=True, type_registry=TypeRegistry([_PlainIntegers()]))

PARTITIONS = 16  # Partitions of a project's negative opinions; writers of the same one wait for each other.


def _index(*fields: str, **options: Any) -> IndexModel:
    return IndexModel([(field, ASCENDING) for field in fields], **options)


_OF_SESSION = _index("project", "session", "number")

INDEXES: dict[str, list[IndexModel]] = {
    "sessions": [
        _index("project", "number", unique=True),
        _index("project", "tags.key", "tags.value"),
        _index("metadata.$**"),
        _index("feedbacks.rating"),
        _index("project", partialFilterExpression={"unprocessed_event": {"$exists": True}}),
    ],
    "messages": [_OF_SESSION],
    "entries": [
        _OF_SESSION,
        _index("project", "external_id", unique=True, partialFilterExpression={"external_id": {"$type": "string"}}),
    ],
    "waiting": [_index("project", "external_id", unique=True), _index("until", expireAfterSeconds=0)],
    "feedbacks": [_OF_SESSION, _index("project", "target_type", "target_id", "number")],
    "events": [
        _index("project", "idempotency_key", unique=True),
        _index("project", "target_id"),
        _index("project", "partition", "place", partialFilterExpression={"partition": {"$exists": True}}),
    ],
    "partitions": [_index("project", "partition", unique=True)],
    "outbox": [_OF_SESSION, _index("project", "next_at"), _index("project", "number")],
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
        return self._collection.find_one(self._in_project(query), fields, session=self._session)

    def find(
        self,
        query: Document,
        sort: Sequence[tuple[str, int]] = BY_ID,
        limit: int = 0,
        fields: Sequence[str] | None = None,
    ) -> Iterator[Document]:
        with self._collection.find(
            self._in_project(query), fields, sort=list(sort), limit=limit, session=self._session
        ) as cursor:
            yield from cursor

    def page(
        self,
        query: Document,
        after: int | None,
        limit: int,
        newest_first: bool = True,
        fields: Sequence[str] | None = None,
    ) -> Iterator[Document]:
        """Documents in the order of their numbers, from the one after a number on."""
        if after is not None:
            query = {**query, "number": {"$lt" if newest_first else "$gt": after}}
        return self.find(query, [("number", DESCENDING if newest_first else ASCENDING)], limit, fields)

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
            fields,
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

    def session_number(self, session_id: str) -> int | None:
        document = self.sessions.find_one({"_id": self.session_key(session_id)}, ["number"])
        return None if document is None else document["number"]

    def in_sessions(self, session_ids: Sequence[str] | None) -> Iterator[Document]:
        """Conditions for documents of these sessions, or of all."""
        if session_ids is None:
            yield {}
            return
        for run in batches(session_ids):
            keys = [self.session_key(session_id) for session_id in run]
            documents = self.sessions.find({"_id": {"$in": keys}}, fields=["number"])
            yield {"session": {"$in": [document["number"] for document in documents]}}

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


def described(metadata: Metadata) -> Document:
    return {"metadata": metadata, "tags": flattened(metadata)}


def without_journal(database: Database[Document], name: str) -> Collection[Document]:
    """A collection whose writes don't wait for the journal: the next durable write covers them."""
    return database.get_collection(name, write_concern=WriteConcern(1, j=False))


class InView:
    def __init__(self, view: View) -> None:
        self._view = view


class MongoChanges(InView):
    """See `Changes`."""

    def newest(self) -> dict[int, int]:
        partitions = self._view.partitions.find({}, [("partition", ASCENDING)])
        return {partition["partition"]: partition["last"] for partition in partitions}

    def positions(self) -> dict[int, int]:
        result = {}
        for partition in self.newest():
            for document in self._view.events.find({"partition": partition}, [("place", DESCENDING)], 1, ["place"]):
                result[partition] = int(document["place"])
        return result

    def changes_after(self, partition: int, position: int, limit: int) -> list[Change]:
        query, fields = {"partition": partition, "place": {"$gt": position}}, ["place", "kind", "target_id"]
        return [
            Change(document["place"], document["_id"], True)
            if document["kind"] != RETRACTION
            # The retraction event decides, even if the opinion's own document is updated later.
            else Change(document["place"], document["target_id"], False)
            for document in self._view.events.find(query, [("place", ASCENDING)], limit, fields)
        ]


def to_document(row: Any) -> Document:
    """A dataclass as a document: its fields by name (`_id` for `id`)."""
    values = asdict(row)
    return {"_id": values.pop("id"), **values}


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
    if operator in ("=", "!="):
        return (_having if operator == "=" else _lacking)(key, value=tag(value))
    if isinstance(value, str):
        return _having(key, value={**_TEXTS[operator], _COMPARISONS[operator]: tag(value)})
    return _having(key, number={_COMPARISONS[operator]: float(value)})


def _having(key: str, **required: Any) -> Document:
    return {"tags": {"$elemMatch": {"key": key, **required}}}


def _lacking(key: str, **required: Any) -> Document:
    return {"tags": {"$not": {"$elemMatch": {"key": key, **required}}}}
