"""Google's Agent Development Kit: a plugin, and a memory service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import Session
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from heedful.errors import NotFound
from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import (
    AnyMemory,
    BlockingMemory,
    Memories,
    Options,
    Runs,
    Scoped,
    Turns,
    in_context,
    stored,
)
from heedful.model import DEFAULT_DATASET, Document, Hit, Metadata
from heedful.model.limits import MAX_NAME


@dataclass
class _Invocation:
    memories: Memories
    answer: str = ""


class HeedfulPlugin(BasePlugin):
    """Recalls before an invocation, and stores its answer. One is enough for all sessions of an app.

    A user is shown their own facts and shared ones: facts whose metadata have another `app_name` or `user_id` are left
    out, unless `where` has conditions on these. Functions in the options take the user's id. The session is
    `session_name(app_name, user_id, session_id)`, and the id of the invocation is the answer's external id:
    `memory.sessions.rate(event.invocation_id, "up")` rates it.
    """

    def __init__(self, memory: AnyMemory, *, name: str = "heedful", **options: Unpack[Options]) -> None:
        super().__init__(name)
        self._recalls = Turns(memory, **options)
        self._where = options.get("where")
        self._turns = Runs()

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        own = _own(invocation_context.app_name, invocation_context.user_id)

        def where(user_id: str) -> Metadata:
            return {**own, **(in_context(self._where, user_id) or {})}

        question = _question(invocation_context)
        memories = await self._recalls.arecall(question, invocation_context.user_id, where=where)
        self._turns.put(invocation_context.invocation_id, _Invocation(memories))

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        turn = self._turns.get(callback_context.invocation_id)
        if turn is not None and turn.memories.prompt:
            llm_request.append_instructions([turn.memories.prompt])

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        turn = self._turns.get(invocation_context.invocation_id)
        is_answer = event.author != "user" and event.is_final_response() and not event.long_running_tool_ids
        if turn is not None and is_answer:
            # Of several agents, the last one answers.
            turn.answer = _text(event.content) or turn.answer

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        turn = self._turns.pop(invocation_context.invocation_id, None)
        if turn is not None and turn.answer:
            session = invocation_context.session
            name = session_name(session.app_name, session.user_id, session.id)
            id_, user_id = invocation_context.invocation_id, invocation_context.user_id
            self._recalls.store(name, turn.memories, turn.answer, id_, user_id)


class HeedfulMemoryService(BaseMemoryService):
    """The texts of sessions, as facts of an app and a user; a search is a recall among theirs.

    `dataset` may be a function of the user's id. Each memory has its `fact_id` as id, and the `recall_id` in
    `custom_metadata`: `memory.signal_recall(recall_id, helpful=fact_id)` says that it was useful.

    If Heedful fails, a search finds nothing, and the log says so once; all else raises its error.
    """

    def __init__(
        self,
        memory: BlockingMemory,
        *,
        dataset: Scoped[str] = DEFAULT_DATASET,
        top_k: int = 10,
        deadline: float | None = None,
    ) -> None:
        self._memory = memory
        self._dataset = dataset
        self._turns = Turns(memory, dataset=dataset, top_k=top_k, deadline=deadline).require_sync()

    async def add_session_to_memory(self, session: Session) -> None:
        """Remembers the texts of a session; those that are remembered already stay as they are."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        documents: list[Document] = []
        for event in events:
            text = _text(event.content)
            if not text or event.partial:
                continue
            timestamp = datetime.fromtimestamp(event.timestamp, UTC).isoformat()
            metadata = {**(custom_metadata or {}), **_scope(app_name, user_id)}
            metadata |= {"author": event.author, "timestamp": timestamp}
            if session_id is not None:
                metadata["session_id"] = session_id
            source = f"adk/{_joined(app_name, user_id, event.id)}"
            documents.append(Document(source=source, texts=[text], metadata=[metadata]))
        if documents:
            dataset = in_context(self._dataset, user_id)
            stored(await self._turns.ademand(self._memory.remember, documents, dataset=dataset))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        for entry in memories:
            about = {"author": entry.author, "timestamp": entry.timestamp}
            given = {name: value for name, value in about.items() if value is not None}
            metadata = {**(custom_metadata or {}), **entry.custom_metadata, **given, **_scope(app_name, user_id)}
            remember, dataset = self._memory.remember, in_context(self._dataset, user_id)
            await self._turns.ademand(remember, _text(entry.content), dataset=dataset, metadata=metadata)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        recall = await self._turns.afind(query, user_id, where=_scope(app_name, user_id))
        entries = [] if recall is None else [_entry(hit, recall.recall_id) for hit in recall]
        return SearchMemoryResponse(memories=entries)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forgets a memory of this user; others are not found."""
        fact = await self._turns.ademand(self._memory.fact, str(memory_id))
        if not _scope(app_name, user_id).items() <= fact.metadata.items():
            raise NotFound(f"there is no memory {memory_id!r} of this user", field="memory_id", value=memory_id)
        await self._turns.ademand(self._memory.forget, fact.fact_id)


def session_name(app_name: str, user_id: str, session_id: str) -> str:
    """The Heedful session of an ADK session: to ADK, a session id means something only with its app and its user."""
    name = _joined(app_name, user_id, session_id)
    return name if len(name) <= MAX_NAME else sha256(name.encode()).hexdigest()


def _joined(*names: str) -> str:
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


def _scope(app_name: str, user_id: str) -> Metadata:
    """The metadata of a user's own facts."""
    return {"app_name": app_name, "user_id": user_id}


def _own(app_name: str, user_id: str) -> Metadata:
    """Conditions that pass these, and what everybody may see."""
    return {name: {"only": [value]} for name, value in _scope(app_name, user_id).items()}


def _entry(hit: Hit, recall_id: str) -> MemoryEntry:
    about = dict(hit.metadata)
    author, timestamp = about.pop("author", None), about.pop("timestamp", None)
    return MemoryEntry(
        content=types.Content(role="user", parts=[types.Part(text=hit.text)]),
        id=hit.fact_id,
        author=author,
        timestamp=timestamp,
        custom_metadata={**about, "recall_id": recall_id, "score": hit.score},
    )


def _question(context: InvocationContext) -> str:
    """The words of the user; if they only approved of a call, their last words before it."""
    content = context.user_content
    if content is None or any(part.function_response for part in content.parts or ()):
        said = [_text(event.content) for event in context.session.events if event.author == "user"]
        return next((text for text in reversed(said) if text), "")
    return _text(content)


def _text(content: Any) -> str:
    parts = content.parts if content is not None and content.parts else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[FunctionTool]:
    """The tools `recall`, `remember` and `correct`. A user recalls and corrects their own facts and shared ones, and
    remembers their own, unless `where` says otherwise. Functions in the options take the user's id."""
    given: dict[str, Any] = {"where": None, **options}

    def of_user(name: str) -> Any:
        value = given[name]
        return (lambda tool: value(tool.user_id)) if callable(value) else value

    def where(tool: ToolContext) -> Metadata:
        return {**_own(tool.session.app_name, tool.user_id), **(in_context(given["where"], tool.user_id) or {})}

    tools = MemoryTools(memory, **{**{name: of_user(name) for name in given}, "where": where})
    return [FunctionTool(each) for each in tools.functions(lambda tool: tool, "tool_context", ToolContext)]
