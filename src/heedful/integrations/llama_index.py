"""LlamaIndex: a memory whose block recalls and which stores answers, and a retriever."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.memory import BaseMemoryBlock, Memory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation.dispatcher import active_instrument_tags
from pydantic import PrivateAttr

from heedful.integrations.turns import BlockingMemory, Memories, Turns
from heedful.model import DEFAULT_DATASET, Metadata, Recall

TAG = "external_id"
"""The tag of LlamaIndex's instrumentation that has the id of an answer."""


class HeedfulMemoryBlock(BaseMemoryBlock[str]):
    """Recalls for what the user said last. A block belongs to one memory, as that belongs to one conversation."""

    name: str = "heedful"
    memory: Any
    """The result of `heedful.open`, `connect`, `aopen` or `aconnect`."""
    dataset: str = DEFAULT_DATASET
    top_k: int = 5
    where: Metadata | None = None

    _turns: Turns = PrivateAttr()
    _memories: Memories | None = PrivateAttr(default=None)
    _answered: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._turns = Turns(self.memory, dataset=self.dataset, top_k=self.top_k, where=self.where)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        questions = [message for message in messages or () if message.role == MessageRole.USER]
        if not messages or not questions:
            return ""
        question = questions[-1].content or ""
        is_new = messages[-1].role == MessageRole.USER and self._answered
        if self._memories is None or self._memories.question != question or is_new:
            self._memories = await self._turns.arecall(question)
            self._answered = False
        return self._memories.prompt

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Nothing: what leaves the short-term memory was stored when it was said."""

    async def astore(self, session_id: str, answer: str, external_id: str | None = None) -> str | None:
        """Stores the answer to what was asked last; returns its `qa_id`, or None if Heedful fails."""
        if self._memories is None or self._answered:
            return None
        self._answered = True
        return await self._turns.astore(session_id, self._memories, answer, external_id)


class HeedfulMemory(Memory):
    """LlamaIndex's `Memory`, which stores each answer with what its `HeedfulMemoryBlock` recalled for it.

    `HeedfulMemory.from_defaults(session_id=…, memory_blocks=[HeedfulMemoryBlock(memory=memory)])` is for one
    conversation. The tag `external_id` of LlamaIndex's instrumentation is the answer's external id:
    `memory.sessions.rate(external_id, "up")` rates it.
    """

    _qa_id: str | None = PrivateAttr(default=None)

    @property
    def qa_id(self) -> str | None:
        """The entry of the last answer, for feedback; None if there is none, or if it could not be stored."""
        return self._qa_id

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
        external_id = active_instrument_tags.get().get(TAG)
        for block in self.memory_blocks:
            if isinstance(block, HeedfulMemoryBlock):
                self._qa_id = await block.astore(self.session_id, last.content, external_id)


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
        dataset: str = DEFAULT_DATASET,
        where: Metadata | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._turns = Turns(memory, dataset=dataset, top_k=top_k, where=where).require_sync()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._turns.find(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._turns.afind(query_bundle.query_str))


def _nodes(recall: Recall | None) -> list[NodeWithScore]:
    if recall is None:
        return []
    nodes = []
    for hit in recall:
        node = TextNode(id_=hit.fact_id, text=hit.text, metadata={**hit.metadata, "recall_id": recall.recall_id})
        nodes.append(NodeWithScore(node=node, score=hit.score))
    return nodes
