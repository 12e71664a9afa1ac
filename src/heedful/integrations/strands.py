"""Strands Agents: a plugin, and a store for its memory manager."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from strands import Agent, ToolContext, tool
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent, BeforeToolCallEvent
from strands.injection import InjectionContext
from strands.memory import MemoryEntry, MemoryManager, MemoryStore, SearchOptions
from strands.types.content import Message
from strands.vended_plugins.context_injector import ContextInjector

from heedful.integrations.tools import MemoryTools, ToolOptions, metadata_for
from heedful.integrations.turns import AnyMemory, BlockingMemory, Memories, Options, Scoped, Turns, scoped
from heedful.model import DEFAULT_DATASET, Metadata

_STATE: ContextVar[dict[str, Any] | None] = ContextVar("invocation_state", default=None)
"""That of the agent which calls its model or a tool here."""


class HeedfulPlugin(ContextInjector):
    """Recalls before an agent answers, and stores the answer. Agents may share it. Functions in the options take the
    `invocation_state` of the call.

    The agent's session is the session, unless `session_id` names one. `invocation_state={"external_id": …}` of a call
    is the answer's external id: `memory.sessions.rate(external_id, "up")` rates it. Afterwards, that state has the
    `heedful_qa_id`.
    """

    def __init__(self, memory: AnyMemory, **options: Unpack[Options]) -> None:
        self._turns = Turns(memory, **options)
        # An agent has one invocation at a time: its state, and what was recalled.
        self._invocations: WeakKeyDictionary[Any, tuple[dict[str, Any], Memories | None]] = WeakKeyDictionary()
        super().__init__(self._show, name="heedful", trigger="everyTurn")

    def init_agent(self, agent: Agent) -> None:
        super().init_agent(agent)
        agent.add_hook(self._begin, BeforeInvocationEvent)
        agent.add_hook(self._finish, AfterInvocationEvent)

    def _begin(self, event: BeforeInvocationEvent) -> None:
        """Forgets what was recalled for an earlier question."""
        self._invocations[event.agent] = event.invocation_state, None

    async def _finish(self, event: AfterInvocationEvent) -> None:
        state, memories = self._invocations.pop(event.agent, ({}, None))
        if memories is None or event.result is None or event.result.stop_reason == "interrupt":
            return
        answer = event.result.structured_output or _text(event.result.message)
        session_id, external_id = event.agent.session_id, state.get("external_id")
        state["heedful_qa_id"] = self._turns.store(session_id, memories, answer, external_id, state)

    async def _show(self, context: InjectionContext) -> str | None:
        state, memories = self._invocations.get(context.agent, ({}, None))
        if memories is None:
            memories = await self._turns.arecall(_question(context.messages), state)
            self._invocations[context.agent] = state, memories
        return memories.prompt


class HeedfulMemoryManager(MemoryManager):
    """Strands' `MemoryManager`, for stores whose options are functions of the `invocation_state` of the call."""

    async def init_agent(self, agent: Agent) -> None:
        await super().init_agent(agent)
        # Before each of them, as an agent that is a tool has a state of its own.
        agent.add_hook(self._note, BeforeModelCallEvent)
        agent.add_hook(self._note, BeforeToolCallEvent)

    def _note(self, event: BeforeModelCallEvent | BeforeToolCallEvent) -> None:
        _STATE.set(event.invocation_state)


class HeedfulMemoryStore(MemoryStore):
    """A store for Strands' `MemoryManager`: its searches are recalls, and what an agent adds is a fact, which has the
    values of `where` as metadata.

    Each entry has the `fact_id` and the `recall_id` in its metadata: `memory.signal_recall(recall_id, helpful=fact_id)`
    says that it was useful. With a `HeedfulMemoryManager`, `dataset` and `where` may be functions of the
    `invocation_state` of the call.
    """

    def __init__(
        self,
        memory: BlockingMemory,
        *,
        name: str = "heedful",
        description: str | None = "Facts, ranked by how useful they were for similar questions.",
        max_search_results: int = 5,
        writable: bool = True,
        dataset: Scoped[str] = DEFAULT_DATASET,
        where: Scoped[Metadata | None] = None,
        deadline: float | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = None
        self._memory = memory
        self._scope = {"dataset": dataset, "where": where}
        self._turns = Turns(memory, dataset=dataset, where=where, deadline=deadline).require_sync()

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """The facts for a query, the best first; nothing if Heedful fails."""
        top_k = (options or {}).get("max_search_results") or self.max_search_results
        recall = await self._turns.afind(query, _STATE.get(), top_k=top_k)
        if recall is None:
            return []
        entries = []
        for hit in recall:
            about = {"fact_id": hit.fact_id, "recall_id": recall.recall_id, "score": hit.score}
            entries.append(MemoryEntry(hit.text, metadata={**hit.metadata, **about}))
        return entries

    async def add(self, content: str, metadata: Metadata | None = None) -> list[str]:
        """Stores a text as facts, and returns their ids. The same text again is stored once."""
        scope = scoped(self._scope, _STATE.get())
        about = {**(metadata or {}), **metadata_for(scope["where"])}
        stored = await self._turns.ademand(self._memory.remember, content, dataset=scope["dataset"], metadata=about)
        return [fact.fact_id for fact in stored.facts]


def _question(messages: list[Message]) -> str:
    """The last words of the user, which results of tools are not."""
    for message in reversed(messages):
        if message["role"] == "user" and not any("toolResult" in block for block in message["content"]):
            return _text(message)
    return ""


def _text(message: Message) -> str:
    return "\n".join(block["text"] for block in message["content"] if "text" in block).strip()


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[Any]:
    """The tools `recall`, `remember` and `correct`. Functions in the options take the `invocation_state`."""
    tools = MemoryTools(memory, **options)
    functions = tools.functions(lambda context: context.invocation_state, "tool_context", ToolContext)
    return [tool(context="tool_context")(each) for each in functions]
