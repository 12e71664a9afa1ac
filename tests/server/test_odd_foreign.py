"""Odd inputs on the routes of other systems are never a fault of the server or its store."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from odd_inputs import LONG, TEXTS
from server import running

BANK = "/v1/default/banks/help"


def requests(odd: str) -> list[tuple[str, str, dict[str, Any]]]:
    entry = {"type": "qa", "question": odd, "answer": odd, "context": odd}
    memory = {"content": "The gym opens at six.", "metadata": {"k": odd}, "document_id": odd}
    return [
        ("POST", f"{BANK}/memories", {"json": {"items": [memory]}}),
        ("POST", f"{BANK}/memories", {"json": {"items": [{"content": odd, "metadata": {"k" + odd: "v"}}]}}),
        ("POST", f"{BANK}/memories/recall", {"json": {"query": odd, "tags": [odd]}}),
        ("POST", "/v1/default/banks/odd/memories", {"json": {"items": [memory], "document_id": odd}}),
        ("POST", "/api/v1/remember", {"data": {"datasetName": odd, "session_id": odd}, "files": {"data": ("a", odd)}}),
        ("POST", "/api/v1/remember/entry", {"json": {"entry": entry, "session_id": odd, "dataset_name": odd}}),
        ("POST", "/api/v1/recall", {"json": {"query": odd, "session_id": odd, "datasets": [odd]}}),
        ("POST", "/api/sessions/s/feedback", {"json": {"rating": "up", "comment": odd, "page": odd, "k" + odd: 1}}),
        ("POST", "/api/sessions/s/feedback", {"json": {"rating": "up", "user": {"n" + odd: 2**63}}}),
    ]


@pytest.mark.parametrize("odd", [name for name in TEXTS if name != "surrogate"])
@pytest.mark.slow
def test_no_odd_input_is_a_fault_of_the_server(any_store: str, odd: str) -> None:
    with (
        running(any_store) as server,
        server.connect() as there,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}) as client,
    ):
        there.sessions.create("s")
        statuses = [client.request(method, path, **sent).status_code for method, path, sent in requests(TEXTS[odd])]
    assert [status for status in statuses if status not in (200, 201, 400, 404, 409, 413, 422)] == []


def test_the_id_of_a_document_is_held_to_the_limit_of_a_source(any_store: str) -> None:
    with (
        running(any_store) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}) as client,
    ):
        item = {"content": "The gym opens at six.", "document_id": LONG}
        answer = client.post(f"{BANK}/memories", json={"items": [item]})
    assert answer.status_code == 422
    assert "2000" in answer.text
