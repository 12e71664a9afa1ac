"""`where=`: conditions on metadata, as conditions on the tags that a session's metadata are flattened to."""

from __future__ import annotations

from typing import Any

from heedful.model import Metadata
from heedful.storage.facts import tag
from heedful.storage.filters import conditions
from heedful.storage.mongo.collections import Document

_COMPARISONS = {"<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
# A text is kept behind a quote, which keeps it apart from all else; "#" is the character behind it.
_TEXTS = {"<": {"$gte": '"'}, "<=": {"$gte": '"'}, ">": {"$lt": "#"}, ">=": {"$lt": "#"}}


def matching(where: Metadata) -> list[Document]:
    """One condition on session documents for each in `where`; all must hold."""
    return [_one(key, operator, value) for key, operator, value in conditions(where)]


def _one(key: str, operator: str, value: Any) -> Document:
    if operator == "exists":
        return _having(key) if value else _lacking(key)
    if operator == "in":
        return _having(key, value={"$in": [tag(item) for item in value]})
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
