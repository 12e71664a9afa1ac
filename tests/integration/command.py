"""The command line: in this process, or as a server that is a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from heedful.interfaces.cli import main


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


def run_main(*arguments: str) -> Done:
    """Runs the command as its program does, errors included, but without starting an interpreter."""
    code = 0
    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(io.StringIO()) as errors,
        patch.object(sys, "argv", ["heedful", *arguments]),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, output.getvalue(), errors.getvalue())


@dataclass(frozen=True, slots=True)
class Started:
    """A server that somebody has started by the command."""

    url: str
    key: str | None
    """What it printed; None if it had one."""


@contextmanager
def started(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Started]:
    """Serves on a free port until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", *arguments, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    printed = ""
    try:
        while (match := re.search(r"(?:serving|dashboard) on (\S+)", printed)) is None:
            line = process.stdout.readline()
            assert line, f"it ended: {printed}"
            printed += line
        # What it logs must go somewhere, or it would wait for room.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        key = re.search(r"hf_\S+", printed)
        yield Started(match[1], None if key is None else key[0])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
