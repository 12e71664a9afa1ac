"""Opinions about sessions and entries in MongoDB, counted by the server."""

from __future__ import annotations

from typing import Any

from heedful.clock import DAY
from heedful.ranking.signals import VISITOR
from heedful.storage.contributions import PROGRAM
from heedful.storage.mongo.collections import Document, View
from heedful.storage.tallies import TallyCounts, TallyQuery

_TARGETS = ("session", "entry")


def counts(view: View, asked: TallyQuery) -> list[TallyCounts]:
    """See `base.Feedbacks.tallies`."""
    opinions: Document = {"active": True, "target_type": {"$in": list(asked.target_types or _TARGETS)}}
    rated: Document = {"active": True, "target_type": "entry"}
    if "add_feedback" in asked.without_sources:
        return []
    found = view.feedbacks.aggregate(
        {**opinions, **_between("at", asked)}, *_about(asked), *_valued(asked), _grouped(asked, "$at", _OPINIONS)
    )
    if not asked.target_types or "entry" in asked.target_types:
        named = ("project", "session", "target_id")
        once = {"$group": {"_id": "$target_id", **{name: {"$first": f"${name}"} for name in named}}}
        found += view.feedbacks.aggregate(
            rated,
            once,
            *_entry(),
            {"$match": {"entry": {"$exists": True}, **_between("entry.at", asked)}},
            *_chosen(asked),
            *_valued(asked),
            _grouped(asked, "$entry.at", {**_NOTHING, "rated": {"$sum": 1}}, plain=True),
        )
        found += view.entries.aggregate(
            _between("at", asked),
            {"$set": {"entry": "$$ROOT"}},
            *_chosen(asked),
            *_valued(asked),
            _grouped(asked, "$at", {**_NOTHING, "shown": {"$sum": 1}}, plain=True),
        )
    return [_counted(each) for each in found]


def negative_comments(
    view: View, dataset: str | None, since: int | None, until: int | None, limit: int
) -> list[tuple[str, str, int]]:
    """See `base.Feedbacks.negative_comments`."""
    asked = TallyQuery(since=since, until=until, dataset=dataset)
    found = view.feedbacks.aggregate(
        {"active": True, "rating": "down", "comment": {"$ne": None}, **_between("at", asked)},
        {"$sort": {"at": -1, "_id": 1}},
        *_about(asked),
        {"$limit": limit},
    )
    return [(each["_id"], each["comment"], each["at"]) for each in found]


def values(view: View, key: str) -> dict[str, int]:
    """See `base.Feedbacks.values`."""
    found = view.sessions.aggregate(
        {"tags.key": key},
        {"$unwind": "$tags"},
        {"$match": {"tags.key": key}},
        {"$group": {"_id": "$tags.value", "sessions": {"$sum": 1}}},
    )
    return {each["_id"]: each["sessions"] for each in found}


def variants(view: View, key: str, limit: int) -> list[str]:
    """See `base.Feedbacks.variants`. From each value to another, by the index: there may be as many as sessions."""
    found: list[str] = []
    while len(found) < limit:
        other = {"$elemMatch": {"key": key, "value": {"$nin": found}}}
        session = view.sessions.find_one({"tags": other}, ["tags"])
        if session is None:
            break
        found += {tag["value"] for tag in session["tags"] if tag["key"] == key}.difference(found)
    return sorted(found)[:limit]


def keys(view: View, limit: int) -> list[str]:
    """See `base.Feedbacks.keys`."""
    found = view.sessions.aggregate(
        {}, {"$unwind": "$tags"}, {"$group": {"_id": "$tags.key"}}, {"$sort": {"_id": 1}}, {"$limit": limit}
    )
    return [each["_id"] for each in found]


def _between(field: str, asked: TallyQuery) -> Document:
    limits = {
        **({} if asked.since is None else {"$gte": asked.since}),
        **({} if asked.until is None else {"$lt": asked.until}),
    }
    return {field: limits} if limits else {}


def _entry() -> list[Document]:
    """With the entry that an opinion is about, if it is about one."""
    return [
        {"$lookup": {"from": "entries", "localField": "target_id", "foreignField": "_id", "as": "entry"}},
        {"$set": {"entry": {"$first": "$entry"}}},
    ]


def _about(asked: TallyQuery) -> list[Document]:
    return [*_entry(), *_chosen(asked)] if asked.dataset is not None or asked.by in ("dataset", "model") else []


def _chosen(asked: TallyQuery) -> list[Document]:
    return [] if asked.dataset is None else [{"$match": {"entry.dataset": asked.dataset}}]


def _valued(asked: TallyQuery) -> list[Document]:
    """With a document for each value that the session has under the key that is asked for."""
    if asked.key is None:
        return []
    of_key = {"$filter": {"input": "$tags", "cond": {"$eq": ["$$this.key", asked.key]}}}
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


def _grouped(asked: TallyQuery, at: str, measures: Document, *, plain: bool = False) -> Document:
    """`plain` rows have no author and no source."""
    day = {"$floor": {"$divide": [at, DAY]}}
    week = {"$subtract": [{"$multiply": [{"$floor": {"$divide": [{"$add": [day, 3]}, 7]}}, 7]}, 3]}
    by: Any = None
    if asked.key is not None:
        by = "$of.tags.value"
    elif asked.by in ("dataset", "model"):
        by = {"$ifNull": [f"$entry.{asked.by}", ""]}
    elif asked.by == "target_type":
        by = "entry" if plain else "$target_type"
    elif asked.by is not None:
        by = "" if plain else {"source": "add_feedback", "author_kind": _AUTHOR_KIND}[asked.by]
    start = {None: None, "day": day, "week": week}[asked.over]
    return {"$group": {"_id": {"value": by, "start": start}, **measures}}


def _counted(found: Document) -> TallyCounts:
    group = found["_id"]
    start = group.get("start")
    return TallyCounts(
        group.get("value"),
        None if start is None else int(start),
        *(int(found[name]) for name in TallyCounts._fields[2:]),
    )


def _begins(prefix: str) -> Document:
    return {"$eq": [{"$substrCP": ["$author", 0, len(prefix)]}, prefix]}


_AUTHOR_KIND: Document = {
    "$switch": {
        "branches": [
            {"case": {"$eq": ["$author", None]}, "then": "unknown"},
            {"case": _begins(PROGRAM), "then": "program"},
            {"case": _begins(VISITOR), "then": "visitor"},
        ],
        "default": "person",
    }
}


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
