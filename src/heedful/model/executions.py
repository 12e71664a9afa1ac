"""Executions: SQL that ran on a connector, what people said of it, and what may be reused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from heedful.model.base import AuthorKind, Model
from heedful.results import Column, Result, decode, encode

Origin = Literal["query", "served", "rebound", "written", "suggested"]
"""How SQL came about: given, proven and run again, proven with other values, written by a model, or the likely reading
of a question, which is not run before somebody confirms it."""

Decision = Literal["serve", "rebind", "refuse"]
Reuse = Literal["sql", "result"]

DECISIONS: tuple[Decision, ...] = ("serve", "rebind", "refuse")


class Connector(Model):
    """A database that executions run against; secrets are not shown."""

    connector_id: str
    name: str
    url: str
    dialect: str
    enabled: bool
    """False for one that was imported, until `connectors.confirm`."""
    privileged: bool
    """Whether the operator has accepted a login that may do more than read."""
    sensitive_columns: list[str]
    """Columns whose values are not read to recognise them in questions."""
    tables: int | None
    """How many tables its schema has; None before it was read."""
    fingerprint: str | None
    """The same as long as the schema is the same."""
    schema_at: datetime | None
    """When the schema was read."""
    created_at: datetime


class ResultColumn(Model):
    """A column of a result."""

    name: str
    type: str


class QueryResult(Model):
    """Rows, with the names and types of their columns; JSON and back keeps every value."""

    columns: list[ResultColumn]
    rows: list[list[Any]]
    truncated: bool = False
    """Whether there were more rows than the limits allow."""
    truncated_by: str | None = None
    """Which limit that was: rows, bytes or seconds."""

    @classmethod
    def of(cls, result: Result) -> QueryResult:
        """A result as a query returned it."""
        return cls(
            columns=[ResultColumn(name=column.name, type=column.type) for column in result.columns],
            rows=[list(row) for row in result.rows],
            truncated=result.truncated,
            truncated_by=result.truncated_by,
        )

    @model_validator(mode="before")
    @classmethod
    def _decoded(cls, data: Any) -> Any:
        columns = data.get("columns") if isinstance(data, dict) else None
        if columns and isinstance(columns[0], dict) and "kind" in columns[0]:
            # Not dict(model): iterating over a result gives its rows.
            return vars(cls.of(decode({"seconds": 0.0, **data})))
        return data

    @model_serializer(mode="wrap", when_used="json")
    def _encoded(self, _: SerializerFunctionWrapHandler) -> dict[str, Any]:
        columns = tuple(Column(column.name, column.type) for column in self.columns)
        rows = tuple(tuple(row) for row in self.rows)
        packed = encode(Result(columns, rows, self.truncated, self.truncated_by))
        del packed["seconds"]
        return packed

    def __iter__(self) -> Iterator[list[Any]]:  # type: ignore[override]
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """Each row as a mapping by column name."""
        return [dict(zip([column.name for column in self.columns], row, strict=True)) for row in self.rows]


class Execution(Model):
    """One SQL statement that ran, with its result."""

    execution_id: str
    connector_id: str
    question: str | None
    sql_query: str
    parameters: dict[str, Any]
    result: QueryResult
    execution_time_ms: int
    origin: Origin
    derived_from: str | None
    chat_message_id: str | None
    created_at: datetime
    external_id: str | None = None
    """The caller's own id, such as that of a run or a trace."""
    audience: str | None = None
    """Whom it may be reused for; None is everybody."""


class ExecutionFeedback(Model):
    """Feedback about an execution or a message of a chat."""

    id: str
    execution_id: str | None
    chat_message_id: str | None
    feedback: str | None
    is_positive: bool
    author: str | None
    author_kind: AuthorKind
    """Who the author is: a visitor neither proves SQL nor blocks it."""
    created_at: datetime
    updated_at: datetime


class FeedbackList(Model):
    """Feedbacks, the newest first, and how many there are in all."""

    items: list[ExecutionFeedback]
    total: int
    skip: int
    limit: int

    def __iter__(self) -> Iterator[ExecutionFeedback]:  # type: ignore[override]
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> ExecutionFeedback:
        return self.items[index]


class BulkDeletion(Model):
    """The result of a bulk deletion."""

    deleted_count: int
    failed_ids: list[str]
    """Those that were not there."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


class GoldenExample(Model):
    """A question with the SQL that answers it, by somebody's word."""

    id: str
    connector_id: str
    question: str
    sql_query: str
    origin: Literal["given", "imported", "promoted"]
    execution_id: str | None
    """The execution it was promoted from."""
    created_at: datetime
    updated_at: datetime
    audience: str | None = None


class CacheMatch(Model):
    """A stored execution that is like what is asked, and whether it may be used."""

    execution: dict[str, Any]
    """The execution's fields. Where the match is used, `sql_query` and `result` are those of the new run."""
    similarity_score: float
    has_feedback: bool
    feedback_is_positive: bool | None
    feedback_comment: str | None
    decision: Decision
    gate: str
    reason: str
    """Why, as a sentence."""
    question: str
    """The question it was run for."""
    differences: list[str]
    """Where the two questions differ, one sentence each."""
    age_days: float
    stale: bool
    """Whether its schema, or its data where that can be detected, has changed since."""

    @field_validator("execution")
    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Turns values from JSON into those of an `Execution`."""
        found = dict(data)
        if isinstance(data.get("result"), dict):
            found["result"] = QueryResult(**data["result"])
        if isinstance(data.get("created_at"), str):
            found["created_at"] = datetime.fromisoformat(data["created_at"])
        return found


class CacheSuggestion(Model):
    """The probable meaning of a question, which somebody has to confirm."""

    question: str
    """The proven question with the values of the one that was asked."""
    sql_query: str
    """The SQL for it. `chat.confirm_suggestion` with the question that was asked and `execution_id` confirms it."""
    proven_question: str
    """The question that was proven."""
    execution_id: str
    """The proven execution, or golden example, that it comes from."""


class CacheLookup(Model):
    """The answer of the cache to a question."""

    cache_hit: bool
    """Whether the first match may be used."""
    matches: list[CacheMatch]
    """Those to serve first, then those to rebind, then those refused; each by similarity."""
    candidates_checked: int
    suggestion: CacheSuggestion | None = None
    """The probable meaning of the question, if nothing may be used and there is exactly one likely reading."""


class ProvenKind(Model):
    """Proven questions whose SQL is the same but for its values."""

    sql_template: str
    """The SQL, with … for its values."""
    questions: int
    """How many were proven."""
    example: str
    """One of them."""


class RefusedKind(Model):
    """Questions that one gate refuses."""

    gate: str
    """Which gate refuses them."""
    asked: int
    """How often they were asked."""
    questions: int
    """How many different ones there are."""
    examples: list[str]
    """Some of them, the most frequent first."""


class MissingExample(Model):
    """A question whose proof would answer others, too."""

    question: str
    """The most frequent of them."""
    asked: int
    """How often it, or one that differs from it in values alone, was asked."""
    questions: int
    """How many different ones that are."""
    suggestion: CacheSuggestion | None = None
    """The probable meaning, if there is one likely reading."""


class CacheCoverage(Model):
    """The proven questions of one connector, and the questions that the cache is asked and refuses."""

    connector_id: str
    proven: list[ProvenKind]
    """The most frequent first."""
    proven_questions: int
    """Of all kinds."""
    proven_kinds: int
    """How many kinds there are in all."""
    refused: list[RefusedKind]
    """Questions that would be refused now, by gate, most frequent first."""
    missing: list[MissingExample]
    """The questions whose proof would answer most, first."""


class ChatSession(Model):
    """A conversation about data."""

    id: str
    name: str | None
    created_at: datetime
    updated_at: datetime
    audience: str | None = None
    """Whom it is held with; what is proven for another audience is not used in it. None is everybody."""


class ChatQuestion(Model):
    """A question that was asked in a chat session."""

    chat_message_id: str
    """The message that answers it."""
    question: str
    sql_query: str | None
    origin: Origin | None
    created_at: datetime


class ChatSql(Model):
    """SQL for a question."""

    chat_message_id: str
    chat_session_id: str
    query: str
    sql_query: str
    origin: Origin
    """`served` and `rebound` were proven before; `written` is new; `suggested` has to be confirmed."""
    explanation: str
    """Where the SQL comes from, in words."""
    derived_from: str | None = None
    model: str | None = None
    """The language model that wrote it."""
    suggestion: CacheSuggestion | None = None
    """The probable meaning of the question, if nothing proven answers it and there is exactly one likely reading."""


class ChatAnswer(ChatSql):
    """SQL for a question, and what it gave."""

    answer: str
    execution_result: Execution | None
    """None if nothing ran, because there is only a suggestion."""
