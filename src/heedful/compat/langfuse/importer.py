"""Langfuse's exports: traces, enriched observations and scores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_snake

from heedful.transfer.foreign import Fields, ImportedAnswer, ImportedRating, Record, Row, SkippedRow, wrong

QUESTION_FIELDS = ("question", "query", "input", "prompt", "message", "text", "content")
ANSWER_FIELDS = ("answer", "output", "response", "completion", "choices", "message", "text", "content")


def records(row: Row, now: datetime, path: Path) -> Iterator[Record]:
    """A trace, with its scores if it has any; a root observation; or a score."""
    value = _in_snake_case(row.value)
    if "trace_id" in value and "value" in value and "name" in value:
        yield from _score(value)
        return
    trace = value.text("trace_id" if "trace_id" in value else "id")
    if "trace_id" in value and value.get("parent_observation_id"):
        yield SkippedRow("observations inside others")
        return
    question = _words(value.get("input"), "user", QUESTION_FIELDS)
    answer = _words(value.get("output"), "assistant", ANSWER_FIELDS)
    if not question or not answer:
        yield SkippedRow("traces without input or output")
        return
    about = value.picked("user_id", "release", "version", "environment", "tags")
    session = value.optional("session_id") or trace
    yield ImportedAnswer(f"langfuse/{trace}", session, question, answer, about=about)
    for score in value.get("scores") or ():
        if isinstance(score, dict):
            yield from _score(Fields({"trace_id": trace} | _in_snake_case(score)))


def _score(value: Fields) -> Iterator[Record]:
    if value.get("source") == "EVAL":
        yield SkippedRow("scores of evaluators")
        return
    if not value.get("trace_id"):
        yield SkippedRow("scores without a trace")
        return
    kind, comment = value.get("data_type") or "NUMERIC", value.optional("comment")
    external_id, author = f"langfuse/{value.text('trace_id')}", value.optional("author_user_id")
    if kind == "TEXT":
        yield ImportedRating(external_id, None, comment or value.text("string_value"), author)
    elif kind == "CATEGORICAL":
        yield ImportedRating(external_id, value.text("string_value"), comment, author)
    else:
        number = value["value"]
        if not isinstance(number, int | float):
            raise wrong("value", number, "a number")
        yield ImportedRating(external_id, bool(number) if kind == "BOOLEAN" else number, comment, author)


def _words(value: Any, role: str, fields: tuple[str, ...]) -> str:
    """The words in an input or an output: a text, messages of a chat, or an object with one of the usual fields."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("{", "["):
            return value.strip()
        try:
            return _words(json.loads(value), role, fields)
        except json.JSONDecodeError:
            return value.strip()
    if isinstance(value, list):
        parts = [part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str)]
        if parts:
            return " ".join(parts)
        messages = [part for part in value if not isinstance(part, dict) or part.get("role") in (role, None)]
        return _words(messages[-1], role, fields) if messages else ""
    if isinstance(value, dict):
        inner = next((value[name] for name in ("messages", *fields) if value.get(name)), None)
        return _words(inner, role, fields) if inner is not None else json.dumps(value, ensure_ascii=False)
    return ""


def _in_snake_case(value: dict[str, Any]) -> Fields:
    return Fields({to_snake(name): field for name, field in value.items()})
