"""`heedful serve` or `heedful dashboard` as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


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
        while (found := re.search(r"(?:serving|dashboard) on (\S+)", printed)) is None:
            line = process.stdout.readline()
            assert line, f"it ended: {printed}"
            printed += line
        # What it logs must go somewhere, or it would wait for room.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        key = re.search(r"hf_\S+", printed)
        yield Started(found[1], None if key is None else key[0])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
