"""LlamaIndex: a memory whose block recalls and which stores answers, and a retriever."""

from __future__ import annotations

from typing import Any, Unpack

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.memory import BaseMemoryBlock, InsertMethod, Memory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool
from llama_index_instrumentation.dispatcher import active_instrument_tags
from pydantic import PrivateAttr

from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import BlockingMemory, Memories, Scoped, Turns
from heedful.model import DEFAULT_DATASET, Metadata, Recall

TAG = "external_id"
"""The tag of LlamaIndex's instrumentation that has the id of an answer."""


REASONING = "Thought: "
"""How an answer of a `ReActAgent` begins, which has its reasoning before it."""


class HeedfulMemoryBlock(BaseMemoryBlock[str]):
    """Recalls for what the user said last. A block belongs to one memory, as that belongs to one conversation.

    Functions in the options take the tags of LlamaIndex's instrumentation.
    """

    name: str = "heedful"
    memory: Any
    """The result of `heedful.open`, `connect`, `aopen` or `aconnect`."""
    dataset: Scoped[str] = DEFAULT_DATASET
    top_k: int = 5
    where: Scoped[Metadata | None] = None
    session_id: Scoped[str | None] = None
    external_id: Scoped[str | None] = None
    deadline: float | None = None

    _turns: Turns = PrivateAttr()
    _question: str | None = PrivateAttr(default=None)
    _memories: Memories = PrivateAttr(default=Memories(""))
    _answered: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        names = ("dataset", "top_k", "where", "session_id", "external_id", "deadline")
        self._turns = Turns(self.memory, **{name: getattr(self, name) for name in names})

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        questions = [message for message in messages or () if message.role == MessageRole.USER]
        if not messages or not questions:
            return ""
        question = questions[-1].content or ""
        is_new = messages[-1].role == MessageRole.USER and self._answered
        if self._question != question or is_new:
            self._memories = await self._turns.arecall(question, active_instrument_tags.get())
            self._question, self._answered = question, False
        return self._memories.prompt

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Nothing: what leaves the short-term memory was stored when it was said."""

    async def astore(self, session_id: str, answer: str, external_id: str | None = None) -> str | None:
        """Stores the answer to what was asked last; returns its id, or None if there is nothing to store."""
        if self._answered:
            return None
        self._answered = True
        tags = active_instrument_tags.get()
        return self._turns.store(session_id, self._memories, answer, external_id, tags)


class HeedfulMemory(Memory):
    """LlamaIndex's `Memory`, which stores each answer with what its `HeedfulMemoryBlock` recalled for it.

    `HeedfulMemory.from_defaults(session_id=…, memory_blocks=[HeedfulMemoryBlock(memory=memory)])` is for one
    conversation. The model is shown the memories in the user's message, as some agents drop others, unless
    `insert_method` says otherwise. The tag `external_id` of LlamaIndex's instrumentation is the answer's external id:
    `memory.sessions.rate(external_id, "up")` rates it.
    """

    _qa_id: str | None = PrivateAttr(default=None)

    @property
    def qa_id(self) -> str | None:
        """The id of the last answer, for feedback; None if there is none."""
        return self._qa_id

    @classmethod
    def from_defaults(cls, session_id: str | None = None, **options: Any) -> Memory:  # type: ignore[override]
        """Takes what LlamaIndex's takes."""
        return super().from_defaults(session_id, **{"insert_method": InsertMethod.USER, **options})

    async def aput(self, message: ChatMessage) -> None:
        await super().aput(message)
        await self._store([message])

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        await super().aput_messages(messages)
        await self._store(messages)

    async def _store(self, messages: list[ChatMessage]) -> None:
        last = messages[-1] if messages else None
        if last is None or last.role != MessageRole.ASSISTANT or not last.content:
            return
        if any(isinstance(block, ToolCallBlock) for block in last.blocks) or last.additional_kwargs.get("tool_calls"):
            return
        external_id, answer = active_instrument_tags.get().get(TAG), last.content
        if answer.startswith(REASONING):
            answer = answer.rpartition("\nAnswer: ")[2]
        for block in self.memory_blocks:
            if isinstance(block, HeedfulMemoryBlock):
                self._qa_id = await block.astore(self.session_id, answer, external_id)


class HeedfulRetriever(BaseRetriever):
    """Recalls facts as nodes, the best first.

    Each node has the fact's id, and the `recall_id` in its metadata: `memory.signal_recall(recall_id, helpful=node_id)`
    says that it was useful.
    """

    def __init__(
        self,
        memory: BlockingMemory,
        *,
        top_k: int = 5,
        dataset: Scoped[str] = DEFAULT_DATASET,
        where: Scoped[Metadata | None] = None,
        deadline: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._turns = Turns(memory, dataset=dataset, top_k=top_k, where=where, deadline=deadline).require_sync()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._turns.find(query_bundle.query_str, active_instrument_tags.get()))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._turns.afind(query_bundle.query_str, active_instrument_tags.get()))


def _nodes(recall: Recall | None) -> list[NodeWithScore]:
    if recall is None:
        return []
    nodes = []
    for hit in recall:
        node = TextNode(
            id_=hit.fact_id,
            text=hit.text,
            metadata={**hit.metadata, "recall_id": recall.recall_id},
            # It is for programs.
            excluded_llm_metadata_keys=["recall_id"],
            excluded_embed_metadata_keys=["recall_id"],
        )
        nodes.append(NodeWithScore(node=node, score=hit.score))
    return nodes


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[FunctionTool]:
    """The tools `recall`, `remember` and `correct`. Functions in the options take the tags of LlamaIndex's
    instrumentation."""
    tools = MemoryTools(memory, **options)
    blocking, awaited = (tools.functions(_tags, awaited=awaited) for awaited in (False, True))
    return [FunctionTool.from_defaults(run, async_fn=arun) for run, arun in zip(blocking, awaited, strict=True)]


def _tags(context: None) -> dict[str, Any]:
    return active_instrument_tags.get()
