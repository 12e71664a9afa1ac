"""cognee's calls for sessions and feedback, on Heedful.

`import heedful.compat.cognee as cognee` and go on. Without more, the store is the one that the settings name
(HEEDFUL_STORE, heedful.toml, else heedful.db); `configure` names another. A `user` is a project: nothing is shared
between users.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from heedful.aio import AsyncHeedful
from heedful.api import checks
from heedful.bootstrap import THREADS
from heedful.compat.foreign_api import PAGE_LIMIT
from heedful.errors import Invalid, NotFound, quoted
from heedful.model import DEFAULT_DATASET, Entry, Improvement, Mode, Model, Recall, RememberResult
from heedful.store import Store, async_project

__all__ = [
    "RecallResult",
    "SearchType",
    "SessionQAEntry",
    "close",
    "configure",
    "improve",
    "recall",
    "remember",
    "session",
]

SessionQAEntry = Entry


class SearchType(StrEnum):
    """How to search, by cognee's names."""

    GRAPH_COMPLETION = "GRAPH_COMPLETION"
    GRAPH_COMPLETION_COT = "GRAPH_COMPLETION_COT"
    GRAPH_COMPLETION_CONTEXT_EXTENSION = "GRAPH_COMPLETION_CONTEXT_EXTENSION"
    GRAPH_COMPLETION_DECOMPOSITION = "GRAPH_COMPLETION_DECOMPOSITION"
    GRAPH_SUMMARY_COMPLETION = "GRAPH_SUMMARY_COMPLETION"
    TRIPLET_COMPLETION = "TRIPLET_COMPLETION"
    RAG_COMPLETION = "RAG_COMPLETION"
    HYBRID_COMPLETION = "HYBRID_COMPLETION"
    TEMPORAL = "TEMPORAL"
    FEELING_LUCKY = "FEELING_LUCKY"
    CHUNKS = "CHUNKS"
    CHUNKS_LEXICAL = "CHUNKS_LEXICAL"
    SUMMARIES = "SUMMARIES"
    CYPHER = "CYPHER"
    NATURAL_LANGUAGE = "NATURAL_LANGUAGE"
    CODING_RULES = "CODING_RULES"

    @property
    def mode(self) -> Mode:
        """The mode of `heedful.recall` that does this."""
        if self in (SearchType.CYPHER, SearchType.NATURAL_LANGUAGE, SearchType.CODING_RULES):
            message = f"query_type is {self.value}, which is not supported here"
            remedy = "Use GRAPH_COMPLETION, RAG_COMPLETION, CHUNKS, CHUNKS_LEXICAL or SUMMARIES"
            raise Invalid(message, field="query_type", value=self.value, remedy=remedy)
        if self.value.startswith(("GRAPH_", "TRIPLET_")):
            return "graph"
        if self is SearchType.CHUNKS:
            return "semantic"
        return "lexical" if self is SearchType.CHUNKS_LEXICAL else "hybrid"

    @property
    def answers(self) -> bool:
        """Whether it gives an answer rather than texts."""
        return self not in (SearchType.CHUNKS, SearchType.CHUNKS_LEXICAL)


class RecallResult(Model):
    """One result: an answer, or a text that was found."""

    text: str
    source: str
    """`graph` for an answer or text from the facts."""
    recall_id: str
    qa_id: str | None = None
    fact_id: str | None = None
    score: float | None = None


MAX_OPEN_USERS = 32
"""Users whose projects stay open while they do nothing."""


class _Opened(NamedTuple):
    """The store, opened once for all users."""

    store: Store
    pool: ThreadPoolExecutor
    project: str
    """That of nobody in particular."""


_OPTIONS: dict[str, Any] = {}
_LOCK = threading.Lock()
_OPEN: list[_Opened] = []


async def configure(url_or_path: str | Path | None = None, **options: Any) -> None:
    """Names the store, with the options that `heedful.open` takes; what was open is closed."""
    await close()
    _OPTIONS.clear()
    _OPTIONS.update(options, url_or_path=url_or_path)


async def close() -> None:
    """Closes the store, after what still runs in the background."""
    with _LOCK:
        opened = list(_OPEN)
        _OPEN.clear()
    for former in opened:
        await asyncio.to_thread(former.pool.shutdown)
        await asyncio.to_thread(former.store.close)


async def remember(
    data: str | Path | Sequence[str | Path],
    dataset_name: str = DEFAULT_DATASET,
    *,
    session_id: str | None = None,
    self_improvement: bool = True,
    user: Any = None,
) -> RememberResult:
    """Stores texts and files; what is remembered in a session says so in its metadata."""
    store = await _store(user)
    metadata = None
    if session_id is not None:
        await store.sessions.create(session_id)
        metadata = {"session_id": session_id}
    return await store.remember(data, dataset=dataset_name, metadata=metadata, self_improvement=self_improvement)


async def recall(
    query_text: str,
    query_type: SearchType = SearchType.GRAPH_COMPLETION,
    *,
    session_id: str | None = None,
    datasets: str | Sequence[str] | None = None,
    top_k: int = 10,
    feedback_influence: float = 0.0,
    user: Any = None,
) -> list[RecallResult]:
    """Answers a question, or finds texts, as `query_type` says; with a session, question and answer are kept."""
    query_type = search_type_of(query_type)
    store = await _store(user)
    result = await store.recall(
        query_text,
        dataset=dataset_of(datasets),
        mode=query_type.mode,
        top_k=top_k,
        feedback_influence=feedback_influence,
        session_id=session_id,
        answer=query_type.answers,
    )
    return results_of(result, query_type)


async def improve(
    dataset: str | None = None, session_ids: Sequence[str] | None = None, *, user: Any = None
) -> Improvement:
    """Turns the feedback of sessions into better recall."""
    return await (await _store(user)).improve(dataset, session_ids)


class session:  # noqa: N801 - cognee's name
    """The calls about one conversation."""

    @staticmethod
    async def get_session(session_id: str, last_n: int | None = None, user: Any = None) -> list[SessionQAEntry]:
        """The questions and answers of a session, oldest first; none if there is no such session."""
        store = await _store(user)
        if not await store.sessions.exists(session_id):
            return []
        newest_first = last_n is not None
        entries: list[SessionQAEntry] = []
        cursor = None
        while last_n is None or len(entries) < last_n:
            limit = PAGE_LIMIT if last_n is None else min(PAGE_LIMIT, last_n - len(entries))
            page = await store.sessions.entries(session_id, cursor=cursor, limit=limit, newest_first=newest_first)
            entries += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return entries[::-1] if newest_first else entries

    @staticmethod
    async def add_feedback(
        session_id: str,
        qa_id: str,
        feedback_text: str | None = None,
        feedback_score: int | None = None,
        user: Any = None,
    ) -> bool:
        """Rates an answer; False if there is no such entry."""
        store = await _store(user)
        return await store.sessions.add_feedback(session_id, qa_id, feedback_text, feedback_score)

    @staticmethod
    async def delete_feedback(session_id: str, qa_id: str, user: Any = None) -> bool:
        """Clears what was said of an answer; False if there is no such entry."""
        sessions = (await _store(user)).sessions
        with suppress(NotFound):
            return await sessions.delete_feedback(session_id, qa_id) or bool(await sessions.entry(session_id, qa_id))
        return False


async def _store(user: Any) -> AsyncHeedful:
    opened = _OPEN[0] if _OPEN else await asyncio.to_thread(_open_for)
    project = opened.project if user is None else checks.name("user", str(getattr(user, "id", user)))
    return async_project(opened.store, project, opened.pool)


def _open_for() -> _Opened:
    with _LOCK:
        if not _OPEN:
            options = dict(_OPTIONS)
            project, worker = options.pop("project", None), checks.flag("worker", options.pop("worker", True))
            url = options.pop("url_or_path", None)
            store = Store(url, max_open_projects=MAX_OPEN_USERS, background_jobs=worker, **options)
            name = store.default_project if project is None else checks.name("project", project)
            pool = ThreadPoolExecutor(THREADS, thread_name_prefix="heedful")
            _OPEN.append(_Opened(store, pool, name))
        return _OPEN[0]


def search_type_of(value: Any) -> SearchType:
    try:
        return SearchType(value)
    except ValueError:
        remedy = "Use a SearchType"
        raise Invalid(f"unknown query_type {quoted(value)}", field="query_type", value=value, remedy=remedy) from None


def dataset_of(datasets: str | Sequence[str] | None) -> str:
    """The one dataset that is named."""
    names = [datasets] if isinstance(datasets, str) else list(datasets or [DEFAULT_DATASET])
    if len(names) != 1:
        remedy = "Recall from one at a time"
        raise Invalid(f"datasets has {len(names)} names", field="datasets", value=names, remedy=remedy)
    return names[0]


def results_of(result: Recall, query_type: SearchType) -> list[RecallResult]:
    """An answer, or the texts that were found."""
    of_recall: dict[str, Any] = {"source": "graph", "recall_id": result.recall_id, "qa_id": result.qa_id}
    if query_type.answers and result.answer is not None:
        return [RecallResult(text=result.answer, **of_recall)]
    return [RecallResult(text=hit.text, fact_id=hit.fact_id, score=hit.score, **of_recall) for hit in result]
