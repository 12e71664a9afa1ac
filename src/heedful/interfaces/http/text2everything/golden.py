"""`/golden-examples`: questions with the SQL that answers them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from heedful.engine import Heedful
from heedful.errors import NotFound
from heedful.interfaces.http.text2everything import reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import GoldenExample
from heedful.sql.feedback import ALWAYS, Remark

DEFAULT_LIMIT = 100
_PAGE_SIZE = 1_000
_PATH = "/api/projects/{project_id}/golden-examples"
_ITEM_PATH = f"{_PATH}/{{example_id}}"


def list_examples(heedful: Heedful, request: ForeignRequest) -> Any:
    always, described = reading.query_flag(request, ALWAYS), reading.descriptions(heedful)
    examples = [_with(heedful, example, described.get(example.id)) for example in _every(heedful)]
    matching = [
        example
        for example in examples
        if always in (None, example[ALWAYS])
        and reading.has(request, example["user_query"], example["sql_query"], example["description"])
    ]
    return reading.paginate(matching, request, DEFAULT_LIMIT, lambda example: example)


def get_example(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_example(heedful, heedful.golden_examples.get(request.path["example_id"]))


def create_example(heedful: Heedful, request: ForeignRequest) -> Any:
    """On the project's connector; of several, `connector_id` names one."""
    example = heedful.golden_examples.create(
        reading.text(request, "user_query"),
        reading.text(request, "sql_query"),
        connector_id=reading.optional(request, "connector_id"),
        audience=reading.optional(request, "audience"),
    )
    _describe(heedful, request, example.id)
    return _to_example(heedful, example)


def update_example(heedful: Heedful, request: ForeignRequest) -> Any:
    changed = heedful.golden_examples.update(
        request.path["example_id"],
        question=reading.text(request, "user_query"),
        sql_query=reading.text(request, "sql_query"),
    )
    _describe(heedful, request, changed.id)
    return _to_example(heedful, changed)


def delete_example(heedful: Heedful, request: ForeignRequest) -> Any:
    _delete(heedful, request.path["example_id"])
    return {"message": f"{request.path['example_id']} is deleted"}


def bulk_delete(heedful: Heedful, request: ForeignRequest) -> Any:
    return reading.bulk(lambda example_id: _delete(heedful, example_id), request)


def always_shown(heedful: Heedful, audience: str | None) -> list[str]:
    """The examples that every question of an audience should come with, in words."""
    texts = []
    for description in reading.descriptions(heedful).values():
        if description.metadata.get(ALWAYS):
            # An example goes with its connector, and what was said of it stays.
            with suppress(NotFound):
                if heedful.golden_examples.get(description.id).audience in (None, audience):
                    texts.append(as_text(heedful, description.id))
    return texts


def as_text(heedful: Heedful, example_id: str) -> str:
    """An example as a text about the data."""
    example = heedful.golden_examples.get(example_id)
    return f"For example, {example.question}\n{example.sql_query}"


def _every(heedful: Heedful) -> Iterator[GoldenExample]:
    skip = 0
    while page := heedful.golden_examples.list(skip=skip, limit=_PAGE_SIZE):
        yield from page
        skip += len(page)


def _describe(heedful: Heedful, request: ForeignRequest, example_id: str) -> None:
    flags = {ALWAYS: reading.flag(request, ALWAYS)}
    reading.describe(heedful, example_id, reading.optional(request, "description"), **flags)


def _delete(heedful: Heedful, example_id: str) -> None:
    heedful.golden_examples.delete(example_id)
    reading.describe(heedful, example_id, None)


def _to_example(heedful: Heedful, example: GoldenExample) -> dict[str, Any]:
    return _with(heedful, example, reading.remarks(heedful, reading.DESCRIPTIONS).find(example.id))


def _with(heedful: Heedful, example: GoldenExample, described: Remark | None) -> dict[str, Any]:
    return {
        "id": example.id,
        "project_id": reading.project(heedful),
        "user_query": example.question,
        "sql_query": example.sql_query,
        "description": None if described is None else described.metadata["description"],
        ALWAYS: described is not None and described.metadata[ALWAYS],
        "connector_id": example.connector_id,
        "created_at": example.created_at.isoformat(),
        "updated_at": example.updated_at.isoformat(),
    }


ROUTES = (
    Wire("GET", _PATH, list_examples, "read", "project_id"),
    Wire("POST", _PATH, create_example, "write", "project_id", queries=True),
    Wire("POST", f"{_PATH}/bulk-delete", bulk_delete, "write", "project_id"),
    Wire("GET", _ITEM_PATH, get_example, "read", "project_id"),
    Wire("PUT", _ITEM_PATH, update_example, "write", "project_id", queries=True),
    Wire("DELETE", _ITEM_PATH, delete_example, "write", "project_id"),
)
