"""mem0's exports: what `get_all` returns, and what was sent to `client.feedback`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from heedful.model import SignalType
from heedful.transfer.foreign import FactOpinion, Record, Row, SkippedRow, one_text, wrong

FEEDBACK: dict[str, tuple[SignalType, float]] = {
    "POSITIVE": ("helpful", 1.0),
    "NEGATIVE": ("not_helpful", 0.5),
    "VERY_NEGATIVE": ("not_helpful", 1.0),
}


def records(row: Row, now: datetime, path: Path) -> Iterator[Record]:
    """A memory, or what was sent to `client.feedback`."""
    value = row.value
    if "feedback" in value and "memory_id" in value:
        memory, feedback = value.text("memory_id"), value.text("feedback")
        if feedback not in FEEDBACK:
            raise wrong("feedback", feedback, "one of POSITIVE, NEGATIVE and VERY_NEGATIVE")
        signal_type, confidence = FEEDBACK[feedback]
        fact, comment = f"mem0/{memory}", value.optional("feedback_reason")
        yield FactOpinion(fact, signal_type, f"{fact}/{feedback}", confidence=confidence, comment=comment)
        return
    expires = value.time("expiration_date")
    if expires is not None and expires <= now:
        yield SkippedRow("expired memories")
        return
    about = value.picked("user_id", "agent_id", "app_id", "run_id", "categories", "created_at")
    yield one_text(f"mem0/{value.text('id')}", value.text("memory"), value.mapping("metadata") | about, expires)
