"""A project stores so many megabytes within an hour, and what counts is what is stored, not what is sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from cities import make_cities
from server import Running, running

from heedful.model import Scope

Call = Callable[..., httpx.Response]


@pytest.fixture(params=["sqlite", "postgresql", "mongodb"])
def server(
    request: pytest.FixtureRequest, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    """A server of each kind of store, on which a project may store a megabyte within an hour."""
    monkeypatch.setenv("HEEDFUL_CONNECTOR_FOLDERS", str(tmp_path))
    store: Path | str = request.getfixturevalue("empty_database") if request.param == "postgresql" else path
    sessions = request.getfixturevalue("mongodb_url") if request.param == "mongodb" else None
    with running(store, sessions=sessions, max_written=1, worker=False) as started:
        yield started


@pytest.fixture
def caller(server: Running) -> Iterator[Callable[..., Call]]:
    """Calls of a project, with a key that may do everything there."""
    with ExitStack() as clients:

        def made(project: str, scope: Scope = "admin") -> Call:
            with server.connect(project) as admin:
                key = admin.keys.create("caller", scopes=[scope]).api_key
            headers = {"Authorization": f"Bearer {key}"}
            client = httpx.Client(base_url=f"{server.url}/v1/projects/{project}/", headers=headers, timeout=60)
            return clients.enter_context(client).request

        yield made


def long_text() -> str:
    """One whose pieces all differ: of equal ones, one is stored."""
    return os.urandom(300_000).hex()


def until_refused(call: Callable[[], httpx.Response], most: int) -> int:
    """How often a call is done before it is refused for what it stores."""
    for done in range(most):
        answer = call()
        if answer.status_code == 429:
            assert answer.json()["code"] == "write_limited"
            assert 0 < int(answer.headers["retry-after"]) <= 2 * 3600
            return done
        assert answer.status_code == 200, answer.text
    raise AssertionError(f"{most} calls were not refused")


@pytest.mark.nightly
def test_a_project_can_not_fill_the_disk_within_an_hour(caller: Callable[..., Call]) -> None:
    neighbour, quiet = caller("neighbour"), caller("quiet")
    assert 1 <= until_refused(lambda: neighbour("POST", "facts", json={"texts": [long_text()]}), 4) <= 2
    # What was stored can be found and deleted, and others have a share of their own.
    assert neighbour("POST", "recall", json={"query": "x" * 9_000}).status_code == 200
    (fact,) = neighbour("GET", "facts", params={"limit": 1}).json()["items"]
    assert neighbour("GET", f"facts/{fact['fact_id']}").status_code == 200
    assert quiet("POST", "facts", json={"texts": [long_text()]}).status_code == 200


def test_results_of_queries_count(caller: Callable[..., Call], tmp_path: Path) -> None:
    call = caller("shop")
    assert call("POST", "connectors", json={"name": "geo", "url": make_cities(tmp_path).url}).status_code == 200
    query = {"connector_id": "geo", "sql_query": "SELECT hex(zeroblob(100000)) AS zeros"}
    assert 4 <= until_refused(lambda: call("POST", "executions", json=query), 20) <= 6


@pytest.mark.slow
def test_copied_metadata_count(caller: Callable[..., Call]) -> None:
    call = caller("shop")
    metadata = {f"key{place}": "x" * 100 for place in range(50)}

    def remember() -> httpx.Response:
        return call("POST", "facts", json={"texts": [f"Part {place}." for place in range(100)], "metadata": metadata})

    assert until_refused(remember, 3) == 1


@pytest.mark.slow
def test_receipts_count_for_those_who_read(caller: Callable[..., Call]) -> None:
    """A key that only reads can't fill the disk, and neither readers nor writers keep the others from going on."""
    reader, writer = caller("shop", "read"), caller("shop")
    assert writer("POST", "facts", json={"texts": [f"Part {place}." for place in range(500)]}).status_code == 200
    assert 5 <= until_refused(lambda: reader("POST", "recall", json={"query": "part", "top_k": 500}), 100) <= 60
    assert reader("GET", "facts", params={"limit": 5}).status_code == 200
    assert writer("POST", "facts", json={"texts": ["Ada leads."]}).status_code == 200


@pytest.mark.slow
def test_messages_count_wherever_they_are_stored(caller: Callable[..., Call]) -> None:
    call = caller("shop")
    message = {"role": "user", "content": "ä" * 50_000}
    assert 9 <= until_refused(lambda: call("POST", "sessions/long/messages", json=message), 20) <= 11


@pytest.mark.nightly
def test_calls_of_agents_and_of_other_systems_count(caller: Callable[..., Call], server: Running) -> None:
    call = caller("shop")
    with server.connect("shop") as admin:
        headers = {"Authorization": f"Bearer {admin.keys.create('other', scopes=['admin']).api_key}"}
    until_refused(lambda: call("POST", "facts", json={"texts": [long_text()]}), 4)
    bank = f"{server.url}/v1/default/banks/shop/memories"
    refused = httpx.post(bank, json={"items": [{"content": long_text()}]}, headers=headers, timeout=60)
    assert refused.status_code == 429, refused.text
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    for tool, arguments, is_refused in (
        ("remember", {"texts": ["Ada leads."]}, True),
        ("recall", {"query": "x"}, False),
    ):
        told = httpx.post(
            f"{server.url}/v1/projects/shop/mcp",
            json={**message, "params": {"name": tool, "arguments": arguments}},
            headers={**headers, "Accept": "application/json, text/event-stream"},
            timeout=60,
        )
        assert ("share of the disk" in told.text) == is_refused, told.text
