"""`heedful serve` as a process of its own: keys, workers, signals, and what survives them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from silent_server import silent_server

import heedful
from heedful.errors import Forbidden, HeedfulError
from heedful.interfaces.cli.main import cli
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.http.config import Config

pytestmark = pytest.mark.usefixtures("warm_processes")

MAIN = "from heedful.interfaces.cli import main; main()"
KEY = "a-key-from-the-environment"


@dataclass(slots=True)
class Process:
    """A server that was started by the command."""

    popen: subprocess.Popen[str]
    printed: list[str]
    url: str = ""

    @property
    def key(self) -> str | None:
        match = re.search(r"hf_\S+", "".join(self.printed))
        return None if match is None else match.group()

    def connect(self, key: str | None = None) -> RemoteHeedful:
        return heedful.connect(self.url, api_key=key or self.key or KEY, timeout=30)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        if self.popen.poll() is None:
            self.popen.send_signal(by)
        return self.popen.wait(timeout=60)

    def workers(self) -> list[int]:
        """The processes that answer, without the one that minds them."""
        children = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children").read_text().split()
        return [int(each) for each in children if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


Serve = Callable[..., Process]


@pytest.fixture
def serve(path: Path) -> Iterator[Serve]:
    """Starts the command, and waits until it says where it serves."""
    with ExitStack() as started:

        def start(
            *arguments: str, environment: dict[str, str] | None = None, store: Path = path, main: str = MAIN
        ) -> Process:
            command = ["--embedding", "fast", "--store", str(store), "serve", "--port", "0", *arguments]
            popen = subprocess.Popen(
                [sys.executable, "-c", main, *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **(environment or {})},
            )
            process = Process(popen, [])
            started.callback(popen.stdout.close)  # type: ignore[union-attr]
            started.callback(process.stop, signal.SIGTERM)
            ready = threading.Event()

            def listen() -> None:
                assert popen.stdout is not None
                for line in popen.stdout:
                    process.printed.append(line)
                    if match := re.search(r"serving on (\S+)", line):
                        process.url = match.group(1)
                        ready.set()
                ready.set()

            threading.Thread(target=listen, daemon=True).start()
            assert ready.wait(60), process.printed
            if process.url:
                _until(lambda: httpx.get(f"{process.url}/readyz").status_code == 200)
            return process

        yield start


@pytest.mark.nightly
def test_the_first_start_shows_a_key_and_the_second_does_not_unless_a_new_one_is_wanted(serve: Serve) -> None:
    first = serve()
    assert first.url.startswith("http://127.0.0.1:")
    key = first.key
    assert key is not None
    assert "".join(first.printed).count("hf_") == 1
    with first.connect(key) as h:
        h.remember("Ada is the CEO.")
    assert first.stop() in (0, -signal.SIGTERM)
    assert key not in "".join(first.printed[first.printed.index(f"serving on {first.url}\n") :])
    assert "lost yours?" not in "".join(first.printed)
    second = serve()
    assert second.key is None
    assert "this store has keys; lost yours? --new-key" in "".join(second.printed)
    with second.connect(key) as h:
        assert h.recall("Who is the CEO?").hits[0].text == "Ada is the CEO."
    second.stop()
    third = serve("--new-key")
    assert third.key not in (None, key)
    with third.connect(key) as h, pytest.raises(Forbidden, match="not valid"):
        h.datasets()
    with third.connect(third.key) as h:
        assert len(h.datasets()) == 1


@pytest.mark.slow
def test_the_key_of_a_store_in_memory_opens_it(serve: Serve) -> None:
    started = serve(store=Path(":memory:"))
    assert started.key is not None
    with started.connect() as h:
        assert len(h.remember("Ada is the CEO.").fact_ids) == 1


@pytest.mark.slow
def test_a_key_of_the_environment_is_the_only_one_and_is_never_printed(serve: Serve) -> None:
    started = serve(environment={"HEEDFUL_ADMIN_KEY": KEY})
    assert started.key is None
    with started.connect(KEY) as h:
        assert h.datasets() == []
        assert h.keys.list() == []
    # Nobody but this machine reaches it.
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", int(started.url.rpartition(":")[2])), timeout=2)
    started.stop()
    assert KEY not in "".join(started.printed)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_a_quiet_server_writes_no_line_for_a_request_and_ctrl_c_ends_it(serve: Serve, workers: str) -> None:
    for arguments, lines in (((), True), (("--quiet",), False)):
        started = serve("--workers", workers, *arguments, environment={"HEEDFUL_ADMIN_KEY": KEY})
        with started.connect(KEY) as h:
            h.datasets()
        assert started.stop(signal.SIGINT) == 0
        printed = "".join(started.printed)
        assert not {"Aborted!", "Traceback"} & set(printed.split())
        assert ("GET /v1/projects/default/datasets 200" in printed) == lines
        assert f"serving on {started.url}" in printed
        assert "uvicorn.error" not in printed


def refusal(path: Path, *arguments: str) -> HeedfulError:
    """The error of a start that fails."""
    with pytest.raises(HeedfulError) as caught:
        CliRunner().invoke(cli, ["--store", str(path), "serve", *arguments], catch_exceptions=False)
    return caught.value


def refused(path: Path, *arguments: str) -> str:
    """What a start that fails says."""
    return str(refusal(path, *arguments))


def test_a_port_that_is_taken_is_named_and_costs_no_key(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        error = refusal(path, "--port", port)
    assert f"can't listen on 127.0.0.1:{port}" in error.message
    assert (error.code, error.remedy) == ("address_in_use", "Choose another --port, or stop what uses it")
    assert not path.exists()


@pytest.mark.parametrize(
    ("host", "remedy"),
    [("no.such.host.invalid", "--host is not known"), ("192.0.2.1", "--host is not an address of this machine")],
)
def test_an_address_that_is_not_here_is_not_called_taken(path: Path, host: str, remedy: str) -> None:
    error = refusal(path, "--host", host, "--port", "0")
    assert error.code == "address_unusable"
    assert (error.remedy or "").startswith(remedy)


@pytest.mark.parametrize("origin", ["www.example.com", "https://www.example.com/app", "https://", "ftp://x", "null"])
def test_an_origin_that_no_browser_sends_is_refused(path: Path, origin: str) -> None:
    error = refusal(path, "--cors-origin", origin)
    assert error.message == f"cors_origins has {origin!r}, which is not an origin"
    assert "without a path" in (error.remedy or "")
    assert not path.exists()


def test_origins_are_written_as_browsers_do() -> None:
    items = ["https://WWW.Example.com/", "HTTP://localhost:3000", "*", "http://[::1]:8000"]
    assert Config(cors_origins=items).cors_origins == [
        "https://www.example.com",
        "http://localhost:3000",
        "*",
        "http://[::1]:8000",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "99999"], "port"),
        (["--workers", "0"], "workers"),
        (["--max-body", "1"], "max_body"),
        (["--host", "no.such.host.invalid"], "can't listen on"),
    ],
)
def test_settings_that_cant_be(path: Path, arguments: list[str], message: str) -> None:
    assert message in refused(path, *arguments)


@pytest.mark.parametrize("key", ["hunter2", "hunter2 hunter2 hunter2", "hunter2-hunter2-ü"])
def test_a_key_that_cant_be_is_not_shown(path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("HEEDFUL_ADMIN_KEY", key)
    said = refused(path)
    assert said.startswith("admin_key (HEEDFUL_ADMIN_KEY) has ")
    assert ("7 characters, the least is 16" in said) == (key == "hunter2")
    assert ("that are not allowed in a header" in said) == (key != "hunter2")
    assert "hunter2" not in said


@pytest.mark.usefixtures("cold_processes")
@pytest.mark.nightly
def test_a_missing_extra_is_named(path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.modules['fastapi'] = None; {MAIN}",
        "--store",
        str(path),
        "serve",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert 'pip install "heedful[server]"' in done.stderr
    assert "Traceback" not in done.stderr


def writers(process: Process, many: int) -> tuple[list[threading.Thread], list[str], threading.Event]:
    """Threads that add messages as fast as they can, until told or refused; and what was acknowledged."""
    acknowledged: list[str] = []
    enough = threading.Event()

    def write(writer: int) -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        number = 0
        with httpx.Client(base_url=f"{process.url}/v1/projects/default", headers=headers, timeout=30) as http:
            while not enough.is_set():
                text = f"{writer}-{number}"
                number += 1
                try:
                    body = {"messages": [{"role": "user", "content": f"{text}{half}"} for half in "ab"]}
                    if http.post("/sessions/s/messages/batch", json=body).status_code == 200:
                        acknowledged.append(text)
                except httpx.ConnectError:
                    if process.popen.poll() is not None:
                        return
                    time.sleep(0.01)
                except httpx.TransportError:
                    continue

    threads = [threading.Thread(target=write, args=(each,)) for each in range(many)]
    for each in threads:
        each.start()
    return threads, acknowledged, enough


def stored(path: Path) -> list[str]:
    """What the messages say, from the store itself."""
    result: list[str] = []
    with heedful.open(path, embedding="fast") as store:
        cursor = None
        while True:
            page = store.sessions.messages("s", cursor=cursor, limit=1000)
            result += [each.content for each in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return result


def hold(path: Path, acknowledged: list[str]) -> None:
    """What was acknowledged is there, what is there is whole, and nothing is there twice."""
    found = stored(path)
    assert len(acknowledged) > 20
    assert len(found) == len(set(found))
    assert {each[:-1] for each in found if each.endswith("a")} == {each[:-1] for each in found if each.endswith("b")}
    assert {f"{each}a" for each in acknowledged} <= set(found)


@pytest.mark.slow
def test_who_is_stopped_ends_what_was_begun(serve: Serve, path: Path) -> None:
    stopped_while_asked(serve(environment={"HEEDFUL_ADMIN_KEY": KEY}), path)


def stopped_while_asked(started: Process, path: Path) -> None:
    threads, acknowledged, enough = writers(started, 4)
    _until(lambda: len(acknowledged) > 40)
    assert started.stop() in (0, -signal.SIGTERM)
    enough.set()
    for each in threads:
        each.join()
    hold(path, acknowledged)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.nightly
def test_a_call_that_does_not_end_stops_no_server_from_ending(serve: Serve, by: signal.Signals) -> None:
    with silent_server() as silent:
        started = serve(
            environment={"HEEDFUL_ADMIN_KEY": KEY, "HEEDFUL_LANGUAGE_MODEL": f"{silent.url}#model"},
            main="from heedful.interfaces.http import app, state; app.GRACE = state.CLOSE_SECONDS = 1; " + MAIN,
        )
        with started.connect() as h:
            h.remember("Ada is the CEO.")

        def ask() -> httpx.Response:
            return httpx.post(
                f"{started.url}/v1/projects/default/recall",
                headers={"Authorization": f"Bearer {KEY}"},
                json={"query": "Who is the CEO?", "answer": True},
                timeout=60,
            )

        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask)
            _until(lambda: len(silent.accepted) > 0)
            assert started.stop(by) in (0, -by)
            # The model has not answered, and never will.
            assert asked.result().status_code == 503
            assert asked.result().json()["code"] == "server_stopping"
    printed = "".join(started.printed)
    assert "are abandoned" in printed
    assert "Traceback" not in printed


@pytest.mark.nightly
def test_workers_share_a_store_and_end_what_was_begun(serve: Serve, path: Path) -> None:
    started = serve("--workers", "2", environment={"HEEDFUL_ADMIN_KEY": KEY})
    assert len(started.workers()) == 2
    headers = {"Authorization": f"Bearer {KEY}"}
    messages = f"{started.url}/v1/projects/default/sessions/of-both/messages"
    for number in range(20):
        # A connection of its own for each call, so that both workers get some.
        answer = httpx.post(messages, headers=headers, json={"role": "user", "content": str(number)})
        assert answer.status_code == 200
        found = httpx.get(messages, headers=headers).json()["items"]
        assert [each["content"] for each in found] == [str(each) for each in range(number + 1)]
    route = "/v1/projects/{project}/sessions/{session_id}/messages"
    counted = f'heedful_requests_total{{method="POST",route="{route}",status="200"}} 20.0'
    assert counted in httpx.get(f"{started.url}/metrics", headers=headers).text
    stopped_while_asked(started, path)


@pytest.mark.nightly
def test_a_worker_that_is_killed_takes_nothing_with_it(serve: Serve, path: Path) -> None:
    started = serve("--workers", "2", environment={"HEEDFUL_ADMIN_KEY": KEY})
    threads, acknowledged, enough = writers(started, 4)
    _until(lambda: len(acknowledged) > 40)
    before = started.workers()
    os.kill(before[0], signal.SIGKILL)
    at = len(acknowledged)
    _until(lambda: len(acknowledged) > at + 40)
    _until(lambda: len(started.workers()) == 2 and before[0] not in started.workers())
    enough.set()
    for each in threads:
        each.join()
    assert started.stop() in (0, -signal.SIGTERM)
    hold(path, acknowledged)


def _until(done: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not _true(done):
        assert time.monotonic() < until
        time.sleep(0.02)


def _true(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except httpx.TransportError:
        return False
