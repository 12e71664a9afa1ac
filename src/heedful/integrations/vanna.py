"""Vanna 2: an agent memory on proven SQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vanna.capabilities.agent_memory import (
    AgentMemory,
    TextMemory,
    TextMemorySearchResult,
    ToolMemory,
    ToolMemorySearchResult,
)
from vanna.core.tool import ToolContext
from vanna.core.user import User

from heedful.errors import Conflict, NotFound
from heedful.integrations.turns import Turns
from heedful.model import CacheLookup, Execution, Fact, Recall
from heedful.model.limits import MAX_PAGE

if TYPE_CHECKING:
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful

SQL_TOOL = "run_sql"


class HeedfulAgentMemory(AgentMemory):
    """What an agent of Vanna's saves and looks up, on a connector.

    SQL that it saves is run by the connector, which only reads, and is found again once somebody rated it as right:
    `memory.feedback.create_positive(execution_id=request_id)`, by the id of Vanna's request or of the memory. One that
    differs in a number, a date or a name is found with the new values in place, or not at all. SQL that was rated as
    wrong is never found. What other tools do can't be proven, so it is not saved.

    What a user's agent saves is found for that user alone, since SQL may be right for one user only, and users may have
    different rights. `audience` says who shares: a function of the user that returns the same name for all who have
    equal rights, or None for everybody.

    If Heedful fails, searches find nothing, and the log says so once; Vanna's tools tell the agent what can't be saved.
    """

    def __init__(
        self,
        memory: Heedful | RemoteHeedful,
        connector_id: str | None = None,
        *,
        dataset: str = "vanna",
        sql_tool: str = SQL_TOOL,
        max_age_days: float = 30,
        audience: Callable[[User], str | None] = lambda user: user.id,
    ) -> None:
        self._memory = memory
        self._connector_id = connector_id
        self._dataset = dataset
        self._sql_tool = sql_tool
        self._max_age_days = max_age_days
        self._audience = audience
        self._turns = Turns(memory)
        self._turns.require_sync()

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
            await asyncio.to_thread(self._execute, str(args["sql"]), question, context)

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
        if tool_name_filter not in (None, self._sql_tool):
            return []
        found: CacheLookup | None = await self._turns.aattempt(
            "look up proven SQL",
            self._memory.chat.execution_cache_lookup,
            question,
            connector_id=self._connector_id,
            max_age_days=self._max_age_days,
            only_positive_feedback=True,
            audience=self._audience(context.user),
            author=context.user.id,
        )
        if found is None or not found.cache_hit:
            return []
        match = found.matches[0]
        execution = Execution.model_validate(match.execution)
        memory = _tool_memory(execution, self._sql_tool, question)
        return [ToolMemorySearchResult(memory=memory, similarity_score=match.similarity_score, rank=1)]

    async def get_recent_memories(self, context: ToolContext, limit: int = 10) -> list[ToolMemory]:
        """SQL that was saved for the user or for everybody, the newest first, whether it is proven or not."""
        audiences = (None, self._audience(context.user))

        def read() -> list[ToolMemory]:
            saved = (_tool_memory(each, self._sql_tool) for each in self._saved() if each.audience in audiences)
            return [each for each, _ in zip(saved, range(limit), strict=False)]

        return await asyncio.to_thread(read)

    async def delete_by_id(self, context: ToolContext, memory_id: str) -> bool:
        """Removes an execution; SQL that was wrong stays blocked."""
        return await _found(asyncio.to_thread(self._memory.executions.delete, memory_id))

    async def save_text_memory(self, content: str, context: ToolContext) -> TextMemory:
        """Stores a text as a fact."""
        stored = await asyncio.to_thread(
            self._memory.remember, content, dataset=self._dataset, metadata={"saved_by": context.user.id}
        )
        return TextMemory(memory_id=stored.facts[0].fact_id, content=content, timestamp=datetime.now(UTC).isoformat())

    async def search_text_memories(
        self, query: str, context: ToolContext, *, limit: int = 10, similarity_threshold: float = 0.7
    ) -> list[TextMemorySearchResult]:
        """Texts for a query, the best first; `memory.signal` says how useful one was. No threshold is applied."""
        found: Recall | None = await self._turns.aattempt(
            "recall", self._memory.recall, query, dataset=self._dataset, top_k=limit
        )
        return [
            TextMemorySearchResult(
                memory=TextMemory(memory_id=hit.fact_id, content=hit.text), similarity_score=hit.score, rank=hit.rank
            )
            for hit in found or ()
        ]

    async def get_recent_text_memories(self, context: ToolContext, limit: int = 10) -> list[TextMemory]:
        def read() -> list[TextMemory]:
            return [_text_memory(fact) for fact, _ in zip(self._texts(), range(limit), strict=False)]

        return await asyncio.to_thread(read)

    async def delete_text_memory(self, context: ToolContext, memory_id: str) -> bool:
        return await _found(asyncio.to_thread(self._memory.forget, memory_id))

    async def clear_memories(
        self, context: ToolContext, tool_name: str | None = None, before_date: str | None = None
    ) -> int:
        """Removes what was saved, of one tool or with the texts, and before a date if one is given."""
        before = None if before_date is None else _time(before_date)

        def clear() -> int:
            old = [each for each in self._saved() if before is None or each.created_at < before]
            texts = [] if tool_name else [each for each in self._texts() if before is None or each.created_at < before]
            if tool_name not in (None, self._sql_tool):
                old = []
            for execution in old:
                self._memory.executions.delete(execution.execution_id)
            if texts:
                self._memory.forget([fact.fact_id for fact in texts])
            return len(old) + len(texts)

        return await asyncio.to_thread(clear)

    def _execute(self, sql: str, question: str, context: ToolContext) -> None:
        options: dict[str, Any] = {
            "connector_id": self._connector_id,
            "question": question,
            "audience": self._audience(context.user),
        }
        try:
            self._memory.executions.execute_query(sql, **options, external_id=context.request_id)
        except Conflict:
            # The request has saved another query: this one is rated by its own id.
            self._memory.executions.execute_query(sql, **options)

    def _saved(self) -> Iterator[Execution]:
        cursor = None
        while True:
            page = self._memory.executions.list(connector_id=self._connector_id, cursor=cursor, limit=MAX_PAGE)
            yield from (each for each in page.items if each.question is not None)
            cursor = page.next_cursor
            if cursor is None:
                return

    def _texts(self) -> Iterator[Fact]:
        cursor = None
        while True:
            try:
                page = self._memory.facts(dataset=self._dataset, cursor=cursor, limit=MAX_PAGE, newest_first=True)
            except NotFound:
                # Nothing was saved yet.
                return
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return


def _tool_memory(execution: Execution, tool: str, question: str | None = None) -> ToolMemory:
    return ToolMemory(
        memory_id=execution.execution_id,
        question=question or execution.question or "",
        tool_name=tool,
        args={"sql": execution.sql_query},
        timestamp=execution.created_at.isoformat(),
    )


def _text_memory(fact: Fact) -> TextMemory:
    return TextMemory(memory_id=fact.fact_id, content=fact.text, timestamp=fact.created_at.isoformat())


async def _found(removal: Any) -> bool:
    try:
        await removal
    except NotFound:
        return False
    return True


def _time(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
