"""The description of the API says what everything means, and its pages can be switched off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from server import running

from heedful.interfaces.http.openapi import description

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(description())
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        yield from ((f"{method} {path}", item[method]) for method in METHODS if method in item)


@pytest.mark.slow
def test_every_operation_and_parameter_is_described(document: dict[str, Any]) -> None:
    silent = []
    for name, operation in operations(document):
        silent += [] if operation["summary"].strip() else [name]
        silent += [f"{name}: {each['name']}" for each in operation.get("parameters", ()) if not each.get("description")]
    assert silent == []


def test_every_field_of_what_is_sent_and_returned_is_described(document: dict[str, Any]) -> None:
    fields = {
        f"{name}.{field}": schema
        for name, model in document["components"]["schemas"].items()
        for field, schema in model.get("properties", {}).items()
    }
    assert len(fields) > 500
    assert [name for name, schema in fields.items() if not schema.get("description")] == []


def test_a_field_is_described_by_what_its_model_says(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["RecallRequest"]["properties"]["answer"]["description"] == "Also answer the question."
    assert schemas["Page_Fact_"]["description"] == "A part of a list, and how to ask for the next one."
    assert schemas["AuditEntry"]["properties"]["kind"]["description"].startswith("Whether somebody was refused")


def test_the_pages_can_be_switched_off(tmp_path: Path) -> None:
    with running(tmp_path / "store.db", api_docs=False) as server:
        assert httpx.get(f"{server.url}/docs").status_code == 404
        assert httpx.get(f"{server.url}/docs/swagger-ui.js").status_code == 404
        assert "docs" not in httpx.get(server.url).json()
        assert httpx.get(f"{server.url}/openapi.json").status_code == 200


def test_the_routes_of_the_server_itself_are_described(document: dict[str, Any], tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server:
        headers = {"Authorization": f"Bearer {server.key}"}
        assert httpx.get(f"{server.url}/v1/projects/other/keys", headers={"Authorization": "Bearer hf_x"}).is_error
        for path in ("/v1/audit", "/v1/jobs", "/v1/projects"):
            assert httpx.get(server.url + path, headers=headers).status_code == 200
            assert document["paths"][path]["get"]["tags"] == ["server"]
        (cursor,) = document["paths"]["/v1/audit"]["get"]["parameters"]
        refused = httpx.get(f"{server.url}/v1/audit", params={cursor["name"]: "x"}, headers=headers)
        assert str(refused.status_code) in document["paths"]["/v1/audit"]["get"]["responses"]
