"""The description of the API, made of the table of operations; examples come from a run of the engine."""

from __future__ import annotations

import inspect
import threading
from functools import cache
from importlib.resources import files
from typing import Any, get_args

import orjson
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from heedful.api import CALLS
from heedful.api.calls import HEADERS, Call
from heedful.api.parameters import CURSOR_LIMITS, ID_LIMITS, Cursor, IdempotencyKey, IfMatch
from heedful.api.result_fields import describe_field
from heedful.interfaces.http.calls import ETAG_OPERATIONS, INSIDE, PREFIX
from heedful.interfaces.problems import TITLES
from heedful.model.base import NAME_LIMITS
from heedful.model.executions import QueryResult, ResultColumn
from heedful.version import __version__

Document = dict[str, Any]

REF = "#/components/schemas/{model}"

ALWAYS = (400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503)
"""Statuses of problems that any operation may have."""

ABOUT = {
    "": "Facts, recalls and what people say of them.",
    "sessions": "Conversations, answers, and what people say of them.",
    "insight": "Reports on feedback.",
    "connectors": "Databases that questions are asked of.",
    "executions": "SQL that ran.",
    "feedback": "What people say of executions and messages.",
    "chat": "Questions of data.",
    "chat_sessions": "Conversations about data.",
    "golden_examples": "Questions with the SQL that answers them.",
    "review": "What people disliked, as work to do.",
    "keys": "Who may call.",
    "jobs": "Work in the background.",
    "server": "Liveness, readiness, metrics, projects, jobs and audit trail of the server.",
}

_TEXT = {"type": "string"}

PROBLEM: Document = {
    "type": "object",
    "description": "What is wrong, and what to do (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": _TEXT | {"description": "The kind of problem, as a URI."},
        "title": _TEXT | {"description": "What the status means."},
        "status": {"type": "integer", "description": "The status of the response."},
        "detail": _TEXT | {"description": "What is wrong, for people."},
        "code": _TEXT | {"description": "Stable: programs may compare it."},
        "field": {"type": ["string", "null"], "description": "The parameter that is wrong."},
        "value": {"description": "What was given, if it can be shown."},
        "remedy": {"type": ["string", "null"], "description": "What to do about it."},
        "request_id": _TEXT | {"description": "The same as in the header X-Request-ID, and in the log of the server."},
    },
}


def _meaning(kind: Any) -> str:
    return str(get_args(kind)[1].meaning)


_HEADERS: dict[str, Document] = {
    "if_match": _TEXT | {"description": _meaning(IfMatch)},
    "idempotency_key": _TEXT
    | {"minLength": 1, "maxLength": 200, "pattern": r"\S", "description": _meaning(IdempotencyKey)},
}


class _DescribedSchema(GenerateJsonSchema):
    """With the meanings of fields; parameters of operations are described by their operation."""

    def model_schema(self, schema: Any) -> Document:
        document = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        call = _calls_by_request().get(model)
        if call is not None or model.__pydantic_generic_metadata__["origin"] is not None:
            document["description"] = f"The parameters of `{call.name}`." if call else inspect.getdoc(model)
        for name, field in document.get("properties", {}).items():
            field["description"] = describe_field(model, name) if call is None else call.meanings[name].meaning
        return document


@cache
def _calls_by_request() -> dict[type[BaseModel], Call]:
    return {call.request: call for call in CALLS.values()}


_DESCRIBING = threading.Lock()


def description() -> bytes:
    """The whole document, as JSON."""
    # Python 3.11 may raise a SystemError where two threads parse at the same time.
    with _DESCRIBING:
        return _description()


@cache
def _description() -> bytes:
    calls = list(CALLS.values())
    types: list[tuple[str, Any, TypeAdapter[Any]]] = []
    types += [(call.name, "validation", TypeAdapter(call.request)) for call in calls]
    types += [(call.name, "serialization", call.result) for call in calls]
    generated, definitions = TypeAdapter.json_schemas(types, ref_template=REF, schema_generator=_DescribedSchema)
    schemas = dict(definitions.get("$defs", {}))
    examples = _examples()
    paths: dict[str, Document] = {}
    for call in calls:
        request, result = generated[call.name, "validation"], generated[call.name, "serialization"]
        body = schemas[request["$ref"].rpartition("/")[2]] if "$ref" in request else request
        operation = _operation(call, body, request, result, examples.get(call.name, {}))
        paths.setdefault(PREFIX + call.path, {})[call.method.lower()] = operation
    paths |= _server_paths()
    in_query = {call.request.__name__ for call in calls if call.in_query}
    in_query -= {call.request.__name__ for call in calls if not call.in_query}
    schemas = {name: schema for name, schema in schemas.items() if name not in in_query}
    schemas |= {"Problem": PROBLEM, "QueryResult": _query_result()}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Heedful",
            "version": __version__,
            "description": "The feedback loop for AI agents. Every call but those about health needs a key.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name or "memory", "description": about} for name, about in ABOUT.items()],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "hf_… or a token hft_…"}},
            "schemas": schemas,
            "responses": {
                str(status): {
                    "description": TITLES[status],
                    "content": {"application/problem+json": {"schema": _ref("Problem")}},
                }
                for status in (*ALWAYS, 412)
            },
        },
    }
    return orjson.dumps(document)


def _ref(model: str) -> Document:
    return {"$ref": REF.format(model=model)}


def _refused(status: int) -> Document:
    return {"$ref": f"#/components/responses/{status}"}


def _operation(call: Call, body: Document, request: Document, result: Document, example: Document) -> Document:
    summary, _, rest = (inspect.getdoc(call.function) or "").partition("\n\n")
    parameters = [
        _parameter("project", "path", _TEXT | NAME_LIMITS | {"description": "The project; nothing crosses it."}, True),
        *(_parameter(name, "path", _TEXT | _path_limits(call, name), True) for name in call.in_path),
    ]
    headers = call.headers if call.keyed or call.method == "GET" else (*call.headers, "idempotency_key")
    parameters += [_parameter(HEADERS[name], "header", _HEADERS[name], False) for name in headers]
    if call.in_query:
        required = body.get("required", [])
        parameters += [
            _parameter(name, "query", kind, name in required) for name, kind in body.get("properties", {}).items()
        ]
    for parameter in parameters:
        given = example.get("request", {}) if parameter["in"] != "header" and "schema" in parameter else {}
        if parameter["name"] == "project":
            parameter["example"] = "default"
        elif parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    needs = f"Needs the scope `{call.scope}`{_besides(call)}."
    document: Document = {
        "operationId": call.name,
        "tags": [call.namespace or "memory"],
        "summary": " ".join(summary.split()),
        "description": f"{rest}\n\n{needs}".strip(),
        "parameters": parameters,
        "responses": _responses(call, result, example),
        "security": [{"key": []}],
        "x-heedful": {name: getattr(call, name) for name in ("repeatable", "slow", "missing", "callbacks")},
    }
    if not call.in_query:
        content: Document = {"schema": request}
        if example:
            fields = body.get("properties", {})
            content["example"] = {name: value for name, value in example["request"].items() if name in fields}
        document["requestBody"] = {"required": bool(body.get("required")), "content": {"application/json": content}}
    return document


def _path_limits(call: Call, name: str) -> Document:
    """The limits and the meaning of a parameter in a path, which is never empty."""
    means = call.meanings[name]
    limits = NAME_LIMITS if means.limits == NAME_LIMITS else {"minLength": 1} | ID_LIMITS
    return limits | {"description": means.meaning}


def _besides(call: Call) -> str:
    if call.also_reads:
        return " and `read`"
    if call.everywhere:
        return ", of the whole server"
    if call.undoes:
        return f", and `write` if making the `{call.undoes}` takes that"
    if call.restricted:
        return f", and `admin` with {' or '.join(f'`{name}`' for name in call.restricted)}"
    return f", and `write` with `{call.writes_with}`" if call.writes_with else ""


def _responses(call: Call, result: Document, example: Document) -> Document:
    content: Document = {"schema": result}
    if "response" in example:
        content["example"] = example["response"]
    good: Document = {"description": "Done.", "content": {"application/json": content}}
    if call.callbacks:
        names = " and ".join(f"`{name}`" for name in call.callbacks)
        about = f"Events {names}, each with a list of arguments; then `result` or `problem`."
        good["content"]["text/event-stream"] = {"schema": _TEXT | {"description": about}}
    if call.name in ETAG_OPERATIONS:
        good["headers"] = {"ETag": {"description": "Pass it as If-Match.", "schema": _TEXT}}
    responses: Document = {"200": good}
    if call.name in ETAG_OPERATIONS - INSIDE.keys() and call.method == "GET":
        responses["304"] = {"description": "Not changed since the If-None-Match that was sent."}
    statuses = [*ALWAYS, *([412] if "if_match" in call.headers else [])]
    return responses | {str(status): _refused(status) for status in sorted(statuses)}


def _parameter(name: str, location: str, kind: Document, required: bool) -> Document:
    parameter: Document = {"name": name, "in": location, "required": required, "description": kind["description"]}
    kind = {key: value for key, value in kind.items() if key != "description"}
    if location == "query" and any(option.get("type") == "object" for option in kind.get("anyOf", [kind])):
        return parameter | {"content": {"application/json": {"schema": _without_null(kind)}}}
    return parameter | {"schema": _without_null(kind) if location == "query" else kind}


def _without_null(kind: Document) -> Document:
    """A query string has no null: the parameter is left out."""
    kinds = [option for option in kind.get("anyOf", []) if option.get("type") != "null"]
    rest = {name: value for name, value in kind.items() if name not in ("anyOf", "default", "title")}
    default = {"default": kind["default"]} if kind.get("default") is not None else {}
    if not kinds:
        return rest | default
    return rest | default | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _query_result() -> Document:
    """The output of the serializer of a result, which pydantic can't know."""
    kind = "`json`, or what all values are that JSON has no type for: `decimal`, `date`, …"
    column = {
        "type": "object",
        "required": ["name", "type", "kind"],
        "properties": {name: _TEXT | {"description": describe_field(ResultColumn, name)} for name in ("name", "type")}
        | {"kind": _TEXT | {"description": kind}},
    }
    fields: dict[str, Document] = {
        "columns": {"type": "array", "items": column},
        "rows": {"type": "array", "items": {"type": "array", "items": {}}},
        "truncated": {"type": "boolean"},
        "truncated_by": {"type": ["string", "null"]},
    }
    return {
        "type": "object",
        "description": inspect.getdoc(QueryResult),
        "required": list(fields),
        "properties": {
            name: field | {"description": describe_field(QueryResult, name)} for name, field in fields.items()
        },
    }


def _server_paths() -> Document:
    """The routes about the server as a whole."""
    status = {"type": "object", "properties": {"status": _TEXT}, "required": ["status"]}
    names = {"type": "array", "items": _TEXT}
    everywhere = "for keys that open all projects."
    newest = "The newest 100 jobs of all projects and of the store itself; "
    audit = "The audit trail of all projects, newest first, 100 entries a page; "
    routes: dict[str, tuple[str, str, Document, Any]] = {
        "/healthz": ("healthz", "Whether the process is alive.", status, {"status": "ok"}),
        "/readyz": ("readyz", "Whether the store can be used.", status, {"status": "ready"}),
        "/metrics": ("metrics", "Numbers for Prometheus; needs `admin`.", _TEXT, "heedful_requests_total 1.0"),
        "/v1/audit": ("server.audit", audit + everywhere, _ref("Page_AuditEntry_"), {"items": [], "next_cursor": None}),
        "/v1/jobs": ("jobs", newest + everywhere, {"type": "array", "items": _ref("Job")}, []),
        "/v1/projects": ("projects", "The projects that the key opens.", names, ["default"]),
    }
    paths: dict[str, Document] = {}
    for path, (name, summary, kind, example) in routes.items():
        keyed, paged = path not in ("/healthz", "/readyz"), path == "/v1/audit"
        statuses = ((401, 403, 429) if keyed else (503,)) + ((400, 422) if paged else ())
        cursor = _parameter("cursor", "query", _TEXT | CURSOR_LIMITS | {"description": _meaning(Cursor)}, False)
        media = "text/plain" if path == "/metrics" else "application/json"
        good: Document = {"description": "Done.", "content": {media: {"schema": kind, "example": example}}}
        operation: Document = {
            "operationId": name,
            "tags": ["server"],
            "summary": summary,
            "parameters": [cursor] if paged else [],
            "security": [{"key": []}] if keyed else [],
            "responses": {"200": good} | {str(refused): _refused(refused) for refused in statuses},
        }
        paths[path] = {"get": operation}
    return paths


def _examples() -> dict[str, Document]:
    file = files("heedful.interfaces.http") / "examples.json"
    return orjson.loads(file.read_bytes()) if file.is_file() else {}
