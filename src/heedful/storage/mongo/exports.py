"""Exports the rows of sessions in MongoDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import orjson
from pymongo import ASCENDING

from heedful.storage.exports import ExportQuery, Rows, misplaced, number
from heedful.storage.mongo.collections import Document, Part, View, between

Row = tuple[Any, ...]


class MongoExports:
    """See `base.Exports`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def page(self, table: str, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        view = self._view
        if table == "sessions":
            where = _after("number", None if after is None else number(after)) | between(
                "at.created", query.since, query.until
            )
            documents = list(view.sessions.find(where, [("number", ASCENDING)], limit))
            last = str(documents[-1]["number"]) if len(documents) == limit else None
            return [_session(document) for document in documents], last
        if table == "events":
            where = _after("_id", after) | between("at", query.since, query.until)
            documents = [] if query.dataset is not None else list(view.events.find(where, [("_id", ASCENDING)], limit))
            last = documents[-1]["_id"] if len(documents) == limit else None
            return [_event(document) for document in documents], last
        part, of = {
            "messages": (view.messages, self._messages),
            "entries": (view.entries, self._entries),
            "feedback": (view.feedbacks, self._feedback),
        }[table]
        return self._session_page(part, of, query, after, limit)

    def _session_page(
        self,
        part: Part,
        of: Callable[[Sequence[Document], ExportQuery], Rows],
        query: ExportQuery,
        after: str | None,
        limit: int,
    ) -> tuple[Rows, str | None]:
        """A page of documents, session by session."""
        where = between("at", query.since, query.until)
        if after is not None:
            session, last_number = _parse_position(after)
            where["$or"] = [{"session": {"$gt": session}}, {"session": session, "number": {"$gt": last_number}}]
        documents = list(part.find(where, [("session", ASCENDING), ("number", ASCENDING)], limit))
        last = f"{documents[-1]['session']}.{documents[-1]['number']}" if len(documents) == limit else None
        return of(documents, query), last

    def _messages(self, documents: Sequence[Document], query: ExportQuery) -> Rows:
        sessions = self._view.sessions.find(
            {"number": {"$in": _distinct(document["session"] for document in documents)}},
            [("number", ASCENDING)],
            fields={"number": 1, "session_id": 1},
        )
        names = {document["number"]: document["session_id"] for document in sessions}
        return [
            (document["_id"], names.get(document["session"]), document["role"], document["content"], document["at"])
            for document in documents
        ]

    def _entries(self, documents: Sequence[Document], query: ExportQuery) -> Rows:
        return [_entry(document) for document in documents if query.dataset in (None, document["dataset"])]

    def _feedback(self, documents: Sequence[Document], query: ExportQuery) -> Rows:
        entry_ids = [document["target_id"] for document in documents if document["target_type"] == "entry"]
        entries = self._view.entries.find(
            {"_id": {"$in": _distinct(entry_ids)}}, [("_id", ASCENDING)], fields={"dataset": 1}
        )
        datasets = {document["_id"]: document["dataset"] for document in entries}
        rows = [_feedback(document, datasets.get(document["target_id"])) for document in documents]
        return [row for row in rows if query.dataset in (None, row[4])]


def _after(field: str, position: Any) -> Document:
    return {} if position is None else {field: {"$gt": position}}


def _parse_position(position: str) -> tuple[int, int]:
    parts = position.split(".")
    if len(parts) != 2:
        raise misplaced(position)
    return number(parts[0]), number(parts[1])


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _session(document: Document) -> Row:
    return (document["session_id"], _json(document["metadata"]), document["at"]["created"], document["at"]["updated"])


_ENTRY = itemgetter("_id", "session_id", "question", "answer", "context", "dataset", "recall_id", "model")
_OPINION = itemgetter("_id", "session_id", "target_type", "target_id")
_EVENT = itemgetter("_id", "kind", "target_type", "target_id")
_EVENT_VALUE = itemgetter("value", "confidence", "receipt_id", "rank")


def _entry(document: Document) -> Row:
    return (
        *_ENTRY(document),
        _json(document["used"]),
        _json(document["usage"]),
        document.get("external_id"),
        document["at"],
    )


def _feedback(document: Document, dataset: str | None) -> Row:
    at = document["at"]
    return (
        *(*_OPINION(document), dataset, document["author"], document["author_kind"]),
        *(document["rating"], document["score"], document["comment"], _json(document["extra"]), at, at),
        *(document["active"], document["_id"], None),
    )


def _event(document: Document) -> Row:
    return (
        *(*_EVENT(document), None, document["author"], document["author_kind"], document["source"]),
        *(document["at"], document["recorded_at"], None, *_EVENT_VALUE(document), _json(document["body"])),
    )
