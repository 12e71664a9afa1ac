"""What rows of other systems mean here. Pure: rows in, records out.

Each reader takes what its system exports: mem0's `get_all`, cognee's COGX archives and session entries, Hindsight's
transfer archives and lists of memories, Langfuse's traces, enriched observations and scores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from heedful.errors import Invalid, quoted
from heedful.model import SIGNAL_TYPES, Document, Metadata, SignalType
from heedful.transfer.foreign.records import Answer, Opinion, Rating, Record, Skipped, Texts
from heedful.transfer.foreign.rows import Row

System = Literal["mem0", "cognee", "hindsight", "langfuse"]
SYSTEMS: tuple[System, ...] = get_args(System)

Value = dict[str, Any]

MEM0_FEEDBACK: dict[str, tuple[SignalType, float]] = {
    "POSITIVE": ("helpful", 1.0),
    "NEGATIVE": ("not_helpful", 0.5),
    "VERY_NEGATIVE": ("not_helpful", 1.0),
}
COGX_TEXTS = {"document": "content", "memory": "content", "fact": "fact_text", "memory_block": "value"}
"""Where records of a COGX archive have their text."""

QUESTION_FIELDS = ("question", "query", "input", "prompt", "message", "text", "content")
ANSWER_FIELDS = ("answer", "output", "response", "completion", "choices", "message", "text", "content")


def mem0(row: Row, now: datetime) -> Iterator[Record]:
    """A memory, or what was sent to `client.feedback`."""
    value = row.value
    if "feedback" in value and "memory_id" in value:
        memory, feedback = _text(value, "memory_id"), _text(value, "feedback")
        if feedback not in MEM0_FEEDBACK:
            raise _wrong("feedback", feedback, "one of POSITIVE, NEGATIVE and VERY_NEGATIVE")
        signal_type, confidence = MEM0_FEEDBACK[feedback]
        yield Opinion(
            f"mem0/{memory}",
            signal_type,
            f"mem0/{memory}/{feedback}",
            confidence=confidence,
            comment=_optional(value, "feedback_reason"),
        )
        return
    expires = _time(value, "expiration_date")
    if expires is not None and expires <= now:
        yield Skipped("expired memories")
        return
    about = _picked(value, "user_id", "agent_id", "app_id", "run_id", "categories", "created_at")
    yield _texts(f"mem0/{_text(value, 'id')}", _text(value, "memory"), _mapping(value, "metadata") | about, expires)


def cognee(row: Row, now: datetime, stem: str) -> Iterator[Record]:
    """A record of a COGX archive, or an entry of a session; one that names no session is in that of the file's name."""
    value = row.value
    if "question" in value:
        external_id = f"cognee/{_optional(value, 'qa_id') or _text(value, 'id')}"
        yield Answer(
            external_id,
            _optional(value, "session_id") or stem,
            _text(value, "question"),
            _text(value, "answer"),
            context=_optional(value, "context"),
        )
        score, comment = value.get("feedback_score"), _optional(value, "feedback_text")
        if score is not None or comment is not None:
            if score is not None and (type(score) is not int or not 1 <= score <= 5):
                raise _wrong("feedback_score", score, "a whole number from 1 to 5")
            yield Rating(external_id, score, comment, _optional(value, "user_id"), scale=(1, 5))
        return
    if "cogx_version" in value:
        return
    kind = _text(value, "kind")
    field = COGX_TEXTS.get(kind)
    if field is None or (kind == "fact" and not value.get(field)):
        yield Skipped(f"records of the kind {kind}")
        return
    about = _mapping(value, "metadata") | {
        name: each for name, each in _mapping(value, "scope").items() if each is not None
    }
    about |= _picked(value, "title", "label", "categories", "created_at", "valid_at", "invalid_at")
    yield _texts(f"cognee/{_text(value, 'external_id')}", _text(value, field), about)


def hindsight(row: Row, now: datetime) -> Iterator[Record]:
    """A document of a transfer archive, a memory of a list, or a signal."""
    value = row.value
    if "signal_type" in value:
        fact, signal_type, query = _text(value, "fact_id"), _text(value, "signal_type"), _text(value, "query")
        known = next((each for each in SIGNAL_TYPES if each == signal_type), None)
        if known is None:
            raise _wrong("signal_type", signal_type, f"one of {', '.join(SIGNAL_TYPES)}")
        confidence = value.get("confidence", 1.0)
        if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
            raise _wrong("confidence", confidence, "a number from 0 to 1")
        key = f"hindsight/{fact}/{signal_type}/{_optional(value, 'timestamp') or row.line}"
        yield Opinion(f"hindsight/{fact}", known, key, query, float(confidence), _optional(value, "context"))
    elif isinstance(value.get("facts"), list):
        facts = [each for each in value["facts"] if isinstance(each, dict)]
        texts = [_text(each, "text", f"facts[{index}].") for index, each in enumerate(facts)]
        if texts:
            metadata = [_of_memory(each) for each in facts]
            document = Document(source=f"hindsight/{_text(value, 'id')}", texts=texts, metadata=metadata)
            yield Texts(document)
    elif "source_bank_id" in value:
        return
    elif row.file is not None and not row.file.startswith("documents/"):
        yield Skipped(f"rows of {row.file}")
    else:
        yield _texts(f"hindsight/{_text(value, 'id')}", _text(value, "text"), _of_memory(value))


def _of_memory(value: Value) -> Metadata:
    about = _picked(value, "context", "tags", "occurred_start", "occurred_end", "mentioned_at", "date", "document_id")
    kind = value.get("fact_type") or value.get("type")
    return _mapping(value, "metadata") | about | ({"fact_type": kind} if kind else {})


def langfuse(row: Row, now: datetime) -> Iterator[Record]:
    """A trace, with its scores if it has any; a root observation; or a score."""
    value = {_snake(name): each for name, each in row.value.items()}
    if "trace_id" in value and "value" in value and "name" in value:
        yield from _score(value)
        return
    trace = _text(value, "trace_id" if "trace_id" in value else "id")
    if "trace_id" in value and value.get("parent_observation_id"):
        yield Skipped("observations inside others")
        return
    question = _said(value.get("input"), "user", QUESTION_FIELDS)
    answer = _said(value.get("output"), "assistant", ANSWER_FIELDS)
    if not question or not answer:
        yield Skipped("traces without input or output")
        return
    about = _picked(value, "user_id", "release", "version", "environment", "tags")
    session = _optional(value, "session_id") or trace
    yield Answer(f"langfuse/{trace}", session, question, answer, about=about)
    for score in value.get("scores") or ():
        if isinstance(score, dict):
            yield from _score({"trace_id": trace} | {_snake(name): each for name, each in score.items()})


def _score(value: Value) -> Iterator[Record]:
    if value.get("source") == "EVAL":
        yield Skipped("scores of evaluators")
        return
    if not value.get("trace_id"):
        yield Skipped("scores without a trace")
        return
    kind, comment = value.get("data_type") or "NUMERIC", _optional(value, "comment")
    external_id, author = f"langfuse/{_text(value, 'trace_id')}", _optional(value, "author_user_id")
    if kind == "TEXT":
        yield Rating(external_id, None, comment or _text(value, "string_value"), author)
    elif kind == "CATEGORICAL":
        yield Rating(external_id, _text(value, "string_value"), comment, author)
    else:
        number = value["value"]
        if not isinstance(number, int | float):
            raise _wrong("value", number, "a number")
        yield Rating(external_id, bool(number) if kind == "BOOLEAN" else number, comment, author)


def _said(value: Any, role: str, fields: tuple[str, ...]) -> str:
    """The words in an input or an output: a text, messages of a chat, or an object with one of the usual fields."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("{", "["):
            return value.strip()
        try:
            return _said(json.loads(value), role, fields)
        except json.JSONDecodeError:
            return value.strip()
    if isinstance(value, list):
        parts = [each["text"] for each in value if isinstance(each, dict) and isinstance(each.get("text"), str)]
        if parts:
            return " ".join(parts)
        messages = [each for each in value if not isinstance(each, dict) or each.get("role") in (role, None)]
        return _said(messages[-1], role, fields) if messages else ""
    if isinstance(value, dict):
        found = next((value[name] for name in ("messages", *fields) if value.get(name)), None)
        return _said(found, role, fields) if found is not None else json.dumps(value, ensure_ascii=False)
    return ""


def _texts(source: str, text: str, metadata: Metadata, expires_at: datetime | None = None) -> Texts:
    return Texts(Document(source=source, texts=[text], metadata=[metadata]), expires_at=expires_at)


def _text(value: Value, name: str, place: str = "") -> str:
    found = value.get(name)
    if isinstance(found, str) and found.strip():
        return found
    if found is None:
        raise Invalid(f"has no {place}{name}", field=f"{place}{name}")
    raise _wrong(place + name, found, "a text that is not empty")


def _optional(value: Value, name: str) -> str | None:
    found = value.get(name)
    if found is None or found == "":
        return None
    return _text(value, name)


def _mapping(value: Value, name: str) -> Metadata:
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _wrong(name, found, "an object")
    return found


def _picked(value: Value, *names: str) -> Metadata:
    return {name: value[name] for name in names if value.get(name) not in (None, "", [], {})}


def _time(value: Value, name: str) -> datetime | None:
    found = _optional(value, name)
    if found is None:
        return None
    try:
        parsed = datetime.fromisoformat(found)
    except ValueError:
        raise _wrong(name, found, "a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _wrong(field: str, value: Any, expected: str) -> Invalid:
    return Invalid(f"has {field} {quoted(value, 60)}, which is not {expected}", field=field, value=value)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def reader(system: System, path: Path) -> Callable[[Row, datetime], Iterator[Record]]:
    """What reads the rows of a file of a system."""
    if system == "cognee":
        return lambda row, now: cognee(row, now, path.name.partition(".")[0])
    return {"mem0": mem0, "hindsight": hindsight, "langfuse": langfuse}[system]
