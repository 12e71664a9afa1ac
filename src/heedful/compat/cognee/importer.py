"""cognee's exports: COGX archives and session entries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from heedful.transfer.foreign import ImportedAnswer, ImportedRating, Record, Row, SkippedRow, one_text, wrong

COGX_TEXTS = {"document": "content", "memory": "content", "fact": "fact_text", "memory_block": "value"}
"""Where records of a COGX archive have their text."""


def records(row: Row, now: datetime, path: Path) -> Iterator[Record]:
    """A record of a COGX archive, or an entry of a session; one that names no session is in that of the file's name."""
    value = row.value
    if "question" in value:
        external_id = f"cognee/{value.optional('qa_id') or value.text('id')}"
        yield ImportedAnswer(
            external_id,
            value.optional("session_id") or path.name.partition(".")[0],
            value.text("question"),
            value.text("answer"),
            context=value.optional("context"),
        )
        score, comment = value.get("feedback_score"), value.optional("feedback_text")
        if score is not None or comment is not None:
            if score is not None and (type(score) is not int or not 1 <= score <= 5):
                raise wrong("feedback_score", score, "a whole number from 1 to 5")
            yield ImportedRating(external_id, score, comment, value.optional("user_id"), scale=(1, 5))
        return
    if "cogx_version" in value:
        return
    kind = value.text("kind")
    field = COGX_TEXTS.get(kind)
    if field is None or (kind == "fact" and not value.get(field)):
        yield SkippedRow(f"records of the kind {kind}")
        return
    about = value.mapping("metadata") | {
        name: scope for name, scope in value.mapping("scope").items() if scope is not None
    }
    about |= value.picked("title", "label", "categories", "created_at", "valid_at", "invalid_at")
    yield one_text(f"cognee/{value.text('external_id')}", value.text(field), about)
