"""`/chat-sessions`: conversations about data, and questions to SQL and to answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heedful.engine import Heedful
from heedful.interfaces.http.text2everything import absent, executions, golden, paging, reading
from heedful.interfaces.problems import Asked, Wire
from heedful.model import ChatSession, ChatSql
from heedful.sql.feedback import CONTEXTS, SCHEMA_METADATA

USUAL = 100
QUESTIONS = 10
_TOGETHER = 1_000
_PLACE = "/api/projects/{project_id}/chat-sessions"
_ONE = f"{_PLACE}/{{chat_session_id}}"
_NAMED = ("context_id", "schema_metadata_id", "example_id")


def listed(heedful: Heedful, asked: Asked) -> Any:
    found = (each for each in _every(heedful) if paging.has(asked, each.name))
    return paging.paged(found, asked, USUAL, _shown)


def got(heedful: Heedful, asked: Asked) -> Any:
    return _shown(heedful.chat_sessions.get(asked.path["chat_session_id"]))


def created(heedful: Heedful, asked: Asked) -> Any:
    if reading.optional(asked, "custom_tool_id") is not None:
        raise absent.missing(absent.CUSTOM_TOOLS)
    return _shown(heedful.chat_sessions.create(name=reading.optional(asked, "name")))


def deleted(heedful: Heedful, asked: Asked) -> Any:
    heedful.chat_sessions.delete(asked.path["chat_session_id"])
    return {"message": f"{asked.path['chat_session_id']} is deleted"}


def questions(heedful: Heedful, asked: Asked) -> Any:
    """What was asked in a session, the newest first, each once."""
    found = heedful.chat_sessions.get_questions(asked.path["chat_session_id"])
    newest = dict.fromkeys(each.question for each in reversed(found))
    return [{"question": each} for each in list(newest)[: paging.window(asked, QUESTIONS).count]]


def no_tool(heedful: Heedful, asked: Asked) -> Any:
    """No session has a custom tool, and the client asks whether one has."""
    heedful.chat_sessions.get(asked.path["chat_session_id"])


def to_sql(heedful: Heedful, asked: Asked) -> Any:
    done = heedful.chat.chat_to_sql(asked.path["chat_session_id"], **_question(heedful, asked))
    return _told(heedful, asked, done)


def to_answer(heedful: Heedful, asked: Asked) -> Any:
    reading.text(asked, "connector_id")
    done = heedful.chat.chat_to_answer(asked.path["chat_session_id"], **_question(heedful, asked))
    ran = done.execution_result
    return _told(heedful, asked, done) | {
        "answer": done.answer,
        "execution_result": None if ran is None else executions.shown(ran),
        "feedback": None,
    }


def _question(heedful: Heedful, asked: Asked) -> dict[str, Any]:
    given = reading.body(asked)
    if reading.flag(asked, "use_agent"):
        raise absent.missing(absent.AGENTS)
    if reading.optional(asked, "custom_tool_id") is not None:
        raise absent.missing(absent.CUSTOM_TOOLS)
    automatic = given.get("auto_add_feedback")
    if isinstance(automatic, dict) and any(automatic.values()):
        raise absent.missing(absent.AUTOMATIC)
    asking: dict[str, Any] = {
        "query": reading.text(asked, "query"),
        "connector_id": reading.optional(asked, "connector_id"),
        "remarks": _remarks(heedful, asked),
    }
    if given.get("feedback_cutoff") is not None:
        asking["feedback_cutoff"] = given["feedback_cutoff"]
    return asking


def _remarks(heedful: Heedful, asked: Asked) -> list[str]:
    """What the language model is to read, by the client's word."""
    told = reading.optional(asked, "system_prompt")
    context, schema, example = (reading.optional(asked, field) for field in _NAMED)
    found = [] if told is None else [told]
    if context is not None:
        found.append(reading.remarks(heedful, CONTEXTS).get(context).text)
    if schema is not None:
        found.append(reading.remarks(heedful, SCHEMA_METADATA).get(schema).text)
    if example is not None:
        found.append(golden.in_words(heedful, example))
    return [*found, *golden.always_shown(heedful)]


def _told(heedful: Heedful, asked: Asked, done: ChatSql) -> dict[str, Any]:
    return {
        "id": done.chat_message_id,
        "chat_message_id": done.chat_message_id,
        "project_id": reading.project(heedful),
        "chat_session_id": done.chat_session_id,
        "user_query": done.query,
        "sql_query": done.sql_query,
        "explanation": done.explanation,
        "agent_tool_response": None,
        "connector_id": reading.optional(asked, "connector_id"),
        **{field: reading.optional(asked, field) for field in _NAMED},
    }


def _shown(session: ChatSession) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name,
        "created_at": session.created_at.isoformat(),
        "custom_tool_id": None,
    }


def _every(heedful: Heedful) -> Iterator[ChatSession]:
    some = heedful.chat_sessions.list(limit=_TOGETHER)
    yield from some.items
    while some.next_cursor is not None:
        some = heedful.chat_sessions.list(limit=_TOGETHER, cursor=some.next_cursor)
        yield from some.items


ROUTES = (
    Wire("GET", _PLACE, listed, "read", "project_id"),
    Wire("POST", _PLACE, created, "write", "project_id"),
    Wire("GET", _ONE, got, "read", "project_id"),
    Wire("DELETE", _ONE, deleted, "write", "project_id"),
    Wire("GET", f"{_ONE}/questions", questions, "read", "project_id"),
    Wire("GET", f"{_ONE}/custom-tool", no_tool, "read", "project_id"),
    Wire("POST", f"{_ONE}/chat-to-sql", to_sql, "write", "project_id", queries=True),
    Wire("POST", f"{_ONE}/chat-to-answer", to_answer, "write", "project_id", queries=True),
)
