"""An OpenAI-compatible endpoint: a real server on this machine, good days and bad days."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from heedful import Unavailable
from heedful.providers.configured import embedder_from
from heedful.providers.endpoints import EndpointEmbedder

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, float(text.count("a"))]


def good(body: dict[str, Any]) -> tuple[int, bytes]:
    rows = [{"index": place, "embedding": vector(text)} for place, text in enumerate(body["input"])]
    return 200, json.dumps({"data": rows[::-1]}).encode()


def status(code: int) -> Answer:
    return lambda body: (code, b"not now")


def raw(content: bytes) -> Answer:
    return lambda body: (200, content)


class Server:
    """Answers as the script says, then well; keeps what it was sent."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.bodies.append(body)
                outer.headers.append(dict(self.headers))
                outer.paths.append(self.path)
                answer = outer.script.pop(0) if outer.script else good
                code, content = answer(body)
                if code == 0:
                    self.close_connection = True
                    return
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def hang(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.released.wait(10)
        return 0, b""

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def make(server: Server, pauses: list[float]) -> Iterator[Callable[..., EndpointEmbedder]]:
    made: list[EndpointEmbedder] = []

    def making(**options: Any) -> EndpointEmbedder:
        made.append(EndpointEmbedder(server.url, "words", sleep=pauses.append, **options))
        return made[-1]

    yield making
    for embedder in made:
        embedder._client.close()


def test_vectors_come_in_the_order_of_the_texts_and_have_length_one(make: Callable[..., EndpointEmbedder]) -> None:
    found = make().embed(["a", "bbbb", "aaa"])
    expected = np.array([vector("a"), vector("bbbb"), vector("aaa")], np.float32)
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)


def test_many_texts_are_sent_in_batches(make: Callable[..., EndpointEmbedder], server: Server) -> None:
    texts = ["a" * size for size in range(1, 11)]
    found = make(batch=4).embed(texts)
    assert [len(body["input"]) for body in server.bodies] == [4, 4, 2]
    assert found.shape == (10, 3)
    assert [text for body in server.bodies for text in body["input"]] == texts


def test_the_request_is_what_such_servers_expect(make: Callable[..., EndpointEmbedder], server: Server) -> None:
    make(api_key="secret").embed(["a"])
    assert server.paths == ["/v1/embeddings"]
    assert server.bodies == [{"model": "words", "input": ["a"], "encoding_format": "float"}]
    assert server.headers[0]["Authorization"] == "Bearer secret"


def test_without_a_key_none_is_sent(make: Callable[..., EndpointEmbedder], server: Server) -> None:
    make().embed(["a"])
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("code", [429, 500, 503, 0])
def test_a_busy_server_is_asked_again(
    make: Callable[..., EndpointEmbedder], server: Server, pauses: list[float], code: int
) -> None:
    server.script = [status(code), status(code)]
    assert make().embed(["a"]).shape == (1, 3)
    assert len(server.bodies) == 3
    assert len(pauses) == 2
    assert all(0 < pause <= 8 for pause in pauses)


def test_a_server_that_stays_busy_is_unavailable(
    make: Callable[..., EndpointEmbedder], server: Server, pauses: list[float]
) -> None:
    server.script = [status(503)] * 10
    with pytest.raises(Unavailable, match=r"HTTP 503: not now \(tried 3 times\)") as caught:
        make(attempts=3).embed(["a"])
    assert caught.value.code == "model_unreachable"
    assert caught.value.remedy
    assert (len(server.bodies), len(pauses)) == (3, 2)


@pytest.mark.parametrize("code", [400, 401, 404])
def test_a_refusal_is_not_asked_again(make: Callable[..., EndpointEmbedder], server: Server, code: int) -> None:
    server.script = [status(code)]
    with pytest.raises(Unavailable, match=f"HTTP {code}"):
        make().embed(["a"])
    assert len(server.bodies) == 1


def test_a_server_that_does_not_answer_in_time_is_unavailable(
    make: Callable[..., EndpointEmbedder], server: Server
) -> None:
    server.script = [server.hang] * 2
    with pytest.raises(Unavailable, match="Timeout"):
        make(timeout=0.05, attempts=2).embed(["a"])


def test_a_server_that_is_not_there_is_unavailable(pauses: list[float]) -> None:
    stopped = Server()
    stopped.stop()
    embedder = EndpointEmbedder(stopped.url, "words", attempts=2, sleep=pauses.append)
    with pytest.raises(Unavailable, match="ConnectError") as caught:
        embedder.embed(["a"])
    assert "HEEDFUL_EMBEDDING" in str(caught.value)
    assert len(pauses) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"<html>hello</html>",
        b"[]",
        b"{}",
        b"null",
        b'{"data": 3}',
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": [1, NaN]}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [2, 1]}]}',
        b'{"data": []}',
    ],
)
def test_an_answer_that_is_no_list_of_embeddings_is_unavailable(
    make: Callable[..., EndpointEmbedder], server: Server, content: bytes
) -> None:
    server.script = [raw(content)]
    with pytest.raises(Unavailable) as caught:
        make().embed(["a", "b"])
    assert caught.value.code == "model_unreachable"


def test_the_width_is_asked_once(make: Callable[..., EndpointEmbedder], server: Server) -> None:
    embedder = make()
    assert embedder.dimensions == embedder.dimensions == 3
    assert embedder.embed([]).shape == (0, 3)
    assert len(server.bodies) == 1


def test_the_name_says_model_and_place(make: Callable[..., EndpointEmbedder], server: Server) -> None:
    assert make().name == f"words@{server.url}"


def test_a_url_with_a_model_chooses_an_endpoint() -> None:
    chosen = embedder_from("http://127.0.0.1:9/v1/#nomic", api_key="k", timeout=1.5)
    assert isinstance(chosen, EndpointEmbedder)
    assert chosen.name == "nomic@http://127.0.0.1:9/v1"
