"""Reports on sessions in MongoDB: rows for exports, and counts of opinions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import orjson
from pymongo import ASCENDING

from heedful.api import checks
from heedful.clock import DAY
from heedful.ledger.opinions import Counts
from heedful.ledger.tallies import TallyCounts, TallyQuery
from heedful.sessions.mongo.collections import IN_ORDER, Document, InView, View, between
from heedful.sessions.session_store import ExportQuery, Rows

Row = tuple[Any, ...]


def exported(view: View, table: str, query: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
    """See `RemoteTransaction.exported`."""
    if table == "sessions":
        where = between("at.created", query.since, query.until)
        documents = list(view.sessions.page(where, checks.cursor(after), limit, newest_first=False))
        last = str(documents[-1]["number"]) if len(documents) == limit else None
        return [_session(document) for document in documents], last
    if table == "events":
        where = between("at", query.since, query.until) | ({} if after is None else {"_id": {"$gt": after}})
        documents = [] if query.dataset is not None else list(view.events.find(where, limit=limit))
        last = documents[-1]["_id"] if len(documents) == limit else None
        return [_event(document) for document in documents], last
    part, to_rows = {
        "messages": (view.messages, _messages),
        "entries": (view.entries, _entries),
        "feedback": (view.feedbacks, _feedback),
    }[table]
    # Session by session.
    where = between("at", query.since, query.until)
    if after is not None:
        session, number = _parse_position(after)
        where["$or"] = [{"session": {"$gt": session}}, {"session": session, "number": {"$gt": number}}]
    documents = list(part.find(where, IN_ORDER, limit))
    last = f"{documents[-1]['session']}.{documents[-1]['number']}" if len(documents) == limit else None
    return to_rows(view, documents, query), last


def _messages(view: View, documents: Sequence[Document], query: ExportQuery) -> Rows:
    numbers = list({document["session"] for document in documents})
    fields = ["number", "session_id"]
    sessions = view.sessions.find({"number": {"$in": numbers}}, [("number", ASCENDING)], fields=fields)
    names = {session["number"]: session["session_id"] for session in sessions}
    return [
        (document["_id"], names.get(document["session"]), document["role"], document["content"], document["at"])
        for document in documents
    ]


def _entries(view: View, documents: Sequence[Document], query: ExportQuery) -> Rows:
    return [
        (
            *_ENTRY(document),
            *(_json(document["used"]), _json(document["usage"]), document.get("external_id"), document["at"]),
        )
        for document in documents
        if query.dataset in (None, document["dataset"])
    ]


def _feedback(view: View, documents: Sequence[Document], query: ExportQuery) -> Rows:
    ids = list({document["target_id"] for document in documents if document["target_type"] == "entry"})
    entries = view.entries.find({"_id": {"$in": ids}}, fields=["dataset"])
    datasets = {entry["_id"]: entry["dataset"] for entry in entries}
    rows = [_opinion_row(document, datasets.get(document["target_id"])) for document in documents]
    return [row for row in rows if query.dataset in (None, row[4])]


def _parse_position(position: str) -> tuple[int, int]:
    parts = position.split(".")
    if len(parts) != 2:
        raise checks.invalid_cursor(position)
    session, number = map(checks.cursor, parts)
    return session or 0, number or 0


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


_ENTRY = itemgetter("_id", "session_id", "question", "answer", "context", "dataset", "recall_id", "model")
_OPINION = itemgetter("_id", "session_id", "target_type", "target_id")
_EVENT = itemgetter("_id", "kind", "target_type", "target_id")
_EVENT_VALUE = itemgetter("value", "confidence", "receipt_id", "rank")


def _opinion_row(document: Document, dataset: str | None) -> Row:
    at = document["at"]
    return (
        *(*_OPINION(document), dataset, document["author"], document["author_kind"]),
        *(document["rating"], document["score"], document["comment"], _json(document["extra"]), at, at),
        *(document["active"], document["_id"], None),
    )


def _session(document: Document) -> Row:
    at = document["at"]
    return document["session_id"], _json(document["metadata"]), at["created"], at["updated"]


def _event(document: Document) -> Row:
    return (
        *(*_EVENT(document), None, document["author"], document["author_kind"], document["source"]),
        *(document["at"], document["recorded_at"], None, *_EVENT_VALUE(document), _json(document["body"])),
    )


_TARGETS = ("session", "entry")


class MongoReports(InView):
    """The part of `Feedbacks` that counts and lists."""

    def counts(self) -> Counts:
        characters = {"$sum": {"$strLenCP": {"$ifNull": ["$comment", ""]}}}
        group = {"$group": {"_id": None, **_OPINION_COUNTS, "characters": characters}}
        rows = self._view.feedbacks.aggregate({"active": True}, group)
        return Counts(*(int(rows[0][name]) if rows else 0 for name in Counts._fields))

    def tallies(self, query: TallyQuery) -> list[TallyCounts]:
        if "add_feedback" in query.without_sources:
            return []
        view = self._view
        opinions: Document = {"active": True, "target_type": {"$in": list(query.target_types or _TARGETS)}}
        rows = view.feedbacks.aggregate(
            {**opinions, **between("at", query.since, query.until)},
            *_about(query),
            *_valued(query),
            _grouped(query, "$at", {**_NOTHING, **_OPINION_COUNTS}),
        )
        if not query.target_types or "entry" in query.target_types:
            fields = ("project", "session", "target_id")
            first_per_target = {"$group": {"_id": "$target_id", **{name: {"$first": f"${name}"} for name in fields}}}
            rows += view.feedbacks.aggregate(
                {"active": True, "target_type": "entry"},
                first_per_target,
                *_JOINED_ENTRY,
                {"$match": {"entry": {"$exists": True}, **between("entry.at", query.since, query.until)}},
                *_chosen(query),
                *_valued(query),
                _grouped(query, "$entry.at", {**_NOTHING, "rated": {"$sum": 1}}, plain=True),
            )
            rows += view.entries.aggregate(
                between("at", query.since, query.until),
                {"$set": {"entry": "$$ROOT"}},
                *_chosen(query),
                *_valued(query),
                _grouped(query, "$at", {**_NOTHING, "shown": {"$sum": 1}}, plain=True),
            )
        return [_tally_counts(row) for row in rows]

    def negative_comments(
        self, dataset: str | None, since: int | None, until: int | None, limit: int
    ) -> list[tuple[str, str, int]]:
        documents = self._view.feedbacks.aggregate(
            {"active": True, "rating": "down", "comment": {"$ne": None}, **between("at", since, until)},
            {"$sort": {"at": -1, "_id": 1}},
            *_about(TallyQuery(dataset=dataset)),
            {"$limit": limit},
        )
        return [(document["_id"], document["comment"], document["at"]) for document in documents]

    def values(self, key: str) -> dict[str, int]:
        documents = self._view.sessions.aggregate(
            {"tags.key": key},
            {"$unwind": "$tags"},
            {"$match": {"tags.key": key}},
            {"$group": {"_id": "$tags.value", "sessions": {"$sum": 1}}},
        )
        return {document["_id"]: document["sessions"] for document in documents}

    def variants(self, key: str, limit: int) -> list[str]:
        # Steps from value to value by the index: there may be as many as sessions.
        values: list[str] = []
        while len(values) < limit:
            other = {"$elemMatch": {"key": key, "value": {"$nin": values}}}
            session = self._view.sessions.find_one({"tags": other}, ["tags"])
            if session is None:
                break
            values += {tag["value"] for tag in session["tags"] if tag["key"] == key}.difference(values)
        return sorted(values)[:limit]

    def keys(self, limit: int) -> list[str]:
        documents = self._view.sessions.aggregate(
            {}, {"$unwind": "$tags"}, {"$group": {"_id": "$tags.key"}}, {"$sort": {"_id": 1}}, {"$limit": limit}
        )
        return [document["_id"] for document in documents]


_JOINED_ENTRY: list[Document] = [
    {"$lookup": {"from": "entries", "localField": "target_id", "foreignField": "_id", "as": "entry"}},
    {"$set": {"entry": {"$first": "$entry"}}},
]
"""Joins the entry that an opinion is about, if any."""


def _about(query: TallyQuery) -> list[Document]:
    return [*_JOINED_ENTRY, *_chosen(query)] if query.dataset is not None or query.by in ("dataset", "model") else []


def _chosen(query: TallyQuery) -> list[Document]:
    return [] if query.dataset is None else [{"$match": {"entry.dataset": query.dataset}}]


def _valued(query: TallyQuery) -> list[Document]:
    """Yields a document for each value that the session's metadata have under the query's key."""
    if query.key is None:
        return []
    of_key = {"$filter": {"input": "$tags", "cond": {"$eq": ["$$this.key", query.key]}}}
    same_project = {"$match": {"$expr": {"$eq": ["$project", "$$project"]}}}
    sessions = {"from": "sessions", "let": {"project": "$project"}, "localField": "session", "foreignField": "number"}
    pipeline = [same_project, {"$project": {"tags": of_key}}]
    lookup = {"$lookup": {**sessions, "pipeline": pipeline, "as": "of"}}
    return [lookup, {"$unwind": "$of"}, {"$unwind": "$of.tags"}]


def _grouped(query: TallyQuery, at: str, measures: Document, *, plain: bool = False) -> Document:
    """`plain` rows have no author and no source."""
    day = {"$floor": {"$divide": [at, DAY]}}
    week = {"$subtract": [{"$multiply": [{"$floor": {"$divide": [{"$add": [day, 3]}, 7]}}, 7]}, 3]}
    by: Any = None
    if query.key is not None:
        by = "$of.tags.value"
    elif query.by in ("dataset", "model"):
        by = {"$ifNull": [f"$entry.{query.by}", ""]}
    elif query.by == "target_type":
        by = "entry" if plain else "$target_type"
    elif query.by is not None:
        by = "" if plain else {"source": "add_feedback", "author_kind": "$author_kind"}[query.by]
    start = {None: None, "day": day, "week": week}[query.over]
    return {"$group": {"_id": {"value": by, "start": start}, **measures}}


def _tally_counts(row: Document) -> TallyCounts:
    group = row["_id"]
    start = group.get("start")
    return TallyCounts(
        group.get("value"), None if start is None else int(start), *(int(row[name]) for name in TallyCounts._fields[2:])
    )


def _one_if(condition: Document) -> Document:
    return {"$sum": {"$cond": [condition, 1, 0]}}


_NOTHING: Document = {name: {"$sum": 0} for name in TallyCounts._fields[2:]}
_OPINION_COUNTS: Document = {
    "up": _one_if({"$eq": ["$rating", "up"]}),
    "down": _one_if({"$eq": ["$rating", "down"]}),
    "neutral": _one_if({"$eq": ["$rating", None]}),
    "scores": _one_if({"$ne": ["$score", None]}),
    "score_sum": {"$sum": "$score"},
}
