"""LangChain and LangGraph: a middleware for agents, and a retriever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from operator import or_
from typing import Annotated, Any, NotRequired, Unpack
from uuid import UUID

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import SystemMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from pydantic import PrivateAttr

from heedful.clock import new_id
from heedful.integrations.langgraph import runtime_context
from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import BlockingMemory, Memories, Options, Runs, Scoped, Turns
from heedful.model import DEFAULT_DATASET, Metadata, Recall

TOOLS = "tools:"
"""How the place of a run within another begins where a tool started it."""


class HeedfulState(AgentState[Any]):
    """The state of an agent, with the keys that the middleware adds."""

    heedful_turns: NotRequired[Annotated[dict[str, str], or_, PrivateStateAttr]]
    """The turn of each middleware, by its name. The memories themselves are in no checkpoint."""
    heedful_qa_id: NotRequired[Annotated[str | None, OmitFromInput]]
    """The id of the answer for feedback; None if there is nothing to store."""


class HeedfulMiddleware(AgentMiddleware[HeedfulState, Any, Any]):
    """Recalls before an agent runs, and stores its answer. Functions in the options take `runtime.context`.

    The thread is the session (`langchain` without one), and the id of the run is the answer's external id:
    `memory.sessions.rate(run_id, "up")` rates it. Agents that are tools of others have ids of their own. Several
    middlewares of one agent need different names.
    """

    state_schema = HeedfulState

    def __init__(self, memory: BlockingMemory, *, name: str = "HeedfulMiddleware", **options: Unpack[Options]) -> None:
        super().__init__()
        self._name = name
        self._turns = Turns(memory, **options).require_sync()
        self._recalled = Runs()

    @property
    def name(self) -> str:
        return self._name

    def before_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        return self._begin(self._turns.recall(_question(state), runtime.context))

    async def abefore_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        return self._begin(await self._turns.arecall(_question(state), runtime.context))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        turn, memories = self._turn(request.state)
        if memories is None:
            # Another process began this turn, and it was interrupted.
            memories = self._turns.recall(_question(request.state), request.runtime.context)
            self._recalled.put(turn, memories)
        return handler(_with_memories(request, memories.prompt))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        turn, memories = self._turn(request.state)
        if memories is None:
            memories = await self._turns.arecall(_question(request.state), request.runtime.context)
            self._recalled.put(turn, memories)
        return await handler(_with_memories(request, memories.prompt))

    def after_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        turn, memories = self._turn(state)
        self._recalled.pop(turn, None)
        session_id, run_id = _ids(runtime)
        structured = state.get("structured_response")
        answer = state["messages"][-1].text if structured is None else structured
        memories = memories or Memories(_question(state))
        return {"heedful_qa_id": self._turns.store(session_id, memories, answer, run_id, runtime.context)}

    async def aafter_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        return self.after_agent(state, runtime)

    def _begin(self, memories: Memories) -> dict[str, Any]:
        turn = new_id()
        self._recalled.put(turn, memories)
        return {"heedful_turns": {self._name: turn}, "heedful_qa_id": None}

    def _turn(self, state: Any) -> tuple[str, Memories | None]:
        turn = (state.get("heedful_turns") or {}).get(self._name, "")
        return turn, self._recalled.get(turn)


def _ids(runtime: Runtime[Any]) -> tuple[str, str | None]:
    config = get_config()
    info = getattr(runtime, "execution_info", None)
    thread = config.get("configurable", {}).get("thread_id")
    run = config.get("metadata", {}).get("run_id") or (info and info.run_id) or config.get("run_id")
    is_tool = info is not None and any(place.startswith(TOOLS) for place in info.checkpoint_ns.split("|"))
    return "langchain" if thread is None else str(thread), None if run is None or is_tool else str(run)


class HeedfulRetriever(BaseRetriever):
    """Recalls facts as documents, the best first.

    The id of the retriever's run is the external id of the recall: `memory.signal_recall(run_id, …)` says which facts
    were useful. Each document has the fact's id, and the `recall_id` in its metadata.
    """

    memory: Any
    """The result of `heedful.open` or `heedful.connect`."""
    k: int = 4
    dataset: Scoped[str] = DEFAULT_DATASET
    where: Scoped[Metadata | None] = None
    """Like `dataset`, a value or a function of the `runtime.context` of the agent or graph that it runs in."""
    deadline: float | None = None

    _turns: Turns = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._turns = Turns(self.memory, deadline=self.deadline).require_sync()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(self._turns.find(query, runtime_context(), **self._options(run_manager.run_id, k)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(await self._turns.afind(query, runtime_context(), **self._options(run_manager.run_id, k)))

    def _options(self, run_id: UUID, k: int | None) -> dict[str, Any]:
        return {"dataset": self.dataset, "top_k": k or self.k, "where": self.where, "external_id": str(run_id)}


def _documents(recall: Recall | None) -> list[Document]:
    if recall is None:
        return []
    documents = []
    for hit in recall:
        about = {"recall_id": recall.recall_id, "score": hit.score, "source": hit.source}
        documents.append(Document(page_content=hit.text, id=hit.fact_id, metadata={**hit.metadata, **about}))
    return documents


def _question(state: Any) -> str:
    return next((str(message.text) for message in reversed(state["messages"]) if message.type == "human"), "")


def _with_memories(request: ModelRequest[Any], prompt: str) -> ModelRequest[Any]:
    if not prompt:
        return request
    before = request.system_message
    if before is None:
        return request.override(system_message=SystemMessage(prompt))
    if isinstance(before.content, str):
        return request.override(system_message=SystemMessage(f"{before.content}\n\n{prompt}"))
    content: list[str | dict[Any, Any]] = [*before.content, {"type": "text", "text": prompt}]
    return request.override(system_message=SystemMessage(content))


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[BaseTool]:
    """The tools `recall`, `remember` and `correct`. Functions in the options take `runtime.context`."""
    tools = MemoryTools(memory, **options)

    def context(runtime: ToolRuntime[Any, Any]) -> Any:
        return runtime.context

    blocking, awaited = (tools.functions(context, "runtime", ToolRuntime, awaited=awaited) for awaited in (False, True))
    return [StructuredTool.from_function(*each) for each in zip(blocking, awaited, strict=True)]
