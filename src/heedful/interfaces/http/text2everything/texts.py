"""`/contexts` and `/schema-metadata`: texts about the data, kept as facts, that the language model reads."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from heedful.clock import from_stored
from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.ids import new_id
from heedful.interfaces.http.text2everything import reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.sql.feedback import ALWAYS, CONTEXTS, SCHEMA_METADATA, Remark

DEFAULT_LIMITS = {CONTEXTS: 50, SCHEMA_METADATA: 100}


def list_texts(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    always = reading.query_flag(request, ALWAYS)
    matching = [
        each
        for each in reading.remarks(heedful, dataset).list()
        if always in (None, each.metadata[ALWAYS])
        and reading.has(request, each.metadata["name"], each.metadata["description"], each.text)
    ]
    return reading.paginate(matching, request, DEFAULT_LIMITS[dataset], lambda each: _to_text(dataset, heedful, each))


def get_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_text(dataset, heedful, reading.remarks(heedful, dataset).get(request.path["text_id"]))


def create_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    return _put(dataset, heedful, request, new_id())


def update_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    """Takes the place of what is there; the client sends all of it."""
    return _put(dataset, heedful, request, reading.remarks(heedful, dataset).get(request.path["text_id"]).id)


def delete_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    reading.remarks(heedful, dataset).delete(request.path["text_id"])
    return {"message": f"{request.path['text_id']} is deleted"}


def bulk_delete(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    return reading.bulk(reading.remarks(heedful, dataset).delete, request)


def _put(dataset: str, heedful: Heedful, request: ForeignRequest, text_id: str) -> Any:
    metadata = {
        "name": reading.text(request, "name"),
        "description": reading.optional(request, "description"),
        ALWAYS: reading.flag(request, ALWAYS),
    }
    written = reading.text(request, "content") if dataset == CONTEXTS else _schema(request)
    return _to_text(dataset, heedful, reading.remarks(heedful, dataset).put(text_id, written, metadata))


def _schema(request: ForeignRequest) -> str:
    data = reading.body(request).get("schema_data")
    if not isinstance(data, dict) or not data:
        raise Invalid("schema_data must be a non-empty object", field="schema_data")
    # On many lines, so that a long schema is split between two of them.
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()


def _to_text(dataset: str, heedful: Heedful, remark: Remark) -> dict[str, Any]:
    content = {"content": remark.text} if dataset == CONTEXTS else {"schema_data": orjson.loads(remark.text)}
    return {
        "id": remark.id,
        "project_id": reading.project(heedful),
        "name": remark.metadata["name"],
        "description": remark.metadata["description"],
        ALWAYS: remark.metadata[ALWAYS],
        **content,
        "created_at": from_stored(remark.made_at).isoformat(),
        "updated_at": from_stored(remark.changed_at).isoformat(),
    }


def _routes(dataset: str, segment: str) -> tuple[Wire, ...]:
    base = f"/api/projects/{{project_id}}/{segment}"
    return (
        Wire("GET", base, partial(list_texts, dataset), "read", "project_id"),
        Wire("POST", base, partial(create_text, dataset), "write", "project_id"),
        Wire("POST", f"{base}/bulk-delete", partial(bulk_delete, dataset), "write", "project_id"),
        Wire("GET", f"{base}/{{text_id}}", partial(get_text, dataset), "read", "project_id"),
        Wire("PUT", f"{base}/{{text_id}}", partial(update_text, dataset), "write", "project_id"),
        Wire("DELETE", f"{base}/{{text_id}}", partial(delete_text, dataset), "write", "project_id"),
    )


ROUTES = (*_routes(CONTEXTS, "contexts"), *_routes(SCHEMA_METADATA, "schema-metadata"))
