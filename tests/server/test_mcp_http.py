"""MCP over HTTP: the tools for callers with keys, by the client of the official SDK; and what hostile callers meet."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from server import Running, running

from heedful.interfaces.http.mcp import MAX_ENVELOPE, Agents, McpEndpoint
from heedful.interfaces.mcp.agent_tools import PROFILES
from heedful.model import AuditEntry, Scope

PAGE = Path(__file__).parents[2] / "docs/integrations/mcp.md"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("mcp") / "store.db", max_body=100_000) as found:
        yield found


@asynccontextmanager
async def connected(
    server: Running, key: str | None = None, path: str = "/mcp?tools=all", **options: Any
) -> AsyncIterator[Client]:
    """A client of the official SDK."""
    headers = {"Authorization": f"Bearer {key or server.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(server.url + path, http_client=http), **options) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


def code_of(result: CallToolResult) -> str:
    assert result.is_error
    found: str = result.structured_content["error"]["code"]
    return found


def post(server: Running, message: Any, path: str = "/mcp", key: str | None = None, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {key or server.key}", "Content-Type": "application/json", **ACCEPT, **headers}
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return httpx.post(
        server.url + path, content=content, headers={name: value for name, value in given.items() if value}
    )


def key_of(server: Running, *scopes: Scope, project: str = "default") -> str:
    with server.connect(project) as admin:
        return admin.keys.create("agent", scopes=list(scopes)).api_key


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.slow
def test_the_loop_over_http(server: Running, mode: Any) -> None:
    async def loop() -> None:
        path = f"/v1/projects/loop-{mode}/mcp?tools=all"
        async with connected(server, path=path, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(PROFILES["all"])
            await call(client, "remember", texts=["The office door code is 1234.", "The office door code is 9876."])
            question = "What is the office door code?"
            before = await call(client, "recall", query=question, boost_by_usefulness=0.9)
            first, second = (hit["fact_id"] for hit in before["hits"])
            reply = await call(client, "signal_recall", recall_id=before["recall_id"], helpful=[second])
            after = await call(client, "recall", query=question, boost_by_usefulness=0.9)
            assert [hit["fact_id"] for hit in after["hits"]] == [second, first]
            for event in reply["event_ids"]:
                await call(client, "retract", event_id=event)
            undone = await call(client, "recall", query=question, boost_by_usefulness=0.9)
            assert [hit["fact_id"] for hit in undone["hits"]] == [first, second]

    asyncio.run(loop())


@pytest.mark.slow
def test_a_key_sees_and_calls_the_tools_of_its_scopes(server: Running) -> None:
    async def talk() -> None:
        async with connected(server) as client:
            (fact,) = (await call(client, "remember", texts="Ada is the CEO."))["facts"]
            shown = await call(client, "recall", query="Who is the CEO?")
            given = {"recall_id": shown["recall_id"], "answer": "Ada is the CEO."}
            answer = (await call(client, "answered", **given, session_id="scopes"))["answer_id"]
        async with connected(server, key_of(server, "read")) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["recall"]
            assert (await call(client, "recall", query="Who is the CEO?"))["hits"]
            for tool, arguments in (
                ("remember", {"texts": "x"}),
                ("answered", given),
                ("correct", {"fact_id": fact["fact_id"], "text": "Bo is the CEO."}),
                ("signal_recall", {"recall_id": shown["recall_id"], "used": [fact["fact_id"]]}),
                ("feedback", {"session_id": "scopes", "qa_id": answer, "feedback_score": 1}),
                ("retract", {"event_id": "x"}),
                ("forget", {"fact_ids": [fact["fact_id"]]}),
            ):
                assert code_of(await client.call_tool(tool, arguments)) == "scope_missing"
        async with connected(server, key_of(server, "feedback")) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"signal", "signal_recall", "feedback", "retract"}
            assert code_of(await client.call_tool("recall", {"query": "x"})) == "scope_missing"
            entry = await call(client, "feedback", qa_id=answer, rating="up")
            assert entry["feedback_score"] == 5
        async with connected(server, key_of(server, "write", "read")) as client:
            # Erasing a person needs more than forgetting a fact.
            assert code_of(await client.call_tool("forget", {"author": "Bo"})) == "scope_missing"

    asyncio.run(talk())


@pytest.mark.slow
def test_a_key_without_read_rates_answers_and_reads_none(server: Running) -> None:
    with server.connect() as admin:
        admin.sessions.create("private")
        answer = admin.sessions.add_entry("private", "What is my diagnosis?", "The flu.").qa_id
        admin.sessions.add_feedback("private", answer, "Quite wrong.", 2, author="Ida")
    rating = {"session_id": "private", "qa_id": answer, "feedback_score": 3, "feedback_text": "Fine."}

    async def talk() -> None:
        async with connected(server, key_of(server, "feedback")) as client:
            result = await client.call_tool("feedback", {**rating, "author": "Bo"})
            assert not result.is_error
            assert result.structured_content == rating
            shown = str(result.content)
            assert "3 of 5" in shown
            assert not any(text in shown for text in ("diagnosis", "flu", "wrong"))
            missing = await client.call_tool("feedback", {**rating, "qa_id": "none"})
            assert code_of(missing) == "not_found"
        async with connected(server, key_of(server, "feedback", "read")) as client:
            assert (await call(client, "feedback", **rating, author="Bo"))["answer"] == "The flu."

    asyncio.run(talk())
    with server.connect() as admin:
        assert admin.sessions.entry("private", answer).feedback_score == 3


@pytest.mark.nightly
def test_retracting_needs_the_scope_of_what_was_done(server: Running) -> None:
    with server.connect() as admin:
        (fact,) = admin.remember("The shop closes at five.").facts
        event = admin.supersede(fact.fact_id, "The shop closes at six.").event_id

    async def talk() -> None:
        async with connected(server, key_of(server, "feedback")) as client:
            assert code_of(await client.call_tool("retract", {"event_id": event})) == "scope_missing"
        async with connected(server, key_of(server, "feedback", "write")) as client:
            await call(client, "retract", event_id=event)

    asyncio.run(talk())


@pytest.mark.nightly
def test_projects_are_apart_also_for_many_at_once(server: Running) -> None:
    keys = {name: key_of(server, "read", "write", project=name) for name in ("one", "two")}

    async def agent(name: str, number: int) -> set[str]:
        async with connected(server, keys[name]) as client:
            await call(client, "remember", texts=f"Fact {number} of project {name}.")
            found = await call(client, "recall", query="fact of project", mode="semantic", top_k=100)
            return {hit["text"] for hit in found["hits"]}

    async def talk() -> None:
        seen = await asyncio.gather(*(agent(name, number) for name in keys for number in range(5)))
        for texts, name in zip(seen, ["one"] * 5 + ["two"] * 5, strict=True):
            assert texts
            assert all(f"of project {name}." in text for text in texts)

    asyncio.run(talk())
    assert post(server, PING, "/v1/projects/two/mcp", keys["one"]).status_code == 404
    assert post(server, PING, "/v1/projects/one/mcp", keys["one"]).status_code == 200


def test_a_project_that_is_not_there_is_told_to_who_opens_all(server: Running) -> None:
    async def talk() -> None:
        async with connected(server, path="/v1/projects/mistyped/mcp") as client:
            assert code_of(await client.call_tool("recall", {"query": "x"})) == "not_found"

    asyncio.run(talk())


class TestLoading:
    @pytest.fixture
    def loads(self, monkeypatch: pytest.MonkeyPatch) -> list[Agents]:
        """The attempts to load what answers, of which the first fails."""
        attempts: list[Agents] = []
        load = Agents._load

        def failing_once(agents: Agents) -> McpEndpoint:
            attempts.append(agents)
            if len(attempts) == 1:
                raise ImportError("too many open files")
            return load(agents)

        monkeypatch.setattr(Agents, "_load", failing_once)
        return attempts

    def test_a_load_that_failed_is_tried_again(self, tmp_path: Path, loads: list[Agents]) -> None:
        with running(tmp_path / "store.db") as server:
            assert [post(server, PING).status_code for _ in range(3)] == [500, 200, 200]
        assert len(loads) == 2

    def test_only_callers_with_a_key_have_it_loaded(self, tmp_path: Path, loads: list[Agents]) -> None:
        with running(tmp_path / "store.db") as server:
            with server.connect() as admin:
                admin.sessions.create("visited")
                token = admin.keys.create_token([{"session_id": "visited"}]).token
            assert post(server, PING, key="hf_wrong").status_code == 401
            assert post(server, PING, key=token).status_code == 403
            assert post(server, PING, Origin="https://evil.example").status_code == 403
        assert loads == []


class TestHostileCallers:
    def test_nobody_gets_in_without_a_key(self, server: Running) -> None:
        for header in ("", "Bearer hf_wrong", "Basic YTpi"):
            refused = post(server, PING, Authorization=header)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")

    def test_a_token_of_a_visitor_is_not_enough(self, server: Running) -> None:
        with server.connect() as admin:
            admin.sessions.create("visited")
            token = admin.keys.create_token([{"session_id": "visited"}]).token
        assert post(server, PING, key=token).status_code == 403

    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
    def test_there_are_no_streams_that_stay_open(self, server: Running, method: str) -> None:
        headers = {"Authorization": f"Bearer {server.key}", "Accept": "text/event-stream"}
        refused = httpx.request(method, f"{server.url}/mcp", headers=headers)
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")

    @pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null"])
    def test_pages_that_are_not_allowed_are_refused_even_with_a_key(self, server: Running, origin: str) -> None:
        # A page whose name was rebound to this address is of the same origin as the server, to its browser.
        refused = post(server, PING, Origin=origin, Host=origin.removeprefix("http://"))
        assert (refused.status_code, refused.json()["code"]) == (403, "origin_not_allowed")

    def test_pages_that_are_allowed_may_call(self, tmp_path: Path) -> None:
        origin = "https://app.example"
        with running(tmp_path / "store.db", cors_origins=[origin]) as server:
            assert post(server, PING, Origin=origin).status_code == 200
            assert post(server, PING, Origin="https://other.example").status_code == 403
            wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-protocol-version"}
            assert httpx.options(f"{server.url}/mcp", headers={"Origin": origin, **wanted}).status_code == 200

    @pytest.mark.parametrize(
        ("message", "status"),
        [
            (b"", 400),
            (b"no json", 400),
            (b"[" * 50_000, 400),
            (b"\xff\xfe", 400),
            ([], 400),
            ([PING, PING], 400),
            (5, 400),
            ({"jsonrpc": "2.0", "id": 1}, 400),
            ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400),
            ({"x": [1.2345678901234567e-300] * 3_000}, 413),
            ({**PING, "x": "y" * MAX_ENVELOPE}, 413),
            ({**PING, "id": "y" * MAX_ENVELOPE}, 413),
            ({**PING, "method": "tools/call", "params": {"name": "recall", "arguments": [0.5] * 9_000}}, 413),
            ({**PING, "method": "tools/call", "params": {"name": ["recall"] * 9_000, "arguments": {}}}, 413),
            (b"x" * 100_001, 413),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_what_is_no_message_is_refused(self, server: Running, message: Any, status: int) -> None:
        assert post(server, message).status_code == status
        assert post(server, message, **{"MCP-Protocol-Version": "2026-07-28"}).status_code == status
        assert post(server, PING).status_code == 200

    @pytest.mark.parametrize(
        "params",
        [
            {"name": 5},
            {"name": "recall", "arguments": []},
            {"name": "recall", "arguments": {"query": {"a": "b"}}},
            {"name": "recall", "arguments": {"query": "\u0000"}},
            {"name": "recall", "arguments": {"query": "x", "top_k": 10**30}},
            {"name": "__class__", "arguments": {}},
            {"name": "recall", "arguments": {"self": 1}},
            None,
        ],
        ids=str,
    )
    def test_bad_calls_are_answered_without_what_is_inside(self, server: Running, params: Any) -> None:
        answer = post(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert answer.status_code in (200, 400, 404)
        body = answer.json()
        assert answer.status_code == 400 or "error" in body or body["result"]["isError"]
        assert "Traceback" not in answer.text
        assert "internal" not in answer.text.lower()

    def test_other_media_types_are_refused(self, server: Running) -> None:
        assert post(server, PING, **{"Content-Type": "text/plain"}).status_code in (400, 415)
        assert post(server, PING, Accept="text/html").status_code == 406

    def test_a_key_has_its_rate(self, tmp_path: Path) -> None:
        with running(tmp_path / "store.db", rate_limit=1) as server:
            assert 429 in [post(server, PING).status_code for _ in range(5)]


def test_faults_are_logged_and_not_told(tmp_path: Path) -> None:
    def hook(*_: Any) -> Any:
        raise RuntimeError("a secret of the inside")

    with running(tmp_path / "store.db", feedback_hook=hook) as server:

        async def talk() -> None:
            async with connected(server) as client:
                await call(client, "remember", texts="A fact.")
                shown = await call(client, "recall", query="fact")
                await call(client, "answered", recall_id=shown["recall_id"], answer="A fact.", session_id="s")
                result = await client.call_tool("feedback", {"session_id": "s", "rating": "up"})
                assert code_of(result)
                assert "secret of the inside" not in str(result.content)

        asyncio.run(talk())


def test_refused_calls_are_in_the_audit_trail(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server:
        reader = key_of(server, "read")

        async def talk() -> None:
            async with connected(server, reader) as client:
                assert code_of(await client.call_tool("forget", {"dataset": "main_dataset"})) == "scope_missing"

        asyncio.run(talk())
        server.state.refusals.flush()
        found = httpx.get(f"{server.url}/v1/audit", headers={"Authorization": f"Bearer {server.key}"}).json()["items"]
        entry = next(entry for entry in (AuditEntry(**each) for each in found) if entry.code == "scope_missing")
        assert (entry.operation, entry.project) == ("forget", "default")


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with running(tmp_path / "store.db", mcp=False) as server:
        assert post(server, PING).status_code == 404


@pytest.mark.slow
def test_the_addresses_in_the_guide_work(server: Running) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```json\n(\{.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for servers in json.loads(block).values():
            found += [(each["url"], each["headers"]["Authorization"]) for each in servers.values() if "url" in each]
    for block in re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for each in tomllib.loads(block)["mcp_servers"].values():
            assert each.get("bearer_token_env_var", "HEEDFUL_API_KEY") == "HEEDFUL_API_KEY"
            found += [(each["url"], "Bearer hf_…")] if "url" in each else []
    for line in re.findall(r"^claude mcp add --transport http (.*)$", text, re.MULTILINE):
        _, url, option, header = shlex.split(line)
        assert option == "--header"
        found.append((url, header.removeprefix("Authorization: ")))
    assert len(found) == 4

    async def talk(url: str, authorization: str) -> None:
        key = authorization.removeprefix("Bearer ").replace("hf_…", server.key)
        async with connected(server, key, url.removeprefix("https://memory.example.com")) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(PROFILES["agent"])

    for each in found:
        asyncio.run(talk(*each))
