"""Which state the data in a file is in, from what the file system says about it.

The files are not opened: closing a file would drop the locks that this process holds on it through the database.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from time import time_ns

_SETTLED = 2_000_000_000
"""Two changes closer than this (in nanoseconds) may bear the same time."""


def version(path: Path, *logs: Path) -> str | None:
    """Changes with every commit to the file or its logs; None just after one, when the next could look the same."""
    parts = []
    for file in (path, *logs):
        try:
            state = file.stat()
        except FileNotFoundError:
            continue
        # A reader may leave an empty log behind, which changes nothing.
        if file is not path and state.st_size == 0:
            continue
        if time_ns() - state.st_mtime_ns < _SETTLED:
            return None
        parts.append(f"{file.name} {state.st_ino} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
