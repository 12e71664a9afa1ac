"""`/sql` and `/execution-cache-lookup`: SQL that runs, ran, or may be used again.

The client rates what has a message only. So an execution that no chat asked for is its own message: where a message's
id is expected, the execution's id does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heedful.engine import Heedful
from heedful.errors import Invalid, NotFound
from heedful.interfaces.http.text2everything import reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import CacheMatch, Execution
from heedful.results import plain

DEFAULT_LIMIT = 100
_PAGE_SIZE = 100
_PROJECT = "/api/projects/{project_id}"
_TUNING = ("max_age_days", "similarity_threshold", "limit", "top_n")


def execute(heedful: Heedful, request: ForeignRequest) -> Any:
    sql, message = reading.optional(request, "sql_query"), reading.optional(request, "chat_message_id")
    connector = reading.text(request, "connector_id")
    session = reading.optional(request, "h2ogpte_session_id")
    audience = reading.optional(request, "audience")
    if session is not None:
        audience = audience or heedful.chat_sessions.get(session).audience
    if (sql is None) == (message is None):
        raise Invalid("exactly one of sql_query and chat_message_id must be given", field="sql_query")
    if sql is not None:
        return to_execution(heedful.executions.execute_query(sql, connector_id=connector, audience=audience))
    assert message is not None
    if is_execution(heedful, message):
        execution = heedful.executions.get(message)
        return to_execution(
            heedful.executions.execute_query(
                execution.sql_query,
                connector_id=connector,
                question=execution.question,
                parameters=execution.parameters,
                audience=audience or execution.audience,
            )
        )
    return to_execution(heedful.executions.execute_from_chat(message, connector_id=connector))


def get_execution(heedful: Heedful, request: ForeignRequest) -> Any:
    return to_execution(heedful.executions.get(request.path["execution_id"]))


def list_executions(heedful: Heedful, request: ForeignRequest) -> Any:
    message = request.query.get("chat_message_id")
    executions = (
        execution
        for execution in _every(heedful, request.query.get("connector_id"))
        if message in (None, message_of(execution)) and reading.has(request, execution.sql_query, execution.question)
    )
    return reading.paginate(executions, request, DEFAULT_LIMIT, _summary)


def look_up(heedful: Heedful, request: ForeignRequest) -> Any:
    """What may be used, and nothing else: the client can't be told that a match is to be left alone."""
    body = reading.body(request)
    result = heedful.chat.execution_cache_lookup(
        reading.text(request, "user_query"),
        connector_id=reading.text(request, "connector_id"),
        only_positive_feedback=reading.flag(request, "only_positive_feedback"),
        audience=reading.optional(request, "audience"),
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
    """Whether an id is that of an execution."""
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


def _every(heedful: Heedful, connector_id: str | None) -> Iterator[Execution]:
    page = heedful.executions.list(connector_id=connector_id, limit=_PAGE_SIZE)
    yield from page.items
    while page.next_cursor is not None:
        page = heedful.executions.list(connector_id=connector_id, limit=_PAGE_SIZE, cursor=page.next_cursor)
        yield from page.items


ROUTES = (
    Wire("POST", f"{_PROJECT}/sql/execute", execute, "write", "project_id", queries=True),
    Wire("GET", f"{_PROJECT}/sql/executions", list_executions, "read", "project_id"),
    Wire("GET", f"{_PROJECT}/sql/executions/{{execution_id}}", get_execution, "read", "project_id"),
    Wire("POST", f"{_PROJECT}/execution-cache-lookup", look_up, "write", "project_id", queries=True),
)
