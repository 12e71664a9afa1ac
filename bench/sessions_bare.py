"""The bare drivers of SQLite and MongoDB, storing what Heedful stores, in its tables and collections.

Each call is one durable transaction and leaves the same rows or documents behind, with ids and times of its own.
Nothing is checked, and nothing is looked up.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

from pymongo import MongoClient, WriteConcern
from pymongo.client_session import ClientSession
from pymongo.read_concern import ReadConcern
from sqlalchemy import Table

from heedful.clock import from_stored, new_id
from heedful.sessions.mongo.collections import INDEXES, Document
from heedful.sessions.mongo.feedback import MAX_EMBEDDED, embedded_document, event_of
from heedful.storage import open_store
from heedful.storage.schema import entries, events, feedbacks

PROJECT = 1


class Answer(NamedTuple):
    """A question and answer to keep in a session."""

    session: str
    question: str
    answer: str


class Opinion(NamedTuple):
    """A score for an entry or, without one, a rating of the whole session."""

    session: str
    entry: str | None
    author: str
    score: int | None
    rating: str | None
    comment: str | None


class BareSqlite:
    """Heedful's tables with their indexes, as durable as Heedful makes them."""

    def __init__(self, file: Path) -> None:
        open_store(file).close()
        self._connection = sqlite3.connect(file, isolation_level=None)
        for pragma in ("synchronous = FULL", "foreign_keys = ON", "cache_size = -16384", "mmap_size = 268435456"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("INSERT INTO projects (id, name, created_at) VALUES (?, ?, 0)", (PROJECT, "default"))
        self._numbers: dict[str, int] = {}

    def create(self, session: str) -> None:
        at = _now()
        made = self._connection.execute(
            "INSERT INTO sessions (project_id, id, metadata, created_at, updated_at) VALUES (?, ?, '{}', ?, ?)",
            (PROJECT, session, at, at),
        )
        assert made.lastrowid is not None
        self._numbers[session] = made.lastrowid

    def keep(self, new: Answer) -> str:
        key, now, session = new_id(), _now(), self._numbers[new.session]
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        run(_TOUCH, (now, session))
        entry = {"id": key, "project_id": PROJECT, "session_seq": session, "at": now}
        run(_ENTRY, {**_NO_ENTRY, **entry, "question": new.question, "answer": new.answer})
        run("COMMIT")
        return key

    def rate(self, new: Opinion) -> None:
        key, now, session = new_id(), _now(), self._numbers[new.session]
        both: dict[str, Any] = {
            "id": key,
            "project_id": PROJECT,
            "author": new.author,
            "author_kind": "named",
            "at": now,
        }
        both |= {"target_type": "session", "target_id": new.session}
        if new.entry is not None:
            both |= {"target_type": "entry", "target_id": new.entry}
        event = {
            **_NO_EVENT,
            **both,
            "idempotency_key": key,
            "kind": "feedback",
            "source": "add_feedback",
            "recorded_at": now,
            "value": new.rating if new.score is None else str(new.score),
        }
        feedback = {
            **_NO_FEEDBACK,
            **both,
            "event_id": key,
            "session_seq": session,
            "rating": new.rating,
            "score": new.score,
            "comment": new.comment,
            "extra": "{}",
            "updated_at": now,
            "active": 1,
        }
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        run(_TOUCH, (now, session))
        run(_EVENT, event)
        run(_FEEDBACK, feedback)
        run("COMMIT")

    def close(self) -> None:
        self._connection.close()


class BareMongo:
    """Heedful's collections with their indexes, each write acknowledged by the majority's journals."""

    def __init__(self, url: str) -> None:
        self._client: MongoClient[Document] = MongoClient(url, w="majority", journal=True)
        self._database = self._client.get_default_database()
        for name, indexes in INDEXES.items():
            self._database[name].create_indexes(indexes)
        self._last = 0

    def create(self, session: str) -> None:
        at = _now()
        self._last += 1
        self._database.sessions.insert_one(
            {
                "_id": session,
                "session_id": session,
                "project": "default",
                "number": self._last,
                "metadata": {},
                "tags": [],
                "created_at": from_stored(at),
                "updated_at": from_stored(at),
                "at": {"created": at, "updated": at},
                "revision": 0,
                "last": 0,
                "feedbacks": [],
            }
        )

    def keep(self, new: Answer) -> str:
        key, now = new_id(), _now()
        entry: Document = {
            "_id": key,
            "session_id": new.session,
            "question": new.question,
            "answer": new.answer,
            "context": None,
            "at": now,
            "dataset": None,
            "recall_id": None,
            "used": None,
            "model": None,
            "usage": None,
            "project": "default",
        }
        with self._client.start_session() as transaction, self._begun(transaction):
            before = self._touched(new.session, _update(now), transaction)
            entry |= {"session": before["number"], "number": before["last"] + 1}
            self._database.entries.insert_one(entry, session=transaction)
        return key

    def rate(self, new: Opinion) -> None:
        key, now = new_id(), _now()
        feedback: Document = {
            "_id": key,
            "session_id": new.session,
            "target_type": "session" if new.entry is None else "entry",
            "target_id": new.entry or new.session,
            "author": new.author,
            "author_kind": "named",
            "rating": new.rating,
            "score": new.score,
            "comment": new.comment,
            "extra": {},
            "created_at": from_stored(now),
            "at": now,
            "active": True,
            "idempotency_key": key,
            "recorded_at": now,
            "project": "default",
        }
        change = _update(now)
        if new.entry is None:
            change["$push"] = {"feedbacks": {"$each": [embedded_document(feedback)], "$slice": -MAX_EMBEDDED}}
        with self._client.start_session() as transaction, self._begun(transaction):
            before = self._touched(new.session, change, transaction)
            feedback |= {"session": before["number"], "number": before["last"] + 1}
            self._database.feedbacks.insert_one(feedback, session=transaction)
            self._database.events.insert_one({**event_of(feedback), "project": "default"}, session=transaction)

    def close(self) -> None:
        self._client.close()

    def _begun(self, transaction: ClientSession) -> Any:
        return transaction.start_transaction(ReadConcern("snapshot"), WriteConcern("majority", j=True))

    def _touched(self, session: str, change: Document, transaction: ClientSession) -> Document:
        before = self._database.sessions.find_one_and_update(
            {"_id": session, "project": "default"}, change, {"number": 1, "last": 1}, session=transaction
        )
        assert before is not None
        return before


def _now() -> int:
    return time.time_ns() // 1000


def _update(at: int) -> Document:
    return {"$inc": {"last": 1}, "$set": {"updated_at": from_stored(at), "at.updated": at}}


def _columns(table: Table) -> list[str]:
    return [column.name for column in table.c if column.name != "seq"]


def _insert(table: Table) -> str:
    columns = ", ".join(f'"{name}"' for name in _columns(table))
    values = ", ".join(f":{name}" for name in _columns(table))
    return f"INSERT INTO {table.name} ({columns}) VALUES ({values})"


_TOUCH = "UPDATE sessions SET updated_at = ? WHERE seq = ?"
_ENTRY, _EVENT, _FEEDBACK = (_insert(table) for table in (entries, events, feedbacks))
_NO_ENTRY, _NO_EVENT, _NO_FEEDBACK = (dict.fromkeys(_columns(table)) for table in (entries, events, feedbacks))
