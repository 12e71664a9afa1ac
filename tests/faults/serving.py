"""`heedful serve` with several workers, as processes that may be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
from mongodb import free_port
from worlds import World

MAIN = "from heedful.interfaces.cli import main; main()"
KEY = "an-admin-key-for-the-tests"
WORKERS = 2
LATE = 90
"""Seconds after which a server that does not answer never will."""


class Serving:
    """A server on a port of its own."""

    def __init__(self, world: World, folder: Path) -> None:
        assert world.embedding is not None
        self._log = folder / "serve.txt"
        self.port = free_port()
        options = ["--store", world.url, "--port", str(self.port), "--workers", str(WORKERS), "--rate-limit", "0"]
        self._command = [sys.executable, "-c", MAIN, "--embedding", world.embedding, "serve", "--quiet", *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._known: set[int] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it; returns when it answers."""
        # What it keeps for a while it can't remove when it is killed.
        own = {"HEEDFUL_ADMIN_KEY": KEY, "TMPDIR": str(self._log.parent)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env={**os.environ, **own})
        self.answers()

    def answers(self) -> None:
        """Waits until all workers run, and one of them answers."""
        self._wait(self._is_ready)

    def workers(self) -> list[int]:
        """The processes that answer, without the one that minds them."""
        assert self._process is not None
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        result = []
        for child in map(int, children):
            with contextlib.suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    result.append(child)
        self._known.update(result)
        return result

    def kill_worker(self, place: int) -> None:
        """Kills one that answers; the server starts another in its place."""
        pid = self.workers()[place]
        os.kill(pid, signal.SIGKILL)
        self._wait(lambda: not _runs(pid))

    def kill(self) -> None:
        """Kills the one that minds the workers; they end by themselves when they notice."""
        assert self._process is not None
        self.workers()
        self._process.kill()
        self._process.wait(LATE)
        self._wait(lambda: not any(map(_runs, self._known)))

    def kill_all(self) -> None:
        """Kills all its processes at once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)
        self.kill()

    def close(self) -> None:
        """Kills all that is left."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(LATE)
        for pid in filter(_runs, self._known):
            os.kill(pid, signal.SIGKILL)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        with contextlib.suppress(httpx.TransportError):
            return len(self.workers()) == WORKERS and httpx.get(f"{self.url}/readyz").status_code == 200
        return False

    def _wait(self, condition: Callable[[], bool]) -> None:
        late = time.monotonic() + LATE
        while not condition():
            assert time.monotonic() < late, self._log.read_text()
            time.sleep(0.05)


@contextlib.contextmanager
def serving(world: World, folder: Path) -> Iterator[Serving]:
    """A server that runs until the block ends."""
    server = Serving(world, folder)
    try:
        server.start()
        yield server
    finally:
        server.close()


def _runs(pid: int) -> bool:
    """Whether a process is one of ours still, and does something."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in ("Z", "X") and b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
