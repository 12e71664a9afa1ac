"""Hindsight's exports: transfer archives, lists of memories, and signals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from heedful.model import SIGNAL_TYPES, Document, Metadata
from heedful.transfer.foreign import FactOpinion, Fields, Record, Row, SkippedRow, SourceTexts, one_text, wrong


def records(row: Row, now: datetime, path: Path) -> Iterator[Record]:
    """A document of a transfer archive, a memory of a list, or a signal."""
    value = row.value
    if "signal_type" in value:
        fact, signal_type, query = value.text("fact_id"), value.text("signal_type"), value.text("query")
        known = next((kind for kind in SIGNAL_TYPES if kind == signal_type), None)
        if known is None:
            raise wrong("signal_type", signal_type, f"one of {', '.join(SIGNAL_TYPES)}")
        confidence = value.get("confidence", 1.0)
        if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
            raise wrong("confidence", confidence, "a number from 0 to 1")
        key = f"hindsight/{fact}/{signal_type}/{value.optional('timestamp') or row.line}"
        yield FactOpinion(f"hindsight/{fact}", known, key, query, float(confidence), value.optional("context"))
    elif isinstance(value.get("facts"), list):
        facts = [Fields(fact) for fact in value["facts"] if isinstance(fact, dict)]
        fact_texts = [fact.text("text", f"facts[{index}].") for index, fact in enumerate(facts)]
        if fact_texts:
            metadata = [_of_memory(fact) for fact in facts]
            yield SourceTexts(Document(source=f"hindsight/{value.text('id')}", texts=fact_texts, metadata=metadata))
    elif "source_bank_id" in value:
        return
    elif row.file is not None and not row.file.startswith("documents/"):
        yield SkippedRow(f"rows of {row.file}")
    else:
        yield one_text(f"hindsight/{value.text('id')}", value.text("text"), _of_memory(value))


def _of_memory(value: Fields) -> Metadata:
    about = value.picked("context", "tags", "occurred_start", "occurred_end", "mentioned_at", "date", "document_id")
    kind = value.get("fact_type") or value.get("type")
    return value.mapping("metadata") | about | ({"fact_type": kind} if kind else {})
