"""Checks the arguments of calls about sessions before anything is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import Invalid, quoted
from heedful.memory import checks
from heedful.model import Metadata, Rating, limits
from heedful.ranking.ratings import normalise_rating

limit, cursor = checks.limit, checks.cursor

RESERVED_KEYS = frozenset({"id", "feedback_id", "created_at", "rating", "comment", "qa_id", "feedback_score"})
"""Keys of a feedback that are not extras."""


def session_id(value: Any) -> str:
    return checks.name("session_id", value)


def role(value: Any, field: str = "role") -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > limits.MAX_ROLE:
        raise Invalid(
            f"{field} must be a name of up to {limits.MAX_ROLE} characters, got {quoted(value)}",
            field=field,
            value=value,
            remedy='Use "user", "assistant", "system" or "tool"',
        )
    return checks.identifier(field, value)


def question(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"question must not be empty or blank, got {quoted(value)}", field="question", value=value)
    return content("question", value, limits.MAX_QUERY)


def content(field: str, value: Any, limit: int = limits.MAX_CONTENT) -> str:
    """A text that may be empty."""
    if not isinstance(value, str):
        raise Invalid(f"{field} must be a string, got {quoted(value)}", field=field, value=value)
    if len(value) > limit:
        raise Invalid(f"{field} has {len(value)} characters, the limit is {limit}", field=field, value=value[:50])
    return checks.any_text(field, value)


def rating(value: Any) -> Rating | None:
    """A thumb: up, down, or None for neutral; the same as a boolean or in other words is understood, too."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Invalid(
            f"invalid rating {quoted(value)}",
            field="rating",
            value=value,
            remedy='Use "up", "down", or None for neutral',
        )
    return normalise_rating(value).rating


def comment(field: str, value: Any) -> str | None:
    return None if value is None else content(field, value, limits.MAX_COMMENT)


def score(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5):
        raise Invalid(
            f"feedback_score must be a whole number from 1 to 5, got {quoted(value)}",
            field="feedback_score",
            value=value,
            remedy="Use 1 (worst) to 5 (best)",
        )
    return None if value is None else int(value)


def extra(feedback: Mapping[str, Any]) -> Metadata:
    """What hooks added to a feedback."""
    return check_keys(
        "feedback", checks.metadata("feedback", {k: v for k, v in feedback.items() if k not in RESERVED_KEYS})
    )


def metadata(value: Any) -> Metadata:
    """Metadata to merge: top-level keys may be dotted, inner ones not."""
    return check_keys("metadata", checks.metadata("metadata", value), dotted=True)


def check_keys(field: str, values: Metadata, *, dotted: bool = False) -> Metadata:
    """The values, after checking that every store can hold their keys."""
    for name, value in values.items():
        if dotted:
            key(field, name)
        else:
            check_key_part(field, name, name)
        _check_nested(field, name, value)
    return values


def keys(value: Any) -> list[str]:
    """Metadata keys to delete."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Sequence):
        raise Invalid(f"keys must be a list of names, got {quoted(value)}", field="keys", value=value)
    for name in value:
        key("keys", name)
    return list(value)


def key(field: str, value: Any) -> None:
    """A (dotted) key of metadata."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"{field} has the key {quoted(value)}, which is not a name", field=field, value=value)
    for name in value.split("."):
        check_key_part(field, value, name)


def check_key_part(field: str, key: str, value: str) -> None:
    """Checks one part of a dotted key."""
    checks.any_text(field, value)
    if not value.strip() or value.startswith("$") or "." in value:
        raise Invalid(
            f"{field} has the key {quoted(key)}",
            field=field,
            value=key,
            remedy="Use names without a leading $ or dot; a dot addresses a nested key",
        )


def _check_nested(field: str, key: str, value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            check_key_part(field, f"{key}.{name}", name)
            _check_nested(field, f"{key}.{name}", inner)
    elif isinstance(value, list):
        for item in value:
            _check_nested(field, key, item)
