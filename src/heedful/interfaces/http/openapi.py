"""The description of the API, made of the table of operations; examples come from a run of the engine."""

from __future__ import annotations

import inspect
import threading
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from heedful.interfaces.http.calls import ETAG_OPERATIONS, INSIDE, PREFIX
from heedful.interfaces.operations import OPERATIONS, Operation, Shape, shape
from heedful.interfaces.operations.descriptions import PARAMETERS, describe_field, describe_parameter
from heedful.interfaces.operations.shape import CURSOR, HEADERS, path_limits
from heedful.interfaces.problems import TITLES
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

_HEADERS: dict[str, Document] = {
    "if_match": _TEXT,
    "idempotency_key": _TEXT | {"minLength": 1, "maxLength": 200, "pattern": r"\S"},
}


class _Described(GenerateJsonSchema):
    """With what each field means; parameters of operations are described by their operation."""

    def model_schema(self, schema: Any) -> Document:
        document = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        operation = _operations_by_request().get(model)
        if operation is not None or model.__pydantic_generic_metadata__["origin"] is not None:
            document["description"] = f"The parameters of `{operation}`." if operation else inspect.getdoc(model)
        for name, field in document.get("properties", {}).items():
            field["description"] = (
                describe_field(model, name) if operation is None else describe_parameter(operation, name)
            )
        return document


@cache
def _operations_by_request() -> dict[type[BaseModel], str]:
    return {shape(operation).request: operation.name for operation in OPERATIONS.values()}


_DESCRIBING = threading.Lock()


def description() -> bytes:
    """The whole document, as JSON."""
    # Python 3.11 may raise a SystemError where two threads parse at the same time.
    with _DESCRIBING:
        return _description()


@cache
def _description() -> bytes:
    shapes = [shape(operation) for operation in OPERATIONS.values()]
    inputs: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (each.operation.name, "validation", TypeAdapter(each.request)) for each in shapes
    ]
    outputs: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (each.operation.name, "serialization", each.result) for each in shapes
    ]
    generated, definitions = TypeAdapter.json_schemas(
        [*inputs, *outputs], ref_template=REF, schema_generator=_Described
    )
    schemas = dict(definitions.get("$defs", {}))
    bodies = {each.request.__name__ for each in shapes if not each.in_query}
    examples = _examples()
    paths: dict[str, Document] = {}
    for each in shapes:
        name = each.operation.name
        request = generated[name, "validation"]
        body = schemas[request["$ref"].rpartition("/")[2]] if "$ref" in request else request
        paths.setdefault(PREFIX + each.operation.path, {})[each.operation.method.lower()] = _operation(
            each, body, request, generated[name, "serialization"], examples.get(name, {})
        )
    paths |= _maintenance_paths()
    request_names = {each.request.__name__ for each in shapes}
    schemas = {name: each for name, each in schemas.items() if name not in request_names or name in bodies}
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
            "responses": {str(status): _problem(status) for status in (*ALWAYS, 412)},
        },
    }
    return orjson.dumps(document)


def _operation(shape: Shape, body: Document, request: Document, result: Document, example: Document) -> Document:
    operation = shape.operation
    summary, _, rest = (inspect.getdoc(operation.function) or "").partition("\n\n")
    parameters = [
        _parameter(
            name, "path", _TEXT | path_limits(name) | {"description": describe_parameter(operation.name, name)}, True
        )
        for name in ("project", *shape.path)
    ]
    headers = shape.headers if shape.keyed or operation.method == "GET" else (*shape.headers, "idempotency_key")
    parameters += [
        _parameter(HEADERS[name], "header", _HEADERS[name] | {"description": PARAMETERS[name]}, False)
        for name in headers
    ]
    if shape.in_query:
        required = body.get("required", [])
        parameters += [
            _parameter(name, "query", kind, name in required) for name, kind in body.get("properties", {}).items()
        ]
    _fill(parameters, example.get("request", {}))
    document: Document = {
        "operationId": operation.name,
        "tags": [operation.namespace or "memory"],
        "summary": " ".join(summary.split()),
        "description": f"{rest}\n\nNeeds the scope `{operation.scope}`{_besides(operation)}.".strip(),
        "parameters": parameters,
        "responses": _responses(shape, result, example),
        "security": [{"key": []}],
        "x-heedful": {
            "repeatable": operation.repeatable,
            "slow": operation.slow,
            "missing": operation.missing,
            "callbacks": shape.callbacks,
        },
    }
    if not shape.in_query:
        content: Document = {"schema": request}
        arguments = {
            name: value for name, value in example.get("request", {}).items() if name in body.get("properties", {})
        }
        if example:
            content["example"] = arguments
        document["requestBody"] = {"required": bool(body.get("required")), "content": {"application/json": content}}
    return document


def _besides(operation: Operation) -> str:
    if operation.also_reads:
        return " and `read`"
    if operation.everywhere:
        return ", of the whole server"
    if operation.undoes:
        return f", and `write` if making the `{operation.undoes}` takes that"
    if operation.restricted:
        return f", and `admin` with `{operation.restricted}`"
    return f", and `write` with `{operation.writes_with}`" if operation.writes_with else ""


def _responses(shape: Shape, result: Document, example: Document) -> Document:
    content: Document = {"schema": result}
    if "response" in example:
        content["example"] = example["response"]
    good: Document = {"description": "Done.", "content": {"application/json": content}}
    if shape.callbacks:
        names = " and ".join(f"`{name}`" for name in shape.callbacks)
        good["content"]["text/event-stream"] = {
            "schema": {
                "type": "string",
                "description": f"Events {names}, each with a list of arguments; then `result` or `problem`.",
            }
        }
    if shape.operation.name in ETAG_OPERATIONS:
        good["headers"] = {"ETag": {"description": "Pass it as If-Match.", "schema": _TEXT}}
    responses: Document = {"200": good}
    if shape.operation.name in ETAG_OPERATIONS - INSIDE.keys() and shape.operation.method == "GET":
        responses["304"] = {"description": "Not changed since the If-None-Match that was sent."}
    statuses = [*ALWAYS, *([412] if "if_match" in shape.headers else [])]
    return responses | {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _parameter(name: str, location: str, kind: Document, required: bool) -> Document:
    parameter: Document = {
        "name": name,
        "in": location,
        "required": required,
        "description": kind["description"],
    }
    kind = {key: value for key, value in kind.items() if key != "description"}
    kinds = kind.get("anyOf", [kind])
    if location == "query" and any(each.get("type") == "object" for each in kinds):
        return parameter | {"content": {"application/json": {"schema": _without_null(kind)}}}
    return parameter | {"schema": _without_null(kind) if location == "query" else kind}


def _without_null(kind: Document) -> Document:
    """A query string has no null: the parameter is left out."""
    kinds = [each for each in kind.get("anyOf", []) if each.get("type") != "null"]
    rest = {name: value for name, value in kind.items() if name not in ("anyOf", "default", "title")}
    default = {"default": kind["default"]} if kind.get("default") is not None else {}
    if not kinds:
        return rest | default
    return rest | default | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _fill(parameters: list[Document], example: Document) -> None:
    for parameter in parameters:
        if parameter["name"] == "project":
            parameter["example"] = "default"
        elif parameter["name"] in example and parameter["in"] != "header" and "schema" in parameter:
            parameter["example"] = example[parameter["name"]]


def _problem(status: int) -> Document:
    return {
        "description": TITLES[status],
        "content": {"application/problem+json": {"schema": {"$ref": REF.format(model="Problem")}}},
    }


def _query_result() -> Document:
    """What the serializer of a result writes, which pydantic can't know."""
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


def _maintenance_paths() -> Document:
    def get(
        name: str,
        summary: str,
        kind: Document,
        media: str,
        example: Any,
        *,
        key: bool,
        parameters: tuple[Document, ...] = (),
    ) -> Document:
        statuses = ((401, 403, 429) if key else (503,)) + ((400, 422) if parameters else ())
        refused = {str(each): {"$ref": f"#/components/responses/{each}"} for each in statuses}
        return {
            "get": {
                "operationId": name,
                "tags": ["server"],
                "summary": summary,
                "parameters": [*parameters],
                "security": [{"key": []}] if key else [],
                "responses": {"200": {"description": "Done.", "content": {media: {"schema": kind, "example": example}}}}
                | refused,
            }
        }

    status = {"type": "object", "properties": {"status": _TEXT}, "required": ["status"]}
    names = {"type": "array", "items": _TEXT}
    plain = "application/json"
    return {
        "/healthz": get("healthz", "Whether the process is alive.", status, plain, {"status": "ok"}, key=False),
        "/readyz": get("readyz", "Whether the store can be used.", status, plain, {"status": "ready"}, key=False),
        "/metrics": get(
            "metrics",
            "Numbers for Prometheus; needs `admin`.",
            _TEXT,
            "text/plain",
            "heedful_requests_total 1.0",
            key=True,
        ),
        "/v1/audit": get(
            "server.audit",
            "The audit trail of all projects, newest first, 100 entries a page; for keys that open all projects.",
            {"$ref": REF.format(model="Page_AuditEntry_")},
            plain,
            {"items": [], "next_cursor": None},
            key=True,
            parameters=(_parameter("cursor", "query", _TEXT | CURSOR | {"description": PARAMETERS["cursor"]}, False),),
        ),
        "/v1/jobs": get(
            "jobs",
            "The newest 100 jobs of all projects and of the store itself; for keys that open all projects.",
            {"type": "array", "items": {"$ref": REF.format(model="Job")}},
            plain,
            [],
            key=True,
        ),
        "/v1/projects": get("projects", "The projects that the key opens.", names, plain, ["default"], key=True),
    }


def _examples() -> dict[str, Document]:
    file = files("heedful.interfaces.http") / "examples.json"
    return orjson.loads(file.read_bytes()) if file.is_file() else {}
