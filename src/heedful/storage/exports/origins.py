"""Where the rows of each table come from, and what their columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, and_

from heedful.storage.exports.query import as_text
from heedful.storage.insight import decayed
from heedful.storage.ledger import SIGNAL, is_retracted
from heedful.storage.schema import (
    datasets,
    entries,
    events,
    executions,
    facts,
    feedbacks,
    golden_examples,
    messages,
    notes,
    queries,
    scores,
    sessions,
)
from heedful.storage.schema_insight import decisions, review_items
from heedful.storage.scores import ALL_QUERIES


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a table come from."""

    columns: Callable[[int], Mapping[str, ColumnElement[Any]]]
    """By name; scores are as they are at a moment."""
    rows: FromClause
    seq: Column[int]
    owner: ColumnElement[Any]
    at: ColumnElement[int]
    dataset: ColumnElement[Any] | None = None
    condition: ColumnElement[bool] | None = None


def _feedback(now: int) -> Mapping[str, ColumnElement[Any]]:
    ours = feedbacks.c
    return {
        "feedback_id": ours.id,
        "session_id": sessions.c.id,
        "target_type": ours.target_type,
        "target_id": ours.target_id,
        "dataset": entries.c.dataset,
        "author": ours.author,
        "author_trust": ours.author_trust,
        "rating": ours.rating,
        "score": ours.score,
        "comment": ours.comment,
        "extra": as_text(ours.extra),
        "created_at": ours.at,
        "updated_at": ours.updated_at,
        "active": ours.active,
        "event_id": ours.event_id,
        "message_id": ours.message_id,
    }


def _signals(now: int) -> Mapping[str, ColumnElement[Any]]:
    return {
        "event_id": events.c.id,
        "fact_id": events.c.target_id,
        "dataset": datasets.c.name,
        "query": queries.c.text,
        "signal": events.c.value,
        "confidence": events.c.confidence,
        "author": events.c.author,
        "author_trust": events.c.author_trust,
        "source": events.c.source,
        "recall_id": events.c.receipt_id,
        "rank": events.c.rank,
        "note": notes.c.text,
        "created_at": events.c.at,
        "recorded_at": events.c.recorded_at,
        "active": ~is_retracted(),
    }


def _entries(now: int) -> Mapping[str, ColumnElement[Any]]:
    return {
        "qa_id": entries.c.id,
        "session_id": sessions.c.id,
        "question": entries.c.question,
        "answer": entries.c.answer,
        "context": entries.c.context,
        "dataset": entries.c.dataset,
        "recall_id": entries.c.recall_id,
        "model": entries.c.model,
        "used": as_text(entries.c.used),
        "usage": as_text(entries.c.usage),
        "created_at": entries.c.at,
    }


def _sessions(now: int) -> Mapping[str, ColumnElement[Any]]:
    return {
        "session_id": sessions.c.id,
        "metadata": as_text(sessions.c.metadata),
        "created_at": sessions.c.created_at,
        "updated_at": sessions.c.updated_at,
    }


def _messages(now: int) -> Mapping[str, ColumnElement[Any]]:
    return {
        "message_id": messages.c.id,
        "session_id": sessions.c.id,
        "role": messages.c.role,
        "content": messages.c.content,
        "created_at": messages.c.at,
    }


def _facts(now: int) -> Mapping[str, ColumnElement[Any]]:
    return {
        "fact_id": facts.c.id,
        "dataset": datasets.c.name,
        "text": facts.c.text,
        "metadata": as_text(facts.c.metadata),
        "source": facts.c.source,
        "superseded": facts.c.superseded,
        "expires_at": facts.c.expires_at,
        "usefulness": decayed(now),
        "used": scores.c.used,
        "ignored": scores.c.ignored,
        "helpful": scores.c.helpful,
        "not_helpful": scores.c.not_helpful,
        "created_at": facts.c.created_at,
    }


def _executions(now: int) -> Mapping[str, ColumnElement[Any]]:
    ours = executions.c
    return {
        "execution_id": ours.id,
        "connector_id": ours.connector_id,
        "question": ours.question,
        "sql_query": ours.sql_query,
        "parameters": as_text(ours.parameters),
        "row_count": ours.row_count,
        "truncated": ours.truncated,
        "seconds": ours.seconds,
        "origin": ours.origin,
        "derived_from": ours.derived_from,
        "message_id": ours.message_id,
        "created_at": ours.at,
    }


def _golden_examples(now: int) -> Mapping[str, ColumnElement[Any]]:
    ours = golden_examples.c
    return {
        "example_id": ours.id,
        "connector_id": ours.connector_id,
        "question": ours.question,
        "sql_query": ours.sql_query,
        "origin": ours.origin,
        "execution_id": ours.execution_id,
        "created_at": ours.created_at,
        "updated_at": ours.updated_at,
    }


def _decisions(now: int) -> Mapping[str, ColumnElement[Any]]:
    ours = decisions.c
    return {
        "decision_id": ours.id,
        "connector_id": ours.connector_id,
        "question": ours.question,
        "decision": ours.decision,
        "gate": ours.gate,
        "reason": ours.reason,
        "similarity": ours.similarity,
        "candidate_id": ours.candidate_id,
        "execution_id": ours.execution_id,
        "created_at": ours.at,
    }


def _review_items(now: int) -> Mapping[str, ColumnElement[Any]]:
    ours = review_items.c
    return {
        "item_id": ours.id,
        "target_type": ours.target_type,
        "dataset": ours.dataset,
        "status": ours.status,
        "assignee": ours.assignee,
        "opinions": ours.opinions,
        "opened_at": ours.opened_at,
        "last_at": ours.last_at,
        "changed_at": ours.changed_at,
    }


def _events(now: int) -> Mapping[str, ColumnElement[Any]]:
    ours = events.c
    return {
        "event_id": ours.id,
        "kind": ours.kind,
        "target_type": ours.target_type,
        "target_id": ours.target_id,
        "dataset": datasets.c.name,
        "author": ours.author,
        "author_trust": ours.author_trust,
        "source": ours.source,
        "created_at": ours.at,
        "recorded_at": ours.recorded_at,
        "query": queries.c.text,
        "value": ours.value,
        "confidence": ours.confidence,
        "recall_id": ours.receipt_id,
        "rank": ours.rank,
        "body": as_text(ours.body),
    }


_ABOUT = and_(feedbacks.c.target_type == "entry", entries.c.id == feedbacks.c.target_id)
_LEDGER = events.outerjoin(datasets, datasets.c.id == events.c.dataset_id).outerjoin(
    queries, queries.c.id == events.c.query_id
)
_SCORED = and_(scores.c.fact_seq == facts.c.seq, scores.c.query_id == ALL_QUERIES)

ORIGINS: Mapping[str, Origin] = {
    "feedback": Origin(
        _feedback,
        feedbacks.outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq).outerjoin(entries, _ABOUT),
        feedbacks.c.seq,
        feedbacks.c.project_id,
        feedbacks.c.at,
        entries.c.dataset,
    ),
    "signals": Origin(
        _signals,
        _LEDGER.outerjoin(notes, notes.c.event_id == events.c.id),
        events.c.seq,
        events.c.project_id,
        events.c.at,
        datasets.c.name,
        and_(events.c.kind == SIGNAL),
    ),
    "entries": Origin(
        _entries,
        entries.join(sessions, sessions.c.seq == entries.c.session_seq),
        entries.c.seq,
        sessions.c.project_id,
        entries.c.at,
        entries.c.dataset,
    ),
    "sessions": Origin(_sessions, sessions, sessions.c.seq, sessions.c.project_id, sessions.c.created_at),
    "messages": Origin(
        _messages,
        messages.join(sessions, sessions.c.seq == messages.c.session_seq),
        messages.c.seq,
        sessions.c.project_id,
        messages.c.at,
    ),
    "facts": Origin(
        _facts,
        facts.join(datasets, datasets.c.id == facts.c.dataset_id).outerjoin(scores, _SCORED),
        facts.c.seq,
        datasets.c.project_id,
        facts.c.created_at,
        datasets.c.name,
    ),
    "executions": Origin(_executions, executions, executions.c.seq, executions.c.project_id, executions.c.at),
    "golden_examples": Origin(
        _golden_examples,
        golden_examples,
        golden_examples.c.seq,
        golden_examples.c.project_id,
        golden_examples.c.created_at,
    ),
    "decisions": Origin(_decisions, decisions, decisions.c.seq, decisions.c.project_id, decisions.c.at),
    "review_items": Origin(
        _review_items,
        review_items,
        review_items.c.seq,
        review_items.c.project_id,
        review_items.c.last_at,
        review_items.c.dataset,
    ),
    "events": Origin(_events, _LEDGER, events.c.seq, events.c.project_id, events.c.at, datasets.c.name),
}
"""By the name of the table. `recalls` has another shape."""
