"""The processes of the simulated year: servers, a dashboard and a worker on one store."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.soak.clock import SharedClock
from bench.soak.process import KEY
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.interfaces.client.transport import connect
from heedful.settings import PREFIX, Retention

LATE = 120
"""Seconds after which a process that does not answer never will."""

KEPT = Retention(
    receipt_days=30,
    decision_days=30,
    hit_days=15,
    idempotency_days=7,
    alert_days=15,
    audit_days=30,
    job_days=15,
    change_lines=500,
)
"""Much shorter than by default, so that a year has all of it come to its end many times."""


class Fleet:
    """What runs."""

    def __init__(self, store: str, folder: Path, servers: int) -> None:
        self.clock = SharedClock(folder / "clock")
        self._log = (folder / "log.txt").open("ab")
        self._store, self._folder = store, folder
        self._ports = [_free_port() for _ in range(servers + 1)]
        names = [*(f"server {place + 1}" for place in range(servers)), "dashboard"]
        self.processes = {name: self._start(name, port) for name, port in zip(names, self._ports, strict=True)}
        self.processes["worker"] = self._start("worker", 0)

    def wait(self) -> None:
        """Returns when all of them answer."""
        for port, path in zip(self._ports, ["/readyz"] * (len(self._ports) - 1) + ["/login"], strict=True):
            self._wait(f"http://127.0.0.1:{port}{path}")

    def clients(self) -> list[RemoteHeedful]:
        """One for each server."""
        return [connect(f"http://127.0.0.1:{port}", api_key=KEY) for port in self._ports[:-1]]

    def dashboard(self) -> httpx.Client:
        """Somebody who has logged in."""
        client = httpx.Client(base_url=f"http://127.0.0.1:{self._ports[-1]}", timeout=LATE, follow_redirects=True)
        client.post("/login", data={"api_key": KEY}).raise_for_status()
        return client

    def ask_worker(self) -> None:
        """Has the worker do what is due; `hear_worker` waits for it."""
        stream = self.processes["worker"].stdin
        assert stream is not None
        stream.write(b"now\n")
        stream.flush()

    def hear_worker(self) -> None:
        stream = self.processes["worker"].stdout
        assert stream is not None
        assert stream.readline() == b"done\n", self.log()

    def megabytes(self) -> dict[str, float]:
        """What each process has for itself: pages of the store that are mapped come and go as the system likes."""
        result = {}
        for name, process in self.processes.items():
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="utf-8")
            own = re.search(r"^Anonymous:\s+(\d+) kB", rollup, re.MULTILINE)
            assert own is not None
            result[name] = int(own[1]) / 1024
        return result

    def log(self) -> str:
        """The end of what the processes wrote."""
        return (self._folder / "log.txt").read_text(encoding="utf-8", errors="replace")[-5000:]

    def close(self) -> None:
        """Stops all of them."""
        for process in self.processes.values():
            if process.stdin is not None:
                process.stdin.close()
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(LATE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._log.close()

    def _start(self, name: str, port: int) -> subprocess.Popen[bytes]:
        role = name.split()[0]
        pipe = subprocess.PIPE if role == "worker" else subprocess.DEVNULL
        settings = {f"{PREFIX}{key.upper()}": str(value) for key, value in KEPT.model_dump().items()}
        return subprocess.Popen(
            [sys.executable, "-m", "bench.soak.process", role, self._store, str(self._folder / "clock"), str(port)],
            cwd=Path(__file__).parents[2],
            # By default the C library keeps free memory apart for each thread, which then looks like a leak for long.
            env={**os.environ, **settings, f"{PREFIX}CONNECTOR_FOLDERS": str(self._folder), "MALLOC_ARENA_MAX": "1"},
            stdin=pipe,
            stdout=pipe if role == "worker" else self._log,
            stderr=self._log,
        )

    def _wait(self, url: str) -> None:
        late = time.monotonic() + LATE
        while True:
            assert time.monotonic() < late, self.log()
            assert all(process.poll() is None for process in self.processes.values()), self.log()
            try:
                if httpx.get(url).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)


@contextmanager
def running(store: str, folder: Path, servers: int) -> Iterator[Fleet]:
    """Processes that run until the block ends, and all answer."""
    fleet = Fleet(store, folder, servers)
    try:
        fleet.wait()
        yield fleet
    finally:
        fleet.close()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
