"""An alert in words, for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def one_line(text: str, limit: int) -> str:
    """The text without line breaks and control characters, cut to a length."""
    return cut(_BREAKS.sub(" ", text).strip(), limit)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_digest(payload: Mapping[str, Any]) -> bool:
    """Whether it sums up what people said, and is not about one opinion."""
    return payload.get("type") == "digest"


def headline(payload: Mapping[str, Any]) -> str:
    """What happened, on one line.

    >>> headline({"session_id": "s1", "feedback": {"target_type": "entry", "rating": "down", "score": 2}})
    'Feedback "down" (2 of 5) on an answer in session s1'
    """
    if is_digest(payload):
        return one_line(str(payload.get("headline")), 150)
    feedback = payload.get("feedback") or {}
    score = feedback.get("score")
    rating = f'"{feedback.get("rating") or "neutral"}"' + ("" if score is None else f" ({score} of 5)")
    where = "on an answer in" if feedback.get("target_type") == "entry" else "on"
    return one_line(f"Feedback {rating} {where} session {payload.get('session_id')}", 150)


def details(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The rest of it but the comment, as labels and values of one line each."""
    feedback = payload.get("feedback") or {}
    about_answer = feedback.get("target_type") == "entry"
    found = [
        ("project", payload.get("project")),
        ("session", payload.get("session_id")),
        ("answer", feedback.get("target_id") if about_answer else None),
        ("author", feedback.get("author")),
        ("at", feedback.get("created_at")),
        ("feedback", feedback.get("id")),
    ]
    return [(label, one_line(str(value), 200)) for label, value in found if value is not None]


def comment(payload: Mapping[str, Any]) -> str:
    """What was said in words, or nothing."""
    if is_digest(payload):
        return str(payload.get("text")).strip()
    text = (payload.get("feedback") or {}).get("comment")
    return "" if text is None else str(text).strip()


def text(payload: Mapping[str, Any]) -> str:
    """All of it: what happened, the comment, and where it was."""
    if is_digest(payload):
        return comment(payload) + "\n"
    facts = "\n".join(f"{label}: {value}" for label, value in details(payload))
    return "\n\n".join(part for part in (headline(payload), comment(payload), facts) if part) + "\n"


def html(payload: Mapping[str, Any]) -> str | None:
    """A digest as a simple page; None for other alerts, which are short enough."""
    if not is_digest(payload):
        return None
    first, *rest = comment(payload).split("\n\n")
    parts = [f"<h2>{escape(first)}</h2>"]
    for each in rest:
        lines = each.split("\n")
        points = [line[2:] for line in lines if line.startswith("- ")]
        plain = "<br>".join(escape(line) for line in lines if not line.startswith("- "))
        listed = "".join(f"<li>{escape(point)}</li>" for point in points)
        parts.append(f"<p>{plain}</p>" + (f"<ul>{listed}</ul>" if points else ""))
    return f"<!doctype html><html><body>{''.join(parts)}</body></html>\n"
