"""Connections that are opened and kept: by visitors, by somebody with a key, by nobody, behind a proxy, and unread."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from dashboards import Dashboard
from server import KEY, Running, running
from threaded import threaded

from heedful.interfaces.http.config import Config
from heedful.interfaces.http.connections import ALL, Connections, LimitedProtocol, ServerConfig
from heedful.testing import ManualClock

MOST = 64
KEY_SHARE = VISITORS = MOST // 4
TOKEN_SHARE = MOST // 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    # Idle connections are closed for others here, and not because a busy machine took seconds for the next request.
    folder = tmp_path_factory.mktemp("open")
    with running(folder / "store.db", worker=False, max_connections=MOST, keep_alive=600) as made:
        with made.connect() as h:
            h.sessions.create("page")
        with made.connect("other") as h:
            h.sessions.create("page")
        yield made


def tokens(server: Running, count: int) -> list[str]:
    """Tokens of as many visitors."""
    with server.connect() as h:
        return [h.keys.create_token({"session_id": "page"}, subject=f"visitor {n}").token for n in range(count)]


def key(server: Running, project: str = "default") -> str:
    with server.connect(project) as h:
        return h.keys.create("program", scopes=["read", "feedback"]).api_key


@dataclass(slots=True)
class Visit:
    """A connection, and what was answered on it."""

    connection: socket.socket

    def send(self, path: str, key: str | None, *, body: str = "", promised: int = 0) -> None:
        """Sends a request; one with a promised body that doesn't come stays under way."""
        lines = [f"{'POST' if promised else 'GET'} {path} HTTP/1.1", "Host: x"]
        if key is not None:
            lines.append(f"Authorization: Bearer {key}")
        if promised:
            lines += ["Content-Type: application/json", f"Content-Length: {promised}"]
        with suppress(OSError):
            self.connection.sendall("\r\n".join([*lines, "", body]).encode())

    def status(self) -> int:
        """The status of the next answer; 0 if there is none but the end."""
        with suppress(ConnectionResetError):
            if match := re.match(rb"HTTP/1.1 (\d+)", self.connection.recv(65536)):
                return int(match[1])
        return 0

    def is_silent(self) -> bool:
        """Whether nothing was answered, and the connection is open."""
        self.connection.settimeout(0.02)
        try:
            self.connection.recv(1, socket.MSG_PEEK)
            return False
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False
        finally:
            self.connection.settimeout(10)

    def said(self) -> str:
        said = b""
        with suppress(ConnectionResetError):
            while part := self.connection.recv(65536):
                said += part
        return said.decode("latin-1").lower()


@contextmanager
def visits(url: str) -> Iterator[Callable[[], Visit]]:
    """Opens connections that are closed when the block ends."""
    parts = httpx.URL(url)
    with ExitStack() as held:

        def visit() -> Visit:
            connection = socket.create_connection((parts.host, parts.port or 80), timeout=10)
            return Visit(held.enter_context(closing(connection)))

        yield visit


def hold(visit: Callable[[], Visit], key: str | None, project: str = "default") -> Visit:
    """A request whose body doesn't come."""
    made = visit()
    made.send(f"/v1/projects/{project}/sessions/page/feedback", key, promised=100)
    return made


def held(visits: list[Visit], most: int) -> list[Visit]:
    """Those whose request is still under way, once there are no more of them than there may be."""
    deadline = time.monotonic() + 30
    while len(silent := [each for each in visits if each.is_silent()]) > most and time.monotonic() < deadline:
        pass
    return silent


@pytest.mark.slow
def test_all_visitors_of_a_project_hold_a_quarter_of_the_connections_and_one_of_them_an_eighth(server: Running) -> None:
    many, other = tokens(server, 30), key(server, "other")
    with visits(server.url) as visit:
        one = [hold(visit, many[0]) for _ in range(TOKEN_SHARE + 1)]
        silent = held(one, TOKEN_SHARE)
        assert len(silent) == TOKEN_SHARE
        refused = next(each for each in one if each not in silent).said()
        assert refused.startswith("http/1.1 429"), refused
        assert "retry-after: 1" in refused
        assert "connection: close" in refused
        rest = [hold(visit, each) for each in many[1:] for _ in range(3)]
        assert len(held(one + rest, VISITORS)) == VISITORS
        own = key(server)
        for project, api_key in (("other", other), ("default", own), ("default", KEY)):
            again = visit()
            again.send(f"/v1/projects/{project}/sessions/page", api_key)
            assert again.status() == 200


@pytest.mark.slow
def test_one_key_holds_a_quarter_and_others_do_not_notice(server: Running) -> None:
    own, neighbour, other = key(server), key(server), key(server, "other")
    with visits(server.url) as visit:
        many = [hold(visit, own) for _ in range(KEY_SHARE + 10)]
        silent = held(many, KEY_SHARE)
        assert len(silent) == KEY_SHARE
        assert [each.status() for each in many if each not in silent] == [429] * 10
        more = [hold(visit, neighbour) for _ in range(KEY_SHARE)]
        assert len(held(more, KEY_SHARE)) == KEY_SHARE
        # Half of the connections are the most that a project has.
        third = hold(visit, key(server)).said()
        assert "429" in third
        assert "this project" in third
        for api_key in (other, KEY):
            with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {api_key}"}) as client:
                assert client.get("/v1/projects/other/sessions/page").status_code == 200


@pytest.mark.slow
def test_a_pool_that_waits_keeps_nobody_out(server: Running) -> None:
    """More connections than a key may have, each used in turn: the one that waited longest is closed for a new one."""
    own = key(server)
    with visits(server.url) as visit:
        pool = []
        for _ in range(3 * KEY_SHARE):
            pool.append(visit())
            pool[-1].send("/v1/projects/default/sessions/page", own)
            assert pool[-1].status() == 200
        assert held(pool, KEY_SHARE) == pool[-KEY_SHARE:]


@pytest.mark.slow
def test_a_connection_counts_for_the_caller_of_its_last_request(server: Running) -> None:
    """As a proxy uses it, for one caller after the other."""
    first, second = key(server), key(server, "other")
    with visits(server.url) as visit:
        pool = [visit() for _ in range(KEY_SHARE)]
        for project, api_key in (("default", first), ("other", second), ("default", first)):
            for each in pool:
                each.send(f"/v1/projects/{project}/sessions/page", api_key)
                assert each.status() == 200
        # None counts for the second any more: there is room for all its requests.
        many = [hold(visit, second, "other") for _ in range(KEY_SHARE)]
        assert len(held(many, KEY_SHARE)) == KEY_SHARE


@pytest.mark.slow
def test_those_without_a_key_make_room_for_the_newest(server: Running) -> None:
    own = key(server)
    with visits(server.url) as visit:
        silent = [visit() for _ in range(2 * MOST)]
        assert len(held(silent, MOST // 2)) <= MOST // 2
        assert silent[0].said().startswith("http/1.1 503")
        late = visit()
        late.send("/v1/projects/default/sessions/page", own)
        assert late.status() == 200


def test_upgrades_leave_no_connection_that_counts(server: Running) -> None:
    upgrade = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    upgrade += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    for _ in range(3 * MOST):
        with visits(server.url) as visit:
            made = visit()
            made.connection.sendall(upgrade.encode())
            assert made.status() == 200
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_answers_that_nobody_reads_hold_no_connection_that_others_need(server: Running) -> None:
    own = key(server)
    with server.connect() as h:
        h.sessions.create("long")
        h.sessions.add_entry("long", "Why?", "b" * 900_000)
    with visits(server.url) as visit:
        unread = [visit() for _ in range(KEY_SHARE)]
        for each in unread:
            each.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(8):
                each.send("/v1/projects/default/sessions/long/entries", own)
        with visits(server.url) as others:
            silent = [others() for _ in range(2 * MOST)]
            assert silent
            assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_the_dashboard_closes_logins_whose_form_does_not_come(path: Path, clock: ManualClock) -> None:
    dashboard = Dashboard(path, clock)
    config = ServerConfig(dashboard.app, Config(max_unknown=16, max_unknown_from_one=8), timeout_graceful_shutdown=5)
    with threaded(uvicorn.Server(config)) as url, visits(url) as visit:
        many = [visit() for _ in range(40)]
        for each in many:
            each.send("/login", None, promised=100)
        assert len(held(many, 8)) <= 8
        assert httpx.get(f"{url}/login").status_code == 200
    dashboard.close()


def test_connections_of_the_dashboard_count_for_whoever_is_logged_in(path: Path, clock: ManualClock) -> None:
    dashboard = Dashboard(path, clock)
    key = dashboard.store.keys.create("reader", scopes=["read"])
    config = ServerConfig(dashboard.app, Config(), timeout_graceful_shutdown=5)
    held = config.open_connections
    with threaded(uvicorn.Server(config)) as url, httpx.Client(base_url=url) as visitor:
        visitor.post("/login", data={"api_key": key.api_key})
        assert held.count(("unknown", "")) == 1
        assert visitor.get("/p/default/facts").status_code == 200
        assert (held.count(("key", key.key_id)), held.count(("project", "default"))) == (1, 1)
        assert held.count(("unknown", "")) == 0
    dashboard.close()


class Held(LimitedProtocol):
    """A connection without a network: only what is counted."""

    def __init__(self) -> None:
        self.closed = False

    @property
    def is_idle(self) -> bool:
        return True

    def make_room(self) -> None:
        self.closed = True


def test_what_is_counted_is_forgotten(server: Running) -> None:
    connections = Connections(Config(max_connections=MOST))
    one = Held()
    for number in range(10):
        assert connections.move(one, [("key", f"{number}"), ("project", "p")]) is None
    assert connections.count(ALL) == connections.count(("key", "9")) == connections.count(("project", "p")) == 1
    assert connections.count(("key", "8")) == 0
    connections.remove(one)
    assert not connections._held


DESCRIPTORS = 1024


@pytest.fixture
def process(path: Path) -> Iterator[tuple[str, int]]:
    """The address and the number of a server that may open 1,024 descriptors."""
    command = ["-m", "heedful", "--embedding", "fast", "--store", str(path), "serve", "--port", "0", "--quiet"]
    popen = subprocess.Popen(
        ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "HEEDFUL_ADMIN_KEY": KEY},
    )
    assert popen.stdout is not None
    try:
        printed = ""
        while (match := re.search(r"serving on (\S+)", printed)) is None:
            line = popen.stdout.readline()
            assert line, printed
            printed += line
        threading.Thread(target=popen.stdout.read, daemon=True).start()
        yield match[1], popen.pid
    finally:
        popen.terminate()
        popen.wait(60)
        popen.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.slow
def test_a_server_never_runs_out_of_descriptors(process: tuple[str, int]) -> None:
    """Thousands of connections: of 30 tokens, of one key, of nobody, and some that only begin."""
    url, number = process
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30) as admin:
        base = "/v1/projects/default"
        assert admin.post(f"{base}/sessions", json={"session_id": "page"}).status_code == 200
        keys = [
            admin.post(f"{base}/tokens", json={"targets": [{"session_id": "page"}], "subject": f"{each}"}).json()[
                "token"
            ]
            for each in range(30)
        ]
        keys.append(admin.post(f"{base}/keys", json={"name": "k", "scopes": ["read", "feedback"]}).json()["api_key"])
        statuses: Counter[int] = Counter()
        with visits(url) as visit:
            for each in range(3000):
                if each % 4 == 3:
                    visit().connection.sendall(b"GET /healthz HTTP/1.1\r\n" if each % 8 == 3 else b"")
                else:
                    hold(visit, keys[-1] if each % 4 == 2 else keys[each % 30])
                if each % 100 == 0:
                    assert len(os.listdir(f"/proc/{number}/fd")) < DESCRIPTORS - 128
                    # On a connection of its own each time.
                    statuses[httpx.get(f"{url}/readyz", timeout=30).status_code] += 1
                    statuses[admin.get(f"{base}/sessions/page").status_code] += 1
        assert statuses == {200: 60}
    deadline = time.monotonic() + 30
    while len(os.listdir(f"/proc/{number}/fd")) > 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(os.listdir(f"/proc/{number}/fd")) <= 200
