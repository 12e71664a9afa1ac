"""Where the files of the tests are: in memory, where there is room, since nobody needs them after a crash."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED = 3 << 30
"""Bytes that all tests need at once, with room to spare: what a test leaves goes as soon as it has passed."""


def keep_files_in_memory() -> None:
    """From now on, temporary files are in memory, unless TMPDIR says where they should be."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < NEEDED:
        return
    # For the processes that tests start, and for this one.
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
