"""Routes about questions, examples, SQL that ran, and feedback on it.

The client rates what has a message only. So an execution that no chat asked for is its own message: where a message's
id is expected, the execution's id does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from heedful.compat.foreign_api import PAGE_LIMIT, ForeignRequest, every
from heedful.compat.text2everything import requests
from heedful.compat.text2everything.requests import project_route
from heedful.compat.text2everything.texts import Remark, describe, remarks
from heedful.engine import Heedful
from heedful.errors import Invalid, NotFound
from heedful.model import CacheMatch, ChatSession, ChatSql, Execution, ExecutionFeedback, GoldenExample
from heedful.results import plain
from heedful.sql.generation import ALWAYS, CONTEXTS, SCHEMA_METADATA

DEFAULT_LIMIT = 100
"""Items of a page, where the client names no limit."""

QUESTIONS = 10
EXECUTIONS = 100
"""Executions that are read at once: they have results."""


def list_examples(heedful: Heedful, request: ForeignRequest) -> Any:
    always = requests.query_flag(request, ALWAYS)
    described = {remark.id: remark for remark in remarks(heedful).list()}
    examples = [_with(heedful, example, described.get(example.id)) for example in _every_example(heedful)]
    matching = [
        example
        for example in examples
        if always in (None, example[ALWAYS])
        and requests.has(request, example["user_query"], example["sql_query"], example["description"])
    ]
    return requests.paginate(matching, request, DEFAULT_LIMIT, lambda example: example)


def get_example(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_example(heedful, heedful.golden_examples.get(request.path["example_id"]))


def create_example(heedful: Heedful, request: ForeignRequest) -> Any:
    """On the project's connector; of several, `connector_id` names one."""
    example = heedful.golden_examples.create(
        requests.text(request, "user_query"),
        requests.text(request, "sql_query"),
        connector_id=requests.optional(request, "connector_id"),
        audience=requests.optional(request, "audience"),
    )
    _describe_example(heedful, request, example.id)
    return _to_example(heedful, example)


def update_example(heedful: Heedful, request: ForeignRequest) -> Any:
    changed = heedful.golden_examples.update(
        request.path["example_id"],
        question=requests.text(request, "user_query"),
        sql_query=requests.text(request, "sql_query"),
    )
    _describe_example(heedful, request, changed.id)
    return _to_example(heedful, changed)


def delete_example(heedful: Heedful, request: ForeignRequest) -> Any:
    _delete_example(heedful, request.path["example_id"])
    return {"message": f"{request.path['example_id']} is deleted"}


def delete_examples(heedful: Heedful, request: ForeignRequest) -> Any:
    return requests.bulk(lambda example_id: _delete_example(heedful, example_id), request)


def always_shown(heedful: Heedful, audience: str | None) -> list[str]:
    """The examples that every question of an audience should come with, in words."""
    texts = []
    for description in remarks(heedful).list():
        if description.metadata.get(ALWAYS):
            # An example goes with its connector, and its description stays.
            with suppress(NotFound):
                if heedful.golden_examples.get(description.id).audience in (None, audience):
                    texts.append(example_text(heedful, description.id))
    return texts


def example_text(heedful: Heedful, example_id: str) -> str:
    example = heedful.golden_examples.get(example_id)
    return f"For example, {example.question}\n{example.sql_query}"


def _every_example(heedful: Heedful) -> Iterator[GoldenExample]:
    skip = 0
    while page := heedful.golden_examples.list(skip=skip, limit=PAGE_LIMIT):
        yield from page
        skip += len(page)


def _describe_example(heedful: Heedful, request: ForeignRequest, example_id: str) -> None:
    flags = {ALWAYS: requests.flag(request, ALWAYS)}
    describe(heedful, example_id, requests.optional(request, "description"), **flags)


def _delete_example(heedful: Heedful, example_id: str) -> None:
    heedful.golden_examples.delete(example_id)
    describe(heedful, example_id, None)


def _to_example(heedful: Heedful, example: GoldenExample) -> dict[str, Any]:
    return _with(heedful, example, remarks(heedful).find(example.id))


def _with(heedful: Heedful, example: GoldenExample, described: Remark | None) -> dict[str, Any]:
    return {
        "id": example.id,
        "project_id": requests.project(heedful),
        "user_query": example.question,
        "sql_query": example.sql_query,
        "description": None if described is None else described.metadata["description"],
        ALWAYS: described is not None and described.metadata[ALWAYS],
        "connector_id": example.connector_id,
        "created_at": example.created_at.isoformat(),
        "updated_at": example.updated_at.isoformat(),
    }


def list_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    part = requests.window(request, DEFAULT_LIMIT)
    page = heedful.feedback.list(skip=part.start, limit=max(1, part.count), search=request.query.get("q") or None)
    items = [_to_feedback(heedful, opinion) for opinion in page.items[: part.count]]
    return requests.page(items, part, part.start + part.count < page.total) | {"total": page.total}


def get_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_feedback(heedful, heedful.feedback.get(request.path["feedback_id"]))


def create_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    message, execution = requests.optional(request, "chat_message_id"), requests.optional(request, "execution_id")
    if execution is None and message is not None and is_execution(heedful, message):
        execution = message
    feedback = heedful.feedback.create(
        is_positive=requests.flag(request, "is_positive", default=True),
        feedback=requests.optional(request, "feedback"),
        execution_id=execution,
        chat_message_id=None if message == execution else message,
        author=request.author,
    )
    return _to_feedback(heedful, feedback)


def update_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes the feedback; its target stays."""
    current = _to_feedback(heedful, heedful.feedback.get(request.path["feedback_id"]))
    for field in ("chat_message_id", "execution_id"):
        value = requests.optional(request, field)
        if value not in (None, current[field]):
            message = f"feedback {current['id']} can't be moved to another {field}"
            raise Invalid(message, field=field, value=value, remedy="Delete it, and create another")
    changes: dict[str, Any] = {}
    if "feedback" in requests.body(request):
        changes["feedback"] = requests.optional(request, "feedback")
    if requests.body(request).get("is_positive") is not None:
        changes["is_positive"] = requests.flag(request, "is_positive")
    return _to_feedback(heedful, heedful.feedback.update(current["id"], **changes))


def delete_feedback(heedful: Heedful, request: ForeignRequest) -> Any:
    heedful.feedback.delete(request.path["feedback_id"])
    return {"message": f"{request.path['feedback_id']} was retracted"}


def delete_feedbacks(heedful: Heedful, request: ForeignRequest) -> Any:
    return heedful.feedback.bulk_delete(requests.ids(request))


def _to_feedback(heedful: Heedful, feedback: ExecutionFeedback) -> dict[str, Any]:
    return {
        "id": feedback.id,
        "project_id": requests.project(heedful),
        # The client can't read a feedback without a message or a text.
        "chat_message_id": feedback.chat_message_id or feedback.execution_id or "",
        "execution_id": feedback.execution_id,
        "feedback": feedback.feedback or "",
        "is_positive": feedback.is_positive,
        "created_at": feedback.created_at.isoformat(),
        "updated_at": feedback.updated_at.isoformat(),
    }


_TUNING = ("max_age_days", "similarity_threshold", "limit", "top_n")


def execute(heedful: Heedful, request: ForeignRequest) -> Any:
    sql, message = requests.optional(request, "sql_query"), requests.optional(request, "chat_message_id")
    connector = requests.text(request, "connector_id")
    session = requests.optional(request, "h2ogpte_session_id")
    audience = requests.optional(request, "audience")
    if session is not None:
        audience = audience or heedful.chat_sessions.get(session).audience
    if (sql is None) == (message is None):
        raise Invalid("exactly one of sql_query and chat_message_id must be given", field="sql_query")
    if sql is not None:
        return to_execution(heedful.executions.execute_query(sql, connector_id=connector, audience=audience))
    assert message is not None
    if is_execution(heedful, message):
        earlier = heedful.executions.get(message)
        sql, question, audience = earlier.sql_query, earlier.question, audience or earlier.audience
        execution = heedful.executions.execute_query(
            sql, connector_id=connector, question=question, parameters=earlier.parameters, audience=audience
        )
        return to_execution(execution)
    return to_execution(heedful.executions.execute_from_chat(message, connector_id=connector))


def get_execution(heedful: Heedful, request: ForeignRequest) -> Any:
    return to_execution(heedful.executions.get(request.path["execution_id"]))


def list_executions(heedful: Heedful, request: ForeignRequest) -> Any:
    message = request.query.get("chat_message_id")
    executions = (
        execution
        for execution in every(
            heedful.executions.list, connector_id=request.query.get("connector_id"), limit=EXECUTIONS
        )
        if message in (None, message_of(execution)) and requests.has(request, execution.sql_query, execution.question)
    )
    return requests.paginate(executions, request, DEFAULT_LIMIT, _summary)


def look_up(heedful: Heedful, request: ForeignRequest) -> Any:
    """The matches that may be used, and no others: the client has no way to skip one."""
    body = requests.body(request)
    result = heedful.chat.execution_cache_lookup(
        requests.text(request, "user_query"),
        connector_id=requests.text(request, "connector_id"),
        only_positive_feedback=requests.flag(request, "only_positive_feedback"),
        audience=requests.optional(request, "audience"),
        author=request.author,
        **{name: body[name] for name in _TUNING if body.get(name) is not None},
    )
    # The SQL of one to rebind has other values, unless it was just run.
    usable = [match for match in result.matches if match.decision == "serve" or _was_run(match)]
    return {
        "cache_hit": result.cache_hit,
        "matches": [_match(heedful, match) for match in usable] if result.cache_hit else [],
        "candidates_checked": result.candidates_checked,
    }


def is_execution(heedful: Heedful, some_id: str) -> bool:
    try:
        heedful.executions.get(some_id)
    except NotFound:
        return False
    return True


def message_of(execution: Execution) -> str:
    """The message that asked for an execution; without one, it is its own."""
    return execution.chat_message_id or execution.execution_id


def to_execution(execution: Execution) -> dict[str, Any]:
    """An execution under the names of all models that the client reads one with."""
    result = execution.result.model_dump(mode="json")
    names = [column["name"] for column in result["columns"]]
    # The client knows no kinds of columns: to it, a number is a number.
    result["data"] = [dict(zip(names, map(plain, row), strict=True)) for row in execution.result.rows]
    result["row_count"] = len(result["rows"])
    return _summary(execution) | {"execution_id": execution.execution_id, "result": result}


def _summary(execution: Execution) -> dict[str, Any]:
    return {
        "id": execution.execution_id,
        "connector_id": execution.connector_id,
        "sql_query": execution.sql_query,
        "execution_time_ms": execution.execution_time_ms,
        # What fails is not kept.
        "is_successful": True,
        "chat_message_id": message_of(execution),
        "created_at": execution.created_at.isoformat(),
        "updated_at": None,
    }


def _match(heedful: Heedful, match: CacheMatch) -> dict[str, Any]:
    execution = (
        Execution(**match.execution) if _was_run(match) else heedful.executions.get(match.execution["execution_id"])
    )
    return {**match.model_dump(mode="json", exclude={"execution"}), "execution": to_execution(execution)}


def _was_run(match: CacheMatch) -> bool:
    return match.execution["result"] is not None


_REFERENCES = ("context_id", "schema_metadata_id", "example_id")


def list_sessions(heedful: Heedful, request: ForeignRequest) -> Any:
    sessions = (session for session in every(heedful.chat_sessions.list) if requests.has(request, session.name))
    return requests.paginate(sessions, request, DEFAULT_LIMIT, _to_session)


def get_session(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_session(heedful.chat_sessions.get(request.path["chat_session_id"]))


def create_session(heedful: Heedful, request: ForeignRequest) -> Any:
    if requests.optional(request, "custom_tool_id") is not None:
        raise requests.missing(requests.CUSTOM_TOOLS)
    name, audience = requests.optional(request, "name"), requests.optional(request, "audience")
    return _to_session(heedful.chat_sessions.create(name=name, audience=audience))


def delete_session(heedful: Heedful, request: ForeignRequest) -> Any:
    heedful.chat_sessions.delete(request.path["chat_session_id"])
    return {"message": f"{request.path['chat_session_id']} is deleted"}


def list_questions(heedful: Heedful, request: ForeignRequest) -> Any:
    """The questions of a session, the newest first, each once."""
    messages = heedful.chat_sessions.get_questions(request.path["chat_session_id"])
    newest = dict.fromkeys(message.question for message in reversed(messages))
    return [{"question": question} for question in list(newest)[: requests.window(request, QUESTIONS).count]]


def no_tool(heedful: Heedful, request: ForeignRequest) -> Any:
    """No session has a custom tool, and the client asks whether one has."""
    heedful.chat_sessions.get(request.path["chat_session_id"])


def to_sql(heedful: Heedful, request: ForeignRequest) -> Any:
    result = heedful.chat.chat_to_sql(request.path["chat_session_id"], **_question(heedful, request))
    return _answer(heedful, request, result)


def to_answer(heedful: Heedful, request: ForeignRequest) -> Any:
    requests.text(request, "connector_id")
    result = heedful.chat.chat_to_answer(request.path["chat_session_id"], **_question(heedful, request))
    execution = result.execution_result
    return _answer(heedful, request, result) | {
        "answer": result.answer,
        "execution_result": None if execution is None else to_execution(execution),
        "feedback": None,
    }


def _question(heedful: Heedful, request: ForeignRequest) -> dict[str, Any]:
    body = requests.body(request)
    if requests.flag(request, "use_agent"):
        raise requests.missing(requests.AGENTS)
    if requests.optional(request, "custom_tool_id") is not None:
        raise requests.missing(requests.CUSTOM_TOOLS)
    automatic = body.get("auto_add_feedback")
    if isinstance(automatic, dict) and any(automatic.values()):
        raise requests.missing(requests.AUTOMATIC)
    options: dict[str, Any] = {
        "query": requests.text(request, "query"),
        "connector_id": requests.optional(request, "connector_id"),
        "remarks": _remarks(heedful, request),
        "author": request.author,
    }
    if body.get("feedback_cutoff") is not None:
        options["feedback_cutoff"] = body["feedback_cutoff"]
    return options


def _remarks(heedful: Heedful, request: ForeignRequest) -> list[str]:
    """The texts that the client wants the language model to read."""
    prompt = requests.optional(request, "system_prompt")
    context, schema, example = (requests.optional(request, field) for field in _REFERENCES)
    texts = [] if prompt is None else [prompt]
    if context is not None:
        texts.append(remarks(heedful, CONTEXTS).get(context).text)
    if schema is not None:
        texts.append(remarks(heedful, SCHEMA_METADATA).get(schema).text)
    if example is not None:
        texts.append(example_text(heedful, example))
    audience = heedful.chat_sessions.get(request.path["chat_session_id"]).audience
    return [*texts, *always_shown(heedful, audience)]


def _answer(heedful: Heedful, request: ForeignRequest, result: ChatSql) -> dict[str, Any]:
    return {
        "id": result.chat_message_id,
        "chat_message_id": result.chat_message_id,
        "project_id": requests.project(heedful),
        "chat_session_id": result.chat_session_id,
        "user_query": result.query,
        "sql_query": result.sql_query,
        "explanation": result.explanation,
        "agent_tool_response": None,
        "connector_id": requests.optional(request, "connector_id"),
        **{field: requests.optional(request, field) for field in _REFERENCES},
    }


def _to_session(session: ChatSession) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name,
        "created_at": session.created_at.isoformat(),
        "custom_tool_id": None,
    }


ROUTES = (
    project_route("GET", "/golden-examples", list_examples, "read"),
    project_route("POST", "/golden-examples", create_example, "write", queries=True),
    project_route("POST", "/golden-examples/bulk-delete", delete_examples, "write"),
    project_route("GET", "/golden-examples/{example_id}", get_example, "read"),
    project_route("PUT", "/golden-examples/{example_id}", update_example, "write", queries=True),
    project_route("DELETE", "/golden-examples/{example_id}", delete_example, "write"),
    project_route("GET", "/feedback", list_feedback, "read"),
    project_route("POST", "/feedback", create_feedback, "feedback"),
    project_route("POST", "/feedback/bulk-delete", delete_feedbacks, "feedback", batch=True),
    project_route("GET", "/feedback/{feedback_id}", get_feedback, "read"),
    project_route("PUT", "/feedback/{feedback_id}", update_feedback, "feedback"),
    project_route("DELETE", "/feedback/{feedback_id}", delete_feedback, "feedback"),
    project_route("POST", "/sql/execute", execute, "write", queries=True),
    project_route("GET", "/sql/executions", list_executions, "read"),
    project_route("GET", "/sql/executions/{execution_id}", get_execution, "read"),
    project_route("POST", "/execution-cache-lookup", look_up, "write", queries=True),
    project_route("GET", "/chat-sessions", list_sessions, "read"),
    project_route("POST", "/chat-sessions", create_session, "write"),
    project_route("GET", "/chat-sessions/{chat_session_id}", get_session, "read"),
    project_route("DELETE", "/chat-sessions/{chat_session_id}", delete_session, "write"),
    project_route("GET", "/chat-sessions/{chat_session_id}/questions", list_questions, "read"),
    project_route("GET", "/chat-sessions/{chat_session_id}/custom-tool", no_tool, "read"),
    project_route("POST", "/chat-sessions/{chat_session_id}/chat-to-sql", to_sql, "write", queries=True),
    project_route("POST", "/chat-sessions/{chat_session_id}/chat-to-answer", to_answer, "write", queries=True),
)
