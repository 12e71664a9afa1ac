"""`.chat`: questions about data, answered by SQL that was proven, or that a language model writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.api import checks
from heedful.clock import DAY, new_id
from heedful.errors import Conflict, HeedfulError, Unavailable
from heedful.ledger.opinions import SqlFeedbacks
from heedful.model import CacheCoverage, CacheLookup, CacheSuggestion, ChatAnswer, ChatSql, Execution, Origin, Reuse
from heedful.sql import chat_sessions
from heedful.sql.executions import QuestionSource, execute
from heedful.sql.feedback import new_opinion, put
from heedful.sql.generation import Example, WritingTask, describe_schema, relevant_remarks, write_sql
from heedful.sql.records import dialect_of
from heedful.sql.reuse import candidates, lookup, reasons
from heedful.sql.reuse.candidates import Limits
from heedful.sql.reuse.lookup import JudgedCandidate
from heedful.sql.reuse.ownership import Asker
from heedful.sql.sandbox.pool import Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage.rows import AnyRow, to_model
from heedful.storage.vectors import Vectors, pack
from heedful.text import counted

MIN_SIMILARITY = 0.65
"""Stored questions below this similarity are ignored."""

MAX_CANDIDATES = 50
EXAMPLES = 8
WARNINGS = 4
MAX_EARLIER = 4
MIN_EXAMPLE_SIMILARITY = 0.3
"""Examples below this similarity are not shown to a model."""

_LIKELY = Limits(None, MIN_SIMILARITY, MAX_CANDIDATES, only_positive_feedback=False, examples=True, explained=1)


@dataclass(frozen=True, slots=True)
class SqlPlan:
    """The SQL for a question, and where it comes from."""

    statement: Statement
    origin: Origin
    explanation: str
    derived_from: str | None = None
    model: str | None = None
    suggestion: CacheSuggestion | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A question in a chat session: who asks it, and of which connector."""

    space: ExecutionSpace
    session_id: str
    question: str
    vector: Vectors
    connector: AnyRow
    asker: Asker
    cutoff: float
    remarks: Sequence[str]


def chat_to_sql(space: ExecutionSpace, **asked: Any) -> ChatSql:
    request = _request(space, **asked)
    plan = _plan(request)
    likely = plan.suggestion
    if plan.origin == "suggested":
        assert likely is not None
        question = request.question
        message = f"there is no proven SQL for {question!r}. Did you mean: {likely.question}"
        remedy = f"Confirm it: chat.confirm_suggestion({question!r}, {likely.execution_id!r})"
        raise Unavailable(message, code="nothing_proven", field="query", value=question, remedy=remedy)
    return _store_turn(request, plan)


def chat_to_answer(space: ExecutionSpace, **asked: Any) -> ChatAnswer:
    request = _request(space, **asked)
    plan = _plan(request)
    answered = _store_turn(request, plan)
    if plan.origin == "suggested":
        return ChatAnswer(**dict(answered), answer=plan.explanation, execution_result=None)
    message, audience = answered.chat_message_id, request.asker.audience
    source = QuestionSource(request.question, message, pack(request.vector), request.session_id, audience)
    execution = execute(space, request.connector, plan.statement, source, plan.origin, plan.derived_from)
    return ChatAnswer(**dict(answered), answer=_describe_result(execution), execution_result=execution)


def execution_cache_lookup(
    space: ExecutionSpace,
    user_query: str,
    connector_id: str | None,
    max_age_days: float,
    similarity_threshold: float,
    limit: int,
    top_n: int,
    only_positive_feedback: bool,
    reuse: Reuse,
    audience: str | None,
    author: str | None,
) -> CacheLookup:
    limits = Limits(max_age_days, similarity_threshold, limit, only_positive_feedback, examples=False, explained=top_n)
    connector = space.read_connector(connector_id)
    return lookup.lookup(space, connector, user_query, limits, top_n, reuse, Asker(audience, author))


def confirm_suggestion(
    space: ExecutionSpace,
    user_query: str,
    execution_id: str,
    connector_id: str | None,
    author: str | None,
    audience: str | None,
) -> Execution:
    checks.identifier("execution_id", execution_id)
    asker = Asker(audience, author)
    connector = space.read_connector(connector_id)
    vector = space.workspace.embed([user_query])[0]
    judged, _ = lookup.judge(space, connector, user_query, vector, _LIKELY, "sql", asker)
    likely = lookup.suggested(judged)
    if likely is None or likely.execution_id != execution_id:
        with space.workspace.read() as connection:
            space.suggestion_source(connection, execution_id)
        message = f"this is not what is suggested for {user_query!r} now"
        remedy = "Look it up again: chat.execution_cache_lookup"
        raise Conflict(message, code="not_suggested", field="execution_id", value=execution_id, remedy=remedy)
    source = QuestionSource(user_query, None, pack(vector), audience=asker.audience)
    execution = execute(space, connector, Statement(likely.sql_query, {}), source, "rebound", execution_id)
    with space.workspace.write() as connection:
        opinions = SqlFeedbacks.on(connection, space.own_project(connection))
        put(opinions, new_opinion(execution.execution_id, None, True, None, asker.author, space.now()), None, None)
    return execution


def execution_cache_coverage(
    space: ExecutionSpace, connector_id: str | None, max_age_days: float, limit: int
) -> CacheCoverage:
    connector = space.read_connector(connector_id)
    return lookup.coverage(space, connector, space.now() - int(max_age_days * DAY), limit)


def _request(
    space: ExecutionSpace,
    chat_session_id: str,
    query: str,
    connector_id: str | None,
    feedback_cutoff: float,
    remarks: Sequence[str],
    author: str | None,
) -> ChatRequest:
    checks.question("query", query)
    session = chat_sessions.row_of(space, chat_session_id)
    asker = Asker(session.metadata.get("audience"), author, chat_session_id)
    connector = space.read_connector(connector_id)
    vector = space.workspace.embed([query])[0]
    return ChatRequest(space, chat_session_id, query, vector, connector, asker, feedback_cutoff, remarks)


def _plan(request: ChatRequest) -> SqlPlan:
    space, connector, question = request.space, request.connector, request.question
    limits = Limits(None, MIN_SIMILARITY, MAX_CANDIDATES, only_positive_feedback=True, examples=True, explained=1)
    verdicts, _ = lookup.judge(space, connector, question, request.vector, limits, "sql", request.asker)
    failed = set()
    for verdict in verdicts:
        if verdict.decision != "refuse" and verdict.sql is not None and verdict.written not in failed:
            statement = Statement(verdict.sql, verdict.parameters, verdict.display)
            try:
                space.queries.dry_run(space.target(connector), statement)
            except HeedfulError:
                failed.add(verdict.written)
                continue
            origin: Origin = "served" if verdict.decision == "serve" else "rebound"
            lookup.record(space, connector, question, verdict)
            explanation = f"{verdict.reason} It was proven for: {verdict.candidate.row.question}"
            return SqlPlan(statement, origin, explanation, verdict.candidate.row.id)
    first = verdicts[0] if verdicts else None
    if first is not None and first.decision != "refuse":
        first = first.refused("run", reasons.NOT_RUN)
    lookup.record(space, connector, question, first)
    likely = lookup.suggested(verdicts)
    if space.language_model is not None:
        return _write_plan(request, likely)
    if likely is None:
        raise _nothing_proven(question, first)
    explanation = f"Did you mean: {likely.question}"
    return SqlPlan(Statement(likely.sql_query, {}), "suggested", explanation, likely.execution_id, suggestion=likely)


def _nothing_proven(question: str, nearest: JudgedCandidate | None) -> Unavailable:
    hint = "Nothing like it was proven"
    if nearest is not None:
        hint = f"The nearest, “{nearest.candidate.row.question}”, is not used: {nearest.reason.rstrip('.')}"
    message = f"there is no proven SQL for {question!r}, and no language model to write it. {hint}"
    remedy = "Add it: golden_examples.create(question, sql_query), or configure HEEDFUL_LANGUAGE_MODEL"
    return Unavailable(message, code="nothing_proven", field="query", value=question, remedy=remedy)


def _write_plan(request: ChatRequest, likely: CacheSuggestion | None) -> SqlPlan:
    space, connector, model = request.space, request.connector, request.space.language_model
    assert model is not None
    examples, warnings = _examples_and_warnings(request)
    turns = chat_sessions.turns(space.sessions, request.session_id, MAX_EARLIER)
    task = WritingTask(
        request.question,
        dialect_of(connector),
        describe_schema(connector),
        examples,
        warnings,
        [(turn.question, turn.sql) for turn in turns if turn.origin != "suggested"],
        list(dict.fromkeys([*request.remarks, *relevant_remarks(space.workspace, request.question)])),
    )
    failed: tuple[str, str] | None = None
    while True:
        statement = Statement(write_sql(model, task, failed), {})
        try:
            space.queries.dry_run(space.target(connector), statement)
        except HeedfulError as error:
            if failed is not None or isinstance(error, Unavailable):
                raise
            failed = (statement.sql, error.message)
            continue
        suffix = f", with {len(task.remarks)} remarks" if task.remarks else ""
        explanation = f"written by {model.name} from the schema and {len(examples)} proven examples{suffix}"
        return SqlPlan(statement, "written", explanation, None, model.name, likely)


def _examples_and_warnings(request: ChatRequest) -> tuple[list[Example], list[Example]]:
    """The examples for a model's prompt: reliable ones, and ones that were rated as wrong."""
    space, connector, asker = request.space, request.connector, request.asker
    wanted = Limits(None, MIN_EXAMPLE_SIMILARITY, MAX_CANDIDATES, examples=True)
    similar: list[candidates.Candidate] = []
    with space.proofs.reading(connector, space.target, space.workspace.read, asker.audience) as known:
        for circle in known.circles:
            near = candidates.find(space, known, connector, request.vector, wanted, audience=circle.audience)
            # A model would copy the values of somebody else.
            hidden = lookup.of_others(circle, None, near, asker)
            similar += (candidate for candidate in near if candidate.row.id not in hidden)
    similar.sort(key=lambda candidate: -candidate.similarity)
    good = [
        candidate
        for candidate in similar
        if (candidate.golden or candidate.opinions.positives) and candidate.reliability >= request.cutoff
    ]
    bad = [candidate for candidate in similar if candidate.opinions.negatives and candidate not in good]
    examples = dict.fromkeys(Example(candidate.row.question, candidate.row.sql_query) for candidate in good)
    warnings = dict.fromkeys(
        Example(candidate.row.question, candidate.row.sql_query, candidate.opinions.comment or "it was rated as wrong")
        for candidate in bad
    )
    return list(examples)[:EXAMPLES], list(warnings)[:WARNINGS]


def _store_turn(request: ChatRequest, plan: SqlPlan) -> ChatSql:
    session_id, question, connector = request.session_id, request.question, request.connector.id
    now, audience = request.space.now(), request.asker.audience
    turn = chat_sessions.ChatTurn(
        new_id(), question, connector, plan.statement, plan.origin, plan.derived_from, now, session_id, audience
    )
    chat_sessions.store_turn(request.space.sessions, session_id, turn)
    return to_model(
        ChatSql, plan, chat_message_id=turn.message_id, chat_session_id=session_id, query=question, sql_query=turn.sql
    )


def _describe_result(execution: Execution) -> str:
    """Describes a result in one sentence, without a language model."""
    rows, names = execution.result.rows, [column.name for column in execution.result.columns]
    if not rows:
        return "No rows."
    suffix = " (and more: the result was cut off)" if execution.result.truncated else ""
    if len(rows) == 1 and len(names) == 1:
        return f"{names[0]}: {rows[0][0]}"
    if len(rows) == 1:
        return ", ".join(f"{name}: {value}" for name, value in zip(names, rows[0], strict=True))
    if len(names) == 1 and len(rows) <= 20:
        return f"{len(rows)} rows{suffix}: " + ", ".join(str(row[0]) for row in rows)
    return f"{counted(len(rows), 'row')}{suffix} with {', '.join(names)}."
