"""Bodies that are small to send and dear to read: of a visitor, of feedback, of foreign routes and of agents."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import httpx
import pytest
from server import Running, running
from starlette.formparsers import MultiPartParser

from heedful import Signal
from heedful.errors import Invalid
from heedful.interfaces.http import app, calls, foreign_routes, mcp
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.state import MAX_PARSED_AT_ONCE
from heedful.ledger.used_facts import MAX_ANSWER
from heedful.model import limits

BASE = "/v1/projects/default"
LIMIT = limits.MAX_FEEDBACK_BODY


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("bodies") / "store.db", worker=False) as found, found.connect() as h:
        h.remember("Ada is the CEO.")
        h.sessions.create("s")
        yield found


@pytest.fixture(scope="module")
def token(server: Running) -> str:
    with server.connect() as h:
        return h.keys.create_token({"session_id": "s"}, subject="visitor").token


@pytest.fixture(scope="module")
def feedback_key(server: Running) -> str:
    with server.connect() as h:
        return h.keys.create("app", scopes=["feedback"]).api_key


def post(server: Running, path: str, content: bytes, key: str | None = None, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {key or server.key}", "Content-Type": "application/json"} | headers
    return httpx.post(server.url + path, content=content, headers=given, timeout=60)


def members(count: int) -> bytes:
    return b"{" + b",".join(b'"%x":0' % number for number in range(count)) + b"}"


def sent_to(server: Running, path: str, key: str, header: str, body: bytes = b"") -> bytes:
    """The answer to a request whose body never ends."""
    url = httpx.URL(server.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\n{header}"
    )
    with closing(socket.create_connection((url.host, url.port or 80), timeout=10)) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        return connection.recv(65536)


class TestFeedback:
    PATHS = (f"{BASE}/sessions/s/feedback", "/api/sessions/s/feedback")

    @pytest.mark.parametrize("path", PATHS)
    def test_a_body_that_is_too_large_is_refused_before_it_is_sent(
        self, server: Running, feedback_key: str, path: str
    ) -> None:
        assert b" 413 " in sent_to(server, path, feedback_key, f"Content-Length: {LIMIT + 1}")

    @pytest.mark.parametrize("path", PATHS)
    def test_a_body_without_a_length_is_read_as_far_as_its_limit(
        self, server: Running, feedback_key: str, path: str
    ) -> None:
        chunk = b"%x\r\n%s\r\n" % (LIMIT + 1, b" " * (LIMIT + 1))
        assert b" 413 " in sent_to(server, path, feedback_key, "Transfer-Encoding: chunked", chunk)

    def test_a_visitor_has_the_same_limit_on_every_route(self, server: Running, token: str) -> None:
        declared = f"Content-Length: {LIMIT + 1}"
        assert b" 413 " in sent_to(server, self.PATHS[0], token, declared)
        # Batches, which are none of a visitor's, too.
        assert b" 413 " in sent_to(server, f"{BASE}/signals", token, declared)
        assert b" 413 " in sent_to(server, f"{BASE}/confirm-suggestion", token, declared)
        for path in ("/mcp", "/api/v1/remember", self.PATHS[1], "/v1/default/banks/b/signal"):
            assert b" 403 " in sent_to(server, path, token, declared)

    def test_the_refusal_says_what_to_do(self, server: Running, feedback_key: str) -> None:
        answer = post(server, self.PATHS[0], b" " * (LIMIT + 1), feedback_key)
        told = answer.json()
        assert (answer.status_code, told["code"], told["field"]) == (413, "body_too_large", "body")
        assert told["detail"] == f"the body has {LIMIT + 1} bytes, the limit for feedback is {LIMIT}"
        assert told["value"] == LIMIT + 1
        assert told["remedy"] == "Shorten the comment or the metadata sent with it"

    def test_the_longest_opinion_is_taken(self, server: Running, token: str) -> None:
        for key, most in ((token, limits.MAX_VISITOR_DETAILS // 2), (None, limits.MAX_METADATA)):
            extra = "x" * (most - len('{"page":""}'))
            opinion = {"rating": "up", "comment": "🙂" * limits.MAX_COMMENT, "page": extra}
            body = json.dumps({"feedback": opinion}, ensure_ascii=False).encode()
            assert post(server, self.PATHS[0], body, key).status_code == 200

    def test_the_longest_comment_is_taken_even_if_it_is_escaped(self, server: Running, token: str) -> None:
        body = json.dumps({"feedback": {"comment": "🙂" * limits.MAX_COMMENT}}).encode()
        assert len(body) > 100_000
        assert post(server, self.PATHS[0], body, token).status_code == 200

    @pytest.mark.slow
    def test_batches_have_the_limit_of_the_server(self, server: Running, feedback_key: str) -> None:
        signal = {"fact_id": "no-such-fact", "signal_type": "used", "query": "Who leads the company?"}
        body = json.dumps({"signals": [signal] * limits.MAX_SIGNALS}).encode()
        assert len(body) > LIMIT
        answer = post(server, f"{BASE}/signals", body, feedback_key)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        deleted = json.dumps({"feedback_ids": [f"feedback-{number:030}" for number in range(limits.MAX_LIST)]}).encode()
        assert post(server, f"{BASE}/feedback/bulk-delete", deleted, feedback_key).status_code == 200
        targets = [{"execution_id": f"e{n}", "question": "q" * 9_000} for n in range(limits.MAX_TARGETS)]
        assert post(server, f"{BASE}/tokens", json.dumps({"targets": targets}).encode()).status_code == 200

    @pytest.mark.parametrize(
        ("path", "name", "item", "most"),
        [
            ("tokens", "targets", {"session_id": "s"}, limits.MAX_TARGETS),
            ("signals", "signals", {"fact_id": "f", "signal_type": "used", "query": "q"}, limits.MAX_SIGNALS),
            ("sessions/s/messages/batch", "messages", {"role": "user", "content": "Hi"}, limits.MAX_MESSAGES),
        ],
    )
    def test_items_are_counted_before_they_are_read(
        self, server: Running, path: str, name: str, item: dict[str, str], most: int
    ) -> None:
        items = [*[item] * (most + 1), {"unknown": "field"}]
        answer = post(server, f"{BASE}/{path}", json.dumps({name: items}).encode())
        told = answer.json()
        assert (answer.status_code, told["field"], told["value"]) == (422, name, most + 2)
        assert told["detail"] == f"{name} has {most + 2} items, the limit is {most}"

    def test_what_is_compressed_is_not_unpacked(self, server: Running, token: str) -> None:
        packed = gzip.compress(b'{"feedback": {"comment": "' + b"x" * 10_000_000 + b'"}}')
        assert len(packed) < LIMIT
        answer = post(server, self.PATHS[0], packed, token, **{"Content-Encoding": "gzip"})
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many details of errors were built for each refusal."""
    counts: list[int] = []
    usual = Invalid.from_validation.__func__  # type: ignore[attr-defined]

    def from_validation(cls: type[Invalid], error: Any) -> Invalid:
        counts.append(len(error) if isinstance(error, Sequence) else error.error_count())
        refusal: Invalid = usual(cls, error)
        return refusal

    monkeypatch.setattr(Invalid, "from_validation", classmethod(from_validation))
    return counts


class TestConnections:
    def test_what_is_left_of_a_refused_body_is_not_taken_for_a_request(self, server: Running, token: str) -> None:
        url = httpx.URL(server.url)
        lines = (
            "POST /v1/projects/default/sessions/s/feedback HTTP/1.1",
            f"Host: {url.host}",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
            "Content-Length: 1000000",
        )
        head = "\r\n".join((*lines, "", "")).encode()
        following = f"GET /healthz HTTP/1.1\r\nHost: {url.host}\r\n\r\n".encode()
        with closing(socket.create_connection((url.host, url.port or 80), timeout=60)) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(head + b"x" * 1_000_000 + following)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while read := connection.recv(65_536):
                    answer += read
        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.partition(b"\r\n\r\n")[0].lower()

    def test_the_connection_is_kept_where_the_whole_body_was_read(self, server: Running) -> None:
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}) as client:
            refused = client.post(f"{BASE}/facts", content=members(limits.MAX_MEMBERS + 1))
            assert (refused.status_code, refused.headers.get("connection")) == (413, None)


class TestErrors:
    """Only the first error is told, and few are built."""

    SIGNAL = b'{"fact_id":"a","signal_type":"used","query":"q"}'

    @pytest.mark.parametrize(
        ("path", "body", "field"),
        [
            (f"{BASE}/sessions/s/feedback", members(10_000), "0"),
            (f"{BASE}/signals", b'{"signals":[' + SIGNAL + b"," + members(15_000) + b"]}", "signals[1].0"),
            (f"{BASE}/signals", b'{"signals":[' + b",".join([SIGNAL] * 200 + [b"0"] * 90_000) + b"]}", "signals[200]"),
            (f"{BASE}/recalls/r/signals", b'{"used":[' + b"0," * 10_000 + b"0]}", "used[0]"),
            (f"{BASE}/facts", b'{"texts":[' + b"0," * 150_000 + b"0]}", "texts[0]"),
            (f"{BASE}/improve", b'{"session_ids":[' + b"0," * 150_000 + b"0]}", "session_ids[0]"),
            (f"{BASE}/tokens", b'{"targets":[' + members(15_000) + b"]}", "targets[0].0"),
            (
                f"{BASE}/sessions/s/entries",
                b'{"question":"q","answer":"a","used":' + members(9_999).replace(b"0", b'"x"') + b"}",
                None,
            ),
        ],
        ids=lambda value: str(value)[:30],
    )
    def test_few_are_built_of_many(
        self, server: Running, built: list[int], path: str, body: bytes, field: str | None
    ) -> None:
        answer = post(server, path, body)
        told = answer.json()
        assert answer.status_code in (400, 422), told
        assert field is None or told["field"] == field
        assert sum(built) <= 1_000

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/v1/default/banks/b/memories", b'{"items":[' + b"0," * 150_000 + b"0]}"),
            ("/v1/default/banks/b/signal", b'{"signals":[' + b"{}," * 90_000 + b"{}]}"),
            ("/api/v1/remember", b'{"datasetName":"d","data":[' + b"0," * 150_000 + b"0]}"),
            ("/api/v1/recall", b'{"query":"q","datasets":[' + b"0," * 150_000 + b"0]}"),
        ],
    )
    def test_few_are_built_on_foreign_routes(self, server: Running, built: list[int], path: str, body: bytes) -> None:
        assert 400 <= post(server, path, body).status_code < 500
        assert sum(built) <= 1_000

    def test_few_are_built_in_python(self, built: list[int]) -> None:
        unknown: dict[str, Any] = {f"x{number}": 0 for number in range(10_000)}
        with pytest.raises(Invalid, match="x0 is not a field"):
            Signal(fact_id="a", signal_type="used", query="q", **unknown)
        assert sum(built) <= 1_000


class TestValues:
    """What is refused by count, before anything is made of it."""

    @pytest.mark.parametrize(
        ("body", "limit"),
        [
            (members(limits.MAX_MEMBERS + 1), limits.MAX_MEMBERS),
            (b'{"metadata":[[{"x":' + members(limits.MAX_MEMBERS + 1) + b"}]]}", limits.MAX_MEMBERS),
            (b'{"metadata":{"x":[' + b"[]," * 1_000_000 + b"[]]}}", limits.MAX_VALUES),
            (b'{"metadata":{"x":[' + b"[0,0]," * 400_000 + b"0]}}", limits.MAX_VALUES),
            (b'["' + b'","' * limits.MAX_VALUES + b'"]', limits.MAX_VALUES),
            # What looks like the end of a text is in it.
            (b'{"x":"\\\\\\"","y":' + members(limits.MAX_MEMBERS + 1) + b"}", limits.MAX_MEMBERS),
            (b"]}" * 10 + members(limits.MAX_MEMBERS + 1), limits.MAX_MEMBERS),
        ],
        ids=["members", "deep", "lists", "pairs", "texts", "quotes", "unbalanced"],
    )
    @pytest.mark.parametrize("path", [f"{BASE}/sessions", "/v1/default/banks/b/memories", "/mcp"])
    @pytest.mark.slow
    def test_too_many_are_refused(self, server: Running, path: str, body: bytes, limit: int) -> None:
        answer = post(server, path, body, Accept="application/json, text/event-stream")
        assert answer.status_code == 413, answer.text[:300]
        assert f"{limit}" in answer.text or path == "/mcp"

    @pytest.mark.parametrize(
        "path", [f"{BASE}/recall", f"{BASE}/recalls/r/detect", "/api/v1/recall", "/v1/default/banks/b/memories/recall"]
    )
    def test_calls_that_read_have_fewer(self, server: Running, path: str) -> None:
        body = b'{"query":"q","answer":[' + b"[]," * (limits.MAX_FEW_VALUES // 2) + b"[]]}"
        answer = post(server, path, body)
        assert (answer.status_code, f"{limits.MAX_FEW_VALUES} values" in answer.text) == (413, True)
        declared = f"Content-Length: {limits.MAX_READ_BODY + 1}"
        assert b" 413 " in sent_to(server, path, server.key, declared)

    def test_an_answer_at_its_limit_is_read_even_if_it_is_escaped(self, server: Running) -> None:
        with server.connect() as h:
            recall_id = h.recall("Who is the CEO?").recall_id
        body = json.dumps({"answer": "🙂" * MAX_ANSWER}).encode()
        assert len(body) > 12 * MAX_ANSWER
        assert post(server, f"{BASE}/recalls/{recall_id}/detect", body).status_code == 200

    def test_a_message_of_an_agent_has_the_size_of_a_fact(self, server: Running) -> None:
        assert b" 413 " in sent_to(server, "/mcp", server.key, f"Content-Length: {mcp.MAX_MESSAGE + 1}")
        with server.connect() as h:
            reader = h.keys.create("reader", scopes=["read"]).api_key
        assert b" 413 " in sent_to(server, "/mcp", reader, f"Content-Length: {limits.MAX_READ_BODY + 1}")
        many = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"x":['
        many += b"[]," * limits.MAX_FEW_VALUES + b"0]}}}"
        accepted = {"Accept": "application/json, text/event-stream"}
        assert post(server, "/mcp", many, reader, **accepted).status_code == 413
        assert post(server, "/mcp", many, **accepted).status_code != 413

    @pytest.mark.parametrize("text", [b"x", b'\\"', b"\\", b'"'])
    def test_a_text_that_does_not_end_is_passed_over_once(self, server: Running, text: bytes) -> None:
        answer = post(server, f"{BASE}/facts", b"[" + b"0:," * (limits.MAX_MEMBERS + 1) + b'"' + text * 2_000_000)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")

    @pytest.mark.slow
    def test_what_is_in_texts_does_not_count(self, server: Running) -> None:
        body = json.dumps({"texts": ['He said: "no", [1], {2}, \\ ' + "," * 1_200_000 + '"', "\\"]}).encode()
        assert post(server, f"{BASE}/facts", body).status_code == 200

    def test_an_object_with_as_many_members_as_metadata_may_have_is_taken(self, server: Running) -> None:
        metadata = {f"{number:x}": number % 10 for number in range(6_500)}
        body = json.dumps({"session_id": "many", "metadata": metadata}, separators=(",", ":")).encode()
        assert post(server, f"{BASE}/sessions", body).status_code == 200


def test_long_bodies_are_not_looked_through_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)
    usual, interval, collected = gc.get_threshold(), sys.getswitchinterval(), []
    app.set_up(Config())
    gc.callbacks.append(note := lambda phase, info: collected.append(info["generation"]) if phase == "start" else None)
    try:
        calls.json_of(b"[" + b"[]," * 90_000 + b"[]]", limits.MAX_VALUES)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*usual)
        sys.setswitchinterval(interval)
    assert len(collected) <= 15


class TestThreads:
    """Where bodies are read."""

    @pytest.fixture
    def threads(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        names: list[str] = []

        def noting(usual: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                names.append(threading.current_thread().name)
                return usual(*args, **kwargs)

            return call

        for module, name in ((foreign_routes, "json_of"), (mcp, "json_of"), (calls, "read_arguments")):
            monkeypatch.setattr(module, name, noting(getattr(module, name)))
        monkeypatch.setattr(MultiPartParser, "parse", noting(MultiPartParser.parse))
        return names

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (f"{BASE}/recall", b'{"query":"%s"}' % (b"x" * MAX_PARSED_AT_ONCE)),
            (f"{BASE}/sessions/s/feedback", b'{"feedback":{"page":"%s"}}' % (b"x" * MAX_PARSED_AT_ONCE)),
            ("/api/v1/remember", b'{"datasetName":"d","data":["%s"]}' % (b"x" * MAX_PARSED_AT_ONCE)),
            ("/mcp", b'{"jsonrpc":"2.0","id":1,"method":"%s"}' % (b"x" * MAX_PARSED_AT_ONCE)),
        ],
        ids=["recall", "feedback", "cognee", "mcp"],
    )
    def test_long_bodies_are_not_read_on_the_event_loop(
        self, server: Running, threads: list[str], path: str, body: bytes
    ) -> None:
        post(server, path, body, Accept="application/json, text/event-stream")
        assert threads
        assert all(name.startswith("heedful-") for name in threads)

    def test_forms_are_not_read_on_the_event_loop(self, server: Running, threads: list[str]) -> None:
        answer = httpx.post(
            f"{server.url}/api/v1/remember",
            data={"datasetName": "d"},
            files={"data": ("a.txt", b"Bob is the CFO.")},
            headers={"Authorization": f"Bearer {server.key}"},
        )
        assert answer.status_code == 200, answer.text
        assert threads
        assert all(name.startswith("heedful-") for name in threads)
