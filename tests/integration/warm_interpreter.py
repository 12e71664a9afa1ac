"""A Python that has imported all of Heedful, and of which a copy becomes whatever program is asked for.

Run as a program, with the number of a socket over which it is asked."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import pickle
import pkgutil
import runpy
import signal
import socket
import sys
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

LATER = ("psycopg", "pymongo", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl", "wordllama")
"""What Heedful imports only when it needs it, and most programs do."""

_LIMIT = 1 << 20
"""Bytes of a request."""


class Program(NamedTuple):
    """What a copy becomes; `handles` are the numbers that its files have there."""

    arguments: list[str]
    folder: str
    environment: dict[bytes, bytes]
    handles: list[int]
    in_new_session: bool
    parent: int


def _import_all() -> None:
    import heedful

    def left_out(name: str) -> bool:
        return name.endswith("__main__") or name.startswith(("heedful.integrations.", "heedful.storage.migrations."))

    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if not left_out(module.name) or module.name == "heedful.integrations.claude_code":
            import_module(module.name)
    for name in LATER:
        import_module(name)
    # Some of them write what others log to standard error from then on.
    logging.basicConfig(force=True, handlers=[])
    logging.getLogger().setLevel(logging.WARNING)


def _await_program(channel: socket.socket) -> Program:
    """What this process shall become: it returns in each copy, and never in the one that is copied."""
    while True:
        message, handles, _, _ = socket.recv_fds(channel, _LIMIT, 32)
        if not message:
            sys.exit()
        program = Program(*pickle.loads(message))
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            # What the copy's own parent has left is adopted by the program that asked.
            copy = os.fork()
            if copy:
                os.write(writing, str(copy).encode())
                os._exit(0)
            for each in (reading, writing):
                os.close(each)
            channel.close()
            _become(program, handles)
            return program
        os.waitpid(between, 0)
        channel.send(os.read(reading, 100))
        for each in (reading, writing, *handles):
            os.close(each)


def _become(program: Program, handles: Sequence[int]) -> None:
    above = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 500) for each in handles]
    for each in handles:
        os.close(each)
    for each, wanted in zip(above, program.handles, strict=True):
        os.dup2(each, wanted)
        os.close(each)
    if program.in_new_session:
        os.setsid()
    os.environb.clear()
    os.environb.update(program.environment)
    os.chdir(program.folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while os.getppid() != program.parent:
        time.sleep(0.001)


def _run(arguments: Sequence[str]) -> None:
    """Does what Python does with its arguments."""
    first, *rest = arguments
    if first == "-W":
        warnings.simplefilter(rest[0])  # type: ignore[arg-type]
        _run(rest[1:])
    elif first == "-m":
        sys.argv = rest
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = list(arguments)
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is imported must not be what lies next to this file.
    del sys.path[0]
    _import_all()
    gc.freeze()
    _run(_await_program(socket.socket(fileno=int(sys.argv[1]))).arguments)
