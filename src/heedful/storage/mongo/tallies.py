"""Counts of opinions about sessions and entries, computed by MongoDB."""

from __future__ import annotations

from typing import Any

from heedful.clock import DAY
from heedful.storage.mongo.collections import Document, View, between
from heedful.storage.tallies import TallyCounts, TallyQuery

_TARGETS = ("session", "entry")


def counts(view: View, query: TallyQuery) -> list[TallyCounts]:
    """See `base.Feedbacks.tallies`."""
    opinions: Document = {"active": True, "target_type": {"$in": list(query.target_types or _TARGETS)}}
    rated: Document = {"active": True, "target_type": "entry"}
    if "add_feedback" in query.without_sources:
        return []
    rows = view.feedbacks.aggregate(
        {**opinions, **between("at", query.since, query.until)},
        *_about(query),
        *_valued(query),
        _grouped(query, "$at", _OPINIONS),
    )
    if not query.target_types or "entry" in query.target_types:
        fields = ("project", "session", "target_id")
        first_per_target = {"$group": {"_id": "$target_id", **{name: {"$first": f"${name}"} for name in fields}}}
        rows += view.feedbacks.aggregate(
            rated,
            first_per_target,
            *_entry(),
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
    view: View, dataset: str | None, since: int | None, until: int | None, limit: int
) -> list[tuple[str, str, int]]:
    """See `base.Feedbacks.negative_comments`."""
    query = TallyQuery(since=since, until=until, dataset=dataset)
    documents = view.feedbacks.aggregate(
        {"active": True, "rating": "down", "comment": {"$ne": None}, **between("at", query.since, query.until)},
        {"$sort": {"at": -1, "_id": 1}},
        *_about(query),
        {"$limit": limit},
    )
    return [(document["_id"], document["comment"], document["at"]) for document in documents]


def values(view: View, key: str) -> dict[str, int]:
    """See `base.Feedbacks.values`."""
    documents = view.sessions.aggregate(
        {"tags.key": key},
        {"$unwind": "$tags"},
        {"$match": {"tags.key": key}},
        {"$group": {"_id": "$tags.value", "sessions": {"$sum": 1}}},
    )
    return {document["_id"]: document["sessions"] for document in documents}


def variants(view: View, key: str, limit: int) -> list[str]:
    """See `base.Feedbacks.variants`. Steps from value to value by the index: there may be as many as sessions."""
    values: list[str] = []
    while len(values) < limit:
        other = {"$elemMatch": {"key": key, "value": {"$nin": values}}}
        session = view.sessions.find_one({"tags": other}, ["tags"])
        if session is None:
            break
        values += {tag["value"] for tag in session["tags"] if tag["key"] == key}.difference(values)
    return sorted(values)[:limit]


def keys(view: View, limit: int) -> list[str]:
    """See `base.Feedbacks.keys`."""
    documents = view.sessions.aggregate(
        {}, {"$unwind": "$tags"}, {"$group": {"_id": "$tags.key"}}, {"$sort": {"_id": 1}}, {"$limit": limit}
    )
    return [document["_id"] for document in documents]


def _entry() -> list[Document]:
    """Joins the entry that an opinion is about, if any."""
    return [
        {"$lookup": {"from": "entries", "localField": "target_id", "foreignField": "_id", "as": "entry"}},
        {"$set": {"entry": {"$first": "$entry"}}},
    ]


def _about(query: TallyQuery) -> list[Document]:
    return [*_entry(), *_chosen(query)] if query.dataset is not None or query.by in ("dataset", "model") else []


def _chosen(query: TallyQuery) -> list[Document]:
    return [] if query.dataset is None else [{"$match": {"entry.dataset": query.dataset}}]


def _valued(query: TallyQuery) -> list[Document]:
    """Yields a document for each value that the session's metadata have under the query's key."""
    if query.key is None:
        return []
    of_key = {"$filter": {"input": "$tags", "cond": {"$eq": ["$$this.key", query.key]}}}
    return [
        {
            "$lookup": {
                "from": "sessions",
                "let": {"project": "$project"},
                "localField": "session",
                "foreignField": "number",
                "pipeline": [{"$match": {"$expr": {"$eq": ["$project", "$$project"]}}}, {"$project": {"tags": of_key}}],
                "as": "of",
            }
        },
        {"$unwind": "$of"},
        {"$unwind": "$of.tags"},
    ]


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
        group.get("value"),
        None if start is None else int(start),
        *(int(row[name]) for name in TallyCounts._fields[2:]),
    )


def _one_if(condition: Document) -> Document:
    return {"$sum": {"$cond": [condition, 1, 0]}}


_NOTHING: Document = {name: {"$sum": 0} for name in TallyCounts._fields[2:]}
_OPINIONS: Document = {
    **_NOTHING,
    "up": _one_if({"$eq": ["$rating", "up"]}),
    "down": _one_if({"$eq": ["$rating", "down"]}),
    "neutral": _one_if({"$eq": ["$rating", None]}),
    "scores": _one_if({"$ne": ["$score", None]}),
    "score_sum": {"$sum": "$score"},
}
