"""A query process: reads requests from standard input, one at a time, and answers them.

It is started as a file, with `sys.path` as arguments, so that it imports the few modules it needs and not the engine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType


def _prepare() -> None:
    """Gives this process the parent's module path, without loading the package's public names."""
    sys.path[:] = sys.argv[2:]
    package = ModuleType("heedful")
    package.__path__ = [str(Path(__file__).resolve().parents[2])]
    sys.modules["heedful"] = package


def main() -> None:
    """Answers requests until the parent closes the pipe."""
    # Output of a driver must not mix with the messages.
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    _prepare()

    from heedful.sql.sandbox.handler import confine, serve

    confine(int(sys.argv[1]))
    serve(0, replies)


if __name__ == "__main__":
    main()
