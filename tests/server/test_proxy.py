"""`heedful proxy`: memories and ratings for whatever speaks OpenAI's protocol; everything else passes as it is."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from model_server import Said, chat, chat_stream, response, response_stream
from patience import until
from proxying import Proxied, proxied

import heedful
from heedful import Heedful
from heedful.integrations import turns
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


def test_a_question_gets_memories_and_its_answer_is_stored(memory: Heedful, proxy: Proxied) -> None:
    answer = proxy.ask(QUESTION, {"X-Heedful-Session": "chat-1"}, temperature=0.70, seed=2**70)
    assert answer.content == proxy.model.says[0].whole
    [sent] = proxy.model.sent
    assert SHARED in sent.prompt
    assert (sent.json["temperature"], sent.json["seed"]) == (0.7, 2**70)
    assert stored(memory, "chat-1") == [(QUESTION, "At six. [1]", "chatcmpl-1")]


def test_memories_change_nothing_else_of_a_request(proxy: Proxied) -> None:
    """Numbers, spaces, order, fields that nobody knows and keys that are there twice stay as they were written."""
    before = '{ "n":1.50, "x" : 1e999, "messages" : [{"role":"developer","content":"Be brief."},'
    after = ' {"role":"user","content":"When does the gym open?"}],\r\n "x": {"\\ud83d": [1,{}]}, "n":0.10 }'
    proxy.http.post("/v1/chat/completions", content=before + after).raise_for_status()
    [sent] = proxy.model.sent
    text = sent.body.decode()
    assert text.startswith(before)
    assert text.endswith(after.lstrip())
    assert [each["role"] for each in sent.json["messages"]] == ["developer", "developer", "user"]
    assert sent.json["messages"][1]["content"].count(SHARED) == 1


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
        until(lambda user=user: len(stored(memory, f"{user}/1")) == 3)  # type: ignore[misc]
        assert {each[2] for each in stored(memory, f"{user}/1")} == {f"{user}{number}" for number in (1, 2, 3)}
        assert memory.sessions.get_metadata(f"{user}/1") == {"user": user}


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
def test_a_body_that_is_no_question_passes_as_it_is(memory: Heedful, body: bytes) -> None:
    refusal = Said([b'{"error": {"message": "We could not parse the JSON body"}}'], 400)
    with proxied(memory, refusal) as proxy:
        answer = proxy.http.post("/v1/chat/completions", content=body)
        assert (answer.status_code, answer.content) == (400, refusal.whole)
        assert proxy.model.sent[0].body == body


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_errors_pass_as_they_are_and_nothing_is_stored(memory: Heedful, status: int) -> None:
    headers = (("content-type", "application/json"), ("retry-after", "7"), ("x-ratelimit-remaining-tokens", "0"))
    said = Said(chat("At six.").parts, status, headers)
    with proxied(memory, said, chat("At seven.", "2")) as proxy:
        answer = proxy.ask(QUESTION, {"X-Heedful-Session": "chat-1"})
        assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (status, said.whole, "7")
        proxy.ask(QUESTION, {"X-Heedful-Session": "chat-1"})
        assert stored(memory, "chat-1") == [(QUESTION, "At seven.", "2")]


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


def test_a_question_may_keep_away_from_memory(memory: Heedful, proxy: Proxied) -> None:
    proxy.ask(QUESTION, {"X-Heedful-Skip": "title_generation"})
    proxy.ask(QUESTION, {"X-Heedful-Skip": "", "X-Heedful-Session": "1"})
    assert [SHARED in each.prompt for each in proxy.model.sent] == [False, True]
    assert len(stored(memory, "1")) == len(memory.sessions.list().items) == 1


def test_structured_output_is_stored_as_it_came(memory: Heedful) -> None:
    with proxied(memory, chat('{"opens": "06:00",\n "days": []}')) as proxy:
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"}, response_format={"type": "json_object"})
        assert stored(memory, "1") == [(QUESTION, '{"opens": "06:00",\n "days": []}', "chatcmpl-1")]


def test_an_answer_that_was_cut_off_is_not_stored(memory: Heedful) -> None:
    whole = chat_stream("At six.")
    broken = Said(whole.parts[:8], headers=whole.headers, breaks=True)
    failed = chat_stream("At six or", finish=None)
    compressed = Said([gzip.compress(chat("At six.").whole)], headers=(("content-encoding", "gzip"),))
    with proxied(memory, broken, failed, compressed, chat("At seven.")) as proxy:
        with pytest.raises(httpx.RemoteProtocolError):
            proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        assert proxy.ask(QUESTION, {"X-Heedful-Session": "1"}).json()["choices"]
        proxy.ask(QUESTION, {"X-Heedful-Session": "1"})
        assert [answer for _, answer, _ in stored(memory, "1")] == ["At seven."]
