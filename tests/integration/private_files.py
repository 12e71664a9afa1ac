"""Files of stores for tests that are not about making one."""

from __future__ import annotations

from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Writes the file of a store as a store does: nobody else may read it."""
    path.touch(0o600)
    path.write_bytes(content)
