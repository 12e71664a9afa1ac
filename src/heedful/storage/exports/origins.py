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
    """By name; scores are those at a given time."""
    rows: FromClause
    seq: Column[int]
    owner: ColumnElement[Any]
    at: ColumnElement[int]
    dataset: ColumnElement[Any] | None = None
    condition: ColumnElement[bool] | None = None


def _feedback(now: int) -> Mapping[str, ColumnElement[Any]]:
    columns = feedbacks.c
    return {
        "feedback_id": columns.id,
        "session_id": sessions.c.id,
        "target_type": columns.target_type,
        "target_id": columns.target_id,
        "dataset": entries.c.dataset,
        "author": columns.author,
        "author_trust": columns.author_trust,
        "rating": columns.rating,
        "score": columns.score,
        "comment": columns.comment,
        "extra": as_text(columns.extra),
        "created_at": columns.at,
        "updated_at": columns.updated_at,
        "active": columns.active,
        "event_id": columns.event_id,
        "message_id": columns.message_id,
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
    columns = executions.c
    return {
        "execution_id": columns.id,
        "connector_id": columns.connector_id,
        "question": columns.question,
        "sql_query": columns.sql_query,
        "parameters": as_text(columns.parameters),
        "row_count": columns.row_count,
        "truncated": columns.truncated,
        "seconds": columns.seconds,
        "origin": columns.origin,
        "derived_from": columns.derived_from,
        "message_id": columns.message_id,
        "created_at": columns.at,
    }


def _golden_examples(now: int) -> Mapping[str, ColumnElement[Any]]:
    columns = golden_examples.c
    return {
        "example_id": columns.id,
        "connector_id": columns.connector_id,
        "question": columns.question,
        "sql_query": columns.sql_query,
        "origin": columns.origin,
        "execution_id": columns.execution_id,
        "created_at": columns.created_at,
        "updated_at": columns.updated_at,
    }


def _decisions(now: int) -> Mapping[str, ColumnElement[Any]]:
    columns = decisions.c
    return {
        "decision_id": columns.id,
        "connector_id": columns.connector_id,
        "question": columns.question,
        "decision": columns.decision,
        "gate": columns.gate,
        "reason": columns.reason,
        "similarity": columns.similarity,
        "candidate_id": columns.candidate_id,
        "execution_id": columns.execution_id,
        "created_at": columns.at,
    }


def _review_items(now: int) -> Mapping[str, ColumnElement[Any]]:
    columns = review_items.c
    return {
        "item_id": columns.id,
        "target_type": columns.target_type,
        "dataset": columns.dataset,
        "status": columns.status,
        "assignee": columns.assignee,
        "opinions": columns.opinions,
        "opened_at": columns.opened_at,
        "last_at": columns.last_at,
        "changed_at": columns.changed_at,
    }


def _events(now: int) -> Mapping[str, ColumnElement[Any]]:
    columns = events.c
    return {
        "event_id": columns.id,
        "kind": columns.kind,
        "target_type": columns.target_type,
        "target_id": columns.target_id,
        "dataset": datasets.c.name,
        "author": columns.author,
        "author_trust": columns.author_trust,
        "source": columns.source,
        "created_at": columns.at,
        "recorded_at": columns.recorded_at,
        "query": queries.c.text,
        "value": columns.value,
        "confidence": columns.confidence,
        "recall_id": columns.receipt_id,
        "rank": columns.rank,
        "body": as_text(columns.body),
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
