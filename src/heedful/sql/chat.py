"""`.chat`: questions about data, answered by SQL that was proven, or that a language model writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.clock import DAY
from heedful.errors import Conflict, HeedfulError, Unavailable
from heedful.memory import checks as values
from heedful.model import (
    CacheCoverage,
    CacheLookup,
    CacheSuggestion,
    ChatAnswer,
    ChatSql,
    Execution,
    Origin,
    Reuse,
)
from heedful.protocols.sql import ChatProtocol
from heedful.sql import chat_sessions, checks, connector_access, runs
from heedful.sql.chat_sessions import row_of
from heedful.sql.feedback import new_opinion, put, relevant
from heedful.sql.generation import Example, write_sql
from heedful.sql.reuse import cache, candidates, reasons
from heedful.sql.reuse import coverage as covering
from heedful.sql.reuse.cache import JudgedCandidate, Limits
from heedful.sql.reuse.ownership import Asker
from heedful.sql.runs import QuestionSource, Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import Vectors, pack

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
class Plan:
    """The SQL for a question, and where it comes from."""

    statement: Statement
    origin: Origin
    explanation: str
    derived_from: str | None = None
    model: str | None = None
    suggestion: CacheSuggestion | None = None


class Chat(ChatProtocol):
    """Questions to SQL and to answers, and the cache of what ran before."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def chat_to_sql(
        self,
        chat_session_id: str,
        query: str,
        *,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
        remarks: Sequence[str] = (),
        author: str | None = None,
    ) -> ChatSql:
        return self._answer(chat_session_id, query, connector_id, feedback_cutoff, remarks, author, suggest=False)[-1]

    def chat_to_answer(
        self,
        chat_session_id: str,
        query: str,
        *,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
        remarks: Sequence[str] = (),
        author: str | None = None,
    ) -> ChatAnswer:
        asker, connector, vector, plan, answered = self._answer(
            chat_session_id, query, connector_id, feedback_cutoff, remarks, author, suggest=True
        )
        if plan.origin == "suggested":
            return ChatAnswer(**dict(answered), answer=plan.explanation, execution_result=None)
        execution = runs.execute(
            self._space,
            connector,
            plan.statement,
            QuestionSource(query, answered.chat_message_id, pack(vector), chat_session_id, asker.audience),
            plan.origin,
            plan.derived_from,
        )
        return ChatAnswer(**dict(answered), answer=_describe_result(execution), execution_result=execution)

    def execution_cache_lookup(
        self,
        user_query: str,
        *,
        connector_id: str | None = None,
        max_age_days: float = 30,
        similarity_threshold: float = 0.65,
        limit: int = 50,
        top_n: int = 5,
        only_positive_feedback: bool = False,
        reuse: Reuse = "sql",
        audience: str | None = None,
        author: str | None = None,
    ) -> CacheLookup:
        checks.question("user_query", user_query)
        limits = Limits(
            checks.age(max_age_days),
            values.fraction("similarity_threshold", similarity_threshold),
            checks.whole_number("limit", limit, 1, 1_000),
            values.flag("only_positive_feedback", only_positive_feedback),
            examples=False,
            explained=checks.whole_number("top_n", top_n, 1, 1_000),
        )
        checks.reuse(reuse)
        asker = Asker(values.audience(audience), values.author(author))
        with self._space.workspace.read() as connection:
            connector = self._space.connector(connection, connector_id)
        return cache.lookup(self._space, connector, user_query, limits, top_n, reuse, asker)

    def confirm_suggestion(
        self,
        user_query: str,
        execution_id: str,
        *,
        connector_id: str | None = None,
        author: str | None = None,
        audience: str | None = None,
    ) -> Execution:
        checks.question("user_query", user_query)
        values.identifier("execution_id", execution_id)
        asker = Asker(values.audience(audience), values.author(author))
        space = self._space
        with space.workspace.read() as connection:
            connector = space.connector(connection, connector_id)
        vector = space.workspace.embed([user_query])[0]
        judged, _ = cache.judge(space, connector, user_query, vector, _LIKELY, "sql", asker)
        likely = cache.suggested(judged)
        if likely is None or likely.execution_id != execution_id:
            with space.workspace.read() as connection:
                space.suggestion_source(connection, execution_id)
            raise Conflict(
                f"this is not what is suggested for {user_query!r} now",
                code="not_suggested",
                field="execution_id",
                value=execution_id,
                remedy="Look it up again: chat.execution_cache_lookup",
            )
        source = QuestionSource(user_query, None, pack(vector), audience=asker.audience)
        execution = runs.execute(space, connector, Statement(likely.sql_query, {}), source, "rebound", execution_id)
        with space.workspace.write() as connection:
            opinions = SqlFeedbacks.on(connection, space.own_project(connection))
            put(opinions, new_opinion(execution.execution_id, None, True, None, asker.author, space.now()), None, None)
        return execution

    def execution_cache_coverage(
        self, *, connector_id: str | None = None, max_age_days: float = 30, limit: int = 10
    ) -> CacheCoverage:
        since = self._space.now() - int(checks.age(max_age_days) * DAY)
        checks.whole_number("limit", limit, 1, 1_000)
        with self._space.workspace.read() as connection:
            connector = self._space.connector(connection, connector_id)
        return covering.coverage(self._space, connector, since, limit)

    def _answer(
        self,
        chat_session_id: str,
        query: str,
        connector_id: str | None,
        cutoff: float,
        remarks: Sequence[str],
        author: str | None,
        *,
        suggest: bool,
    ) -> tuple[Asker, AnyRow, Vectors, Plan, ChatSql]:
        """Finds or writes the SQL for a question, and stores both as a turn of the conversation."""
        checks.question("query", query)
        values.fraction("feedback_cutoff", cutoff)
        author = values.author(author)
        asker = Asker(row_of(self._space, chat_session_id).metadata.get("audience"), author, chat_session_id)
        with self._space.workspace.read() as connection:
            connector = self._space.connector(connection, connector_id)
        checked_remarks = checks.remarks(remarks)
        vector = self._space.workspace.embed([query])[0]
        plan = self._plan(connector, asker, chat_session_id, query, vector, cutoff, checked_remarks)
        if plan.origin == "suggested" and not suggest:
            assert plan.suggestion is not None
            raise _only_suggested(query, plan.suggestion)
        return asker, connector, vector, plan, self._store_turn(connector, asker, chat_session_id, query, plan)

    def _plan(
        self,
        connector: AnyRow,
        asker: Asker,
        chat_session_id: str,
        query: str,
        vector: Vectors,
        cutoff: float,
        remarks: Sequence[str],
    ) -> Plan:
        limits = Limits(None, MIN_SIMILARITY, MAX_CANDIDATES, only_positive_feedback=True, examples=True, explained=1)
        verdicts, _ = cache.judge(self._space, connector, query, vector, limits, "sql", asker)
        failed = set()
        for verdict in verdicts:
            if verdict.decision != "refuse" and verdict.sql is not None and verdict.written not in failed:
                statement = Statement(verdict.sql, verdict.parameters, verdict.display)
                try:
                    runs.dry_run(self._space, connector, statement)
                except HeedfulError:
                    failed.add(verdict.written)
                    continue
                origin: Origin = "served" if verdict.decision == "serve" else "rebound"
                cache.record(self._space, connector, query, verdict)
                explanation = f"{verdict.reason} It was proven for: {verdict.candidate.question}"
                return Plan(statement, origin, explanation, verdict.candidate.id)
        first = verdicts[0] if verdicts else None
        if first is not None and first.decision != "refuse":
            first = first.refused("run", reasons.NOT_RUN)
        cache.record(self._space, connector, query, first)
        likely = cache.suggested(verdicts)
        return self._write_plan(connector, asker, chat_session_id, query, vector, cutoff, remarks, first, likely)

    def _write_plan(
        self,
        connector: AnyRow,
        asker: Asker,
        chat_session_id: str,
        query: str,
        vector: Vectors,
        cutoff: float,
        remarks: Sequence[str],
        nearest: JudgedCandidate | None,
        likely: CacheSuggestion | None,
    ) -> Plan:
        model = self._space.language_model
        if model is None and likely is not None:
            explanation = f"Did you mean: {likely.question}"
            return Plan(
                Statement(likely.sql_query, {}), "suggested", explanation, likely.execution_id, suggestion=likely
            )
        if model is None:
            hint = "Nothing like it was proven"
            if nearest is not None:
                hint = f"The nearest, “{nearest.candidate.question}”, is not used: {nearest.reason.rstrip('.')}"
            raise Unavailable(
                f"there is no proven SQL for {query!r}, and no language model to write it. {hint}",
                code="nothing_proven",
                field="query",
                value=query,
                remedy="Add it: golden_examples.create(question, sql_query), or configure HEEDFUL_LANGUAGE_MODEL",
            )
        examples, warnings = self._examples_and_warnings(connector, asker, vector, cutoff)
        earlier = [
            (turn.question, turn.sql)
            for turn in chat_sessions.turns(self._space.sessions, chat_session_id, MAX_EARLIER)
            if turn.origin != "suggested"
        ]
        all_remarks = list(dict.fromkeys([*remarks, *relevant(self._space.workspace, query)]))
        failed: tuple[str, str] | None = None
        while True:
            written = write_sql(
                model,
                query,
                dialect=connector_access.dialect_of(connector),
                schema=connector_access.describe_schema(connector),
                examples=examples,
                warnings=warnings,
                earlier=earlier,
                failed=failed,
                remarks=all_remarks,
            )
            statement = Statement(written.sql, {})
            try:
                runs.dry_run(self._space, connector, statement)
            except HeedfulError as error:
                if failed is not None or isinstance(error, Unavailable):
                    raise
                failed = (written.sql, error.message)
                continue
            suffix = f", with {len(all_remarks)} remarks" if all_remarks else ""
            explanation = f"written by {written.model} from the schema and {len(examples)} proven examples{suffix}"
            return Plan(statement, "written", explanation, None, written.model, likely)

    def _examples_and_warnings(
        self, connector: AnyRow, asker: Asker, vector: Vectors, cutoff: float
    ) -> tuple[list[Example], list[Example]]:
        """The examples for a model's prompt: reliable ones, and ones that were rated as wrong."""
        space = self._space
        wanted = candidates.Wanted(MIN_EXAMPLE_SIMILARITY, MAX_CANDIDATES, max_age_days=None, examples=True)
        similar: list[candidates.Candidate] = []
        with space.proofs.reading(connector, space.target, space.workspace.read, asker.audience) as known:
            for circle in known.circles:
                found = candidates.find(space, known, connector, vector, wanted, audience=circle.audience)
                # A model would copy the values of somebody else.
                hidden = cache.of_others(circle, None, found, asker)
                similar += (each for each in found if each.id not in hidden)
        similar.sort(key=lambda each: -each.similarity)
        good = [
            candidate
            for candidate in similar
            if (candidate.golden or candidate.opinions.positives) and candidate.reliability >= cutoff
        ]
        bad = [candidate for candidate in similar if candidate.opinions.negatives and candidate not in good]
        examples = dict.fromkeys(Example(candidate.question, candidate.sql) for candidate in good)
        warnings = dict.fromkeys(
            Example(candidate.question, candidate.sql, candidate.opinions.comment or "it was rated as wrong")
            for candidate in bad
        )
        return list(examples)[:EXAMPLES], list(warnings)[:WARNINGS]

    def _store_turn(self, connector: AnyRow, asker: Asker, chat_session_id: str, query: str, plan: Plan) -> ChatSql:
        message_id = chat_sessions.store_turn(
            self._space.sessions,
            chat_session_id,
            asker.audience,
            query,
            connector.id,
            plan.statement,
            plan.origin,
            plan.derived_from,
        )
        return ChatSql(
            chat_message_id=message_id,
            chat_session_id=chat_session_id,
            query=query,
            sql_query=plan.statement.display or plan.statement.sql,
            origin=plan.origin,
            explanation=plan.explanation,
            derived_from=plan.derived_from,
            model=plan.model,
            suggestion=plan.suggestion,
        )


def _only_suggested(query: str, likely: CacheSuggestion) -> Unavailable:
    return Unavailable(
        f"there is no proven SQL for {query!r}. Did you mean: {likely.question}",
        code="nothing_proven",
        field="query",
        value=query,
        remedy=f"Confirm it: chat.confirm_suggestion({query!r}, {likely.execution_id!r})",
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
    return f"{len(rows)} rows{suffix} with {', '.join(names)}."
