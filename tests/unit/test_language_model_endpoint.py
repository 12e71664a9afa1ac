"""An OpenAI-compatible chat endpoint: a real server on this machine that misbehaves on purpose."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from heedful import Invalid, Unavailable
from heedful.providers import endpoints as module
from heedful.providers.configured import language_model_from
from heedful.providers.endpoints import EndpointModel
from heedful.providers.llm import ChatMessage, Completion, Usage

ASKED = [ChatMessage("system", "Be brief."), ChatMessage("user", "Who?")]


class Connection(BaseHTTPRequestHandler):
    """One connection to the server; a script writes to it what it likes."""

    protocol_version = "HTTP/1.1"

    def stream(self, pieces: Iterable[bytes], *, ending: bool = True) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        # So that the client doesn't meet a kept connection just as it ends.
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if ending:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def respond(self, code: int, content: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


Script = Callable[[Connection], None]


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(text: str | None, finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}})
DONE = event(b"[DONE]")
GOOD = [delta(None), delta("Ada "), delta("Löve"), delta("lace"), delta("", "stop"), USAGE, DONE]


def streams(*pieces: bytes, ending: bool = True) -> Script:
    return lambda connection: connection.stream(pieces, ending=ending)


def answers(code: int, content: bytes, **headers: str) -> Script:
    return lambda connection: connection.respond(code, content, **headers)


def vanishes(connection: Connection) -> None:
    connection.close_connection = True


class Server:
    """Answers as the script says, then well; keeps what it was sent."""

    def __init__(self) -> None:
        self.script: list[Script] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.released = threading.Event()
        outer = self

        class Handler(Connection):
            def do_POST(self) -> None:
                outer.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                outer.headers.append(dict(self.headers))
                outer.paths.append(self.path)
                try:
                    (outer.script.pop(0) if outer.script else streams(*GOOD))(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def hangs(self, *before: bytes) -> Script:
        """Sends some pieces, and then nothing any more."""

        def pieces() -> Iterator[bytes]:
            yield from before
            self.released.wait(10)

        def script(connection: Connection) -> None:
            if before:
                connection.stream(pieces(), ending=False)
            else:
                self.released.wait(10)
                connection.close_connection = True

        return script

    def keeps_alive(self, piece: bytes) -> Script:
        """Sends the same piece for ever."""

        def pieces() -> Iterator[bytes]:
            while not self.released.wait(0.005):
                yield piece

        return lambda connection: connection.stream(pieces())

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


Make = Callable[..., EndpointModel]


@pytest.fixture
def make(server: Server, pauses: list[float]) -> Iterator[Make]:
    made: list[EndpointModel] = []

    def making(**options: Any) -> EndpointModel:
        made.append(EndpointModel(server.url, "words", sleep=pauses.append, **options))
        return made[-1]

    yield making
    for model in made:
        model._client.close()


def test_an_answer_comes_in_parts_and_as_a_whole(make: Make) -> None:
    parts: list[str] = []
    found = make().complete(ASKED, on_token=parts.append)
    assert found == Completion("Ada Lövelace", Usage(12, 3))
    assert parts == ["Ada ", "Löve", "lace"]


def test_the_request_is_what_such_servers_expect(make: Make, server: Server) -> None:
    make(api_key="secret\n").complete(ASKED)
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies == [
        {
            "model": "words",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
    ]
    assert server.headers[0]["Authorization"] == "Bearer secret"


def test_without_a_key_none_is_sent(make: Make, server: Server) -> None:
    make().complete(ASKED)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"".join(GOOD)],
        [bytes([byte]) for byte in b"".join(GOOD)],
        [b"".join(GOOD).replace(b"\n", b"\r\n")],
        [b"".join(GOOD).replace(b"data: ", b"data:")],
        [b": hello\n\n", *(b"event: message\nid: 3\n" + piece + b": ping\n\n" for piece in GOOD)],
        [*GOOD[:-1]],
        [*GOOD[:-2], b"data: [DONE]"],
    ],
    ids=["at once", "byte by byte", "CRLF", "no space", "comments and names", "no [DONE]", "no last line end"],
)
def test_a_stream_may_be_written_in_many_ways(make: Make, server: Server, pieces: list[bytes]) -> None:
    server.script = [streams(*pieces)]
    assert make().complete(ASKED).text == "Ada Lövelace"
    assert len(server.bodies) == 1


def test_a_line_end_of_unicode_inside_of_a_token_is_kept(make: Make, server: Server) -> None:
    token = json.dumps({"choices": [{"delta": {"content": "one\u2028two\x85three"}}]}, ensure_ascii=False)
    server.script = [streams(event(token.encode()), delta("", "stop"), DONE)]
    assert make().complete(ASKED).text == "one\u2028two\x85three"


@pytest.mark.parametrize("usage", [None, {}, "many", {"prompt_tokens": "12", "completion_tokens": -1}])
def test_tokens_that_are_not_counted_are_unknown(make: Make, server: Server, usage: Any) -> None:
    server.script = [streams(delta("Ada"), event({"choices": [], "usage": usage}), DONE)]
    assert make().complete(ASKED) == Completion("Ada", Usage(None, None))


def test_an_answer_that_is_not_streamed_is_taken_too(make: Make, server: Server) -> None:
    answer = {
        "choices": [{"message": {"role": "assistant", "content": "Ada"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    }
    server.script = [answers(200, json.dumps(answer, indent=1).encode(), Content_Type="application/json")]
    parts: list[str] = []
    assert make().complete(ASKED, on_token=parts.append) == Completion("Ada", Usage(5, 1))
    assert parts == ["Ada"]


@pytest.mark.parametrize(
    ("refusal", "left_out"),
    [
        (b'{"error": "Unrecognized request argument: stream_options"}', {"stream_options"}),
        (b"bad request", {"stream_options"}),
        (b'{"error": "temperature does not support 0 with this model"}', {"temperature"}),
    ],
)
def test_what_a_server_refuses_is_left_out_from_then_on(
    make: Make, server: Server, pauses: list[float], refusal: bytes, left_out: set[str]
) -> None:
    server.script = [answers(400, refusal)]
    model = make()
    assert model.complete(ASKED).text == "Ada Lövelace"
    model.complete(ASKED)
    first, *others = server.bodies
    assert [set(first) - set(body) for body in others] == [left_out, left_out]
    assert pauses == []


def test_a_request_that_is_refused_either_way_is_unavailable(make: Make, server: Server) -> None:
    server.script = [answers(400, b"too long")] * 9
    with pytest.raises(Unavailable, match="HTTP 400: too long"):
        make().complete(ASKED)
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    "failure",
    [
        answers(429, b"slow down"),
        answers(503, b"loading"),
        vanishes,
        answers(200, b""),
        streams(delta(None), ending=False),
        streams(delta(None)),
        streams(b": waiting\n\n"),
        streams(event({"error": {"message": "overloaded", "code": 503}})),
    ],
    ids=["429", "503", "no answer", "nothing", "cut off", "no end", "only signs of life", "busy in the stream"],
)
def test_a_server_that_fails_before_the_first_token_is_asked_again(
    make: Make, server: Server, pauses: list[float], failure: Script
) -> None:
    server.script = [failure, failure]
    parts: list[str] = []
    assert make().complete(ASKED, on_token=parts.append).text == "Ada Lövelace"
    assert "".join(parts) == "Ada Lövelace"
    assert len(server.bodies) == 3
    assert len(pauses) >= 2


def test_the_server_says_how_long_to_wait(make: Make, server: Server, pauses: list[float]) -> None:
    server.script = [answers(429, b"slow down", Retry_After="17")]
    make().complete(ASKED)
    assert pauses == [17.0]


@pytest.mark.parametrize("ending", [True, False])
def test_a_stream_that_breaks_after_tokens_were_handed_on_is_not_begun_again(
    make: Make, server: Server, ending: bool
) -> None:
    server.script = [streams(delta("Ada "), ending=ending)]
    parts: list[str] = []
    with pytest.raises(Unavailable, match="after a part of the answer was handed on") as caught:
        make().complete(ASKED, on_token=parts.append)
    assert caught.value.code == "model_unreachable"
    assert parts == ["Ada "]
    assert len(server.bodies) == 1


def test_a_stream_that_breaks_unseen_is_begun_again(make: Make, server: Server) -> None:
    server.script = [streams(delta("Wrong"), ending=False)]
    assert make().complete(ASKED).text == "Ada Lövelace"


def test_a_connection_that_breaks_behind_the_last_token_does_no_harm(make: Make, server: Server) -> None:
    server.script = [streams(delta("Ada"), delta("", "stop"), ending=False)]
    assert make().complete(ASKED) == Completion("Ada", Usage())
    assert len(server.bodies) == 1


def test_a_server_that_stays_busy_is_unavailable(make: Make, server: Server, pauses: list[float]) -> None:
    server.script = [answers(503, b"not now")] * 9
    with pytest.raises(Unavailable, match=r"HTTP 503: not now \(tried 3 times\)") as caught:
        make(attempts=3).complete(ASKED)
    assert "HEEDFUL_LANGUAGE_MODEL" in str(caught.value.remedy)
    assert f"words@{server.url}" in caught.value.message
    assert len(server.bodies) == 3
    assert len(pauses) >= 2


@pytest.mark.parametrize("code", [301, 401, 404])
def test_a_refusal_is_not_asked_again(make: Make, server: Server, code: int) -> None:
    server.script = [answers(code, b"no")]
    with pytest.raises(Unavailable, match=f"HTTP {code}: no"):
        make().complete(ASKED)
    assert len(server.bodies) == 1


def test_a_server_that_never_answers_is_unavailable(make: Make, server: Server) -> None:
    server.script = [server.hangs()] * 2
    with pytest.raises(Unavailable, match=r"Timeout.*tried 2 times"):
        make(timeout=0.05, attempts=2).complete(ASKED)


def test_a_server_that_falls_silent_is_unavailable(make: Make, server: Server) -> None:
    server.script = [server.hangs(delta("Ada "))]
    parts: list[str] = []
    with pytest.raises(Unavailable, match=r"Timeout.*handed on"):
        make(timeout=0.05).complete(ASKED, on_token=parts.append)


@pytest.mark.parametrize("piece", [b": ping\n\n", delta(""), b"x"], ids=["comments", "empty tokens", "no line end"])
def test_signs_of_life_are_no_tokens(make: Make, server: Server, piece: bytes) -> None:
    server.script = [server.keeps_alive(piece)]
    with pytest.raises(Unavailable, match=r"no token in 0\.1 seconds"):
        make(timeout=0.1, attempts=1).complete(ASKED)


@pytest.mark.slow
def test_thoughts_that_are_not_shown_are_no_silence(make: Make, server: Server) -> None:
    thought = event({"choices": [{"delta": {"reasoning_content": "hm"}}]})

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            server.released.wait(0.02)
            yield thought
        yield from GOOD

    server.script = [lambda connection: connection.stream(pieces())]
    assert make(timeout=0.5, attempts=1).complete(ASKED).text == "Ada Lövelace"


def test_an_answer_without_an_end_is_given_up(make: Make, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RESPONSE", 10_000)
    server.script = [server.keeps_alive(delta("again and again " * 20))]
    with pytest.raises(Unavailable, match="without an end"):
        make().complete(ASKED)


def test_a_server_that_is_not_there_is_unavailable(pauses: list[float]) -> None:
    stopped = Server()
    stopped.stop()
    model = EndpointModel(stopped.url, "words", attempts=2, sleep=pauses.append)
    with pytest.raises(Unavailable, match="ConnectError"):
        model.complete(ASKED)
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (answers(200, b"<html>hello</html>"), "neither a stream of events nor JSON: <html>hello"),
        (answers(200, b"{"), "not JSON"),
        (answers(200, b"{}"), "without choices"),
        (answers(200, b'{"choices": []}'), "no text"),
        (answers(200, b'{"choices": [3]}'), "without a message"),
        (answers(200, b'{"choices": [{"message": {"content": 3}}]}'), "without a message"),
        (
            answers(200, b'{"choices": [{"message": {"content": null}, "finish_reason": "length"}]}'),
            "ended with length",
        ),
        (answers(200, b'{"error": {"message": "no such model"}}'), "an error: no such model"),
        (answers(200, b'{"error": "no such model"}'), "an error: no such model"),
        (streams(b"data: {broken\n\n"), "not JSON: {broken"),
        (streams(b"data: [1]\n\n"), "not an answer"),
        (streams(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'), "not JSON"),
        (streams(b"event: delta\nid: 1\n\n\n", event({"choices": []}), DONE), "no text"),
        (streams(event({"choices": []}), DONE), "no text"),
        (streams(DONE), "no text"),
        (streams(event({"error": {"message": "out of memory", "code": "oom"}})), "an error: out of memory"),
        (streams(delta("Ada"), event({"error": {"message": "out of memory"}})), "an error: out of memory"),
    ],
)
def test_what_is_no_answer_is_unavailable_and_says_so(make: Make, server: Server, script: Script, message: str) -> None:
    server.script = [script]
    with pytest.raises(Unavailable, match=message) as caught:
        make().complete(ASKED)
    assert caught.value.code == "model_unreachable"
    assert len(server.bodies) == 1


@pytest.mark.parametrize("code", [400, 401, 503])
def test_a_key_that_the_server_quotes_is_not_shown(
    make: Make, server: Server, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [answers(code, b"x" * 280 + b" wrong key sk-very-secret")] * 9
    model = make(api_key="sk-very-secret")
    with pytest.raises(Unavailable) as caught:
        model.complete(ASKED)
    chain: list[BaseException] = [caught.value]
    while (before := chain[-1].__cause__ or chain[-1].__context__) is not None and not chain[-1].__suppress_context__:
        chain.append(before)
    shown = "".join(f"{error}{error!r}" for error in chain) + repr(model) + model.name
    assert "sk-ver" not in shown
    assert "secret" not in caplog.text


def test_what_on_token_raises_reaches_the_caller(make: Make, server: Server) -> None:
    def stop(text: str) -> None:
        raise InterruptedError(text)

    with pytest.raises(InterruptedError, match="Ada"):
        make().complete(ASKED, on_token=stop)
    assert len(server.bodies) == 1


def test_a_key_that_no_header_can_hold_is_refused() -> None:
    with pytest.raises(Invalid, match="characters") as caught:
        EndpointModel("http://127.0.0.1:9/v1", "words", api_key="schlüssel")
    assert caught.value.field == "language_model_api_key"
    assert "schl" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:secret@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?key=secret"])
def test_a_secret_in_the_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        language_model_from(f"{url}#words")
    assert caught.value.field == "language_model"
    assert "secret" not in str(caught.value)


def test_a_url_with_a_model_chooses_an_endpoint() -> None:
    chosen = language_model_from("http://127.0.0.1:9/v1/#llama", "k", 1.5)
    assert isinstance(chosen, EndpointModel)
    assert chosen.name == "llama@http://127.0.0.1:9/v1"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_nothing_chooses_no_model(value: str | None) -> None:
    assert language_model_from(value) is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [("http://127.0.0.1/v1", "names no model"), ("gpt#4", "not a URL"), ("bundled", "names no model")],
)
def test_what_names_no_endpoint_is_refused(spec: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as caught:
        language_model_from(spec)
    assert caught.value.field == "language_model"
    assert "URL#model" in str(caught.value.remedy)
