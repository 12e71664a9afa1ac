"""Requests that never end, and headers that lie about where they come from, sent by those who have no key."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from dashboards import Dashboard
from server import KEY, Running, running
from threaded import threaded

from heedful.interfaces.http import middleware
from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import MAX_FIELDS, MAX_HEADERS, MAX_QUEUED, ServerConfig
from heedful.model.limits import MAX_NAME, MAX_PATH, MAX_SEGMENT, MAX_SOURCE
from heedful.testing import ManualClock

PATIENCE = 0.4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(
        tmp_path_factory.mktemp("limits") / "store.db",
        worker=False,
        header_seconds=PATIENCE,
        body_seconds=PATIENCE,
        max_unknown_from_one=8,
    ) as made:
        yield made


def connected(server: Running) -> socket.socket:
    url = httpx.URL(server.url)
    return socket.create_connection((url.host, url.port or 80), timeout=10)


def answer(connection: socket.socket) -> str:
    """What is said until the connection is closed."""
    said = b""
    try:
        while part := connection.recv(65536):
            said += part
    except ConnectionResetError:
        pass
    return said.decode("latin-1")


def drip(connection: socket.socket, drop: bytes) -> None:
    """Sends a little now and then, until the connection is closed."""
    began = time.monotonic()
    with suppress(OSError):
        while time.monotonic() - began < 10:
            connection.sendall(drop)
            time.sleep(0.02)


def test_headers_that_drip_are_not_waited_for(server: Running) -> None:
    with closing(connected(server)) as silent, closing(connected(server)) as dripping:
        dripping.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        began = time.monotonic()
        drip(dripping, b"X-A: b\r\n")
        assert answer(silent).startswith("HTTP/1.1 408")
        assert time.monotonic() - began < 5


def test_headers_have_a_number(server: Running) -> None:
    """Thousands of tiny ones fit into the bytes, and each took memory and time."""
    for count, status in ((MAX_FIELDS - 1, 200), (MAX_FIELDS, 431), (16_000, 431)):
        with closing(connected(server)) as connection:
            ending = b"Connection: close\r\n" if status == 200 else b""
            fields = b"a:\r\n" * (count - bool(ending))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost:x\r\n" + ending + fields + b"\r\n")
            assert answer(connection).startswith(f"HTTP/1.1 {status}"), count


def test_few_requests_wait_on_a_connection(server: Running) -> None:
    """Thousands that were sent at once were all read, and waited in memory."""
    with closing(connected(server)) as connection:
        with suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000)
        said = answer(connection)
    assert said.count("HTTP/1.1 200") <= MAX_QUEUED + 1
    with closing(connected(server)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * MAX_QUEUED)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer(connection).count("HTTP/1.1 200") == MAX_QUEUED + 1


def test_headers_have_a_size(server: Running) -> None:
    many = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 1000) for number in range(MAX_HEADERS // 1000 + 1))
    for ending in (b"\r\n", b""):
        with closing(connected(server)) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + many + ending)
            assert answer(connection).startswith("HTTP/1.1 431")


LONG = {
    "one part": "/v1/projects/" + "a" * (MAX_SEGMENT + 1),
    "escaped": "/v1/projects/" + "%41" * (MAX_SEGMENT // 3 + 1),
    "a later part": "/v1/projects/default/facts/" + "a" * (MAX_SEGMENT + 1) + "?cursor=1",
    "many parts": "/v1/projects" + "/a" * (MAX_PATH // 2),
    "slashes": "/" * (MAX_PATH + 1),
    "not ours": "/x" + "a" * 60_000,
    "absolute": "http://x/" + "a" * (MAX_SEGMENT + 1),
}


@pytest.mark.parametrize("path", LONG.values(), ids=LONG)
def test_an_address_has_a_length(server: Running, path: str) -> None:
    """It is refused before routes are looked at, and the connection is closed."""
    with closing(connected(server)) as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
        said = answer(connection)
    assert said.startswith("HTTP/1.1 414")
    assert "the limit is" in said


def test_the_longest_names_fit_into_an_address(server: Running) -> None:
    with server.connect() as h:
        name = "🙂" * MAX_NAME
        h.sessions.create(name)
        assert h.sessions.get(name).session_id == name
        source = "ß" * (MAX_SOURCE // 2)
        h.remember("Ada is the CEO.", source=source)
        assert h.forget(source=source).facts == 1
        assert httpx.get(f"{server.url}/v1/projects/{'a' * MAX_SEGMENT}/facts").status_code == 401


def test_the_dashboard_has_the_same_limits(path: Path, clock: ManualClock) -> None:
    dashboard = Dashboard(path, clock)
    server = uvicorn.Server(ServerConfig(dashboard.app, Config(), timeout_graceful_shutdown=5))
    with threaded(server) as url:
        for long in LONG.values():
            if long.startswith("/"):
                assert httpx.get(url + long).status_code == 414
        assert httpx.get(f"{url}/p/{'a' * MAX_SEGMENT}/facts").status_code == 303
    dashboard.store.close()


@pytest.mark.slow
def test_strangers_who_are_refused_again_and_again_wait(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they are refused for; known callers wait only where they must not call."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    # Only what the envelope waits for: others sleep, too.
    monkeypatch.setattr(middleware, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    known = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=server.url) as http:
        for _ in range(60):
            assert http.get("/v1/projects/default/facts/nobody", headers=known).status_code == 404
        assert waited == []
        for method, path, status in (
            ("GET", "/nowhere", 404),
            ("GET", "/v1/projects/a", 404),
            ("PUT", "/healthz", 405),
            ("GET", "/v1/projects/default/facts", 401),
        ):
            waited.clear()
            for _ in range(60):
                assert http.request(method, path).status_code == status
            assert len(waited) > 10, (method, path)


def test_a_long_address_takes_one_short_line_of_the_log(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "heedful.interfaces.http"):
        httpx.get(f"{server.url}/{'a' * MAX_SEGMENT}")
    lines = [record.getMessage() for record in caplog.records if "aaa" in record.getMessage()]
    assert [len(line) < 350 for line in lines] == [True]


CHUNKED = (
    b"POST /v1/projects/default/recall HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer "
)


@pytest.mark.parametrize(
    "framing",
    [
        b"0\r\n" + b"A: b\r\n" * 500_000,
        b"0\r\nA: " + b"b" * 3_000_000,
        b"2;" + b"x" * 3_000_000,
        b"1\r\n \r\n" * 500_000,
    ],
    ids=["trailers", "one long trailer", "extensions", "chunks of one byte"],
)
def test_what_is_sent_around_a_body_has_a_size(server: Running, framing: bytes) -> None:
    with closing(connected(server)) as connection:
        sent, began = 0, CHUNKED + KEY.encode() + b'\r\n\r\nd\r\n{"query":"a"}\r\n' + framing
        with suppress(OSError):
            while sent < len(began):
                sent += connection.send(began[sent : sent + 65_536])
        assert answer(connection).startswith("HTTP/1.1 431")


def test_trailers_are_no_headers(server: Running) -> None:
    head = CHUNKED.replace(b"Authorization: Bearer ", b"Connection: close\r\n\r\n")
    with closing(connected(server)) as connection:
        connection.sendall(head + b'd\r\n{"query":"a"}\r\n0\r\nAuthorization: Bearer %s\r\n\r\n' % KEY.encode())
        assert answer(connection).startswith("HTTP/1.1 401")


def test_bodies_in_small_chunks_are_taken(server: Running) -> None:
    body = b'{"query":"a"}' + b" " * 300_000
    chunks = b"".join(b"8\r\n%s\r\n" % body[place : place + 8] for place in range(0, len(body) - 7, 8))
    with closing(connected(server)) as connection:
        connection.sendall(CHUNKED + KEY.encode() + b"\r\nConnection: close\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert answer(connection).startswith("HTTP/1.1 200")


@pytest.mark.slow
def test_a_body_that_drips_is_not_waited_for_whether_it_is_wanted_or_not(server: Running) -> None:
    for key, expected in ((KEY, "HTTP/1.1 408"), ("hf_wrong", "HTTP/1.1 401")):
        with closing(connected(server)) as connection:
            connection.sendall(
                b"POST /v1/projects/default/recall HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000000\r\nAuthorization: Bearer %s\r\n\r\n" % key.encode()
            )
            began = time.monotonic()
            drip(connection, b" ")
            assert time.monotonic() - began < 5
            assert answer(connection).startswith(expected)


def test_one_address_cant_take_all_connections_and_those_with_a_key_do_not_count(server: Running) -> None:
    with ExitStack() as held, httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {KEY}"}) as known:
        assert known.get("/v1/projects").status_code == 200
        longest, *first = [held.enter_context(closing(connected(server))) for _ in range(9)]
        assert answer(longest).startswith("HTTP/1.1 503")
        assert known.get("/v1/projects").status_code == 200
        for each in first:
            each.sendall(b"GET /v1/projects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % KEY.encode())
            assert each.recv(12) == b"HTTP/1.1 200"
        assert known.get("/readyz").status_code == 200
        assert httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.mark.parametrize(("proxies", "refused"), [((), True), (("10.9.8.7",), True), (("127.0.0.0/8",), False)])
@pytest.mark.slow
def test_forwarded_addresses_are_believed_from_a_trusted_proxy_alone(
    proxies: tuple[str, ...], refused: bool, path: Path, clock: ManualClock
) -> None:
    """Many tries at once from one address are refused, whatever address each of them names."""
    dashboard = Dashboard(path, clock)
    config = Config(trusted_proxies=list(proxies))
    server = uvicorn.Server(ServerConfig(dashboard.app, config, timeout_graceful_shutdown=5))
    with threaded(server) as url, ThreadPoolExecutor(20) as threads:

        def tried(number: int) -> int:
            headers = {"X-Forwarded-For": f"203.0.113.{number}"}
            return httpx.post(f"{url}/login", data={"api_key": "hf_wrong"}, headers=headers, timeout=30).status_code

        statuses = list(threads.map(tried, range(40)))
    dashboard.store.close()
    assert (429 in statuses) is refused, statuses
