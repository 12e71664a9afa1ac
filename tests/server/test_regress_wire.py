"""`regress` over HTTP: what a caller may try, and what only an admin may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from server import Running, running

import heedful
from heedful import Forbidden, Invalid
from heedful.testing import assert_no_regressions


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "s.db") as server:
        with heedful.connect(server.url, api_key=server.key) as memory:
            memory.remember(["parcels alpha", "parcels beta", "refunds alpha"])
            for question in ("parcels alpha", "refunds alpha"):
                recall = memory.recall(question)
                memory.signal_recall(recall.recall_id, helpful=[recall.hits[0]], author="ann")
        yield server


@pytest.mark.slow
def test_the_client_asks_the_server(served: Running) -> None:
    with heedful.connect(served.url, api_key=served.key) as memory:
        told: list[tuple[int, int]] = []
        report = memory.regress(policy="documented", progress=lambda done, total: told.append((done, total)))
        assert (report.compared, report.worse, told) == (2, 0, [(2, 2)])
        assert assert_no_regressions(memory).compared == 2
        with pytest.raises(Invalid, match="against names another store"):
            memory.regress(against="/etc/passwd")


@pytest.mark.slow
def test_no_path_and_no_address_is_taken(served: Running) -> None:
    for body in ({"against": "/etc/passwd"}, {"embedding": "/etc"}, {"embedding": "http://localhost:1/v1#m"}):
        url = f"{served.url}/v1/projects/default/regress"
        answer = httpx.post(url, json=body, headers={"Authorization": f"Bearer {served.key}"})
        assert answer.status_code == 422, answer.text
        assert answer.json()["field"] == next(iter(body))


@pytest.mark.slow
def test_what_copies_the_store_needs_an_admin(served: Running) -> None:
    with heedful.connect(served.url, api_key=served.key) as admin:
        writer = admin.keys.create("ci", scopes=["read", "write"])
        reader = admin.keys.create("eyes", scopes=["read"])
    with heedful.connect(served.url, api_key=writer.api_key) as memory:
        assert memory.regress(mode="lexical").compared == 2
        with pytest.raises(Forbidden, match="admin"):
            memory.regress(embedding="fast")
    with heedful.connect(served.url, api_key=reader.api_key) as memory, pytest.raises(Forbidden, match="write"):
        memory.regress()
