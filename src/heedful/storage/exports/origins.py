"""Where the rows of each table come from, and what their columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, ColumnElement, FromClause, Table, and_

from heedful.storage.exports.query import as_text
from heedful.storage.facts import SUPERSEDED
from heedful.storage.insight import decayed
from heedful.storage.ledger import SIGNAL, is_retracted
from heedful.storage.schema import (
    datasets,
    entries,
    events,
    executions,
    external_ids,
    facts,
    feedbacks,
    golden_examples,
    messages,
    metadata,
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

    table: Table
    names: str
    """The exported columns: `name`, `name=column`, or `name=table.column` of a joined table."""
    joined: FromClause | None = None
    at: str = "at"
    owner: Table | None = None
    """The table with the project, if it is another one."""
    dataset: ColumnElement[Any] | None = None
    condition: ColumnElement[bool] | None = None
    computed: Callable[[int], Mapping[str, ColumnElement[Any]]] = lambda now: {}
    """Columns that are no columns of a table; scores are those at a given time."""

    def columns(self, now: int) -> Mapping[str, ColumnElement[Any]]:
        """By exported name, in order; JSON is text."""
        computed, columns = self.computed(now), {}
        for spec in self.names.split():
            name, _, path = spec.partition("=")
            if name in computed:
                columns[name] = computed[name]
                continue
            table, _, column = (path or name).rpartition(".")
            value: ColumnElement[Any] = (metadata.tables[table] if table else self.table).c[column]
            columns[name] = as_text(value) if isinstance(value.type, JSON) else value
        return columns


_LEDGER = events.outerjoin(datasets, datasets.c.id == events.c.dataset_id).outerjoin(
    queries, queries.c.id == events.c.query_id
)

ORIGINS: Mapping[str, Origin] = {
    "feedback": Origin(
        feedbacks,
        "feedback_id=id session_id=sessions.id target_type target_id dataset=entries.dataset author author_kind "
        "rating score comment extra created_at=at updated_at active event_id message_id",
        feedbacks.outerjoin(sessions, sessions.c.seq == feedbacks.c.session_seq).outerjoin(
            entries, and_(feedbacks.c.target_type == "entry", entries.c.id == feedbacks.c.target_id)
        ),
        dataset=entries.c.dataset,
    ),
    "signals": Origin(
        events,
        "event_id=id fact_id=target_id dataset=datasets.name query=queries.text signal=value confidence author "
        "author_kind source recall_id=receipt_id rank note=notes.text created_at=at recorded_at active",
        _LEDGER.outerjoin(notes, notes.c.event_id == events.c.id),
        dataset=datasets.c.name,
        condition=events.c.kind == SIGNAL,
        computed=lambda now: {"active": ~is_retracted()},
    ),
    "entries": Origin(
        entries,
        "qa_id=id session_id=sessions.id question answer context dataset recall_id model used usage "
        "external_id=external_ids.external_id created_at=at",
        entries.join(sessions, sessions.c.seq == entries.c.session_seq).outerjoin(
            external_ids, and_(external_ids.c.kind == "entry", external_ids.c.target_id == entries.c.id)
        ),
        owner=sessions,
        dataset=entries.c.dataset,
    ),
    "sessions": Origin(sessions, "session_id=id metadata created_at updated_at", at="created_at"),
    "messages": Origin(
        messages,
        "message_id=id session_id=sessions.id role content created_at=at",
        messages.join(sessions, sessions.c.seq == messages.c.session_seq),
        owner=sessions,
    ),
    "facts": Origin(
        facts,
        "fact_id=id dataset=datasets.name text metadata source superseded expires_at overall_usefulness "
        "used=scores.used ignored=scores.ignored helpful=scores.helpful not_helpful=scores.not_helpful created_at",
        facts.join(datasets, datasets.c.id == facts.c.dataset_id).outerjoin(
            scores, and_(scores.c.fact_seq == facts.c.seq, scores.c.query_id == ALL_QUERIES)
        ),
        at="created_at",
        owner=datasets,
        dataset=datasets.c.name,
        computed=lambda now: {"overall_usefulness": decayed(now), "superseded": facts.c.hidden.op("&")(SUPERSEDED)},
    ),
    "executions": Origin(
        executions,
        "execution_id=id connector_id question sql_query parameters row_count truncated seconds origin derived_from "
        "message_id audience created_at=at",
    ),
    "golden_examples": Origin(
        golden_examples,
        "example_id=id connector_id question sql_query origin execution_id audience created_at updated_at",
        at="created_at",
    ),
    "decisions": Origin(
        decisions,
        "decision_id=id connector_id question decision gate reason similarity candidate_id execution_id created_at=at",
    ),
    "review_items": Origin(
        review_items,
        "item_id=id target_type dataset status assignee opinions opened_at last_at changed_at",
        at="last_at",
        dataset=review_items.c.dataset,
    ),
    "events": Origin(
        events,
        "event_id=id kind target_type target_id dataset=datasets.name author author_kind source created_at=at "
        "recorded_at query=queries.text value confidence recall_id=receipt_id rank body",
        _LEDGER,
        dataset=datasets.c.name,
    ),
}
"""By the name of the table. `recalls` has another shape."""
