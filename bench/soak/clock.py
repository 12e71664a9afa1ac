"""A clock that several processes share: it runs like the system's, and jumps when the driver says so."""

from __future__ import annotations

import mmap
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

_SIZE = 8


class SharedClock:
    """The system's clock and a number of seconds, which are kept in a file."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(_SIZE))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), _SIZE)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def jump(self, **duration: float) -> None:
        """Moves on by a duration, as `timedelta` takes it, in all processes at once."""
        self._shared[:_SIZE] = struct.pack("<d", (self._ahead + timedelta(**duration)).total_seconds())

    @property
    def _ahead(self) -> timedelta:
        return timedelta(seconds=struct.unpack("<d", self._shared[:_SIZE])[0])
