"""cognee's HTTP interface: its requests and answers; names may be written with capitals or with underscores."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Literal

import orjson
from pydantic import AliasChoices, ConfigDict, Field
from pydantic.alias_generators import to_camel

from heedful.compat.cognee import RecallResult, SearchType, dataset_of, results_of, search_type_of
from heedful.compat.foreign_api import PAGE_LIMIT, Body, ForeignRequest, ForeignRoute, every, problem, read, unsupported
from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid, NotFound
from heedful.ledger.votes import ANYONE
from heedful.model import DEFAULT_DATASET, Entry, Fraction, Metadata, NotBlank, Session, Text

UNSUPPORTED: dict[str, dict[str, str]] = {
    "add and cognify are one step here. Use POST /api/v1/remember": {
        "/add": "POST",
        "/cognify": "POST",
        "/update": "PATCH",
    },
    "search is called recall here. Use POST /api/v1/recall": {"/search": "GET POST"},
    "memify is called improve here. Use POST /api/v1/improve": {"/memify": "POST"},
    "delete is called forget here. Use POST /api/v1/forget": {"/delete": "DELETE"},
    "datasets are named here, and made by being used. Use POST /api/v1/remember and /api/v1/forget": {
        "/datasets": "POST DELETE",
        "/datasets/{dataset_id}": "DELETE",
    },
    "graphs are not here as such. Use POST /api/v1/recall": {
        "/datasets/{dataset_id}/graph": "GET",
        "/visualize": "GET",
    },
}

GRAPH = (None, "auto", "graph", "all", ["graph"])
"""Scopes that mean the facts."""


class Camel(Body):
    """A body whose names may also be in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, loc_by_alias=False)

    def refuse(self, *names: str) -> None:
        """A part of a request that would be dropped is worse than an error."""
        for name in names:
            if getattr(self, name):
                remedy = "Leave it out"
                raise Invalid(f"{name} is not supported here", field=name, value=getattr(self, name), remedy=remedy)


class Remembering(Camel):
    data: NotBlank | list[NotBlank] = Field(validation_alias=AliasChoices("data", "raw_data", "rawData"))
    dataset_name: str = DEFAULT_DATASET
    dataset_id: str | None = None
    session_id: str | None = None
    self_improvement: bool = True
    content_type: str | None = None
    external_metadata: list[Metadata | None] | None = None


class AnswerRating(Camel):
    feedback_text: str | None = None
    feedback_score: int | None = None


class SessionEntry(Camel):
    type: Literal["qa", "feedback"]
    qa_id: str | None = None
    question: str | None = None
    answer: str | None = None
    context: Text | None = None
    feedback_text: str | None = None
    feedback_score: int | None = None


class RememberingEntry(Camel):
    entry: SessionEntry
    session_id: NotBlank
    dataset_name: str = DEFAULT_DATASET


class Asking(Camel):
    query: NotBlank = Field(validation_alias=AliasChoices("query", "query_text", "queryText"))
    search_type: str | None = Field(
        None, validation_alias=AliasChoices("search_type", "searchType", "query_type", "queryType")
    )
    datasets: str | list[str] | None = None
    top_k: int | None = None
    session_id: str | None = None
    feedback_influence: Fraction = 0.0
    only_context: bool = False
    scope: str | list[str] | None = None
    dataset_ids: list[str] | None = None
    node_name: list[str] | None = None
    response_schema: dict[str, Any] | None = None
    code_query: dict[str, Any] | None = None
    tool_connections: list[str] | None = None
    stream: bool | None = None


class Improving(Camel):
    dataset_name: str | None = Field(None, validation_alias=AliasChoices("dataset_name", "datasetName", "dataset"))
    dataset_id: str | None = None
    session_ids: list[str] | None = None


class Forgetting(Camel):
    dataset: str | None = None
    dataset_id: str | None = None
    data_id: str | None = None
    everything: bool = False
    memory_only: bool = False


class SessionPage(Camel):
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    offset: Annotated[int, Field(ge=0)] = 0
    range: str = "all"
    status: str | None = None


class Last(Camel):
    last_n: Annotated[int, Field(ge=1)] | None = None


STATUSES = {422: 400}
TOP_K = 15


def error_body(error: HeedfulError, status: int) -> Any:
    """The body of an error: a list of problems for a request that can't be read, else a sentence."""
    if isinstance(error, Invalid):
        return {"detail": [problem(error)]}
    return {"detail": str(error)} | ({} if error.remedy is None else {"remediation": error.remedy})


def remember(store: Heedful, request: ForeignRequest) -> Any:
    body = read(Remembering, _form(request) if request.files or request.fields else request.body)
    body.refuse("dataset_id", "content_type")
    texts = [body.data] if isinstance(body.data, str) else body.data
    metadata = [dict(fields or {}) for fields in body.external_metadata or [None] * len(texts)]
    if body.session_id:
        store.sessions.create(body.session_id)
        metadata = [fields | {"session_id": body.session_id} for fields in metadata]
    stored = store.remember(texts, dataset=body.dataset_name, metadata=metadata, self_improvement=body.self_improvement)
    return _remembered(body.dataset_name, len(texts), body.session_id) | {"items": stored.facts}


def remember_entry(store: Heedful, request: ForeignRequest) -> Any:
    body = read(RememberingEntry, request.body)
    entry = body.entry
    if entry.type == "qa":
        qa_id = store.sessions.add_entry(
            body.session_id, _required(entry, "question"), _required(entry, "answer"), context=entry.context
        ).qa_id
    else:
        qa_id = _required(entry, "qa_id")
    if entry.type == "feedback" or entry.feedback_text is not None or entry.feedback_score is not None:
        _rate(store, request, body.session_id, qa_id, entry)
    stored = {"status": "session_stored", "entry_type": entry.type, "entry_id": qa_id}
    return _remembered(body.dataset_name, 1, body.session_id) | stored


def recall(store: Heedful, request: ForeignRequest) -> Any:
    body = read(Asking, request.body)
    body.refuse("dataset_ids", "node_name", "response_schema", "code_query", "tool_connections", "stream")
    if body.scope not in GRAPH:
        body.refuse("scope")
    kind = search_type_of(body.search_type or SearchType.GRAPH_COMPLETION)
    result = store.recall(
        body.query,
        dataset=dataset_of(body.datasets),
        mode=kind.mode,
        top_k=TOP_K if body.top_k is None else body.top_k,
        feedback_influence=body.feedback_influence,
        session_id=None if body.only_context else body.session_id,
        answer=kind.answers and not body.only_context,
    )
    return [_result(item, kind, result.dataset) for item in results_of(result, kind)]


def improve(store: Heedful, request: ForeignRequest) -> Any:
    body = read(Improving, request.body)
    body.refuse("dataset_id")
    result = store.improve(body.dataset_name, body.session_ids)
    counts = {
        "entries": result.entries,
        "signals_added": result.signals_added,
        "signals_retracted": result.signals_retracted,
        "facts_updated": len(result.updated_facts),
        "facts_learnt": len(result.learnt),
        "facts_forgotten": len(result.forgotten),
    }
    return {
        "status": "completed",
        "dataset_id": None,
        "dataset_name": result.dataset,
        "session_ids": body.session_ids or [],
        "stages": [{"stage": "feedback_weights", "status": "completed", "counts": counts, "duration_ms": 0}],
        "background": False,
        "finished": True,
    }


def forget(store: Heedful, request: ForeignRequest) -> Any:
    body = read(Forgetting, request.body)
    if body.everything:
        names = store.datasets()
        for name in names:
            store.forget(dataset=name)
        for session in list(every(store.sessions.list)):
            store.sessions.delete(session.session_id)
        return {"datasets_removed": len(names), "status": "success"}
    body.refuse("dataset_id", "memory_only")
    if body.dataset is None:
        raise Invalid("dataset is required", field="dataset", remedy="Name it, or pass everything=true")
    if body.data_id is None:
        store.forget(dataset=body.dataset)
        return {"dataset_name": body.dataset, "status": "success"}
    if store.fact(body.data_id).dataset != body.dataset:
        raise NotFound(f"dataset {body.dataset!r} has no fact {body.data_id!r}", field="data_id", value=body.data_id)
    store.forget(body.data_id)
    return {"data_id": body.data_id, "dataset_name": body.dataset, "status": "success"}


def datasets(store: Heedful, request: ForeignRequest) -> Any:
    details = [store.get_dataset(name) for name in store.datasets()]
    return [
        {"id": dataset.name, "name": dataset.name, "createdAt": dataset.created_at.isoformat()} for dataset in details
    ]


def sessions(store: Heedful, request: ForeignRequest) -> Any:
    body = read(SessionPage, dict(request.query))
    body.refuse("status")
    if body.range != "all":
        body.refuse("range")
    items = [_session(session) for session in every(store.sessions.list)]
    page = items[body.offset : body.offset + body.limit]
    return {
        "sessions": page,
        "total": len(items),
        "limit": body.limit,
        "offset": body.offset,
        "has_more": body.offset + len(page) < len(items),
    }


def session(store: Heedful, request: ForeignRequest) -> Any:
    summary = _session(store.sessions.get(request.path["session_id"]))
    qas = entries(store, request)
    return summary | {
        "label": qas[0].question[:120] if qas else None,
        "msg_count": len(qas),
        "tool_calls": 0,
        "qas": qas,
        "traces": [],
    }


def entries(store: Heedful, request: ForeignRequest) -> list[Entry]:
    last_n = read(Last, dict(request.query)).last_n
    limit = PAGE_LIMIT if last_n is None else min(PAGE_LIMIT, last_n)
    newest = every(store.sessions.entries, request.path["session_id"], limit=limit, newest_first=True)
    return list(islice(newest, last_n))[::-1]


def add_feedback(store: Heedful, request: ForeignRequest) -> Any:
    body = read(AnswerRating, request.body)
    _rate(store, request, request.path["session_id"], request.path["qa_id"], body)
    return {"success": True}


def delete_feedback(store: Heedful, request: ForeignRequest) -> Any:
    if not store.sessions.delete_feedback(request.path["session_id"], request.path["qa_id"], author=request.author):
        store.sessions.entry(request.path["session_id"], request.path["qa_id"])  # Fails if there is none.
    return {"success": True}


def _rate(
    store: Heedful, request: ForeignRequest, session_id: str, qa_id: str, rating: AnswerRating | SessionEntry
) -> None:
    author = request.author or ANYONE
    if not store.sessions.add_feedback(session_id, qa_id, rating.feedback_text, rating.feedback_score, author=author):
        raise _no_entry(session_id, qa_id)


def _no_entry(session_id: str, qa_id: str) -> NotFound:
    return NotFound(f"session {session_id!r} has no entry {qa_id!r}", field="qa_id", value=qa_id)


def _required(entry: SessionEntry, name: str) -> str:
    value: str | None = getattr(entry, name)
    if value is None:
        raise Invalid(f"{name} is required", field=f"entry.{name}", remedy=f"Pass {name}")
    return value


def _form(request: ForeignRequest) -> dict[str, Any]:
    """A form as a body: files are texts, and an empty field is one that is left out."""
    fields: dict[str, Any] = {name: value for name, value in request.fields.items() if value != ""}
    fields.pop("raw_data", None)
    texts = [_text(name, content) for name, content in request.files.items()]
    texts += [text for text in request.every.get("raw_data", []) if text]
    if "external_metadata" in fields:
        try:
            fields["external_metadata"] = orjson.loads(fields["external_metadata"])
        except orjson.JSONDecodeError as error:
            message = f"external_metadata is not JSON ({error})"
            remedy = "Send a list with a mapping for each text"
            raise Invalid(
                message, field="external_metadata", value=fields["external_metadata"], remedy=remedy
            ) from None
    return fields | ({"data": texts} if texts else {})


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"{name} is not UTF-8 text (byte {error.start})"
        raise Invalid(message, code="undecodable", field=name, remedy="Send its text") from None


def _remembered(dataset: str, count: int, session_id: str | None) -> dict[str, Any]:
    return {
        "status": "completed",
        "dataset_name": dataset,
        "dataset_id": None,
        "pipeline_run_id": None,
        "items_processed": count,
        "elapsed_seconds": None,
    } | ({"session_ids": [session_id]} if session_id else {})


def _result(result: RecallResult, kind: SearchType, dataset: str) -> dict[str, Any]:
    ids = {"recall_id": result.recall_id, "qa_id": result.qa_id, "fact_id": result.fact_id}
    return {
        "source": result.source,
        "kind": _kind(kind, result),
        "search_type": kind.value,
        "text": result.text,
        "score": result.score,
        "dataset_id": None,
        "dataset_name": dataset,
        "metadata": ids,
        "raw": {},
        **ids,
    }


def _kind(kind: SearchType, result: RecallResult) -> str:
    if result.fact_id is not None:
        return "chunk"
    return "graph_completion" if kind.mode == "graph" else "rag_completion"


def _session(session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "started_at": session.created_at.isoformat(),
        "last_activity_at": session.updated_at.isoformat(),
    }


SESSION = "/api/v1/sessions/{session_id}"
FEEDBACK = f"{SESSION}/entries/{{qa_id}}/feedback"

ROUTES: tuple[ForeignRoute, ...] = (
    ForeignRoute("POST", "/api/v1/remember", remember, "write"),
    ForeignRoute("POST", "/api/v1/remember/entry", remember_entry, "write"),
    ForeignRoute("POST", "/api/v1/recall", recall, "read", writes_with=("session_id", "sessionId")),
    ForeignRoute("POST", "/api/v1/improve", improve, "write"),
    ForeignRoute("POST", "/api/v1/forget", forget, "write"),
    ForeignRoute("GET", "/api/v1/datasets", datasets, "read"),
    ForeignRoute("GET", "/api/v1/sessions", sessions, "read"),
    ForeignRoute("GET", SESSION, session, "read"),
    ForeignRoute("GET", f"{SESSION}/entries", entries, "read"),
    ForeignRoute("POST", FEEDBACK, add_feedback, "feedback"),
    ForeignRoute("DELETE", FEEDBACK, delete_feedback, "feedback"),
    *unsupported("/api/v1", UNSUPPORTED),
)
