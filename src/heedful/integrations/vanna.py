"""Vanna 2: an agent memory on proven SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pydantic import BaseModel, Field
from vanna.capabilities.agent_memory import (
    AgentMemory,
    TextMemory,
    TextMemorySearchResult,
    ToolMemory,
    ToolMemorySearchResult,
)
from vanna.core.tool import Tool, ToolContext, ToolResult
from vanna.core.user import User

from heedful.compat.foreign_api import every
from heedful.errors import Conflict, Invalid, NotFound
from heedful.integrations.turns import MAX_RECALLED, TRACE, BlockingMemory, Scoped, Turns, fitting, scoped, trace_id
from heedful.model import CacheLookup, Execution, Fact, Metadata, Recall
from heedful.model.limits import MAX_QUERY

SQL_TOOL = "run_sql"

AUDIENCE = "audience"
"""The metadata of a text that is not for everybody."""

MAX_SAVED = 200
"""How many of the newest memories a correction is looked for in."""


class HeedfulAgentMemory(AgentMemory):
    """The memory of an agent of Vanna's, on a connector.

    SQL that it saves is run by the connector, which only reads, and is found again once somebody rated it as right:
    `memory.feedback.create_positive(execution_id=…)`, by the id of the memory, or by the one that `external_id` gives
    it: a function of the user that your resolver made for the request, such as `lambda user:
    user.metadata["message_id"]`. Vanna's own id of a request is used without it, and is in Vanna's logs alone. SQL that
    differs in a number, a date or a name is found with the new values in place, or not at all. SQL that was rated as
    wrong is never found. What other tools do can't be proven, so it is not saved.

    What a user's agent saves, SQL and texts, is found, changed and deleted for that user alone, since SQL may be right
    for one user only, and users may have different rights. `audience` says who shares: a function of the user that
    returns the same name for all who have equal rights, or None for everybody. `author`, in whose name SQL is looked
    for and corrected, is the user's id. Both, and `dataset`, are values or functions of the user.

    If Heedful fails, searches find nothing, and the log says so once; Vanna's tools tell the agent what can't be saved.
    """

    def __init__(
        self,
        memory: BlockingMemory,
        connector_id: str | None = None,
        *,
        dataset: Scoped[str] = "vanna",
        sql_tool: str = SQL_TOOL,
        max_age_days: float = 30,
        audience: Scoped[str | None] = lambda user: user.id,
        author: Scoped[str | None] = lambda user: user.id,
        external_id: Scoped[str | None] = None,
        deadline: float | None = None,
    ) -> None:
        self._memory = memory
        self._connector_id = connector_id
        self._options = {"dataset": dataset, "audience": audience, "author": author, "external_id": external_id}
        self._sql_tool = sql_tool
        self._max_age_days = max_age_days
        self._turns = Turns(memory, external_id=external_id, deadline=deadline).require_sync()

    async def save_tool_usage(
        self,
        question: str,
        tool_name: str,
        args: dict[str, Any],
        context: ToolContext,
        success: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Runs SQL for a question and stores it, to be rated; what failed, and other tools, are left out."""
        if success and tool_name == self._sql_tool and args.get("sql"):
            await self._turns.ademand(self._execute, str(args["sql"]), fitting(question, MAX_QUERY), context)

    async def search_similar_usage(
        self,
        question: str,
        context: ToolContext,
        *,
        limit: int = 10,
        similarity_threshold: float = 0.7,
        tool_name_filter: str | None = None,
    ) -> list[ToolMemorySearchResult]:
        """The proven SQL that answers a question, if there is one; similarity alone decides nothing."""
        if tool_name_filter not in (None, self._sql_tool) or not question.strip():
            return []
        asked = fitting(question, MAX_QUERY)
        found: CacheLookup | None = await self._turns.aattempt("look up proven SQL", self._look_up, asked, context.user)
        if found is None or not found.cache_hit:
            return []
        match = found.matches[0]
        execution = Execution.model_validate(match.execution)
        memory = _tool_memory(execution, self._sql_tool, question)
        return [ToolMemorySearchResult(memory=memory, similarity_score=match.similarity_score, rank=1)]

    async def get_recent_memories(self, context: ToolContext, limit: int = 10) -> list[ToolMemory]:
        """SQL that was saved for the user or for everybody, the newest first, whether it is proven or not."""
        saved = await self._turns.ademand(lambda: list(islice(self._saved(context.user), limit)))
        return [_tool_memory(execution, self._sql_tool) for execution in saved]

    async def correct(self, context: ToolContext, memory_id: str, sql: str, reason: str | None = None) -> ToolMemory:
        """Replaces SQL that was wrong: runs `sql` for the same question, and rates it as right and the other as wrong,
        in the name of the user. `memory_id` is the id of the memory, or the one that `external_id` gave it.

        SQL that differs from the wrong one in values alone is stored, and not found: a veto is about both.
        """
        return await self._turns.ademand(self._correct, context.user, memory_id, sql, reason)

    async def delete_by_id(self, context: ToolContext, memory_id: str) -> bool:
        """Removes an execution; SQL that was wrong stays blocked."""
        return await self._turns.ademand(_found, self._delete_execution, memory_id, context.user)

    async def save_text_memory(self, content: str, context: ToolContext) -> TextMemory:
        scope = self._scope(context.user)
        about = {"saved_by": context.user.id, AUDIENCE: scope["audience"]}
        metadata = {name: value for name, value in about.items() if value is not None}
        stored = await self._turns.ademand(self._memory.remember, content, dataset=scope["dataset"], metadata=metadata)
        return TextMemory(memory_id=stored.facts[0].fact_id, content=content, timestamp=datetime.now(UTC).isoformat())

    async def search_text_memories(
        self, query: str, context: ToolContext, *, limit: int = 10, similarity_threshold: float = 0.7
    ) -> list[TextMemorySearchResult]:
        """Texts for a query, the best first; `memory.signal` says how useful one was. No threshold is applied."""
        results = []
        for hit in await self._turns.aattempt("recall", self._recall, query, limit, context.user) or ():
            memory = TextMemory(memory_id=hit.fact_id, content=hit.text)
            results.append(TextMemorySearchResult(memory=memory, similarity_score=hit.score, rank=hit.rank))
        return results

    async def get_recent_text_memories(self, context: ToolContext, limit: int = 10) -> list[TextMemory]:
        return await self._turns.ademand(lambda: list(map(_text_memory, islice(self._texts(context.user), limit))))

    async def delete_text_memory(self, context: ToolContext, memory_id: str) -> bool:
        return await self._turns.ademand(_found, self._delete_text, memory_id, context.user)

    async def clear_memories(
        self, context: ToolContext, tool_name: str | None = None, before_date: str | None = None
    ) -> int:
        """Removes what was saved for the user or for everybody, of one tool or with the texts, and before a date if one
        is given."""
        before = None if before_date is None else _time(before_date)

        def clear() -> int:
            executions = self._saved(context.user) if tool_name in (None, self._sql_tool) else ()
            facts = () if tool_name else self._texts(context.user)
            old = [execution for execution in executions if before is None or execution.created_at < before]
            texts = [fact for fact in facts if before is None or fact.created_at < before]
            for execution in old:
                self._memory.executions.delete(execution.execution_id)
            if texts:
                self._memory.forget([fact.fact_id for fact in texts])
            return len(old) + len(texts)

        return await self._turns.ademand(clear)

    def _scope(self, user: User) -> dict[str, Any]:
        return scoped(self._options, user)

    def _execution(self, memory_id: str, user: User) -> Execution:
        """The execution, if it was saved for the user or for everybody."""
        found = self._memory.executions.get(memory_id)
        if found.audience not in (None, self._scope(user)["audience"]):
            raise _no_memory(memory_id)
        return found

    def _delete_execution(self, memory_id: str, user: User) -> None:
        self._memory.executions.delete(self._execution(memory_id, user).execution_id)

    def _delete_text(self, memory_id: str, user: User) -> None:
        scope, fact = self._scope(user), self._memory.fact(memory_id)
        if fact.dataset != scope["dataset"] or fact.metadata.get(AUDIENCE) not in (None, scope["audience"]):
            raise _no_memory(memory_id)
        self._memory.forget(memory_id)

    def _execute(self, sql: str, question: str, context: ToolContext) -> None:
        scope = self._scope(context.user)
        options: dict[str, Any] = {"connector_id": self._connector_id, "question": question}
        options["audience"], own = scope["audience"], scope["external_id"]
        external_id = (trace_id() if own == TRACE else own) or context.request_id
        try:
            self._memory.executions.execute_query(sql, **options, external_id=external_id)
        except Conflict:
            # The request has saved another query: this one is rated by its own id.
            self._memory.executions.execute_query(sql, **options)

    def _correct(self, user: User, memory_id: str, sql: str, reason: str | None) -> ToolMemory:
        scope, run = self._scope(user), self._memory.executions.execute_query
        wrong = self._execution(memory_id, user)
        if sql.strip() == wrong.sql_query.strip():
            raise Invalid("this is the SQL that was wrong", field="sql", value=sql, remedy="Pass the SQL that is right")
        right = run(sql, connector_id=wrong.connector_id, question=wrong.question, audience=scope["audience"])
        rate = self._memory.feedback.create
        rate(is_positive=True, execution_id=right.execution_id, author=scope["author"])
        rate(is_positive=False, execution_id=wrong.execution_id, author=scope["author"], feedback=reason)
        return _tool_memory(right, self._sql_tool)

    def _look_up(self, question: str, user: User) -> CacheLookup:
        scope = self._scope(user)
        options: dict[str, Any] = {"connector_id": self._connector_id, "max_age_days": self._max_age_days}
        options |= {"audience": scope["audience"], "author": scope["author"]}
        return self._memory.chat.execution_cache_lookup(question, only_positive_feedback=True, **options)

    def _recall(self, query: str, limit: int, user: User) -> Recall | None:
        # Where nothing was saved yet, there is no dataset.
        with suppress(NotFound):
            if query.strip():
                return self._memory.recall(fitting(query, MAX_RECALLED), top_k=limit, **self._place_of_texts(user))
        return None

    def _saved(self, user: User) -> Iterator[Execution]:
        audiences = None, self._scope(user)["audience"]
        for execution in every(self._memory.executions.list, connector_id=self._connector_id):
            if execution.question is not None and execution.audience in audiences:
                yield execution

    def _texts(self, user: User) -> Iterator[Fact]:
        # Where nothing was saved yet, there is no dataset.
        with suppress(NotFound):
            yield from every(self._memory.facts, newest_first=True, **self._place_of_texts(user))

    def _place_of_texts(self, user: User) -> dict[str, Any]:
        """Where those are that are for the user or for everybody."""
        scope = self._scope(user)
        audiences = [] if scope["audience"] is None else [scope["audience"]]
        where: Metadata = {AUDIENCE: {"only": audiences}}
        return {"dataset": scope["dataset"], "where": where}


class Correction(BaseModel):
    """A correction of SQL."""

    wrong_sql: str = Field(description="The SQL that was wrong, as it was found or saved")
    sql: str = Field(description="The SQL that is right")
    reason: str | None = Field(None, description="What was wrong, in the user's words")


class CorrectSqlTool(Tool[Correction]):
    """Lets the model replace saved SQL when a user says that it was wrong."""

    def __init__(self, memory: HeedfulAgentMemory) -> None:
        self._memory = memory

    name = "correct_saved_sql"
    description = (
        "Replaces saved SQL that a user called wrong. Call this once the right SQL was run and the user agrees with it"
    )

    def get_args_schema(self) -> type[Correction]:
        return Correction

    async def execute(self, context: ToolContext, args: Correction) -> ToolResult:
        saved = await self._memory.get_recent_memories(context, MAX_SAVED)
        wrong = next((each for each in saved if each.args["sql"].strip() == args.wrong_sql.strip()), None)
        if wrong is None:
            raise NotFound("this SQL is not saved", field="wrong_sql", remedy="Pass it as it was found")
        await self._memory.correct(context, str(wrong.memory_id), args.sql, args.reason)
        return ToolResult(success=True, result_for_llm="Corrected: the SQL that was wrong is not found any more.")


def _tool_memory(execution: Execution, tool: str, question: str | None = None) -> ToolMemory:
    return ToolMemory(
        memory_id=execution.execution_id,
        question=question or execution.question or "",
        tool_name=tool,
        args={"sql": execution.sql_query},
        timestamp=execution.created_at.isoformat(),
    )


def _no_memory(memory_id: str) -> NotFound:
    return NotFound(f"there is no memory {memory_id!r}", field="memory_id", value=memory_id)


def _text_memory(fact: Fact) -> TextMemory:
    return TextMemory(memory_id=fact.fact_id, content=fact.text, timestamp=fact.created_at.isoformat())


def _found(remove: Callable[[str, User], object], memory_id: str, user: User) -> bool:
    with suppress(NotFound):
        remove(memory_id, user)
        return True
    return False


def _time(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
