"""The client against servers, proxies and networks that fail: it tries again, counts once, and says what is wrong."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from server import Running, running

import heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.interfaces.client import transport
from heedful.testing import ScriptedModel


class Between:
    """Stands between a client and a server, and answers as it is told to; None hangs up."""

    def __init__(self, server: Running | None, *answers: httpx.Response | str | None) -> None:
        self.seen: list[dict[str, str]] = []
        self._answers = list(answers)
        between = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                between.seen.append({name.lower(): value for name, value in self.headers.items()})
                streamed = between._answers.pop(0) if between._answers else "forward"
                answer = streamed if isinstance(streamed, httpx.Response) else None
                if isinstance(streamed, str) and server is not None:
                    headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                    answer = httpx.request(self.command, server.url + self.path, headers=headers, content=body)
                if answer is None or streamed == "forward and hang up":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(answer.status_code)
                for name, value in answer.headers.items():
                    if name not in ("content-length", "date", "server", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_GET = do_POST  # noqa: N815

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02))
        self._thread.start()

    def __enter__(self) -> Between:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def connect(self, **options: Any) -> Any:
        return heedful.connect(self.url, api_key="an-admin-key-for-the-tests", **options)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are kept and not made."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(transport, "time", SimpleNamespace(sleep=made.append))
    monkeypatch.setattr(transport, "asyncio", SimpleNamespace(sleep=pause, to_thread=asyncio.to_thread))
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("client") / "store.db") as found:
        yield found


def page(status: int, **headers: str) -> httpx.Response:
    """What a proxy says."""
    return httpx.Response(status, headers=headers, html="<html><body><h1>Bad Gateway</h1></body></html>")


@pytest.mark.parametrize(
    "failures",
    [
        [None],
        [None, None, None],
        [page(502)],
        [page(503), page(504)],
        [page(500)],
        [httpx.Response(429, headers={"Retry-After": "2"}, json={"code": "rate_limited"})],
        [httpx.Response(503, headers={"Retry-After": "2"}, json={"code": "store_busy", "detail": "busy"})],
        [httpx.Response(409, headers={"Retry-After": "1"}, json={"code": "in_progress"})],
        ["forward and hang up", *[httpx.Response(409, json={"code": "in_progress"})] * 20],
        ["forward and hang up"],
        ["forward and hang up", None, "forward and hang up"],
    ],
)
@pytest.mark.slow
def test_what_may_pass_is_sent_again_and_counts_once(
    server: Running, failures: list[Any], no_pauses: list[float]
) -> None:
    with Between(server, *failures) as between, between.connect(project=f"p{time.monotonic_ns()}") as h:
        message = h.sessions.add_message("s", "user", "hello")
        assert [each.message_id for each in h.sessions.messages("s").items] == [message.message_id]
        sent = between.seen[: len(failures) + 1]
        assert len({each["idempotency-key"] for each in sent}) == 1
        assert len(between.seen) == len(failures) + 2
    assert len(no_pauses) == len(failures)
    questions = [
        float(each.headers.get("retry-after", 0)) if isinstance(each, httpx.Response) else 0 for each in failures
    ]
    assert all(made >= least for made, least in zip(no_pauses, questions, strict=True))


def test_pauses_grow(no_pauses: list[float]) -> None:
    with Between(None, *[None] * 4) as between, between.connect() as h, pytest.raises(Unavailable):
        h.datasets()
    assert len(no_pauses) == 3
    assert 0.1 <= no_pauses[0] <= 0.2
    assert 0.4 <= no_pauses[2] <= 0.8


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (httpx.Response(422, json={"code": "invalid", "detail": "no"}), Invalid, "invalid"),
        (httpx.Response(409, json={"code": "conflict", "detail": "no"}), Conflict, "conflict"),
        (httpx.Response(503, json={"code": "nothing_proven", "detail": "no"}), Unavailable, "nothing_proven"),
        (page(404), Unavailable, "not_heedful"),
        (page(405), Unavailable, "not_heedful"),
        (page(400), Unavailable, "not_heedful"),
        (page(301, Location="https://elsewhere.example/"), Unavailable, "not_heedful"),
        (page(200), Unavailable, "not_heedful"),
        (httpx.Response(200, json={"hello": "world"}), Unavailable, "not_heedful"),
        (httpx.Response(204), Unavailable, "not_heedful"),
        (httpx.Response(200, content=b"\xff"), Unavailable, "not_heedful"),
        (httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=b""), Unavailable, "not_heedful"),
        (page(401), Forbidden, "forbidden"),
        (page(403), Forbidden, "forbidden"),
        (page(413), Invalid, "invalid"),
        (httpx.Response(404, json=["not", "a", "document"]), Unavailable, "not_heedful"),
        (httpx.Response(422, json={"code": 7, "detail": {"a": 1}, "field": []}), Invalid, None),
    ],
)
def test_what_wont_pass_is_told_at_once(answer: httpx.Response, kind: type[HeedfulError], code: str | None) -> None:
    with Between(None, answer) as between, between.connect() as h:
        with pytest.raises(kind) as caught:
            h.sessions.list()
        assert len(between.seen) == 1
    assert caught.value.code == code or code is None
    assert str(caught.value)


def test_a_server_that_is_gone_is_named_with_what_to_do(no_pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with heedful.connect(url) as h, pytest.raises(Unavailable, match="tried 4 times") as caught:
        h.datasets()
    assert caught.value.code == "server_unreachable"
    assert "heedful serve" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8000", "ftp://x", "http://", "https://:80", "http://x:99999", "http://x:y", "http://[::1"),
        *(3, None, "http://x/?a=1", "http://x/#a", "http://a b/"),
    ],
)
def test_addresses_that_cant_be(url: Any) -> None:
    with pytest.raises(Invalid) as caught:
        heedful.connect(url)
    assert caught.value.field == "url"


@pytest.mark.parametrize("key", ["", " ", "a\nb", "schlüssel", "a\0"])
def test_keys_that_cant_be(key: str) -> None:
    with pytest.raises(Invalid) as caught:
        heedful.connect("http://127.0.0.1:1", api_key=key)
    assert "schlüssel" not in str(caught.value)


def test_a_wrong_key_is_told_and_not_shown(server: Running) -> None:
    with server.connect(key="hf_wrong-and-secret") as h, pytest.raises(Forbidden) as caught:
        h.datasets()
    assert caught.value.code == "key_invalid"
    assert "hf_wrong" not in f"{caught.value!r} {caught.value} {h!r}"


def test_a_server_that_is_late_is_not_asked_again(no_pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        started = time.monotonic()
        with heedful.connect(url, timeout=0.2) as h, pytest.raises(Unavailable) as caught:
            h.sessions.list()
        assert caught.value.code == "server_timeout"
        assert time.monotonic() - started < 5
    assert no_pauses == []


@pytest.mark.slow
def test_thirty_two_threads_share_a_client(server: Running) -> None:
    with server.connect("threads") as h, ThreadPoolExecutor(32) as pool:
        h.sessions.create("s")
        made = list(pool.map(lambda number: h.sessions.add_message("s", "user", str(number)).message_id, range(160)))
        assert len(set(made)) == 160
        found = h.sessions.messages("s", limit=1000).items
        assert sorted(int(each.content) for each in found) == list(range(160))


@pytest.mark.slow
def test_a_hundred_calls_at_once(server: Running) -> None:
    async def calls() -> list[str]:
        async with await heedful.aconnect(server.url, api_key=server.key, project="many") as h:
            await h.sessions.create("s")
            made = [h.sessions.add_message("s", "user", str(number)) for number in range(100)]
            return [each.message_id for each in await asyncio.gather(*made)]

    assert len(set(asyncio.run(calls()))) == 100
    with server.connect("many") as h:
        assert len(h.sessions.messages("s", limit=1000).items) == 100


def test_awaited_calls_fail_as_the_others_do(server: Running) -> None:
    async def call(url: str, **options: Any) -> Any:
        async with await heedful.aconnect(url, api_key=server.key, **options) as h:
            return await h.sessions.get("nobody")

    with pytest.raises(NotFound):
        asyncio.run(call(server.url))
    with Between(server, None, page(502)) as between, pytest.raises(NotFound):
        asyncio.run(call(between.url))
    with Between(None, page(200)) as between, pytest.raises(Unavailable, match="not from a compatible Heedful server"):
        asyncio.run(call(between.url))
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(Unavailable, match="timed out"):
        asyncio.run(call(f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=0.2))


class TestStreams:
    ODD = "Ada\u2028is\x85the\u2029CEO\x0b, and\r\nfeeds: \x1cdata: 1"

    def test_progress_and_odd_line_ends_come_through(self, server: Running) -> None:
        with server.connect("odd") as h:
            streamed: list[tuple[int, int]] = []
            made = h.remember([self.ODD, "two"], progress=lambda done, total: streamed.append((done, total)))
            assert streamed[-1] == (2, 2)
            assert made.facts[0].text == self.ODD

    def test_tokens_come_while_the_answer_is_written(self, path: Path) -> None:
        with (
            running(path, language_model=ScriptedModel([f"{self.ODD} [1]"] * 2)) as server,
            server.connect() as h,
        ):
            h.remember("Ada is the CEO.")
            tokens: list[str] = []
            result = h.recall("Who is the CEO?", answer=True, on_token=tokens.append)
            assert result.answer is not None
            assert "".join(tokens)

    def test_a_problem_in_a_stream_is_the_error_of_the_engine(self, server: Running) -> None:
        with server.connect() as h:
            with pytest.raises(Invalid) as caught:
                h.remember(["", "x"], progress=lambda done, total: None)
            assert caught.value.field == "texts[0]"
            with pytest.raises(Forbidden), server.connect(key="hf_wrong") as other:
                other.remember("x", progress=lambda done, total: None)

    def test_a_fault_in_a_stream_is_a_problem_too(self, path: Path) -> None:
        class Broken(ScriptedModel):
            def complete(self, *given: Any, **options: Any) -> Any:
                raise ZeroDivisionError("the secret reason")

        with running(path, language_model=Broken([])) as server, server.connect() as h:
            h.remember("Ada is the CEO.")
            with pytest.raises(Unavailable) as caught:
                h.recall("Who is the CEO?", answer=True, on_token=lambda token: None)
            assert caught.value.code == "fault"
            assert "secret reason" not in str(caught.value)

    def test_a_stream_that_breaks_off_is_asked_for_again(self, server: Running) -> None:
        broken = httpx.Response(
            200, headers={"Content-Type": "text/event-stream"}, content=b"event: progress\ndata: [1"
        )
        with Between(server, broken) as between, between.connect(project="broken") as h:
            assert len(h.remember("one", progress=lambda done, total: None).facts) == 1
            assert len(between.seen) == 2

    def test_a_stream_that_has_told_something_is_not_told_again(self, server: Running) -> None:
        begun = b"event: progress\ndata: [1, 2]\n\nevent: prog"
        broken = httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=begun)
        reports: list[tuple[int, int]] = []
        with Between(server, broken) as between, between.connect(project="begun") as h:
            with pytest.raises(Unavailable, match="stream ended"):
                h.remember("one", progress=lambda done, total: reports.append((done, total)))
            assert reports == [(1, 2)]
            assert len(between.seen) == 1

    def test_what_a_callback_raises_reaches_the_caller_and_the_call_is_done(self, server: Running) -> None:
        def raises(done: int, total: int) -> None:
            raise KeyError("mine")

        with server.connect("raises") as h:
            with pytest.raises(KeyError, match="mine"):
                h.remember("Ada is the CEO.", progress=raises)
            until = time.monotonic() + 10
            while h.datasets() != ["main_dataset"]:
                assert time.monotonic() < until
            assert not h.remember("Ada is the CEO.").facts[0].new


def test_messages_and_examples_are_sent_as_python_has_them(server: Running) -> None:
    with server.connect("forms") as h:
        first = h.sessions.add_message("s", "user", "hello")
        copied = h.sessions.add_messages("t", [first, {"role": "assistant", "content": "hi"}])
        assert [each.content for each in copied] == ["hello", "hi"]
        assert copied[0].at == first.at
        with pytest.raises(Invalid):
            h.sessions.add_messages("t", [{"role": "user", "content": "x", "more": 1}])


def test_without_a_key_the_client_says_where_it_takes_one_from(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in (None, ""):
        if given is None:
            monkeypatch.delenv("HEEDFUL_API_KEY", raising=False)
        else:
            monkeypatch.setenv("HEEDFUL_API_KEY", given)
        with heedful.connect(server.url) as h, pytest.raises(Forbidden) as caught:
            h.datasets()
        assert (caught.value.code, caught.value.remedy) == ("key_missing", "Set HEEDFUL_API_KEY, or pass api_key=…")


def test_a_key_of_the_environment_that_cant_be_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_API_KEY", "schlüssel")
    with pytest.raises(Invalid, match="HEEDFUL_API_KEY in the environment is not a key") as caught:
        heedful.connect("http://127.0.0.1:1")
    assert "schlüssel" not in str(caught.value)


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(Invalid, match="contains a user name or a password") as caught:
        heedful.connect("http://ada:hunter2@127.0.0.1:1")
    assert caught.value.field == "url"
    assert "hunter2" not in f"{caught.value} {caught.value.value}"


def test_an_address_with_a_path_that_is_not_there_is_told_as_one(server: Running) -> None:
    with heedful.connect(f"{server.url}/app", api_key=server.key) as h, pytest.raises(Unavailable) as caught:
        h.sessions.get("s")
    assert caught.value.code == "not_heedful"
    assert "without a path" in (caught.value.remedy or "")


def test_fields_that_a_newer_server_adds_are_left_out(server: Running) -> None:
    fact = {"fact_id": "f", "dataset": "d", "text": "A fact.", "newer": 1}
    with server.connect() as client:
        client.remember("The gym opens at six.", dataset="newer")
        recall = client.recall("gym", dataset="newer")
    sent = recall.model_dump(mode="json") | {"newer": {"a": 1}}
    sent["hits"][0] |= {"newer": [fact]}
    with Between(None, httpx.Response(200, json=sent)) as between, between.connect() as client:
        assert client.recall("gym") == recall
    # What callers send is still checked by name.
    with pytest.raises(Invalid, match="newer is not a field"):
        heedful.Signal(fact_id="f", signal_type="used", query="q", newer=1)  # type: ignore[call-arg]
    with Between(None, httpx.Response(200, json={"newer": 1})) as between, between.connect() as client:
        with pytest.raises(Unavailable) as raised:
            client.recall("gym")
        assert raised.value.code == "not_heedful"
