"""Programs of Heedful that start at once: most of what the start of one takes is the same imports again."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import warm_interpreter as program_of_copies
from warm_interpreter import Program

_KNOWN = re.compile("-[cmW]$|[^-]")
"""The first word after the interpreter, where a copy knows what to do with it."""

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


class WarmInterpreter:
    """Starts programs of this Python as copies of one that has imported everything, and others as usual."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.start_cold: Any = subprocess._fork_exec  # type: ignore[attr-defined]
        # With more threads than one, a copy would lack some of them.
        around = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, program_of_copies.__file__, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env=around, pass_fds=[theirs.fileno()], cwd="/"
            )

    def close(self) -> None:
        self._channel.close()
        self._process.wait(60)

    def start(self, *how: Any) -> int:
        """Does what `subprocess` wants done to start a program; the number of its process, which is a child of this."""
        arguments, _, _, kept, folder, environment = how[:6]
        pipes, (_, failed), session = how[6:12], how[12:14], how[15]
        as_usual = how[16:22] == (-1, None, None, None, -1, None)
        program, *options = map(os.fsdecode, arguments)
        if program != sys.executable or not as_usual or not _KNOWN.match(options[0]):
            return int(self.start_cold(*how))
        standard = [own if given == -1 else given for own, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        more = [handle for handle in kept if handle != failed]
        wanted = Program(
            options,
            os.getcwd() if folder is None else os.fsdecode(folder),
            dict(os.environb) if environment is None else dict(each.split(b"=", 1) for each in environment),
            [0, 1, 2, *more],
            bool(session),
            os.getpid(),
        )
        libc = ctypes.CDLL(None)
        with self._lock:
            libc.prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
            try:
                socket.send_fds(self._channel, [pickle.dumps(tuple(wanted))], [*standard, *more])
                return int(self._channel.recv(100))
            finally:
                libc.prctl(_ADOPT_ORPHANS, 0, 0, 0, 0)


@pytest.fixture(scope="session")
def warm_interpreter() -> Iterator[WarmInterpreter]:
    interpreter = WarmInterpreter()
    with contextlib.closing(interpreter):
        yield interpreter


@pytest.fixture
def warm_processes(warm_interpreter: WarmInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of this Python start at once, for tests that are not about what they import."""
    if sys.platform == "linux":
        monkeypatch.setattr(subprocess, "_fork_exec", warm_interpreter.start)


@pytest.fixture
def cold_processes(warm_processes: None, warm_interpreter: WarmInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs start with nothing imported, as they do for everybody else."""
    monkeypatch.setattr(subprocess, "_fork_exec", warm_interpreter.start_cold)
