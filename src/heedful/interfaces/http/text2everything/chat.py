"""`/chat-sessions`: conversations about data, and questions to SQL and to answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heedful.engine import Heedful
from heedful.interfaces.http.text2everything import executions, golden, reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import ChatSession, ChatSql
from heedful.sql.feedback import CONTEXTS, SCHEMA_METADATA

DEFAULT_LIMIT = 100
QUESTIONS = 10
_PAGE_SIZE = 1_000
_PATH = "/api/projects/{project_id}/chat-sessions"
_ITEM_PATH = f"{_PATH}/{{chat_session_id}}"
_REFERENCES = ("context_id", "schema_metadata_id", "example_id")


def list_sessions(heedful: Heedful, request: ForeignRequest) -> Any:
    sessions = (session for session in _every(heedful) if reading.has(request, session.name))
    return reading.paginate(sessions, request, DEFAULT_LIMIT, _to_session)


def get_session(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_session(heedful.chat_sessions.get(request.path["chat_session_id"]))


def create_session(heedful: Heedful, request: ForeignRequest) -> Any:
    if reading.optional(request, "custom_tool_id") is not None:
        raise reading.missing(reading.CUSTOM_TOOLS)
    return _to_session(
        heedful.chat_sessions.create(
            name=reading.optional(request, "name"), audience=reading.optional(request, "audience")
        )
    )


def delete_session(heedful: Heedful, request: ForeignRequest) -> Any:
    heedful.chat_sessions.delete(request.path["chat_session_id"])
    return {"message": f"{request.path['chat_session_id']} is deleted"}


def list_questions(heedful: Heedful, request: ForeignRequest) -> Any:
    """What was asked in a session, the newest first, each once."""
    messages = heedful.chat_sessions.get_questions(request.path["chat_session_id"])
    newest = dict.fromkeys(each.question for each in reversed(messages))
    return [{"question": each} for each in list(newest)[: reading.window(request, QUESTIONS).count]]


def no_tool(heedful: Heedful, request: ForeignRequest) -> Any:
    """No session has a custom tool, and the client asks whether one has."""
    heedful.chat_sessions.get(request.path["chat_session_id"])


def to_sql(heedful: Heedful, request: ForeignRequest) -> Any:
    result = heedful.chat.chat_to_sql(request.path["chat_session_id"], **_question(heedful, request))
    return _answer(heedful, request, result)


def to_answer(heedful: Heedful, request: ForeignRequest) -> Any:
    reading.text(request, "connector_id")
    result = heedful.chat.chat_to_answer(request.path["chat_session_id"], **_question(heedful, request))
    execution = result.execution_result
    return _answer(heedful, request, result) | {
        "answer": result.answer,
        "execution_result": None if execution is None else executions.to_execution(execution),
        "feedback": None,
    }


def _question(heedful: Heedful, request: ForeignRequest) -> dict[str, Any]:
    body = reading.body(request)
    if reading.flag(request, "use_agent"):
        raise reading.missing(reading.AGENTS)
    if reading.optional(request, "custom_tool_id") is not None:
        raise reading.missing(reading.CUSTOM_TOOLS)
    automatic = body.get("auto_add_feedback")
    if isinstance(automatic, dict) and any(automatic.values()):
        raise reading.missing(reading.AUTOMATIC)
    options: dict[str, Any] = {
        "query": reading.text(request, "query"),
        "connector_id": reading.optional(request, "connector_id"),
        "remarks": _remarks(heedful, request),
        "author": request.author,
    }
    if body.get("feedback_cutoff") is not None:
        options["feedback_cutoff"] = body["feedback_cutoff"]
    return options


def _remarks(heedful: Heedful, request: ForeignRequest) -> list[str]:
    """What the language model is to read, by the client's word."""
    prompt = reading.optional(request, "system_prompt")
    context, schema, example = (reading.optional(request, field) for field in _REFERENCES)
    texts = [] if prompt is None else [prompt]
    if context is not None:
        texts.append(reading.remarks(heedful, CONTEXTS).get(context).text)
    if schema is not None:
        texts.append(reading.remarks(heedful, SCHEMA_METADATA).get(schema).text)
    if example is not None:
        texts.append(golden.as_text(heedful, example))
    audience = heedful.chat_sessions.get(request.path["chat_session_id"]).audience
    return [*texts, *golden.always_shown(heedful, audience)]


def _answer(heedful: Heedful, request: ForeignRequest, result: ChatSql) -> dict[str, Any]:
    return {
        "id": result.chat_message_id,
        "chat_message_id": result.chat_message_id,
        "project_id": reading.project(heedful),
        "chat_session_id": result.chat_session_id,
        "user_query": result.query,
        "sql_query": result.sql_query,
        "explanation": result.explanation,
        "agent_tool_response": None,
        "connector_id": reading.optional(request, "connector_id"),
        **{field: reading.optional(request, field) for field in _REFERENCES},
    }


def _to_session(session: ChatSession) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name,
        "created_at": session.created_at.isoformat(),
        "custom_tool_id": None,
    }


def _every(heedful: Heedful) -> Iterator[ChatSession]:
    page = heedful.chat_sessions.list(limit=_PAGE_SIZE)
    yield from page.items
    while page.next_cursor is not None:
        page = heedful.chat_sessions.list(limit=_PAGE_SIZE, cursor=page.next_cursor)
        yield from page.items


ROUTES = (
    Wire("GET", _PATH, list_sessions, "read", "project_id"),
    Wire("POST", _PATH, create_session, "write", "project_id"),
    Wire("GET", _ITEM_PATH, get_session, "read", "project_id"),
    Wire("DELETE", _ITEM_PATH, delete_session, "write", "project_id"),
    Wire("GET", f"{_ITEM_PATH}/questions", list_questions, "read", "project_id"),
    Wire("GET", f"{_ITEM_PATH}/custom-tool", no_tool, "read", "project_id"),
    Wire("POST", f"{_ITEM_PATH}/chat-to-sql", to_sql, "write", "project_id", queries=True),
    Wire("POST", f"{_ITEM_PATH}/chat-to-answer", to_answer, "write", "project_id", queries=True),
)
