"""A process that starts writers, each as a process of its own: a line of JSON on standard input for each.

It has loaded all they need, so that one is there at once. They end with it, and it ends with its standard input.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from typing import Any

from writer import say, write


def main() -> None:
    living, life = os.pipe()
    for line in sys.stdin:
        message = json.loads(line)
        pid = os.fork()
        if not pid:
            os.close(life)
            os._exit(_live(message, living))
        say(message["writer"], started=pid)
        threading.Thread(target=_wait, args=(message["writer"], pid), daemon=True).start()


def _wait(writer: str, pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    say(writer, ended=os.waitstatus_to_exitcode(status))


def _live(told: dict[str, Any], living: int) -> int:
    """The life of a writer, until it is asked to end or nobody is there any more; returns its exit status."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.set())

    def watch() -> None:
        os.read(living, 1)
        stopped.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        write(told, stopped)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        return 1
    return 0


if __name__ == "__main__":
    main()
