"""One query process, from the side of the server: started, asked, watched, and killed when its time is up."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from heedful.errors import Unavailable
from heedful.sql.sandbox import worker
from heedful.sql.sandbox.protocol import BadFrame, receive, send

START_SECONDS = 60.0
MAX_ANSWER = 64_000_000

_PASSED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ")
"""The environment variables passed to a query process: no passwords, nothing that changes where it connects."""

_FIXED = {
    # libpq also reads passwords and addresses from files.
    "PGPASSFILE": os.devnull,
    "PGSERVICEFILE": os.devnull,
    "PGSYSCONFDIR": os.devnull,
    # Otherwise each thread of a database reserves far more memory than it uses, which counts.
    "MALLOC_ARENA_MAX": "2",
}


class ProcessDied(Exception):
    """The process ended without an answer."""

    def __init__(self, status: int | None, *, expired: bool, stage: str | None = None) -> None:
        super().__init__(status, expired)
        self.stage = stage
        """The stage that it was in."""
        self.status = status
        self.expired = expired
        """Whether it was killed because its time was up."""

    @property
    def out_of_time(self) -> bool:
        limit = getattr(signal, "SIGXCPU", None)
        return self.expired or (limit is not None and self.status == -limit)


class Process:
    """A process that answers one request at a time."""

    def __init__(self) -> None:
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", worker.__file__, str(os.getpid()), *_paths()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={name: os.environ[name] for name in _PASSED if name in os.environ} | _FIXED,
            )
        except OSError as error:
            raise Unavailable(
                f"a process for queries can't be started ({error.strerror})",
                code="query_process",
                remedy="Check the limits on processes and open files of this user",
            ) from error
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._requests, self._replies = self._popen.stdin, self._popen.stdout
        self._is_ready = False
        self._expired = False
        self._stage: str | None = None

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def ask(
        self, request: dict[str, Any], stages: Mapping[str, float], take: Callable[[Any], None] | None = None
    ) -> dict[str, Any]:
        """The answer to a request; `stages` says how many seconds each part of it may take, from `start` on. `take`
        gets what comes before the answer.

        Whatever goes wrong, the process is gone afterwards: nobody can tell what it would answer next.
        """
        try:
            if not self._is_ready:
                self._watched(START_SECONDS)
                self._receive()
                self._is_ready = True
            self._enter("start", stages)
            send(self._requests.fileno(), request)
            while True:
                answer = self._receive()
                if "stage" in answer:
                    self._enter(answer["stage"], stages)
                elif "part" in answer and take is not None:
                    take(answer["part"])
                else:
                    return answer
        except BrokenPipeError:
            raise self._died() from None
        except BaseException:
            self.end()
            raise
        finally:
            self._watched(None)

    def end(self) -> None:
        """Kills the process and waits for its end."""
        self._watched(None)
        with contextlib.suppress(ProcessLookupError):
            self._popen.kill()
        self._popen.wait()
        self._close()

    def forget(self) -> None:
        """Detaches without ending it: after a fork, it belongs to the parent."""
        self._popen.returncode = 0
        self._close()

    def _close(self) -> None:
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                pipe.close()

    def _receive(self) -> dict[str, Any]:
        try:
            message = receive(self._replies.fileno(), MAX_ANSWER)
        except BadFrame:
            message = None
            self._popen.kill()
        if message is None:
            raise self._died()
        return message

    def _died(self) -> ProcessDied:
        self.end()
        return ProcessDied(self._popen.returncode, expired=self._expired, stage=self._stage)

    def _enter(self, stage: str, stages: Mapping[str, float]) -> None:
        self._stage = stage
        self._watched(stages[stage])

    def _watched(self, seconds: float | None) -> None:
        """Replaces the process's deadline by one in so many seconds."""
        WATCHDOG.watch(self, seconds)

    def expire(self) -> None:
        """Kills the process because its time is up."""
        self._expired = True
        self._popen.kill()


class Watchdog:
    """A thread that kills processes whose time is up; a timer for each stage of each query would cost more than some
    queries do."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[Process, float] = {}
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None
        if hasattr(os, "register_at_fork"):
            # The threads and processes of a parent are not those of its child, and the lock may be held.
            os.register_at_fork(after_in_child=self._after_fork)

    def watch(self, process: Process, seconds: float | None) -> None:
        """Gives a process so many seconds from now; None for as long as it likes. When it returns, an earlier deadline
        no longer applies."""
        with self._changed:
            if seconds is None:
                self._deadlines.pop(process, None)
                return
            deadline = self._deadlines[process] = monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heedful-watchdog", daemon=True)
                self._thread.start()
            elif deadline < self._wakes_at:
                self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                now = monotonic()
                for process in [each for each, deadline in self._deadlines.items() if deadline <= now]:
                    del self._deadlines[process]
                    process.expire()
                self._wakes_at = min(self._deadlines.values(), default=math.inf)
                self._changed.wait(None if self._wakes_at == math.inf else max(0.0, self._wakes_at - now))

    def _after_fork(self) -> None:
        self._changed = threading.Condition()
        self._deadlines = {}
        self._wakes_at = math.inf
        self._thread = None


WATCHDOG = Watchdog()


def _paths() -> list[str]:
    """Where modules are found."""
    return list(dict.fromkeys(os.path.abspath(path) for path in sys.path if path))
