"""The five tools that an agent gets, made by the protocol's own client: what they cost, what they store, and what
feedback about an answer does."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from closed_loop import AT_SEVEN, AT_SIX, QUESTION
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent
from server import running
from tokenizers import Tokenizer

import heedful
from heedful.interfaces.mcp.agent_tools import PROFILES
from heedful.interfaces.mcp.serving import server_of
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")

NAMES = ["recall", "remember", "answered", "feedback", "correct"]
MAX_TOKENS = 1_000
MAIN = "from heedful.interfaces.cli import main; main()"

Open = Callable[[str], AbstractAsyncContextManager[Client]]
EMBEDDING: dict[str, Any] = {"stdio": "fast", "http": WordEmbedder()}


@pytest.fixture(params=list(EMBEDDING))
def surface(request: pytest.FixtureRequest) -> Open:
    """Opens a client of a store: of the real command, or of a server."""

    @asynccontextmanager
    async def by_command(store: str) -> AsyncIterator[Client]:
        given = ["-c", MAIN, "--embedding", "fast", "mcp", "--store", store]
        parameters = StdioServerParameters(command=sys.executable, args=given, env=dict(os.environ))
        async with Client(stdio_client(parameters)) as client:
            yield client

    @asynccontextmanager
    async def by_server(store: str) -> AsyncIterator[Client]:
        async with AsyncExitStack() as stack:
            server = stack.enter_context(running(store))
            headers = {"Authorization": f"Bearer {server.key}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=30))
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
            yield await stack.enter_async_context(Client(transport))

    return by_command if request.param == "stdio" else by_server


@asynccontextmanager
async def here(store: str | Path, **options: Any) -> AsyncIterator[Client]:
    """A client of a server in this process."""
    async with (
        await heedful.aopen(store, embedding=WordEmbedder(), **options) as memory,
        Client(server_of(memory, "1")) as client,
    ):
        yield client


async def told(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a result, which are all of it."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    assert result.structured_content is None
    return content.text


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    error: dict[str, Any] = result.structured_content["error"]
    return error


def named(kind: str, text: str) -> list[str]:
    """The ids of a kind in the words of a result."""
    return re.findall(rf"\b{kind} (\S+?)[:,)]?(?=\s|$|,)", text)


async def answer_of(client: Client, query: str, answer: str, **options: Any) -> str:
    (recall_id,) = named("recall_id", await told(client, "recall", query=query))
    (answer_id,) = named("answer_id", await told(client, "answered", recall_id=recall_id, answer=answer, **options))
    return answer_id


def test_the_tools_cost_a_model_less_than_a_thousand_tokens(path: Path) -> None:
    """By the tokenizer of the bundled model, for which every bracket, quote and comma is a token. Those of language
    models join them, and have several times as many words."""

    async def listed() -> tuple[list[Any], str]:
        async with here(path) as client:
            return (await client.list_tools()).tools, client.instructions or ""

    tools, instructions = asyncio.run(listed())
    assert [tool.name for tool in tools] == NAMES
    assert not any(tool.output_schema for tool in tools)
    seen = [{"name": each.name, "description": each.description, "input_schema": each.input_schema} for each in tools]
    (folder,) = find_spec("heedful_minilm").submodule_search_locations  # type: ignore[union-attr,misc]
    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokens = len(tokenizer.encode(json.dumps(seen)).ids) + len(tokenizer.encode(instructions).ids)
    assert 500 < tokens < MAX_TOKENS
    assert all(len(each.input_schema["properties"]) <= 4 for each in tools)


@pytest.mark.slow
def test_the_loop(any_store: str, surface: Open, request: pytest.FixtureRequest) -> None:
    async def first() -> None:
        async with surface(any_store) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            await told(client, "remember", texts=[AT_SIX, AT_SEVEN])
            before = await told(client, "recall", query=QUESTION)
            assert before.index(AT_SIX) < before.index(AT_SEVEN)
            answer_id = await answer_of(client, QUESTION, f"{AT_SIX} [1]")
            for author in ("Ada", "Bo", "Cy"):
                given = {"answer_id": answer_id, "author": author}
                assert "1 of 5" in await told(client, "feedback", **given, rating="down")

    async def then() -> None:
        async with surface(any_store) as client:
            after = await told(client, "recall", query=QUESTION)
            assert after.index(AT_SEVEN) < after.index(AT_SIX)
            wrong = after.splitlines()[1]
            assert AT_SEVEN in wrong
            (fact_id,) = named("fact_id", wrong)
            assert fact_id in await told(client, "correct", fact_id=fact_id, text="The gym opens at eight.")
            corrected = await told(client, "recall", query=QUESTION)
            assert "The gym opens at eight." in corrected
            assert AT_SEVEN not in corrected

    asyncio.run(first())
    embedding = EMBEDDING[request.node.callspec.params["surface"]]
    with heedful.open(any_store, embedding=embedding, worker=False) as memory:
        (session,) = memory.sessions.list().items
        (entry,) = memory.sessions.entries(session.session_id).items
        # The agent's words, and not those that Heedful would have made of the facts.
        assert (entry.question, entry.answer) == (QUESTION, f"{AT_SIX} [1]")
        memory.improve()
    asyncio.run(then())


@pytest.mark.parametrize(
    ("rating", "score"),
    [
        ("up", 5),
        ("Down", 1),
        ("thumbs_up", 5),
        ("\N{THUMBS DOWN SIGN}", 1),
        ("negative", 2),
        (True, 5),
        (1, 1),
        (5, 5),
        (4.0, 4),
        (0.5, 3),
        ("3", 3),
        ("4/5", 4),
        ("2 out of 5 stars", 2),
    ],
    ids=str,
)
def test_ratings_are_taken_as_people_give_them(path: Path, rating: Any, score: int) -> None:
    async def rate() -> None:
        async with here(path) as client:
            await told(client, "remember", texts=AT_SIX)
            answer_id = await answer_of(client, QUESTION, AT_SIX)
            rated = await told(client, "feedback", answer_id=answer_id, rating=rating)
            assert rated == f"stored: the answer {answer_id} has the score {score} of 5"

    asyncio.run(rate())


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "field", "message"),
    [
        ("feedback", {"answer_id": "s/1", "rating": "meh"}, "invalid", "rating", "invalid rating 'meh'"),
        ("feedback", {"answer_id": "s/1", "rating": 6}, "invalid", "rating", "invalid rating 6"),
        ("feedback", {"answer_id": "s/1", "rating": 0}, "invalid", "rating", "invalid rating 0"),
        ("feedback", {"answer_id": "s/1", "rating": ["up"]}, "invalid", "rating", "rating must be a text or a number"),
        ("feedback", {"answer_id": "s/1"}, "invalid", "rating", "rating and comment are both missing"),
        ("feedback", {"answer_id": "s/1", "rating": "up"}, "not_found", "answer_id", "no answer 's/1' is stored"),
        ("feedback", {"answer_id": "x", "rating": "up"}, "not_found", "answer_id", "no answer 'x' is stored"),
        ("feedback", {"answer_id": "x", "score": 5}, "invalid", "score", "feedback has no parameter 'score'"),
        ("feedback", {"rating": "up"}, "invalid", "answer_id", "answer_id is required"),
        ("answered", {"recall_id": "x", "answer": "y"}, "not_found", "recall_id", "no recall 'x'"),
        ("answered", {"recall_id": "x", "answer": " "}, "invalid", "answer", "answer must not be blank"),
        ("answered", {"recall_id": "x", "answer": "\ud800"}, "not_found", "recall_id", "no recall 'x'"),
        ("recall", {"query": "x", "session_id": "s"}, "invalid", "session_id", "no parameter 'session_id'"),
        ("recall", {"query": "x", "top_k": 0}, "invalid", "top_k", "top_k must be a whole number from 1"),
        ("correct", {"fact_id": "x", "text": " "}, "invalid", "text", "text must not be empty"),
    ],
    ids=str,
)
def test_bad_input_is_refused_with_a_remedy(
    path: Path, tool: str, arguments: dict[str, Any], code: str, field: str, message: str
) -> None:
    async def call() -> dict[str, Any]:
        async with here(path) as client:
            return await refused(client, tool, **arguments)

    error = asyncio.run(call())
    assert (error["code"], error["field"]) == (code, field)
    assert message in error["message"]


def test_a_tool_of_the_other_profile_is_not_there(path: Path) -> None:
    async def call() -> None:
        async with here(path) as client:
            with pytest.raises(MCPError, match=r"no tool 'forget'\. Use one of recall, remember, answered"):
                await client.call_tool("forget", {"dataset": "main_dataset"})

    asyncio.run(call())


def test_the_same_answer_is_stored_once_and_another_one_apart(path: Path) -> None:
    async def talk() -> tuple[set[str], str]:
        async with here(path) as client:
            await told(client, "remember", texts=AT_SIX)
            (recall_id,) = named("recall_id", await told(client, "recall", query=QUESTION))
            same = [told(client, "answered", recall_id=recall_id, answer=AT_SIX) for _ in range(5)]
            stored = {named("answer_id", each)[0] for each in await asyncio.gather(*same)}
            return stored, await answer_of(client, QUESTION, "At six, I think.")

    stored, other = asyncio.run(talk())
    assert len(stored | {other}) == 2
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as memory:
        # One client has one conversation.
        (session,) = memory.sessions.list().items
        answers = [entry.answer for entry in memory.sessions.entries(session.session_id).items]
    assert sorted(answers) == ["At six, I think.", AT_SIX]


def test_an_answer_is_stored_in_a_named_session_with_the_question_that_was_asked(path: Path) -> None:
    async def talk() -> str:
        async with here(path) as client:
            await told(client, "remember", texts=AT_SIX)
            return await answer_of(client, "gym hours", AT_SIX, question=QUESTION, session_id="team/chat-1")

    assert asyncio.run(talk()).startswith("team/chat-1/")
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as memory:
        (entry,) = memory.sessions.entries("team/chat-1").items
        assert (entry.question, entry.answer) == (QUESTION, AT_SIX)


def test_an_answer_before_anything_is_remembered_needs_its_question(path: Path) -> None:
    async def talk() -> None:
        async with here(path) as client:
            (recall_id,) = named("recall_id", await told(client, "recall", query=QUESTION))
            error = await refused(client, "answered", recall_id=recall_id, answer="I don't know.")
            assert "pass question as well" in error["remedy"]
            given = {"recall_id": recall_id, "answer": "I don't know.", "question": QUESTION}
            (answer_id,) = named("answer_id", await told(client, "answered", **given))
            assert "1 of 5" in await told(client, "feedback", answer_id=answer_id, rating="down")

    asyncio.run(talk())


@pytest.mark.slow
def test_answers_are_those_of_a_project_and_of_its_keys(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server:

        @asynccontextmanager
        async def as_key(project: str, *scopes: Any) -> AsyncIterator[Client]:
            with server.connect(project) as admin:
                headers = {"Authorization": f"Bearer {admin.keys.create('agent', scopes=list(scopes)).api_key}"}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
                async with Client(transport) as client:
                    yield client

        async def talk() -> None:
            async with as_key("one", "read", "write", "feedback") as one:
                await told(one, "remember", texts=AT_SIX)
                answer_id = await answer_of(one, QUESTION, AT_SIX)
            for other in ("two", "one"):
                async with as_key(other, "feedback") as rater:
                    assert [tool.name for tool in (await rater.list_tools()).tools] == ["feedback"]
                    assert (await refused(rater, "recall", query="x"))["code"] == "scope_missing"
                    given = {"answer_id": answer_id, "rating": "up"}
                    if other == "two":
                        assert (await refused(rater, "feedback", **given))["code"] == "not_found"
                    else:
                        assert "5 of 5" in await told(rater, "feedback", **given)

        asyncio.run(talk())


def test_a_server_has_both_profiles_and_no_other(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server, httpx2.Client(timeout=30) as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {server.key}"}
        for query, names in (("", NAMES), ("?tools=agent", NAMES), ("?tools=all", list(PROFILES["all"]))):
            answer = http.post(f"{server.url}/mcp{query}", json=message, headers=accept).json()
            assert [tool["name"] for tool in answer["result"]["tools"]] == names
        refusal = http.post(f"{server.url}/mcp?tools=every", json=message, headers=accept)
        assert (refusal.status_code, refusal.json()["field"]) == (422, "tools")
        assert "agent, all" in refusal.json()["detail"]
