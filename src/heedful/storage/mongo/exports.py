"""The rows of sessions that are in MongoDB, as they leave the project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
from pymongo import ASCENDING

from heedful.storage.exports import ExportQuery, Rows, misplaced, number
from heedful.storage.mongo.collections import Document, Part, View
from heedful.storage.mongo.feedback import trust_in

Row = tuple[Any, ...]


class MongoExports:
    """See `base.Exports`."""

    def __init__(self, view: View) -> None:
        self._view = view

    def page(self, table: str, wanted: ExportQuery, after: str | None, limit: int) -> tuple[Rows, str | None]:
        view = self._view
        if table == "sessions":
            where = _after("number", None if after is None else number(after)) | _within("at.created", wanted)
            found = list(view.sessions.find(where, [("number", ASCENDING)], limit))
            return [_session(each) for each in found], str(found[-1]["number"]) if len(found) == limit else None
        if table == "events":
            where = _after("_id", after) | _within("at", wanted)
            found = [] if wanted.dataset is not None else list(view.events.find(where, [("_id", ASCENDING)], limit))
            return [_event(each) for each in found], found[-1]["_id"] if len(found) == limit else None
        part, of = {
            "messages": (view.messages, self._messages),
            "entries": (view.entries, self._entries),
            "feedback": (view.feedbacks, self._feedback),
        }[table]
        return self._inside(part, of, wanted, after, limit)

    def _inside(
        self,
        part: Part,
        of: Callable[[Sequence[Document], ExportQuery], Rows],
        wanted: ExportQuery,
        after: str | None,
        limit: int,
    ) -> tuple[Rows, str | None]:
        """What is in sessions, one session after the other."""
        where = _within("at", wanted)
        if after is not None:
            session, place = _place(after)
            where["$or"] = [{"session": {"$gt": session}}, {"session": session, "number": {"$gt": place}}]
        found = list(part.find(where, [("session", ASCENDING), ("number", ASCENDING)], limit))
        last = f"{found[-1]['session']}.{found[-1]['number']}" if len(found) == limit else None
        return of(found, wanted), last

    def _messages(self, found: Sequence[Document], wanted: ExportQuery) -> Rows:
        sessions = self._view.sessions.find(
            {"number": {"$in": _distinct(each["session"] for each in found)}},
            [("number", ASCENDING)],
            fields={"number": 1, "session_id": 1},
        )
        names = {each["number"]: each["session_id"] for each in sessions}
        return [(each["_id"], names.get(each["session"]), each["role"], each["content"], each["at"]) for each in found]

    def _entries(self, found: Sequence[Document], wanted: ExportQuery) -> Rows:
        return [_entry(each) for each in found if wanted.dataset in (None, each["dataset"])]

    def _feedback(self, found: Sequence[Document], wanted: ExportQuery) -> Rows:
        about = self._view.entries.find(
            {"_id": {"$in": _distinct(each["target_id"] for each in found if each["target_type"] == "entry")}},
            [("_id", ASCENDING)],
            fields={"dataset": 1},
        )
        datasets = {each["_id"]: each["dataset"] for each in about}
        rows = [_feedback(each, datasets.get(each["target_id"])) for each in found]
        return [row for row in rows if wanted.dataset in (None, row[4])]


def _after(field: str, position: Any) -> Document:
    return {} if position is None else {field: {"$gt": position}}


def _within(field: str, wanted: ExportQuery) -> Document:
    limits = {
        **({} if wanted.since is None else {"$gte": wanted.since}),
        **({} if wanted.until is None else {"$lt": wanted.until}),
    }
    return {field: limits} if limits else {}


def _place(position: str) -> tuple[int, int]:
    parts = position.split(".")
    if len(parts) != 2:
        raise misplaced(position)
    return number(parts[0]), number(parts[1])


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _session(each: Document) -> Row:
    return (each["session_id"], _json(each["metadata"]), each["at"]["created"], each["at"]["updated"])


def _entry(each: Document) -> Row:
    return (
        *(each["_id"], each["session_id"], each["question"], each["answer"], each["context"], each["dataset"]),
        *(each["recall_id"], each["model"], _json(each["used"]), _json(each["usage"]), each["at"]),
    )


def _feedback(each: Document, dataset: str | None) -> Row:
    return (
        *(each["_id"], each["session_id"], each["target_type"], each["target_id"], dataset, each["author"]),
        *(
            trust_in(each),
            each["rating"],
            each["score"],
            each["comment"],
            _json(each["extra"]),
            each["at"],
            each["at"],
        ),
        *(each["active"], each["_id"], None),
    )


def _event(each: Document) -> Row:
    return (
        *(each["_id"], each["kind"], each["target_type"], each["target_id"], None, each["author"]),
        *(trust_in(each), each["source"]),
        *(each["at"], each["recorded_at"], None, each["value"], each["confidence"], each["receipt_id"]),
        *(each["rank"], _json(each["body"])),
    )
