"""`heedful proxy`: memories and ratings for whatever speaks OpenAI's protocol; everything else passes as it is."""

from __future__ import annotations

import gzip
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from model_server import Said, chat, chat_stream, response, response_document, response_stream
from patience import until
from proxying import Proxied, proxied
from silent_server import silent_server

import heedful
from heedful import Heedful
from heedful.integrations import turns
from heedful.integrations.proxy import app as proxy_app
from heedful.interfaces.http.state import Caller, Callers
from heedful.store import Store
from heedful.testing import WordEmbedder

QUESTION = "When does the gym open?"
SHARED = "The gym opens at six."
ADAS = "Ada's gym has a pool."


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy is no failure of Heedful's."""
    monkeypatch.setattr(turns, "DEADLINE", 30)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Heedful]:
    with heedful.open(tmp_path / "store.db", embedding=WordEmbedder()) as memory:
        memory.remember(SHARED)
        memory.remember(ADAS, metadata={"user": "ada"})
        yield memory


@pytest.fixture
def proxy(memory: Heedful) -> Iterator[Proxied]:
    with proxied(memory, chat("At six. [1]")) as proxy:
        yield proxy


def stored(memory: Heedful, session: str) -> list[tuple[str, str, str | None]]:
    """The answers of a session, once there is one."""
    until(lambda: memory.sessions.exists(session) and memory.sessions.entries(session).items)
    return [(each.question, each.answer, each.external_id) for each in memory.sessions.entries(session).items]


@pytest.mark.slow
def test_a_question_gets_memories_and_its_answer_is_stored(memory: Heedful, proxy: Proxied) -> None:
    answer = proxy.ask(QUESTION, {"X-Heedful-Session": "chat-1"}, temperature=0.70, seed=2**70)
    assert answer.content == proxy.model.says[0].whole
    [sent] = proxy.model.sent
    assert SHARED in sent.prompt
    assert (sent.json["temperature"], sent.json["seed"]) == (0.7, 2**70)
    assert stored(memory, "chat-1") == [(QUESTION, "At six. [1]", "chatcmpl-1")]


@pytest.mark.parametrize(
    ("content", "before", "after"),
    [
        ('"Be \\u00e9brief."', '"Be \\u00e9brief.', '"'),
        ('""', '"', '"'),
        ('[ {"type":"text","text":"Be brief."} ]', '[ {"type":"text","text":"Be brief."} ,', "]"),
        ("[]", "[", "]"),
    ],
)
@pytest.mark.nightly
def test_memories_change_nothing_else_of_a_request(proxy: Proxied, content: str, before: str, after: str) -> None:
    """Numbers, spaces, order, fields that nobody knows and keys that are there twice stay as they were written."""
    start = (
        '{ "n":1.50, "x" : 1e999, "messages" : [{"role":"system","content":"First"} ,{"role":"developer", "content":'
    )
    end = (
        ', "name":"x"}, {"role":"user","content":"When does the gym open?"}],\r\n "x": {"\\ud83d": [1,{}]}, "n":0.10 }'
    )
    proxy.http.post("/v1/chat/completions", content=f"{start}{content}{end}").raise_for_status()
    [sent] = proxy.model.sent
    text = sent.body.decode()
    assert text.startswith(f"{start}{before}")
    assert text.endswith(f"{after}{end}")
    assert [each["role"] for each in sent.json["messages"]] == ["system", "developer", "user"]
    assert str(sent.json["messages"][1]["content"]).count(SHARED) == 1


@pytest.mark.parametrize("leading", [[], [{"role": "system", "content": None}], [7]])
@pytest.mark.nightly
def test_memories_are_a_message_where_there_is_none_for_them(proxy: Proxied, leading: list[Any]) -> None:
    messages = [*leading, {"role": "user", "content": QUESTION}]
    proxy.ask("", messages=messages)
    sent = proxy.model.sent[0].json["messages"]
    added = next(each for each in sent if each not in messages)
    assert added["role"] == "system"
    assert SHARED in added["content"]
    assert [each for each in sent if each != added] == messages


@pytest.mark.slow
def test_memories_go_behind_the_instructions_of_a_response(memory: Heedful) -> None:
    with proxied(memory, response("At six.")) as proxy:
        for fields in ({}, {"instructions": None}, {"instructions": "Be brief."}):
            document = {"model": "m", "input": [{"role": "user", "content": QUESTION}], **fields}
            answer = proxy.http.post("/v1/responses", json=document)
            assert answer.content == proxy.model.says[0].whole
            sent = proxy.model.sent[-1].json
            assert SHARED in sent.pop("instructions")
            assert sent == {"model": "m", "input": [{"role": "user", "content": QUESTION}]}
        assert "Be brief.\n\n" in proxy.model.sent[-1].prompt


STREAMS = {"chat/completions": chat_stream("At six – in the morning. [1]"), "responses": response_stream("At six. [1]")}


def asking(path: str, **fields: Any) -> dict[str, Any]:
    question: dict[str, Any] = {"input": QUESTION}
    if path == "chat/completions":
        question = {"messages": [{"role": "user", "content": QUESTION}]}
    return {"model": "m", **question, **fields}


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.slow
def test_a_stream_passes_to_the_byte_and_its_answer_is_stored(memory: Heedful, path: str) -> None:
    said = STREAMS[path]
    with proxied(memory, said) as proxy:
        headers = {"X-Heedful-Session": "chat-1"}
        with proxy.http.stream("POST", f"/v1/{path}", json=asking(path, stream=True), headers=headers) as answer:
            assert b"".join(answer.iter_raw()) == said.whole
        given = {name: value for name, value in answer.headers.items() if name != "date"}
        assert given == {**dict(said.headers), "transfer-encoding": "chunked"}
        assert SHARED in proxy.model.sent[0].prompt
        [(question, text, answer_id)] = stored(memory, "chat-1")
    assert (question, answer_id) == (QUESTION, "chatcmpl-1" if path == "chat/completions" else "resp_1")
    assert text == "At six – in the morning. [1]" if path == "chat/completions" else "At six. [1]"


@pytest.mark.parametrize("before", ["", "stop"])
def test_a_stream_may_give_each_part_a_reason_to_finish(memory: Heedful, before: str) -> None:
    """Older Ollama and SGLang send an empty one, and some gateways to Gemini `stop`."""
    said = chat_stream("At six in the morning.", before=before)
    with proxied(memory, Said(said.parts, headers=(("content-type", "Text/Event-Stream"),))) as proxy:
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"}, stream=True)
        assert stored(memory, "1") == [(QUESTION, "At six in the morning.", "chatcmpl-1")]


@pytest.mark.slow
def test_a_stream_arrives_while_it_is_written(memory: Heedful) -> None:
    with proxied(memory, chat_stream("At six.")) as proxy:
        goes_on = proxy.model.next_part = threading.Event()
        received = b""
        with proxy.http.stream("POST", "/v1/chat/completions", json=asking("chat/completions", stream=True)) as answer:
            for part in answer.iter_raw():
                # The next one is not written before this one was seen.
                received += part
                goes_on.set()
        assert received == proxy.model.says[0].whole


def test_what_a_model_says_before_a_tool_is_no_answer(memory: Heedful) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "hours", "arguments": "{}"}}
    with proxied(memory, chat("Let me look.", "chatcmpl-1", tool_calls=[call]), chat("At six.", "chatcmpl-2")) as proxy:
        said: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        proxy.ask("", {"X-Heedful-Session": "chat-1"}, messages=said)
        said += [{"role": "assistant", "tool_calls": [call]}]
        said += [{"role": "tool", "tool_call_id": "call_1", "content": "6-22"}]
        proxy.ask("", {"X-Heedful-Session": "chat-1"}, messages=said)
        assert all(SHARED in each.prompt for each in proxy.model.sent)
        assert stored(memory, "chat-1") == [(QUESTION, "At six.", "chatcmpl-2")]


@pytest.mark.slow
def test_a_response_that_continues_another_belongs_to_its_question(memory: Heedful) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "hours", "arguments": "{}"}
    with proxied(memory, response("Let me look.", "resp_1", [call]), response("At six.", "resp_2")) as proxy:
        headers = {"X-Heedful-User": "ada"}
        proxy.http.post("/v1/responses", json=asking("responses"), headers=headers)
        result = {"type": "function_call_output", "call_id": "call_1", "output": "6-22"}
        document = {"model": "m", "previous_response_id": "resp_1", "input": [result]}
        proxy.http.post("/v1/responses", json=document, headers={"X-Heedful-User": "bob"})
        assert proxy.model.sent[1].prompt == ""
        proxy.http.post("/v1/responses", json=document, headers=headers)
        assert ADAS in proxy.model.sent[2].prompt
        [session] = until(lambda: memory.sessions.list(where={"user": "ada"}).items)
        assert stored(memory, session.session_id) == [(QUESTION, "At six.", "resp_2")]


@pytest.mark.slow
def test_a_response_in_the_background_is_stored_if_it_is_streamed(memory: Heedful) -> None:
    queued = Said([json.dumps({**response_document("", "resp_1"), "status": "queued"}).encode()])
    with proxied(memory, queued, response_stream("At six.", "resp_2")) as proxy:
        for stream in (False, True):
            document = asking("responses", background=True, stream=stream)
            proxy.http.post("/v1/responses", json=document, headers={"X-Heedful-Session": "1"}).raise_for_status()
        assert stored(memory, "1") == [(QUESTION, "At six.", "resp_2")]


@pytest.mark.slow
def test_two_users_at_once_never_share_memories_or_sessions(memory: Heedful, proxy: Proxied) -> None:
    """The user is named by the header, or by the field `user`; a header goes first."""
    memory.remember("Bob's gym is closed.", metadata={"user": "bob"})
    ways: list[Callable[[str], httpx.Response]] = [
        lambda user: proxy.ask(
            QUESTION, {"X-Heedful-User": user, "X-Heedful-Session": "1", "X-Heedful-Answer": f"{user}1"}
        ),
        lambda user: proxy.ask(QUESTION, {"X-Heedful-Session": "1", "X-Heedful-Answer": f"{user}2"}, user=user),
        lambda user: proxy.ask(
            QUESTION, {"X-Heedful-User": user, "X-Heedful-Session": "1", "X-Heedful-Answer": f"{user}3"}, user="x"
        ),
    ]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda way: way[0](way[1]), [(way, user) for way in ways for user in ("ada", "bob")]))
    proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
    for sent in proxy.model.sent:
        named = sent.json.get("user")
        assert SHARED in sent.prompt
        assert not (ADAS in sent.prompt and "Bob's gym" in sent.prompt)
        assert (ADAS in sent.prompt) or named != "ada"
        assert ("Bob's gym" in sent.prompt) or named != "bob"
    assert [ADAS in each.prompt for each in proxy.model.sent].count(True) == 3
    assert ADAS not in proxy.model.sent[-1].prompt
    for user in ("ada", "bob"):
        ids = {f"{user}{number}" for number in (1, 2, 3)}
        until(partial(lambda user, ids: {each[2] for each in stored(memory, f"{user}/1")} == ids, user, ids))
        assert memory.sessions.get_metadata(f"{user}/1") == {"user": user}


@pytest.mark.slow
def test_a_conversation_without_a_name_is_known_by_its_first_message(memory: Heedful, proxy: Proxied) -> None:
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    headers = {"X-Heedful-User": "ada"}
    proxy.ask("Hello", {**headers, "X-Heedful-Answer": "1"})
    proxy.ask("", {**headers, "X-Heedful-Answer": "2"}, messages=[*said, {"role": "user", "content": QUESTION}])
    proxy.ask("Something else", {**headers, "X-Heedful-Answer": "3"})
    proxy.ask("Hello", {"X-Heedful-User": "bob", "X-Heedful-Answer": "4"})
    until(lambda: len(memory.sessions.list().items) == 3)

    def questions() -> list[list[str]]:
        sessions = memory.sessions.list(where={"user": "ada"}).items
        return sorted(sorted(q for q, _, _ in stored(memory, each.session_id)) for each in sessions)

    until(lambda: questions() == [["Hello", QUESTION], ["Something else"]])


@pytest.mark.parametrize(
    "content",
    [[{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}], "", "  ", None, 7, [None], {"a": 1}],
)
@pytest.mark.nightly
def test_a_request_without_a_text_passes_as_it_is(memory: Heedful, proxy: Proxied, content: Any) -> None:
    answer = proxy.ask("", messages=[{"role": "user", "content": content}])
    assert answer.content == proxy.model.says[0].whole
    assert len(proxy.model.sent[0].json["messages"]) == 1
    proxy.ask(QUESTION, {"X-Heedful-Session": "later", "X-Heedful-Answer": "later"})
    assert stored(memory, "later")
    assert len(memory.sessions.list().items) == 1


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, b'{"messages":7}', b'{"a":' + b"9" * 9999 + b"}"]
)
@pytest.mark.nightly
def test_a_body_that_is_no_question_passes_as_it_is(memory: Heedful, body: bytes) -> None:
    refusal = Said([b'{"error": {"message": "We could not parse the JSON body"}}'], 400)
    with proxied(memory, refusal) as proxy:
        answer = proxy.http.post("/v1/chat/completions", content=body)
        assert (answer.status_code, answer.content) == (400, refusal.whole)
        assert proxy.model.sent[0].body == body


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
@pytest.mark.nightly
def test_errors_pass_as_they_are_and_nothing_is_stored(memory: Heedful, status: int) -> None:
    headers = (("content-type", "application/json"), ("retry-after", "7"), ("x-ratelimit-remaining-tokens", "0"))
    said = Said(chat("At six.").parts, status, headers)
    with proxied(memory, said, chat("At seven.", "2")) as proxy:
        answer = proxy.ask(QUESTION, {"X-Heedful-Session": "chat-1"})
        assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (status, said.whole, "7")
        proxy.ask(QUESTION, {"X-Heedful-Session": "chat-1"})
        assert stored(memory, "chat-1") == [(QUESTION, "At seven.", "2")]


@pytest.mark.slow
def test_other_routes_pass_as_they_are(memory: Heedful) -> None:
    said = Said(
        [b"\x00\x01", b"\xff"], 206, (("content-type", "audio/mpeg"), ("set-cookie", "a=1"), ("set-cookie", "b=2"))
    )
    with proxied(memory, said) as proxy:
        answer = proxy.http.post("/v1/audio/speech?a=%2F&b=1%202", content=b"\x00raw" * 50_000)
        assert (answer.status_code, answer.content) == (206, b"\x00\x01\xff")
        assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
        for method in ("GET", "DELETE", "PATCH", "OPTIONS"):
            proxy.http.request(method, "/v1/files/a%2Fb%20c")
        proxy.http.get("/models")
        proxy.http.post("/v1/chat/completions/x", json=asking("chat/completions"))
    assert [(each.method, each.path) for each in proxy.model.sent] == [
        ("POST", "/v1/audio/speech?a=%2F&b=1%202"),
        *((method, "/v1/files/a%2Fb%20c") for method in ("GET", "DELETE", "PATCH", "OPTIONS")),
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions/x"),
    ]
    assert proxy.model.sent[0].body == b"\x00raw" * 50_000
    assert SHARED.encode() not in proxy.model.sent[-1].body


@pytest.mark.parametrize("path", ["/v1/../admin", "/v1/%2e%2E/admin", "/v1/./x", "/heedful/", "/heedful/facts"])
@pytest.mark.nightly
def test_nobody_leaves_the_path_of_the_endpoint(proxy: Proxied, path: str) -> None:
    with socket.create_connection(("127.0.0.1", proxy.http.base_url.port or 0)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert raw.makefile("rb").readline().startswith(b"HTTP/1.1 404")
    assert proxy.model.sent == []


def test_headers_of_a_connection_and_of_heedful_stay_here(memory: Heedful) -> None:
    with proxied(memory, chat("At six."), upstream_key="sk-up") as proxy:
        proxy.ask(
            QUESTION,
            {
                "Connection": "close, X-Private",
                "X-Private": "1",
                "TE": "trailers",
                "Proxy-Authorization": "Basic eA==",
                "X-Heedful-User": "ada",
                "X-Heedful-Session": "1",
                "Authorization": "Bearer from-the-client",
                "OpenAI-Beta": "kept",
            },
        )
        names = {name for name, _ in proxy.model.sent[0].headers}
        assert names.isdisjoint({"x-private", "te", "proxy-authorization", "x-heedful-user", "x-heedful-session"})
        assert proxy.model.sent[0].header("openai-beta") == ["kept"]
        assert proxy.model.sent[0].header("authorization") == ["Bearer sk-up"]
        assert proxy.model.sent[0].header("host") == [proxy.model.url.split("/")[2]]
        # An answer that is read must not be compressed; others may be.
        proxy.http.get("/v1/models", headers={"Accept-Encoding": "br"})
        assert [each.header("accept-encoding") for each in proxy.model.sent] == [["identity"], ["br"]]


@pytest.mark.slow
def test_a_question_may_keep_away_from_memory(memory: Heedful, proxy: Proxied) -> None:
    proxy.ask(QUESTION, {"X-Heedful-Skip": "title_generation"})
    proxy.ask(QUESTION, {"X-Heedful-Session": "temporary:OfQNb12ZhrfgbJI7AAAF"})
    proxy.ask(QUESTION, {"X-Heedful-Session": "local:OfQNb12ZhrfgbJI7AAAF"})
    proxy.ask(QUESTION, {"X-Heedful-Skip": "", "X-Heedful-Session": "1"})
    assert [SHARED in each.prompt for each in proxy.model.sent] == [False, False, False, True]
    assert len(stored(memory, "1")) == len(memory.sessions.list().items) == 1


def test_structured_output_is_stored_as_it_came(memory: Heedful) -> None:
    with proxied(memory, chat('{"opens": "06:00",\n "days": []}')) as proxy:
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"}, response_format={"type": "json_object"})
        assert stored(memory, "1") == [(QUESTION, '{"opens": "06:00",\n "days": []}', "chatcmpl-1")]


@pytest.mark.slow
def test_an_answer_that_was_cut_off_is_not_stored(memory: Heedful) -> None:
    whole = chat_stream("At six.")
    broken = Said(whole.parts[:8], headers=whole.headers, breaks=True)
    failed = chat_stream("At six or", finish=None)
    announced = chat("At seven.")
    announced = Said(announced.parts, headers=(*announced.headers, ("content-length", str(len(announced.whole)))))
    compressed = Said([gzip.compress(chat("At six.").whole)], headers=(("content-encoding", "gzip"),))
    with proxied(memory, broken, failed, compressed, announced) as proxy:
        with pytest.raises(httpx.RemoteProtocolError):
            proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        assert proxy.ask(QUESTION, {"X-Heedful-Session": "1"}).json()["choices"]
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        assert [answer for _, answer, _ in stored(memory, "1")] == ["At seven."]


def rate(proxy: Proxied, answer_id: str, headers: dict[str, str] | None = None, **rating: Any) -> httpx.Response:
    return proxy.http.put(f"/heedful/ratings/{answer_id}", json=rating, headers=headers)


@pytest.mark.slow
def test_an_answer_is_rated_by_the_id_of_its_response(memory: Heedful, proxy: Proxied) -> None:
    proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
    stored(memory, "1")
    first = rate(proxy, "chatcmpl-1", rating="up", comment="Right.", author="ada")
    assert (first.status_code, first.json()) == (200, {"stored": True})
    # The header names the author, if the body doesn't.
    rate(proxy, "chatcmpl-1", {"X-Heedful-User": "bob"}, rating=1, scale=[1, 5]).raise_for_status()
    assert memory.sessions.entries("1").items[0].feedback_score == 1
    rows = memory.insight.rows("feedback").items
    assert [(row["author"], row["comment"]) for row in rows] == [("ada", "Right."), ("bob", None)]


@pytest.mark.slow
def test_a_rating_may_come_before_its_answer(memory: Heedful) -> None:
    with proxied(memory, chat("At six.", "chatcmpl/ü")) as proxy:
        early = rate(proxy, "chatcmpl%2F%C3%BC", rating="down", author="ada")
        assert (early.status_code, early.json()) == (202, {"stored": False})
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        until(lambda: stored(memory, "1") and memory.sessions.entries("1").items[0].feedback_score == 1)


def test_an_id_may_be_longer_than_a_name(memory: Heedful) -> None:
    """Those of LiteLLM's responses have 400 characters."""
    answer_id = "resp_" + "x" * 400
    with proxied(memory, response("At six.", answer_id)) as proxy:
        proxy.http.post("/v1/responses", json=asking("responses"), headers={"X-Heedful-Session": "1"})
        stored(memory, "1")
        assert rate(proxy, answer_id, rating="up").json() == {"stored": True}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"{", 400, None),
        (b"[]", 400, None),
        (b'{"rating": "up", "stars": 5}', 422, "field"),
        (b'{"rating": "quite"}', 422, "rating"),
        (b"{}", 422, None),
        (b'{"rating": "up", "author": 7}', 422, "author"),
        (b'{"comment": "' + b"x" * 140_000 + b'"}', 413, "body"),
    ],
)
@pytest.mark.nightly
def test_a_rating_that_says_nothing_is_refused(proxy: Proxied, body: bytes, status: int, field: str | None) -> None:
    answer = proxy.http.put("/heedful/ratings/chatcmpl-1", content=body)
    assert answer.status_code == status
    assert field is None or answer.json()["field"] == field
    assert answer.json()["error"]["message"].startswith(answer.json()["detail"])
    assert proxy.model.sent == []


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process has the file for as long as it likes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def wait_for_agents() -> None:
    for thread in threading.enumerate():
        if thread.name == "heedful-agent":
            thread.join(60)


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.slow
def test_a_locked_store_costs_the_deadline_at_most(
    memory: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 0.2)
    with proxied(memory, STREAMS[path]) as proxy:
        with locked(tmp_path / "store.db"):
            started = time.monotonic()
            answer = proxy.http.post(f"/v1/{path}", json=asking(path, stream=True), headers={"X-Heedful-User": "ada"})
            assert answer.content == STREAMS[path].whole
            # SQLite itself would wait for thirty.
            assert time.monotonic() - started < 10
        wait_for_agents()


@pytest.mark.nightly
def test_a_silent_server_costs_the_deadline_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 0.2)
    with (
        silent_server() as server,
        heedful.connect(server.url, api_key="hf_x") as remote,
        proxied(remote, chat("At six.")) as proxy,
    ):
        started = time.monotonic()
        for _ in range(5):
            assert proxy.ask(QUESTION).content == proxy.model.says[0].whole
            assert proxy.model.sent[-1].prompt == ""
        assert time.monotonic() - started < 10


@pytest.mark.nightly
def test_fifty_streams_at_once_pass_while_heedful_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DEADLINE", 0.2)
    said = STREAMS["chat/completions"]
    with (
        silent_server() as server,
        heedful.connect(server.url, api_key="hf_x") as remote,
        proxied(remote, said) as proxy,
    ):
        started = time.monotonic()
        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(lambda number: proxy.ask(f"Number {number}?", stream=True), range(50)))
        assert {answer.content for answer in answers} == {said.whole}
        # A client of the server itself would wait for two hundred.
        assert time.monotonic() - started < 60


@pytest.mark.slow
def test_a_rating_says_that_the_store_is_locked(
    memory: Heedful, proxy: Proxied, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_app, "RATING_SECONDS", 0.2)
    with locked(tmp_path / "store.db"):
        assert rate(proxy, "chatcmpl-1", rating="up").status_code == 503


@pytest.mark.slow
def test_who_leaves_while_the_model_thinks_leaves_it_too(memory: Heedful) -> None:
    with proxied(memory, Said([], hangs=True)) as proxy:
        with pytest.raises(httpx.ReadTimeout):
            proxy.http.post("/v1/chat/completions", json=asking("chat/completions"), timeout=0.5)
        assert proxy.model.left.wait(60)


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.slow
def test_who_leaves_in_the_middle_of_a_stream_leaves_the_model_too(memory: Heedful, path: str) -> None:
    whole = STREAMS[path]
    with proxied(memory, Said(whole.parts[:3], headers=whole.headers, hangs=True), whole) as proxy:
        headers = {"X-Heedful-Session": "1"}
        with proxy.http.stream("POST", f"/v1/{path}", json=asking(path), headers=headers) as answer:
            next(answer.iter_raw())
        assert proxy.model.left.wait(60)
        proxy.http.post(f"/v1/{path}", json=asking(path), headers=headers)
        assert len(stored(memory, "1")) == 1


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.slow
def test_who_leaves_with_the_end_of_an_answer_has_it_stored(memory: Heedful, path: str) -> None:
    """Clients leave when they have read `[DONE]`, whatever else is open."""
    said = STREAMS[path]
    with proxied(memory, Said(said.parts, headers=said.headers, hangs=True)) as proxy:
        headers = {"X-Heedful-Session": "1"}
        with proxy.http.stream("POST", f"/v1/{path}", json=asking(path), headers=headers) as answer:
            received = b""
            for part in answer.iter_raw():
                received += part
                if received == said.whole:
                    break
        assert proxy.model.left.wait(60)
        assert len(stored(memory, "1")) == 1


@pytest.mark.nightly
def test_an_endpoint_that_is_silent_or_away_is_told_apart(memory: Heedful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_app, "UPSTREAM_SECONDS", 0.2)
    with proxied(memory, Said([], hangs=True)) as proxy:
        answer = proxy.ask(QUESTION)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")
        assert proxy.model.left.wait(60)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    with proxied(memory, chat("At six."), upstream=nowhere) as proxy:
        answer = proxy.ask(QUESTION)
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.slow
def test_a_question_that_is_too_large_is_refused(memory: Heedful, proxy: Proxied, chunked: bool) -> None:
    body = json.dumps(asking("chat/completions", padding="x" * 200_000)).encode()
    answer = proxy.http.post("/v1/chat/completions", content=iter([body]) if chunked else body)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert proxy.model.sent == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8002"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.nightly
def test_a_page_of_another_site_reaches_nothing_without_a_key(proxy: Proxied, headers: dict[str, str]) -> None:
    answer = proxy.ask(QUESTION, headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")
    assert rate(proxy, "1", headers, rating="up").status_code == 403
    assert proxy.model.sent == []
    assert proxy.ask(QUESTION, {"Host": "localhost:8002", "Origin": "http://localhost:3000"}).status_code == 200


SECRET = "a-key-for-the-proxy-of-the-tests"


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[tuple[Callable[[str], Caller], dict[str, str]]]:
    """How callers are found, and keys by the scopes they have."""
    with (
        closing(Store(tmp_path / "store.db", embedding=WordEmbedder())) as store,
        closing(Callers(store, SECRET)) as callers,
    ):
        with closing(store.open("default")) as here, closing(store.open("elsewhere")) as elsewhere:
            made = {scope: here.keys.create(scope, scopes=[scope]).api_key for scope in ("read", "write", "feedback")}
            made["elsewhere"] = elsewhere.keys.create("other", scopes=["write"]).api_key
        yield callers.find, made


@pytest.mark.slow
def test_a_key_is_needed_and_does_not_reach_the_endpoint(
    memory: Heedful, keys: tuple[Callable[[str], Caller], dict[str, str]]
) -> None:
    find, of = keys

    def bearer(key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    with proxied(memory, chat("At six."), find_caller=find, upstream_key="sk-up") as proxy:
        statuses = {name: proxy.ask(QUESTION, bearer(key)).status_code for name, key in of.items()}
        assert statuses == {"read": 403, "write": 200, "feedback": 403, "elsewhere": 404}
        assert proxy.ask(QUESTION, bearer(SECRET)).status_code == 200
        assert proxy.ask(QUESTION, {"Host": "proxy.example", **bearer(SECRET)}).status_code == 200
        for wrong in (
            {},
            bearer("wrong"),
            bearer("hf_" + "0" * 32 + "_x"),
            bearer("hft_x"),
            {"Authorization": "Basic eA=="},
        ):
            answer = proxy.ask(QUESTION, wrong)
            assert (answer.status_code, answer.json()["error"]["type"]) == (401, "heedful_error")
        assert rate(proxy, "chatcmpl-1", bearer(of["feedback"]), rating="up").status_code in (200, 202)
        assert rate(proxy, "chatcmpl-1", bearer(of["read"]), rating="up").status_code == 403
        assert rate(proxy, "chatcmpl-1", rating="up").status_code == 401
        assert proxy.http.get("/v1/models", headers=bearer(of["read"])).status_code == 200
        assert [each.header("authorization") for each in proxy.model.sent] == [["Bearer sk-up"]] * 4
    with proxied(memory, chat("At six."), find_caller=find) as proxy:
        # Its own header leaves the other one to the endpoint's key.
        proxy.ask(QUESTION, {"X-Heedful-Key": of["write"], **bearer("sk-client")}).raise_for_status()
        proxy.ask(QUESTION, {**bearer(SECRET), "X-Copied": f"a {SECRET}"}).raise_for_status()
        assert [each.header("authorization") for each in proxy.model.sent] == [["Bearer sk-client"], []]
    with proxied(memory, chat("At six.")) as proxy:
        # Not even where none is needed.
        proxy.ask(QUESTION, {**bearer(of["write"]), "Api-Key": of["read"]}).raise_for_status()
        proxy.ask(QUESTION, bearer("hf_aHuggingFaceToken")).raise_for_status()
        assert [each.header("authorization") for each in proxy.model.sent] == [[], ["Bearer hf_aHuggingFaceToken"]]
        assert proxy.model.sent[0].header("api-key") == []
    assert SECRET not in str(proxy.model.sent)
