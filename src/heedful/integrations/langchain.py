"""LangChain and LangGraph: a middleware for agents, and a retriever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NotRequired
from uuid import UUID

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import SystemMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.config import get_config
from langgraph.runtime import Runtime
from pydantic import PrivateAttr

from heedful.integrations.turns import BlockingMemory, Memories, Turns
from heedful.model import DEFAULT_DATASET, Metadata, Recall


class HeedfulState(AgentState[Any]):
    """The state of an agent, with the keys that the middleware adds."""

    heedful_memories: NotRequired[str]
    """The memories as the model is shown them."""
    heedful_recall_id: NotRequired[str | None]
    heedful_qa_id: NotRequired[str | None]
    """The entry of the answer, for feedback; None if it could not be stored."""


class HeedfulMiddleware(AgentMiddleware[HeedfulState, Any, Any]):
    """Recalls before an agent runs, and stores its answer.

    The thread is the session, and the id of the run is the answer's external id:
    `memory.sessions.rate(run_id, "up")` rates it. `session_id` is the session of runs without a thread.
    """

    state_schema = HeedfulState

    def __init__(
        self,
        memory: BlockingMemory,
        *,
        dataset: str = DEFAULT_DATASET,
        top_k: int = 5,
        where: Metadata | None = None,
        session_id: str = "langchain",
    ) -> None:
        super().__init__()
        self._turns = Turns(memory, dataset=dataset, top_k=top_k, where=where).require_sync()
        self._session_id = session_id

    def before_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        return _to_state(self._turns.recall(_question(state)))

    async def abefore_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        return _to_state(await self._turns.arecall(_question(state)))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(_with_memories(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(_with_memories(request))

    def after_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        session_id, run_id = self._ids(runtime)
        return {"heedful_qa_id": self._turns.store(session_id, *_turn(state), run_id)}

    async def aafter_agent(self, state: HeedfulState, runtime: Runtime[Any]) -> dict[str, Any]:
        session_id, run_id = self._ids(runtime)
        return {"heedful_qa_id": await self._turns.astore(session_id, *_turn(state), run_id)}

    def _ids(self, runtime: Runtime[Any]) -> tuple[str, str | None]:
        config = get_config()
        info = getattr(runtime, "execution_info", None)
        thread = config.get("configurable", {}).get("thread_id")
        run = config.get("metadata", {}).get("run_id") or getattr(info, "run_id", None) or config.get("run_id")
        return (self._session_id if thread is None else str(thread)), None if run is None else str(run)


class HeedfulRetriever(BaseRetriever):
    """Recalls facts as documents, the best first.

    The id of the retriever's run is the external id of the recall: `memory.signal_recall(run_id, …)` says which facts
    were useful. Each document has the fact's id, and the `recall_id` in its metadata.
    """

    memory: Any
    """The result of `heedful.open` or `heedful.connect`."""
    k: int = 4
    dataset: str = DEFAULT_DATASET
    where: Metadata | None = None

    _turns: Turns = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._turns = Turns(self.memory).require_sync()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(self._turns.find(query, **self._options(run_manager.run_id, k)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return _documents(await self._turns.afind(query, **self._options(run_manager.run_id, k)))

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


def _question(state: HeedfulState) -> str:
    return next((str(message.text) for message in reversed(state["messages"]) if message.type == "human"), "")


def _to_state(memories: Memories) -> dict[str, Any]:
    return {"heedful_memories": memories.prompt, "heedful_recall_id": memories.recall_id, "heedful_qa_id": None}


def _turn(state: HeedfulState) -> tuple[Memories, str]:
    return Memories(_question(state), recall_id=state.get("heedful_recall_id")), str(state["messages"][-1].text)


def _with_memories(request: ModelRequest[Any]) -> ModelRequest[Any]:
    prompt = str(request.state.get("heedful_memories") or "")
    if not prompt:
        return request
    before = request.system_message
    if before is None:
        return request.override(system_message=SystemMessage(prompt))
    if isinstance(before.content, str):
        return request.override(system_message=SystemMessage(f"{before.content}\n\n{prompt}"))
    content: list[str | dict[Any, Any]] = [*before.content, {"type": "text", "text": prompt}]
    return request.override(system_message=SystemMessage(content))
