"""One query process, from the side of the server: started, asked, watched, and killed when its time is up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
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
        self._lock = threading.Lock()
        self._watch: threading.Timer | None = None
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
        with self._lock:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = None
            if seconds is not None:
                self._watch = watch = threading.Timer(seconds, lambda: self._expire(watch))
                watch.daemon = True
                watch.start()

    def _expire(self, watch: threading.Timer) -> None:
        with self._lock:
            # It may have answered meanwhile, and be working on another request.
            if self._watch is watch:
                self._expired = True
                self._popen.kill()


def _paths() -> list[str]:
    """Where modules are found."""
    return list(dict.fromkeys(os.path.abspath(path) for path in sys.path if path))
