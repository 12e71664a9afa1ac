"""The MCP server: the same calls as in Python, made by the protocol's own client."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, Tool

import heedful
from heedful import Heedful
from heedful.api import CALLS
from heedful.api.parameters import Facts, OnToken, Progress, Source
from heedful.api.result_fields import describe_field
from heedful.bootstrap import THREADS
from heedful.interfaces.mcp.agent_tools import PROFILES
from heedful.interfaces.mcp.serving import server_of
from heedful.interfaces.mcp.tools import MEANINGS, TOOLS, AnswerRating, feedback
from heedful.model import Metadata, Mode, PolicyName, Recall, Signal
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")

COMMAND = [sys.executable, "-c", "from heedful.interfaces.cli import main; main()", "--embedding", "fast", "mcp"]
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "howto/mcp.md"
CLIENTS = DOCS / "integrations/mcp.md"

TEXT = {"type": "string"}
NULL = {"type": "null"}
OBJECT = {"type": "object", "additionalProperties": True}
SIGNAL = {"$ref": "#/$defs/Signal"}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def either(*parts: Any) -> dict[str, Any]:
    return {"anyOf": [*parts]}


POLICY = {"type": "string", "enum": ["documented", "adaptive"]}
SENT: dict[Any, Any] = {
    str: TEXT,
    str | None: either(TEXT, NULL),
    bool: {"type": "boolean"},
    bool | float | None: either({"type": "boolean"}, {"type": "number"}, NULL),
    int: {"type": "integer"},
    int | None: either({"type": "integer"}, NULL),
    float: {"type": "number"},
    float | None: either({"type": "number"}, NULL),
    Mode: {"type": "string", "enum": ["hybrid", "semantic", "lexical", "graph"]},
    PolicyName | None: either(POLICY, NULL),
    datetime | None: either({"type": "string", "format": "date-time"}, NULL),
    Metadata | None: either(OBJECT, NULL),
    Metadata | Sequence[Metadata] | None: either(OBJECT, array(OBJECT), NULL),
    Sequence[str] | None: either(array(TEXT), NULL),
    str | Sequence[str] | None: either(TEXT, array(TEXT), NULL),
    Source: either(TEXT, array(TEXT)),
    str | Recall: TEXT,
    Facts: either(TEXT, {"type": "integer"}, array(either(TEXT, {"type": "integer"}))),
    Signal | Iterable[Signal | Mapping[str, Any]]: either(SIGNAL, array(SIGNAL)),
}
"""What stands in the schema for a type of the engine."""

PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
NOT_SENT = {Progress | None, OnToken | None}


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Client]:
    """A client of the real command."""
    command, *given = [*COMMAND, *arguments]
    async with Client(stdio_client(StdioServerParameters(command=command, args=given, env=dict(os.environ)))) as client:
        yield client


@asynccontextmanager
async def connected(path: Path, tools: str = "all") -> AsyncIterator[Client]:
    """A client of a server in this process, which starts at once."""
    async with (
        await heedful.aopen(path, embedding=WordEmbedder()) as store,
        Client(server_of(store, "1.2.3", tools)) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    content: dict[str, Any] = result.structured_content
    return content


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def answer_of(client: Client, question: str, answer: str, **options: Any) -> str:
    """The id of an answer that an agent made from a recall."""
    shown = await call(client, "recall", query=question)
    stored: str = (await call(client, "answered", recall_id=shown["recall_id"], answer=answer, **options))["answer_id"]
    return stored


async def listed(path: Path, tools: str = "all") -> dict[str, Tool]:
    async with connected(path, tools) as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


def process(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, "--store", str(path)], **PIPES, text=True)


def ask(child: subprocess.Popen[str], method: str, number: int, **params: Any) -> None:
    assert child.stdin is not None
    child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    child.stdin.flush()


def answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    message: dict[str, Any] = json.loads(child.stdout.readline())
    return message


def stop(child: subprocess.Popen[str], way: str) -> None:
    assert child.stdin is not None
    if way == "closes its end":
        child.stdin.close()
    else:
        child.send_signal(getattr(signal, way))


def greet(child: subprocess.Popen[str]) -> None:
    """Opens the conversation, so that the server is known to serve."""
    client = {"name": "test", "version": "1"}
    ask(child, "initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    assert answer(child)["result"]["serverInfo"]["name"] == "heedful"


def texts(path: Path) -> list[str]:
    with heedful.open(path, embedding="fast") as store:
        return [hit.text for hit in store.recall("fact", mode="semantic", top_k=100)]


@pytest.mark.nightly
def test_the_loop_over_the_real_command(any_store: str) -> None:
    async def loop() -> None:
        async with started("--store", any_store, "--tools", "all") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(PROFILES["all"])
            await call(client, "remember", texts=["The office door code is 1234.", "The office door code is 9876."])
            before = await call(client, "recall", query="What is the office door code?")
            first, second = (hit["fact_id"] for hit in before["hits"])
            values = {"fact_id": second, "signal_type": "helpful", "query": "What is the office door code?"}
            reply = await call(client, "signal", signals=[values, values])
            assert reply["processed"] == 2
            boosted = {"query": "What is the office door code?", "boost_by_usefulness": True, "usefulness_weight": 0.9}
            after = await call(client, "recall", **boosted)
            assert [hit["fact_id"] for hit in after["hits"]] == [second, first]
            for event in reply["event_ids"]:
                assert (await call(client, "retract", event_id=event))["updated_facts"] == [second]
            undone = await call(client, "recall", **boosted)
            assert [hit["usefulness"] for hit in undone["hits"]] == [0.5, 0.5]
            assert (await call(client, "forget", fact_ids=[first]))["facts"] == 1
            assert [hit["fact_id"] for hit in (await call(client, "recall", query="door code"))["hits"]] == [second]

    asyncio.run(loop())
    with heedful.open(any_store, embedding="fast") as store:
        assert store.usefulness_stats().total_facts == 1


def test_a_receipt_tells_which_facts_were_used(path: Path) -> None:
    async def talk() -> None:
        async with connected(path) as client:
            await call(client, "remember", texts=["Ada is the CEO.", "Ada sings."])
            shown = await call(client, "recall", query="Who is the CEO?")
            used, other = (hit["fact_id"] for hit in shown["hits"])
            reply = await call(client, "signal_recall", recall_id=shown["recall_id"], used=used)
            result = {each["fact_id"]: each["signal_type"] for each in reply["signals"]}
            assert result == {used: "used", other: "ignored"}

    asyncio.run(talk())


@pytest.mark.slow
def test_feedback_and_improve(path: Path) -> None:
    async def talk() -> None:
        async with connected(path) as client:
            (fact,) = (await call(client, "remember", texts="Ada is the CEO."))["facts"]
            answer_id = await answer_of(client, "Who is the CEO?", "Ada is the CEO.", session_id="s1")
            entry = await call(client, "feedback", session_id="s1", qa_id=answer_id, feedback_score=5)
            assert (entry["external_id"], entry["feedback_score"]) == (answer_id, 5)
            improved = await call(client, "improve", session_ids=["s1"])
            assert improved["updated_facts"] == [fact["fact_id"]]
            assert (await call(client, "improve"))["signals_added"] == 0
            reply = await call(client, "feedback", session_id="s1", rating="up", feedback_text="Quick.", author="Bo")
            assert (reply["rating"], reply["comment"], reply["author"]) == ("up", "Quick.", "Bo")
            assert (await call(client, "retract", event_id=reply["feedback_id"]))["retracted"] == reply["feedback_id"]

    asyncio.run(talk())


def test_feedback_about_an_execution(path: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    with closing(sqlite3.connect(data)) as connection:
        connection.execute("CREATE TABLE sales (amount INTEGER)")
    with heedful.open(path, embedding=WordEmbedder()) as store:
        connector = store.connectors.create("shop", f"sqlite:///{data}")
        execution = store.executions.execute_query(
            "SELECT count(*) FROM sales", connector_id=connector.connector_id
        ).execution_id

    async def talk() -> None:
        async with connected(path) as client:
            keyed = {"execution_id": execution, "rating": "down", "feedback_text": "Old.", "idempotency_key": "k"}
            first = await call(client, "feedback", **keyed)
            assert (first["is_positive"], first["feedback"]) == (False, "Old.")
            assert await call(client, "feedback", **keyed) == first
            other = await call(client, "feedback", execution_id=execution, is_positive=True, author="Bo")
            assert other["is_positive"]

    asyncio.run(talk())


def test_a_model_can_read_the_text_alone(path: Path) -> None:
    async def talk() -> None:
        async with connected(path) as client:
            stored = await client.call_tool("remember", {"texts": ["Ada is the CEO.", "Ada\nsings."]})
            assert text_of(stored).startswith("2 new, 0 known in main_dataset\n")
            shown = await client.call_tool("recall", {"query": "Who is the CEO?", "answer": True})
            hits, lines = shown.structured_content["hits"], text_of(shown).splitlines()
            assert lines[0] == f"recall_id {shown.structured_content['recall_id']}: 2 hits"
            for hit, line in zip(hits, lines[1:3], strict=True):
                text = hit["text"].replace("\n", " ")
                assert line == f"{hit['rank']}. {text} (fact_id {hit['fact_id']}, score {hit['score']:.4f})"
            assert lines[3].startswith("answer: Ada is the CEO.")
            named = {"fact_id": "nope", "signal_type": "used", "query": "x"}
            unknown = await client.call_tool("signal", {"signals": named})
            assert unknown.is_error
            assert "no fact 'nope'" in text_of(unknown)
            both = [named, {**named, "fact_id": hits[0]["fact_id"]}]
            assert "not taken: no fact 'nope'" in text_of(await client.call_tool("signal", {"signals": both}))
            assert text_of(await client.call_tool("improve", {})) == "nothing new in main_dataset"
            assert text_of(await client.call_tool("forget", {"dataset": "main_dataset"})).startswith(
                "2 facts forgotten"
            )

    asyncio.run(talk())


def test_a_time_is_read_from_its_text(path: Path) -> None:
    async def talk() -> None:
        async with connected(path) as client:
            values = {"texts": "Ada is the CEO.", "expires_at": "2100-01-01T00:00:00+01:00"}
            (fact,) = (await client.call_tool("remember", values)).structured_content["facts"]
            with heedful.open(path, embedding=WordEmbedder()) as store:
                assert store.fact(fact["fact_id"]).expires_at == datetime(2099, 12, 31, 23, tzinfo=UTC)
            for bad in ("tomorrow", 4_102_444_800):
                refused = await client.call_tool("remember", values | {"expires_at": bad})
                assert refused.is_error
                assert "expires_at must be a time such as 2030-01-31T12:00:00Z" in text_of(refused)

    asyncio.run(talk())


@pytest.mark.parametrize("name", [name for name in TOOLS if name != "feedback"])
def test_a_tool_has_the_parameters_of_the_engine(name: str, path: Path) -> None:
    tool = asyncio.run(listed(path))[name]
    call = CALLS[name]
    wanted, required = {}, []
    for each in call.signature.parameters.values():
        if call.types[each.name] in NOT_SENT or f"{name}.{each.name}" == "recall.session_id":
            continue
        meaning = MEANINGS.get(f"{name}.{each.name}", call.meanings[each.name].meaning)
        wanted[each.name] = SENT[call.types[each.name]] | {"description": meaning}
        if each.default is inspect.Parameter.empty:
            required.append(each.name)
        else:
            wanted[each.name]["default"] = list(each.default) if isinstance(each.default, tuple) else each.default
    assert tool.input_schema["properties"] == wanted
    assert tool.input_schema.get("required", []) == required
    assert tool.input_schema["additionalProperties"] is False


def test_a_signal_has_the_fields_of_the_model(path: Path) -> None:
    schema = asyncio.run(listed(path))["signal"].input_schema["$defs"]["Signal"]
    assert list(schema["properties"]) == list(heedful.Signal.model_fields)
    assert schema["required"] == [name for name, each in heedful.Signal.model_fields.items() if each.is_required()]
    for name, each in schema["properties"].items():
        assert each["description"] == describe_field(heedful.Signal, name)


def test_feedback_has_the_parameters_of_the_calls_behind_it() -> None:
    behind: dict[str, Any] = {}
    for name in ("sessions.add_feedback", "sessions.add_session_feedback", "feedback.create"):
        behind |= {each: kind for each, kind in CALLS[name].types.items() if each != "return"}
    # The opinion about a session is a mapping there, and the text about an execution has the same name.
    del behind["feedback"]
    behind["rating"] = AnswerRating
    types = get_type_hints(feedback)
    parameters = list(inspect.signature(feedback).parameters.values())[1:]
    assert {each.name: types[each.name] for each in parameters} == {name: kind | None for name, kind in behind.items()}
    assert all(each.default is None for each in parameters)


def test_descriptions_are_the_docstrings_but_for_what_can_not_be_sent(path: Path) -> None:
    tools = asyncio.run(listed(path))
    for name in ("signal", "improve", "retract", "forget"):
        when, _, rest = str(tools[name].description).partition("\n\n")
        assert when == TOOLS[name].when
        assert rest == inspect.getdoc(getattr(Heedful, name))
    assert "files" not in str(tools["remember"].description).split("\n\n")[1]
    assert "on_token" in str(inspect.getdoc(Heedful.recall))
    assert "on_token" not in str(tools["recall"].description)
    assert "session_id" not in str(tools["recall"].description)
    assert str(tools["recall"].description).endswith(
        "that a page before it showed.\n\nTo store your own answer, call answered."
    )


@pytest.mark.parametrize("tools", list(PROFILES))
def test_an_agent_is_told_when_to_call_each_tool_and_what_each_parameter_means(path: Path, tools: str) -> None:
    for tool in asyncio.run(listed(path, tools)).values():
        assert re.search(r"(^|\. )(Call this (when|before|once|to|only)|Passes on|Replaces)", str(tool.description))
        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"].endswith((".", "…")), f"{tool.name}.{name}"


def test_hosts_are_told_what_a_tool_may_do(path: Path) -> None:
    hints = {name: tool.annotations for name, tool in asyncio.run(listed(path)).items()}
    assert not any(each is None or each.read_only_hint or each.open_world_hint for each in hints.values())
    destructive = {name for name, each in hints.items() if each and each.destructive_hint}
    assert destructive == {"feedback", "retract", "forget", "correct"}
    once = {name for name, each in hints.items() if each and each.idempotent_hint}
    assert once == {"remember", "signal_recall", "improve", "retract", "forget", "answered"}


FEEDBACK = {"session_id": "s1", "qa_id": "nope"}


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "message"),
    [
        ("recall", {}, "invalid", "query is required"),
        ("recall", {"query": " "}, "invalid", "query must not be empty"),
        ("recall", {"query": "x", "on_token": "x"}, "invalid", "recall has no parameter 'on_token'"),
        ("recall", {"query": "x", "top_k": "5"}, "invalid", "top_k must be a whole number, got '5'"),
        ("recall", {"query": "x", "top_k": True}, "invalid", "top_k must be a whole number, got True"),
        ("recall", {"query": "x", "top_k": 0}, "invalid", "top_k must be a whole number from 1"),
        ("recall", {"query": "x", "mode": "deep"}, "invalid", "mode must be one of hybrid, semantic"),
        ("recall", {"query": "x", "explain": "no"}, "invalid", "explain must be true or false"),
        ("recall", {"query": "x", "dataset": None}, "invalid", "dataset must be a text, got None"),
        ("recall", {"query": "x", "dataset": "nope"}, "not_found", "has no dataset 'nope'"),
        ("remember", {"texts": 5}, "invalid", "texts must be a text or a list of texts, got 5"),
        ("remember", {"texts": "x" * 6_000_000}, "invalid", "the limit is"),
        ("remember", {"texts": "x", "metadata": ["a"]}, "invalid", "metadata must be an object or a list of objects"),
        ("signal", {"signals": 5}, "invalid", "signals must be a list"),
        ("signal", {"signals": [{"fact_id": "x"}]}, "invalid", "signals[0].signal_type is required"),
        (
            "signal_recall",
            {"recall_id": "x", "used": 0.5},
            "invalid",
            "used must be a text or a whole number or a list of",
        ),
        ("signal_recall", {"recall_id": "x"}, "not_found", "no recall 'x'"),
        ("feedback", {"feedback_score": 5}, "invalid", "the feedback has no target"),
        ("feedback", {**FEEDBACK, "feedback_score": 5}, "not_found", "s1"),
        ("feedback", {**FEEDBACK, "feedback_score": 6}, "invalid", "feedback_score"),
        ("recall", {"query": "x", "session_id": "s1"}, "invalid", "recall has no parameter 'session_id'"),
        ("feedback", {**FEEDBACK, "rating": "up"}, "not_found", "s1"),
        ("feedback", {**FEEDBACK, "rating": "meh"}, "invalid", "invalid rating 'meh'"),
        ("feedback", {"execution_id": "x", "rating": 3}, "invalid", "is_positive is required"),
        ("answered", {"recall_id": "x", "answer": "Six."}, "not_found", "no recall 'x'"),
        ("answered", {"recall_id": "x", "answer": " "}, "invalid", "answer must not be blank"),
        ("answered", {"recall_id": "x", "answer": "y", "session_id": "s" * 192}, "invalid", "session_id must have"),
        ("correct", {"fact_id": "x", "text": "y"}, "not_found", "no fact 'x'"),
        ("feedback", {"session_id": "s1", "feedback_score": 5}, "invalid", "feedback_score is not for a session"),
        ("feedback", {"session_id": "s1", "rating": "up"}, "not_found", "s1"),
        ("feedback", {"execution_id": "x"}, "invalid", "is_positive is required"),
        ("feedback", {"execution_id": "x", "is_positive": True}, "not_found", "no execution 'x'"),
        ("feedback", {"execution_id": "x", "session_id": "s1"}, "invalid", "session_id is not for an execution"),
        ("improve", {"session_ids": "s1"}, "invalid", "session_ids must be a list of texts or null"),
        ("retract", {"event_id": "x"}, "not_found", "no event 'x'"),
        ("forget", {}, "invalid", "nothing to forget"),
        ("forget", {"fact_ids": 5}, "invalid", "fact_ids must be a text or a list of texts or null"),
    ],
    ids=str,
)
@pytest.mark.nightly
def test_bad_input_is_an_answer_that_says_what_is_wrong(
    path: Path, tool: str, arguments: dict[str, Any], code: str, message: str
) -> None:
    async def talk() -> None:
        async with connected(path) as client:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            error = result.structured_content["error"]
            assert error["code"] == code
            assert message in error["message"]
            assert len(text_of(result)) < 500
            assert text_of(result) == f"error ({code}): {error['message']}" + (
                f"\n{error['remedy']}" if error["remedy"] else ""
            )
            assert (await call(client, "remember", texts="Still here."))["added"] == 1

    asyncio.run(talk())


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(path: Path) -> None:
    async def talk() -> None:
        async with connected(path) as client:
            with pytest.raises(MCPError, match="no tool 'nope'"):
                await client.call_tool("nope", {})

    asyncio.run(talk())


@pytest.mark.nightly
def test_two_clients_share_a_store(path: Path) -> None:
    async def talk() -> None:
        given = ("--store", str(path), "--tools", "all")
        async with started(*given) as one, started(*given) as two:
            many = range(10)
            each = [(client, f"fact {name} {number}") for name, client in (("a", one), ("b", two)) for number in many]
            await asyncio.gather(*(call(client, "remember", texts=text) for client, text in each))
            expected = {text for _, text in each}
            for client in (one, two):
                reply = await call(client, "recall", query="fact", mode="semantic", top_k=100)
                assert {hit["text"] for hit in reply["hits"]} == expected

    asyncio.run(talk())


@pytest.mark.slow
def test_projects_are_apart(path: Path) -> None:
    async def talk() -> None:
        async with started("--store", str(path), "--project", "other") as client:
            assert not (await client.call_tool("remember", {"texts": "A fact of the other project."})).is_error

    asyncio.run(talk())
    assert texts(path) == []
    with heedful.open(path, project="other", embedding="fast") as store:
        assert store.usefulness_stats().total_facts == 1


@pytest.mark.parametrize("leave", ["closes its end", "SIGTERM", pytest.param("SIGINT", marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_the_server_stops_without_a_word(path: Path, leave: str) -> None:
    with process(path) as child:
        greet(child)
        ask(child, "tools/call", 1, name="remember", arguments={"texts": "a first fact"})
        assert "1 new" in answer(child)["result"]["content"][0]["text"]
        stop(child, leave)
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.wait(timeout=60) == 0
        assert (child.stdout.read(), child.stderr.read()) == ("", "")
    assert texts(path) == ["a first fact"]


HELD_UP = """
import asyncio, os, sys
import heedful
from heedful.interfaces.mcp.serving import serve
from heedful.testing import WordEmbedder

class HeldUp(WordEmbedder):
    def embed(self, texts):
        print("begun", file=sys.stderr, flush=True)
        os.read(int(sys.argv[2]), 1)
        return super().embed(texts)

async def main():
    async with await heedful.aopen(sys.argv[1], embedding=HeldUp()) as store:
        await serve(store, "1")

asyncio.run(main())
"""


@pytest.mark.parametrize("leave", ["closes its end", pytest.param("SIGTERM", marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_calls_that_have_begun_or_wait_for_a_thread_are_finished(path: Path, leave: str) -> None:
    many = THREADS + 2
    held, release = os.pipe()
    command = [sys.executable, "-c", HELD_UP, str(path), str(held)]
    with subprocess.Popen(command, **PIPES, text=True, pass_fds=[held]) as child:
        greet(child)
        for number in range(many):
            ask(child, "tools/call", number, name="remember", arguments={"texts": f"fact {number}"})
        ask(child, "ping", many)
        assert answer(child)["id"] == many
        assert child.stderr is not None
        # Several threads write at once, and may write on one line.
        assert "begun" in child.stderr.readline()
        stop(child, leave)
        os.close(release)
        assert child.wait(timeout=60) == 0
    os.close(held)
    with heedful.open(path, embedding=WordEmbedder()) as store:
        assert store.usefulness_stats().total_facts == many


@pytest.mark.slow
def test_the_server_ends_when_its_client_was_killed(path: Path) -> None:
    with process(path) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        greet(child)
        # Nobody is there to read the answers.
        child.stdout.close()
        for number in range(1, 4):
            ask(child, "tools/call", number, name="remember", arguments={"texts": f"fact {number}"})
        child.stdin.close()
        assert child.wait(timeout=60) == 0
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()
    with heedful.open(path, embedding="fast") as store:
        assert all(check.ok for check in store.doctor(repair=False))


@pytest.mark.usefixtures("cold_processes")
@pytest.mark.nightly
def test_lines_that_are_no_messages_do_no_harm(path: Path) -> None:
    with process(path) as child:
        assert child.stdin is not None
        child.stdin.write("no json\n\n[]\n")
        greet(child)
        child.stdin.write('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 5}}\n')
        child.stdin.flush()
        assert "error" in answer(child)
        ask(child, "tools/call", 8, name="remember", arguments={"texts": "a fact"})
        assert answer(child)["id"] == 8
        child.stdin.close()
        assert child.wait(timeout=60) == 0


def test_a_store_that_can_not_be_opened_is_said_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("This is no store.")
    command = [*COMMAND, "--store", str(tmp_path / "bad.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.usefixtures("cold_processes")
@pytest.mark.slow
def test_a_missing_extra_says_what_to_install() -> None:
    script = "import sys; sys.modules['mcp'] = None; from heedful.interfaces.cli import main; main()"
    command = [sys.executable, "-c", script, "mcp"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (5, "")
    assert 'pip install "heedful[mcp]"' in done.stderr


def commands_in(page: Path) -> list[tuple[list[str], dict[str, str]]]:
    """The commands that a page has agents start, with their environment."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```(?:json|text)\n(\{.*?)^```$", text, re.MULTILINE | re.DOTALL):
        servers = json.loads(block)
        found += [*servers.get("mcpServers", {}).values(), *servers.get("servers", {}).values()]
    for block in re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        found += tomllib.loads(block)["mcp_servers"].values()
    started = [([each["command"], *each["args"]], each.get("env", {})) for each in found if "command" in each]
    started += [(shlex.split(line), {}) for line in re.findall(r"^claude mcp add heedful -- (.*)$", text, re.MULTILINE)]
    return started


GUIDED = [(page, *each) for page in (PAGE, CLIENTS) for each in commands_in(page)]


STORE = "the store of the page"


def different() -> list[tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]:
    """What the guides have agents start, each once, whatever they call the store."""
    found: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], None] = {}
    for _, command, env in GUIDED:
        written = command[command.index("--store") + 1]
        found[tuple(STORE if each == written else each for each in command[2:]), tuple(env.items())] = None
    return list(found)


DIFFERENT = different()


def test_the_guides_have_a_command_for_each_client() -> None:
    assert [page.name for page, *_ in GUIDED].count("mcp.md") == len(GUIDED) == 5
    assert {tuple(command[:2]) for _, command, _ in GUIDED} == {("heedful", "mcp")}


@pytest.mark.parametrize(("arguments", "env"), DIFFERENT)
@pytest.mark.nightly
def test_the_configuration_in_the_guide_works(
    path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], env: tuple[tuple[str, str], ...]
) -> None:
    for name, value in env:
        monkeypatch.setenv(name, value)
    arguments = tuple(str(path) if argument == STORE else argument for argument in arguments)

    async def talk() -> None:
        async with started(*arguments) as client:
            assert not (await client.call_tool("remember", {"texts": "A fact."})).is_error

    asyncio.run(talk())
    assert path.is_file()


def test_the_guide_names_every_tool() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in PROFILES["all"]:
        assert f"`{name}`" in page
